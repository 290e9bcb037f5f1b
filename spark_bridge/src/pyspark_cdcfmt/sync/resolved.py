"""``consistency="resolved"``: all targets advance together, from watermark to watermark.

Rows and statements wait in the table ``staged`` until every topic partition has a higher
watermark.  The table ``progress`` maps target versions to watermarks.  It is written after all
targets, so a crashed batch has no row there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from cdcfmt_core.errors import OptionError, SourceError
from cdcfmt_core.texts import open_logger, parse_json
from cdcfmt_toolkit.topics.stream_offset import StreamOffset
from pyspark_cdcfmt.sync.control import ALL, Batch, Control
from pyspark_cdcfmt.sync.session import damaged, read_checkpoint
from pyspark_cdcfmt.sync.states import TableState
from pyspark_cdcfmt.sync.target import Target

logger = open_logger("pyspark_cdcfmt.sync")

EVENTUAL = "eventual"
"""A place in ``watermarks``: a run with ``eventual`` has followed those with ``resolved``."""

_AHEAD = (
    "option consistency: batches of this checkpoint ran with eventual, so the targets may be ahead "
    "of the next watermarks: set it to eventual as before, or start a new sync with another "
    "checkpoint and other targets"
)

_IS_CHANGE = "kind IN ('row', 'ddl')"


@attrs.define
class Resolved:
    """Watermarks of the source, and the staged events.

    :ivar resolved: the lowest of all partitions' last watermarks; 0 while one has none.  It never
        goes back: a partition that is added has none at first, or a lower one.
    """

    control: Control
    target: Target
    checkpoint: str
    parallel: int
    resolved: int = 0
    _watermarks: dict[str, int] | None = None
    """The last watermarks of completed batches, by topic partition."""
    _versions: dict[str, int] = attrs.field(factory=dict)
    """Versions of the targets at the last step."""
    _now: dict[str, int] = attrs.field(factory=dict)
    """The watermarks of this batch."""
    _before: int = 0
    """``resolved`` before this batch."""

    def release(self, events: DataFrame, batch: Batch) -> DataFrame:
        """Release the events below the resolved watermark; stage the others.

        :raises SourceError: for a row or statement without a commit_ts.
        """
        if self._watermarks is None:
            self._watermarks = self.control.watermarks(batch)
            reached = self._watermarks.pop(ALL, 0)
            lowest = self._lowest(events.sparkSession, batch.number - 1, self._watermarks)
            self.resolved = max(lowest, reached)
        self._before = self.resolved
        self._now = self._look(events)
        known = self._watermarks | self._now
        lowest = self._lowest(events.sparkSession, batch.number, known)
        self.resolved = max(lowest, self._before)
        waits = f.expr(_IS_CHANGE) & (f.col("commit_ts") >= self.resolved)
        self.control.keep_events(
            "staged", batch, "", events.where(waits), f.lit(None).cast("string")
        )
        if self.resolved > self._before:
            staged = self.control.staged(batch, self._before)
            events = events.unionByName(staged)
        return events.where(~f.coalesce(waits, f.lit(False)))

    def _look(self, events: DataFrame) -> dict[str, int]:
        """The watermarks of a batch."""
        place = f.concat_ws("/", "_source.topic", "_source.partition")
        table = f.concat_ws(".", "database", "schema", "table")
        where = f.concat(table, f.lit(" at "), f.to_json("_source"))
        rows = (
            events.where(f"kind = 'watermark' OR {_IS_CHANGE}")
            .groupBy(place.alias("place"))
            .agg(
                f.max(f.when(f.col("kind") == "watermark", f.col("commit_ts"))).alias("last"),
                f.min(f.when(f.expr(_IS_CHANGE) & f.col("commit_ts").isNull(), where)).alias(
                    "unordered"
                ),
            )
            .collect()
        )
        for row in rows:
            if row.unordered is not None:
                raise SourceError(
                    f"consistency=resolved: {row.unordered} has no commit_ts to compare with "
                    "watermarks: read it by another sync with consistency=eventual"
                )
        known = self._watermarks or {}
        return {row.place: max(row.last or 0, known.get(row.place, 0)) for row in rows}

    def _lowest(self, spark: SparkSession, number: int, known: Mapping[str, int]) -> int:
        """The lowest watermark of all partitions of the source at the end of a batch."""
        places = {*known, *self._partitions(spark, number)}
        return min((known.get(place, 0) for place in places), default=0)

    def _partitions(self, spark: SparkSession, number: int) -> Iterable[str]:
        """The topic partitions in Spark's end offset of a batch; empty for files."""
        if number < 0:
            return []
        offset = _planned(spark, self.checkpoint, number)[-1]
        if "topics" not in offset:
            return []
        return [f"{topic}/{partition}" for topic, partition in StreamOffset.of_json(offset).ends]

    def clean(self) -> None:
        """Remove the staged events that an earlier step released."""
        if self.control.has("staged"):
            self.control.unstage(self._before)

    def step(self, batch: Batch, states: Iterable[TableState], written: set[str]) -> None:
        """Record that all targets have reached the watermark.

        :param written: targets with a new version.
        """
        if self._watermarks is None:
            return
        if self.resolved > self._before:
            targets = {
                state.text: state.target
                for state in states
                if state.columns is not None and not state.halted
            }
            known = self._versions.keys() - written
            new = [target for target in targets.values() if target not in known]
            with ThreadPoolExecutor(self.parallel) as threads:
                found = dict(zip(new, threads.map(self._version, new), strict=True))
            for target, at in found.items():
                if at is None:
                    self._versions.pop(target, None)
                else:
                    self._versions[target] = at
            rows = [
                (source, target, self._versions[target], self.resolved)
                for source, target in targets.items()
                if target in self._versions
            ]
            self.control.note_progress(batch, rows)
        reached = {ALL: self.resolved} if self.resolved > self._before else {}
        self.control.note_watermarks(batch, self._now | reached)
        self._watermarks |= self._now

    def _version(self, target: str) -> int | None:
        """The version of a target; None if others have removed it: its table halts later."""
        try:
            return self.target.version(target)
        except Exception as error:
            if (reason := self.target.refusal(error)) is None:
                raise
            logger.warning("no row in progress for the target %s: %s", target, reason)
            return None


def _planned(spark: SparkSession, checkpoint: str, number: int) -> list[Any]:
    """Spark's own record of a batch: its metadata, and its end offset.

    :raises SourceError: if the checkpoint is damaged.
    """
    lines = read_checkpoint(spark, checkpoint, f"offsets/{number}")
    try:
        found = [parse_json(line) for line in lines if line.startswith("{")]
        int(found[0]["batchTimestampMs"])
    except (ValueError, LookupError, TypeError) as error:
        raise damaged(checkpoint, f"offsets/{number}", error) from error
    return found


def planned_at(spark: SparkSession, checkpoint: str, number: int) -> int:
    """When Spark planned a batch, in milliseconds since 1970; the same if it runs again."""
    return int(_planned(spark, checkpoint, number)[0]["batchTimestampMs"])


def check_consistency(control: Control, batch: Batch, *, is_resolved: bool) -> None:
    """Check the first batch of a run with the option ``consistency``.

    :raises OptionError: with ``eventual`` if staged events wait for watermarks; with ``resolved``
        after batches without it, which the watermarks do not cover.
    """
    # Each batch with resolved writes this table.
    has_staged = control.has("staged")
    if is_resolved:
        if batch.number and (not has_staged or EVENTUAL in control.watermarks(batch)):
            raise OptionError(_AHEAD)
    elif has_staged:
        # The watermark that the targets have reached has the place ALL.
        reached = control.watermarks(batch).get(ALL, 0)
        if count := control.staged(batch, reached).count():
            raise OptionError(
                f"option consistency: {count} earlier events wait in staged for watermarks: "
                "set it to resolved as before, or start a new sync with another checkpoint"
            )
        now = control.now()
        control.note_watermarks(Batch(EVENTUAL, int(now.timestamp() * 1000)), {EVENTUAL: 0})
