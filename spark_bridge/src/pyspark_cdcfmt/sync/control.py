"""The tables that sync itself keeps: log, dead letters, held events, tombstones, table states."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from threading import Lock
from typing import Any

import attrs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import (
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_cdcfmt import SEQUENCE
from pyspark_cdcfmt.sync.names import TableName, quote, table_text
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
    "tombstones": _columns(
        source=StringType(), key=StringType(), sequence=SEQUENCE, at=TimestampType()
    ),
}


@attrs.frozen
class Batch:
    """What is worked at: a micro-batch of a query."""

    query_id: str
    number: int

    def once(self, purpose: str) -> Once:
        return f"cdcfmt:{self.query_id}:{purpose}", self.number


@attrs.frozen
class TableState:
    """What sync remembers of a source table between batches.

    ``columns`` are the table's own.  ``truncates`` have the ``_sequence`` of each TRUNCATE;
    ``places`` are the partitions with its rows, as far as no commit_ts orders them; ``ignored``
    are changes of columns that were not followed, and logged.  A table that is ``halted`` has the
    reason there, and its events wait in ``held``.  Once it resumes it is ``catching_up``, and the
    next batch has what was held until then; what was held until ``caught_up`` is done.  Both are
    texts of times.
    """

    name: TableName
    target: str
    keys: tuple[str, ...] = ()
    columns: StructType | None = None
    halted: str | None = None
    truncates: tuple[tuple[int, ...], ...] = ()
    places: frozenset[str] = frozenset()
    has_tombstones: bool = False
    ignored: frozenset[str] = frozenset()
    catching_up: str | None = None
    caught_up: str = "1970-01-01"

    @property
    def text(self) -> str:
        return table_text(self.name)

    def settled(self) -> TableState:
        """The state behind a batch that is done.

        Of what was held until now all is in the target, or held anew.  A TRUNCATE without a
        commit_ts has done its part: offsets of its partition go on rising, and those of other
        partitions say nothing.
        """
        state = self
        if state.catching_up:
            state = attrs.evolve(state, catching_up=None, caught_up=state.catching_up)
        if state.truncates and not state.truncates[-1][0]:
            state = attrs.evolve(state, truncates=())
        return state

    @property
    def says_anything(self) -> bool:
        """Whether it says more than that there is such a table."""
        return bool(self.columns or self.halted or self.truncates)

    def to_json(self) -> str:
        values = attrs.asdict(self, recurse=False)
        values["columns"] = self.columns and self.columns.jsonValue()
        values["places"], values["ignored"] = sorted(self.places), sorted(self.ignored)
        return json.dumps(values, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> TableState:
        values = json.loads(text)
        columns = values["columns"]
        return cls(
            **values
            | {
                "name": tuple(values["name"]),
                "keys": tuple(values["keys"]),
                "columns": columns and StructType.fromJson(columns),
                "truncates": tuple(map(tuple, values["truncates"])),
                "places": frozenset(values["places"]),
                "ignored": frozenset(values["ignored"]),
            }
        )


@attrs.define
class LogRow:
    """A row of the table ``log``."""

    action: str
    detail: str
    state: TableState | None = None
    level: str = "info"


class Control:
    """These tables, in one folder.  All writes are idempotent by query and batch."""

    def __init__(self, spark: SparkSession, target: Target, folder: str) -> None:
        self._spark = spark
        self._target = target
        self._folder = folder
        self._there: set[str] = set()
        self._lock = Lock()

    def table(self, name: str) -> str:
        return f"delta.{quote(f'{self._folder}/{name}')}"

    def _ensure(self, name: str, columns: StructType) -> str:
        """The table, which is made at its first use."""
        table = self.table(name)
        with self._lock:
            if name not in self._there:
                self._target.create(table, columns)
                self._there.add(name)
        return table

    def status(self) -> DataFrame:
        """The tables: source, target, why it is halted or NULL, and when it changed last."""
        rows = self._spark.table(self.table("tables"))
        last = rows.groupBy("source").agg(f.max_by("state", "at").alias("state"), f.max("at"))
        target, halted = (f.get_json_object("state", f"$.{name}") for name in ("target", "halted"))
        return last.select(
            "source", target.alias("target"), halted.alias("halted"), f.col("max(at)").alias("at")
        ).where("target <> ''")

    def load(self, batch: Batch) -> dict[TableName, TableState]:
        """The states of all tables as they were before a batch."""
        if not self.has("tables"):
            return {}
        is_earlier = f"query_id <> '{batch.query_id}' OR batch_id < {batch.number}"
        rows = (
            self._spark.table(self.table("tables"))
            .where(is_earlier)
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
            self._target.append(self._ensure(name, frame.schema), frame, batch.once(name))

    def keep_events(
        self, name: str, batch: Batch, part: str, events: DataFrame, letter: Column
    ) -> None:
        """Append events to ``dead_letters`` or ``held``, with the reason.

        :param part: tells those of one batch apart.
        """
        at, query_id, number = _stamp(batch)
        stamped = events.select(
            f.lit(at).alias("at"),
            f.lit(query_id).alias("query_id"),
            f.lit(number).cast("bigint").alias("batch_id"),
            letter.cast("string").alias("letter"),
            *(f.col(name) for name in events.columns if name != "letter"),
        )
        table = self._ensure(name, stamped.schema)
        self._target.append(table, stamped, batch.once(f"{name}:{part}"))

    def has(self, name: str) -> bool:
        return self._target.schema(self.table(name)) is not None

    def resume(self, state: TableState, action: str) -> TableState:
        """The state of a table that is to go on, kept before anything else is done for it."""
        now = datetime.now(UTC)
        resumed = attrs.evolve(state, halted=None, catching_up=now.isoformat())
        batch = Batch(f"{action} {state.text}", int(now.timestamp() * 1000))
        self.log(batch, [LogRow(action, state.halted or "", resumed)])
        self.save(batch, [resumed])
        return resumed

    def kept(self, name: str, state: TableState) -> DataFrame:
        """What came into ``held`` or ``dead_letters`` while the state tells, as events."""
        rows = self._spark.table(self.table(name)).where(
            f"at > timestamp'{state.caught_up}' AND at <= timestamp'{state.catching_up}'"
        )
        return rows.drop("at", "query_id", "batch_id", "letter")

    def bury(self, batch: Batch, state: TableState, keys: DataFrame) -> None:
        """Keep the ``key`` and ``sequence`` of deleted rows."""
        rows = keys.select(
            f.lit(state.text).alias("source"),
            "key",
            "sequence",
            f.current_timestamp().alias("at"),
        )
        table = self._ensure("tombstones", SCHEMAS["tombstones"])
        self._target.append(table, rows, batch.once(f"bury:{state.text}"))

    def tombstones(self, state: TableState) -> DataFrame:
        """Each ``key`` and ``sequence`` of deletes of a table."""
        found = self._spark.table(self.table("tombstones"))
        return found.where(f.col("source") == state.text).select("key", "sequence")

    def forget(self, seconds: float) -> None:
        """Remove the tombstones that are older."""
        self._target.run(
            f"DELETE FROM {self.table('tombstones')} "
            f"WHERE at < current_timestamp() - INTERVAL {int(seconds)} SECONDS"
        )


def _stamp(batch: Batch) -> tuple[datetime, str, int]:
    return datetime.now(UTC), batch.query_id, batch.number
