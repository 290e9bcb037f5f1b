"""What sync asks of a session, in ways that work without a JVM beside it, as over Spark Connect."""

from __future__ import annotations

import atexit
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from pyspark import StorageLevel
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from cdcfmt_core.errors import SourceError
from cdcfmt_core.texts import one_line, open_logger, parse_json

logger = open_logger("pyspark_cdcfmt.sync")

_GLOB = re.compile(r"[\\{}\[\]*?]")
"""Characters of a path that Spark takes as a pattern."""

_LOGS = ("offsets", "commits")
"""The folders of a checkpoint with a file for each batch, by number: planned, and finished."""

_SPLITS = re.compile(r"splits=(?:Some\()?(\d+)")

_NO_CACHE = (
    "this session keeps no DataFrames (%s): sync reads the messages of a batch again for each table"
)


def own_session(spark: SparkSession) -> SparkSession:
    """The session to start the query in.

    Spark gives a query a copy of its session.  Spark Connect runs the function of its batches in
    the session itself, whose settings and views sync changes: it gets a copy here.
    """
    if not is_remote():
        return spark
    copied: SparkSession = spark.cloneSession()  # type: ignore[attr-defined]
    # Views are copied at the first use of the copy's catalog.
    copied.catalog.currentDatabase()
    # A channel that is closed later, without its threads, waits for them: the program never ends.
    atexit.register(copied.client.close)
    return copied


@contextmanager
def in_views(
    spark: SparkSession, given: Mapping[str, DataFrame | str]
) -> Iterator[Mapping[str, DataFrame | str]]:
    """The DataFrames as names for ``spark.table``, where functions of a query cannot hold them.

    The views are gone afterwards; a copy of the session that is made before has them.
    """
    if not is_remote():
        yield given
        return
    views: list[str] = []
    named = dict(given)
    for text, rows in given.items():
        if isinstance(rows, DataFrame):
            views.append(f"cdcfmt_snapshot_{uuid.uuid4().hex}")
            rows.createOrReplaceTempView(views[-1])
            named[text] = views[-1]
    try:
        yield named
    finally:
        for view in views:
            spark.catalog.dropTempView(view)


def cores(spark: SparkSession) -> int | None:
    """The number of tasks that run at the same time; None if the session hides it."""
    ((plan,),) = spark.sql("EXPLAIN SELECT id FROM range(1)").collect()
    found = _SPLITS.search(plan)
    return int(found[1]) if found else None


def read_checkpoint(spark: SparkSession, checkpoint: str, name: str) -> list[str]:
    """The lines of a file in the checkpoint of a query."""
    return [row.value for row in spark.read.text(f"{_literal(checkpoint)}/{name}").collect()]


def has_unfinished_batch(spark: SparkSession, checkpoint: str) -> bool:
    """Whether a run of the query with this checkpoint ended within a batch."""
    offsets, commits = (_last_batch(spark, f"{_literal(checkpoint)}/{name}") for name in _LOGS)
    return offsets > commits


def _last_batch(spark: SparkSession, folder: str) -> int:
    try:
        paths = spark.read.format("binaryFile").load(folder).select("path").collect()
    except AnalysisException:
        # Spark makes the folder with the first batch.
        return -1
    names = (row.path.rpartition("/")[2] for row in paths)
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def _literal(path: str) -> str:
    return _GLOB.sub(r"\\\g<0>", path)


def query_id(spark: SparkSession, checkpoint: str) -> str:
    """Spark's id of the query with this checkpoint.

    :raises SourceError: if the checkpoint is damaged.
    """
    lines = read_checkpoint(spark, checkpoint, "metadata")
    try:
        return str(parse_json(lines[0])["id"])
    except (ValueError, LookupError, TypeError) as error:
        raise damaged(checkpoint, "metadata", error) from error


def damaged(checkpoint: str, name: str, error: Exception) -> SourceError:
    """The error for a file of a checkpoint that cannot be read."""
    return SourceError(
        f"{checkpoint}/{name} is damaged ({error!r:.200}): restore the checkpoint, "
        "or start a new sync with another checkpoint"
    )


class Kept:
    """DataFrames that are computed once, where the session keeps any."""

    def __init__(self) -> None:
        self._frames: list[DataFrame] = []

    def keep(self, rows: DataFrame) -> DataFrame:
        """The rows, to be used several times."""
        try:
            kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
        except PySparkException as error:
            # Only some computes refuse it; they do so at once.
            logger.warning(_NO_CACHE, one_line(str(error), 200))
            return rows
        self._frames.append(kept)
        return kept

    def release(self) -> None:
        while self._frames:
            self._frames.pop().unpersist()


@contextmanager
def keeping() -> Iterator[Kept]:
    kept = Kept()
    try:
        yield kept
    finally:
        kept.release()


@contextmanager
def settings(spark: SparkSession, wanted: Mapping[str, str | int]) -> Iterator[None]:
    """Settings that only save time, for as long as the body runs."""
    before: dict[str, str | None] = {}
    try:
        for name, value in wanted.items():
            old = get(spark, name)
            if set_if_allowed(spark, name, value):
                before[name] = old
        yield
    finally:
        for name, text in before.items():
            spark.conf.unset(name) if text is None else spark.conf.set(name, text)


def in_force(spark: SparkSession, name: str) -> str | None:
    """The value of a setting, by default Spark's; None if the session hides or lacks it."""
    with suppress(Exception):
        return spark.conf.get(name)
    return None


def get(spark: SparkSession, name: str) -> str | None:
    """A setting; None for one that is not set, or that the session hides."""
    try:
        return spark.conf.get(name, None)
    except PySparkException:
        return None


def set_if_allowed(spark: SparkSession, name: str, value: str | int) -> bool:
    """Set a setting; False if the session refuses it, as serverless computes do with most."""
    try:
        spark.conf.set(name, value)
    except PySparkException as error:
        logger.debug("the session refuses %s: %s", name, one_line(str(error), 200))
        return False
    return True
