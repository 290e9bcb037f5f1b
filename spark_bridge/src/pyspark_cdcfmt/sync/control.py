"""Control tables of sync: log, dead letters, held events, table states."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any

import attrs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from cdcfmt_core.errors import OptionError
from pyspark_cdcfmt.sync.names import TableName
from pyspark_cdcfmt.sync.states import TableState
from pyspark_cdcfmt.sync.target import Once, Run, Target, check_last, writer_name


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
}
TABLES = (*SCHEMAS, "held", "dead_letters", "staged", "tombstones")

ADDED = ("at", "query_id", "batch_id", "letter", "headers")
"""Columns of kept events that events lack; ``headers`` is in tables of earlier versions."""

ALL = "*"
"""The place of the resolved watermark in the table ``watermarks``; others are TOPIC/PARTITION."""

QUERY_PROPERTY = "cdcfmt.query"
"""The property of a table that names the query that appends to it; of any query if empty."""

_SELECTIONS = "cdcfmt.selections"
"""The property of the table ``tables`` with the values of ``tables`` and ``exclude`` so far."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_PLACE = ("topic", "partition", "path", "offset")
"""The position of a message, in ``_source``."""

_FILE_BYTES = 64 << 20
"""The size of compacted files."""


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
        return writer_name(self.query_id, purpose), self.number


@attrs.define
class LogRow:
    """A row of the table ``log``."""

    action: str
    detail: str
    state: TableState | None = None
    level: str = "info"


class Control:
    """The control tables, in one folder.

    Writes are idempotent per query and batch, except for ``tombstones``.
    """

    def __init__(
        self, spark: SparkSession, target: Target, folder: str, run: Run | None = None
    ) -> None:
        self._spark = spark
        self._run = run
        self._target = target
        self._folder = folder
        self._there: set[str] = set()
        self._lock = Lock()
        self._latest = _EPOCH
        self.first = Batch("", 0)
        """The first batch of this run; an earlier run may have crashed in it."""
        self.selections: list[Any] = []
        """``tables`` and ``exclude`` of earlier runs, where they differ."""
        self._discarded: Batch | None = None
        """The batch that :meth:`discard_kept` was called for."""

    def table(self, name: str) -> str:
        return self._target.control_table(self._folder, name)

    def append(self, name: str, rows: DataFrame, once: Once | None) -> None:
        """Append rows to a table; the first append creates it."""
        if name not in self._there:
            with self._lock:
                if name not in self._there:
                    self._target.append(self.table(name), rows, once, self._target.brief)
                    self._there.add(name)
                    return
        self._target.append(self.table(name), rows, once)

    def status(self) -> DataFrame:
        """Tables with target, reason of a halt or NULL, and time of their last state."""
        rows = self.rows("tables")
        last = rows.groupBy("source").agg(f.max_by("state", "at").alias("state"), f.max("at"))
        target, halted, columns = (
            f.get_json_object("state", f"$.{name}") for name in ("target", "halted", "columns")
        )
        # Others have had only statements so far.
        return (
            last.select(
                "source",
                target.alias("target"),
                halted.alias("halted"),
                f.col("max(at)").alias("at"),
                columns.isNotNull().alias("has_columns"),
            )
            .where("target <> '' AND (halted IS NOT NULL OR has_columns)")
            .drop("has_columns")
        )

    def load(self, batch: Batch, selection: Sequence[Any] = ()) -> dict[TableName, TableState]:
        """Load the states of all tables before ``batch``, the first one of this run.

        :param selection: ``tables`` and ``exclude`` of this run.
        :raises OptionError: if the table of states is missing after the first batch, or is that of
            another query.
        """
        self.first = batch
        table, selection = self.table("tables"), [*map(list, selection)]
        if not self.has("tables"):
            if batch.number:
                raise OptionError(
                    f"{self._folder} has no states of tables, but {batch.number} batches of the "
                    "checkpoint are complete: set control as before, restore the folder, or start "
                    "a new sync with another checkpoint"
                )
            # A later run without it has lost them.
            marks = {QUERY_PROPERTY: batch.query_id, _SELECTIONS: json.dumps([selection])}
            self._target.create(
                table, SCHEMAS["tables"], properties={**self._target.brief, **marks}
            )
            return {}
        properties = self._target.properties(table)
        if owner := claim(self._target, table, properties, batch.query_id):
            raise OptionError(
                f"option control: {self._folder} has the state of another query, {owner}: choose "
                f"another folder. If that query is gone, ALTER TABLE {table} SET TBLPROPERTIES "
                f"('{QUERY_PROPERTY}' = '{batch.query_id}') lets this one continue its tables"
            )
        if self._run is not None:
            self._check_last(table, self._run)
        known = json.loads(properties.get(_SELECTIONS, "[]"))
        self.selections = [each for each in known if each != selection]
        if selection not in known:
            marks = {_SELECTIONS: json.dumps([*known, selection])}
            self._target.set_properties(table, marks)
        return {state.name: state for state in self.states(batch.is_earlier)}

    def _check_last(self, table: str, run: Run) -> None:
        """:raises SinkError: if a run of the query was ahead of this one."""
        rows = self.rows("tables").where(f.col("query_id") == run.query_id)
        last = f.max(f.struct("batch_id", f.unix_millis("at").alias("at")))
        ((found,),) = rows.agg(last).collect()
        if found is not None and found.batch_id >= run.first:
            check_last(table, run, found.batch_id, found.at)

    def states(self, where: str = "true") -> list[TableState]:
        """The last state of each table among the rows that a SQL condition selects."""
        place = f.when(f.expr(where), f.struct("at", "batch_id"))
        rows = (
            self.rows("tables")
            .groupBy("source")
            .agg(f.max_by("state", place).alias("state"), _last_stamp())
            .collect()
        )
        for row in rows:
            self._continue_after(row.stamp)
        return [TableState.from_json(row.state) for row in rows if row.state is not None]

    def save(self, batch: Batch, states: Iterable[TableState]) -> None:
        rows = [(*self._stamp(batch), state.text, state.to_json()) for state in states]
        self._write("tables", batch, rows)

    def log(self, batch: Batch, rows: Iterable[LogRow]) -> None:
        cells = []
        for row in rows:
            table = (row.state.text, row.state.target) if row.state else (None, None)
            cells.append((*self._stamp(batch), row.level, *table, row.action, row.detail))
        self._write("log", batch, cells)

    def _write(self, name: str, batch: Batch, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            frame = self._spark.createDataFrame(rows, SCHEMAS[name])
            # One file: by default one for each core, and an empty one.
            self.append(name, frame.coalesce(1), batch.once(name))

    def keep_events(
        self, name: str, batch: Batch, part: str, events: DataFrame, letter: Column
    ) -> None:
        """Append events with the reason ``letter``; ``part`` distinguishes appends of a batch."""
        at, query_id, number = self._stamp(batch)
        stamped = events.select(
            f.lit(at).alias("at"),
            f.lit(query_id).alias("query_id"),
            f.lit(number).cast("bigint").alias("batch_id"),
            letter.cast("string").alias("letter"),
            *(f.col(name) for name in events.columns if name != "letter"),
        )
        once = None if batch == self._discarded else batch.once(f"{name}:{part}")
        self.append(name, stamped, once)

    def has(self, name: str) -> bool:
        return self._target.exists(self.table(name))

    def rows(self, name: str) -> DataFrame:
        """The rows of a table."""
        return self._target.read(self.table(name))

    def discard_kept(self) -> None:
        """Remove events that a crashed run of this batch kept: this run has more events."""
        for name in filter(self.has, ("held", "dead_letters", "staged")):
            self.delete(name, f"NOT ({self.first.is_earlier})")
        self._discarded = self.first

    def watermarks(self, batch: Batch) -> dict[str, int]:
        """The last watermark of each place, before a batch."""
        if not self.has("watermarks"):
            return {}
        rows = self.rows("watermarks").where(batch.is_earlier)
        last = rows.groupBy("place").agg(f.max("watermark").alias("watermark")).collect()
        return {row.place: row.watermark for row in last}

    def note_watermarks(self, batch: Batch, watermarks: Mapping[str, int]) -> None:
        rows = [(*self._stamp(batch), place, last) for place, last in watermarks.items()]
        self._write("watermarks", batch, rows)

    def note_progress(self, batch: Batch, rows: Iterable[tuple[str, str, int, int]]) -> None:
        """Append rows of source, target, target version and watermark."""
        self._write("progress", batch, [(*self._stamp(batch), *row) for row in rows])

    def staged(self, batch: Batch, since: int) -> DataFrame:
        """Events staged before ``batch``, with a commit_ts of ``since`` or later."""
        rows = self.rows("staged").where(batch.is_earlier)
        return rows.where(f.col("commit_ts") >= since).drop(*ADDED)

    def delete(self, name: str, where: str) -> None:
        """Remove the rows that a SQL condition selects."""
        self._target.run(f"DELETE FROM {self.table(name)} WHERE {where}")

    def forget_earlier_letters(self, until: str) -> None:
        """Remove the dead letters up to a time that are there again later."""
        table = self.table("dead_letters")
        places = ", ".join(f"_source.{part} AS {part}" for part in _PLACE)
        same = " AND ".join(f"t._source.{part} <=> s.{part}" for part in _PLACE)
        self._target.run(
            f"MERGE INTO {table} t USING (SELECT DISTINCT {places} FROM {table} "
            f"WHERE at > timestamp'{until}') s ON t.at <= timestamp'{until}' AND {same} "
            "WHEN MATCHED THEN DELETE"
        )

    def unstage(self, before: int) -> None:
        """Remove staged events with a commit_ts below ``before``; the targets have them."""
        self.delete("staged", f"commit_ts < {before}")

    def clean(self, *, vacuum: bool) -> None:
        """Compact the tables: each batch adds files; ``vacuum``: also remove unused files."""
        for name in filter(self.has, TABLES):
            self._target.compact(self.table(name), _FILE_BYTES, vacuum=vacuum)

    def now(self) -> datetime:
        """The time, later than in all rows so far: ``at`` orders states and held events."""
        now = datetime.now(UTC)
        self._latest = now if now > self._latest else self._latest + timedelta(milliseconds=1)
        return self._latest

    def follow_clock(self, *names: str) -> None:
        """Continue :meth:`now` after the rows of tables: another machine may have written them."""
        for name in filter(self.has, names):
            (last,) = self.rows(name).agg(_last_stamp()).collect()
            self._continue_after(last.stamp or 0)

    def _continue_after(self, micros: int) -> None:
        self._latest = max(self._latest, _EPOCH + timedelta(microseconds=micros))

    def _stamp(self, batch: Batch) -> tuple[datetime, str, int]:
        return self.now(), batch.query_id, batch.number


def claim(target: Target, table: str, marks: Mapping[str, str], query_id: str) -> str | None:
    """Make a query the owner of a table; returns the owner if that is another query."""
    owner = marks.get(QUERY_PROPERTY)
    if owner is None:
        target.set_properties(table, {QUERY_PROPERTY: query_id})
    return owner if owner not in ("", query_id) else None


def _last_stamp() -> Column:
    """The newest ``at`` in microseconds since 1970, as ``stamp``; NULL without rows."""
    return f.max(f.unix_micros("at")).alias("stamp")
