"""Control tables of sync: log, dead letters, held events, tombstones, table states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from threading import Lock
from typing import Any

import attrs
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from pyspark_cdcfmt import SEQUENCE
from pyspark_cdcfmt.sync.expressions import key_text_now, literal
from pyspark_cdcfmt.sync.names import TableName, quote
from pyspark_cdcfmt.sync.states import RecentDeletes, Sequence, TableState
from pyspark_cdcfmt.sync.targets.protocol import Once, Target


def _columns(**types: Any) -> StructType:
    return StructType([StructField(name, type_) for name, type_ in types.items()])


_STAMP = {"at": TimestampType(), "query_id": StringType(), "batch_id": LongType()}
SCHEMAS = {
    "log": _columns(
        **_STAMP,
        level=StringType(),
        source=StringType(),
        target=StringType(),
        action=StringType(),
        detail=StringType(),
    ),
    "tables": _columns(**_STAMP, source=StringType(), state=StringType()),
    "watermarks": _columns(**_STAMP, place=StringType(), watermark=LongType()),
    "progress": _columns(
        **_STAMP,
        source=StringType(),
        target=StringType(),
        version=LongType(),
        watermark=LongType(),
    ),
    "tombstones": _columns(
        source=StringType(), key=StringType(), sequence=SEQUENCE, at=TimestampType()
    ),
}

ADDED = ("at", "query_id", "batch_id", "letter", "headers")
"""Columns of kept events that events lack; ``headers`` is in tables of earlier versions."""

_ROWS_OF_A_FILE = 1_000_000
_FEW = 10_000
"""Maximum number of deleted keys per batch that the driver collects and remembers."""


@attrs.frozen
class Batch:
    """A micro-batch of a query."""

    query_id: str
    number: int

    @property
    def is_earlier(self) -> str:
        """SQL condition for rows of a control table that an earlier batch wrote."""
        return f"query_id <> '{self.query_id}' OR batch_id < {self.number}"

    def once(self, purpose: str) -> Once:
        return f"cdcfmt:{self.query_id}:{purpose}", self.number


@attrs.define
class LogRow:
    """A row of the table ``log``."""

    action: str
    detail: str
    state: TableState | None = None
    level: str = "info"


class Control:
    """The control tables, in one folder.

    Writes are idempotent per query and batch, except for ``tombstones``, which may hold
    duplicates.
    """

    def __init__(self, spark: SparkSession, target: Target, folder: str) -> None:
        self._spark = spark
        self._target = target
        self._folder = folder
        self._there: set[str] = set()
        self._lock = Lock()
        self._recent_deletes: dict[str, RecentDeletes] | None = None
        self._first = Batch("", 0)
        """The first batch of this run; an earlier run may have crashed in it."""
        self._discarded: Batch | None = None
        """The batch that :meth:`discard_kept` was called for."""

    def table(self, name: str) -> str:
        return f"delta.{quote(f'{self._folder}/{name}')}"

    def _append(self, name: str, rows: DataFrame, once: Once | None) -> None:
        """Append rows to a table; the first append creates it."""
        if name not in self._there:
            with self._lock:
                if name not in self._there:
                    self._target.append(self.table(name), rows, once)
                    self._there.add(name)
                    return
        self._target.append(self.table(name), rows, once)

    def status(self) -> DataFrame:
        """Tables with target, reason of a halt or NULL, and time of the last change."""
        rows = self._spark.table(self.table("tables"))
        last = rows.groupBy("source").agg(f.max_by("state", "at").alias("state"), f.max("at"))
        target, halted = (f.get_json_object("state", f"$.{name}") for name in ("target", "halted"))
        return last.select(
            "source", target.alias("target"), halted.alias("halted"), f.col("max(at)").alias("at")
        ).where("target <> ''")

    def load(self, batch: Batch) -> dict[TableName, TableState]:
        """Load the states of all tables before ``batch``, the first one of this run."""
        self._first = batch
        if not self.has("tables"):
            return {}
        rows = (
            self._spark.table(self.table("tables"))
            .where(batch.is_earlier)
            .groupBy("source")
            .agg(f.max_by("state", f.struct("at", "batch_id")).alias("state"))
            .collect()
        )
        states = (TableState.from_json(row.state) for row in rows)
        return {state.name: state for state in states}

    def save(self, batch: Batch, states: Iterable[TableState]) -> None:
        rows = [(*_stamp(batch), state.text, state.to_json()) for state in states]
        self._write("tables", batch, rows)

    def log(self, batch: Batch, rows: Iterable[LogRow]) -> None:
        self._write(
            "log",
            batch,
            [
                (
                    *_stamp(batch),
                    row.level,
                    row.state and row.state.text,
                    row.state and row.state.target,
                    row.action,
                    row.detail,
                )
                for row in rows
            ],
        )

    def _write(self, name: str, batch: Batch, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            frame = self._spark.createDataFrame(rows, SCHEMAS[name])
            self._append(name, frame, batch.once(name))

    def keep_events(
        self, name: str, batch: Batch, part: str, events: DataFrame, letter: Column
    ) -> None:
        """Append events with the reason ``letter``; ``part`` distinguishes appends of a batch."""
        at, query_id, number = _stamp(batch)
        stamped = events.select(
            f.lit(at).alias("at"),
            f.lit(query_id).alias("query_id"),
            f.lit(number).cast("bigint").alias("batch_id"),
            letter.cast("string").alias("letter"),
            *(f.col(name) for name in events.columns if name != "letter"),
        )
        once = None if batch == self._discarded else batch.once(f"{name}:{part}")
        self._append(name, stamped, once)

    def has(self, name: str) -> bool:
        return self._target.schema(self.table(name)) is not None

    def kept(self, name: str) -> DataFrame:
        """The rows of ``held``, ``dead_letters`` or ``staged``."""
        return self._spark.table(self.table(name))

    def discard_kept(self) -> None:
        """Remove events that a crashed run of this batch kept: this run has more events."""
        for table in map(self.table, filter(self.has, ("held", "dead_letters", "staged"))):
            self._target.run(f"DELETE FROM {table} WHERE NOT ({self._first.is_earlier})")
        self._discarded = self._first

    def watermarks(self, batch: Batch) -> dict[str, int]:
        """The last watermark of each place, before a batch."""
        if not self.has("watermarks"):
            return {}
        rows = self._spark.table(self.table("watermarks")).where(batch.is_earlier)
        last = rows.groupBy("place").agg(f.max("watermark").alias("watermark")).collect()
        return {row.place: row.watermark for row in last}

    def note_watermarks(self, batch: Batch, watermarks: Mapping[str, int]) -> None:
        rows = [(*_stamp(batch), place, last) for place, last in watermarks.items()]
        self._write("watermarks", batch, rows)

    def note_progress(self, batch: Batch, rows: Iterable[tuple[str, str, int, int]]) -> None:
        """Append rows of source, target, target version and watermark."""
        self._write("progress", batch, [(*_stamp(batch), *row) for row in rows])

    def staged(self, batch: Batch, since: int) -> DataFrame:
        """Events staged before ``batch``, with a commit_ts of ``since`` or later."""
        rows = self.kept("staged").where(batch.is_earlier)
        return rows.where(f.col("commit_ts") >= since).drop(*ADDED)

    def unstage(self, before: int) -> None:
        """Remove staged events with a commit_ts below ``before``; the targets have them."""
        self._target.run(f"DELETE FROM {self.table('staged')} WHERE commit_ts < {before}")

    def add_tombstones(self, keys: DataFrame, most: int) -> pa.Table | None:
        """Append the ``source``, ``key`` and ``sequence`` of deleted rows to ``tombstones``.

        :param most: an upper bound of the number of rows.
        :returns: the rows, if they are few; else None.
        """
        keys = keys.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            if most > _FEW:
                most = keys.count()
            few = keys.toArrow() if most <= _FEW else None
            if few is not None and not few.num_rows:
                return few
            rows = keys if few is None else self._spark.createDataFrame(few, keys.schema)
            rows = rows.withColumn("at", f.current_timestamp())
            # A repeated batch may have more rows, and duplicates have no effect: not idempotent.
            self._append("tombstones", rows.coalesce(1 + most // _ROWS_OF_A_FILE), None)
            return few
        finally:
            keys.unpersist()

    def remember_deletes(self, newest: Mapping[str, Sequence], few: pa.Table | None) -> set[str]:
        """Remember what :meth:`add_tombstones` appended; returns tables that may have tombstones.

        :param newest: an upper bound of the deletes' ``sequence``, by table.
        """
        rows = () if few is None else few.to_pylist()
        texts = {*newest} if few is None else {row["source"] for row in rows}
        with self._lock:
            if self._recent_deletes is None:
                return texts
            for text in texts:
                recent = self._recent_deletes.setdefault(text, RecentDeletes())
                if few is None:
                    recent.since = max(recent.since, newest[text])
                else:
                    its = (row for row in rows if row["source"] == text)
                    recent.add((tuple(row["sequence"].values()), row["key"]) for row in its)
        return texts

    def has_deletes_since(self, state: TableState, sequence: Sequence) -> bool:
        """Whether any row of a table may have been deleted after a position."""
        with self._lock:
            if self._recent_deletes is None:
                found = self._spark.table(self.table("tombstones")).groupBy("source")
                rows = found.agg(f.max("sequence").alias("sequence")).collect()
                self._recent_deletes = {
                    row.source: RecentDeletes(tuple(row.sequence)) for row in rows
                }
            behind = self._recent_deletes.get(state.text, RecentDeletes()).behind(sequence)
            return behind is None or bool(behind)

    def tombstones(self, state: TableState, sequence: Sequence) -> DataFrame:
        """Columns ``key`` and ``sequence`` of the deletes of a table after a position."""
        assert state.columns is not None
        with self._lock:
            known = (self._recent_deletes or {}).get(state.text)
            behind = None if known is None else known.behind(sequence)
        if behind is not None:
            rows = [(key, at) for at, key in behind]
            schema = _columns(key=StringType(), sequence=SEQUENCE)
            found = self._spark.createDataFrame(rows, schema)
        else:
            found = self._spark.table(self.table("tombstones"))
            found = found.where(f.col("source") == state.text)
            found = found.where(f"sequence > {literal(sequence)}")
        return found.select(key_text_now(state.keys, state.columns).alias("key"), "sequence")

    def forget(self, seconds: float) -> None:
        """Remove tombstones older than ``seconds``."""
        self._target.run(
            f"DELETE FROM {self.table('tombstones')} "
            f"WHERE at < current_timestamp() - INTERVAL {int(seconds)} SECONDS"
        )


def _stamp(batch: Batch) -> tuple[datetime, str, int]:
    return datetime.now(UTC), batch.query_id, batch.number
