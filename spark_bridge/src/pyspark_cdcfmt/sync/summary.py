"""Summary of a batch: the tables with rows, and the statements."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import attrs
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f

from cdcfmt_core.events import DdlType, Message, SchemaChange
from cdcfmt_core.schemas.records import Statement
from cdcfmt_toolkit.row_changes import change_position
from pyspark_cdcfmt.blocks.schema import FILE, MESSAGES
from pyspark_cdcfmt.sync.expressions import (
    COMPARED,
    At,
    LogPlace,
    sequence_commit,
)
from pyspark_cdcfmt.sync.names import TableName


@attrs.frozen
class Counts:
    """Counts of a table's changes in a batch.

    :ivar first_bad: position of the first bad row.
    :ivar first: the lowest ``_sequence``.
    :ivar late: whether earlier batches may have deleted rows after ``first``.
    :ivar spread: whether changes of a key may be from several partitions.
    """

    changes: int = 0
    deletes: int = 0
    bad: int = 0
    first_bad: str = ""
    partial: int = 0
    first: tuple[int, ...] = ()
    late: bool = False
    spread: bool = False


@attrs.define
class Report:
    """Summary of a batch for the log and the terminal.

    :ivar first_corrupt: position of the first message that cannot be decoded.
    """

    batch_id: int
    tables: dict[str, Counts] = attrs.field(factory=dict)
    halted: list[str] = attrs.field(factory=list)
    events: int = 0
    statements: int = 0
    corrupt: int = 0
    first_corrupt: str = ""
    latest: datetime | None = None
    watermark: int | None = None

    @property
    def dead_letters(self) -> int:
        """Number of messages and rows that became dead letters."""
        return self.corrupt + sum(counts.bad for counts in self.tables.values())

    @property
    def lag(self) -> float | None:
        """Age of the newest change of the batch, in seconds."""
        return None if self.latest is None else time.time() - self.latest.timestamp()

    def position(self) -> str:
        """The progress of the batch as text."""
        text = f"batch {self.batch_id}, {self.corrupt} corrupt, to {self.latest}"
        if self.lag is not None:
            text += f", {self.lag:.0f} s behind the source"
        return text if self.watermark is None else f"{text}, watermark {self.watermark}"

    def line(self) -> str:
        """As JSON, on one line."""
        done = self.tables.values()
        values = {
            "batch": self.batch_id,
            "events": self.events,
            "tables": len(done),
            "changes": sum(counts.changes for counts in done),
            "deletes": sum(counts.deletes for counts in done),
            "dead_letters": self.dead_letters,
            "halted": self.halted,
            "latest": self.latest and self.latest.isoformat(),
            "lag_seconds": self.lag and round(self.lag, 1),
            "watermark": self.watermark,
        }
        return json.dumps(values, ensure_ascii=False)


@attrs.frozen
class TableVersion:
    """Rows of a table with the same columns.

    :ivar places: topic partitions or files of the rows, if no commit_ts orders them.
    :ivar first, last: the lowest and the highest position.
    :ivar log, first_log: the last and the first position in the source's log; None if any row has
        none.
    :ivar count: number of rows; of these ``reads`` are rows of the producer's snapshot,
        ``updates`` may have changed a key, and ``deletes`` are deletes.
    :ivar has_messages: whether the blocks hold undecoded messages.
    """

    protocol: str
    columns: tuple[Row, ...]
    key_columns: tuple[str, ...]
    places: frozenset[str]
    first: At
    last: At
    log: LogPlace | None = None
    count: int = 0
    reads: int = 0
    updates: int = 0
    deletes: int = 0
    has_messages: bool = False
    first_log: LogPlace | None = None

    def shifted(self, epochs: int) -> TableVersion:
        """The same rows that many epochs later."""
        first, last = self.first.shifted(epochs), self.last.shifted(epochs)
        return attrs.evolve(self, first=first, last=last)

    def lacks(self, name: str) -> bool:
        """Whether the rows lack a column."""
        return name.lower() not in {column.name.lower() for column in self.columns}

    def is_after(self, log: LogPlace | None) -> bool:
        """Whether all rows are after the position ``log``."""
        return log is not None and log.is_before_all(self.first_log)

    def may_precede(self, statement: TableStatement) -> bool:
        """Whether any row may be from before a statement.

        Offsets of two partitions have no order, and neither has the source's clock: a
        transaction may begin after a statement and end before it.
        """
        if statement.place is None or self.places == {statement.place}:
            return self.first < statement.at
        return not self.is_after(statement.log)


@attrs.frozen
class TableStatement:
    """A DDL statement, or a TRUNCATE without a statement, and its ``_sequence``.

    :ivar is_exact: whether the commit is a commit_ts; else it is the start of a millisecond.
    """

    name: TableName
    query: str
    type: str
    sequence: tuple[int, ...]
    place: str | None
    time: datetime | None
    of_snapshot: bool
    log: LogPlace | None = None
    is_exact: bool = True

    @property
    def span(self) -> tuple[int | None, int | None]:
        """Where rows from after it begin at the earliest, and for sure; None without a commit."""
        if self.place is not None:
            return None, None
        commits = (self.at.commit, None) if self.is_exact else (None, self.at.commit)
        found = Statement.after(self.query, *("", ""), *commits)
        assert found is not None
        return found.start, found.end

    def shifted(self, epochs: int) -> TableStatement:
        """The same statement that many epochs later."""
        epoch = self.at.shifted(epochs).epoch
        return attrs.evolve(self, sequence=(epoch, *self.sequence[1:]))

    @property
    def at(self) -> At:
        """Its position."""
        return At.of(self.sequence)

    @property
    def identity(self) -> Any:
        """Equal for the copies on all partitions."""
        return self.query, self.sequence if self.place is None else self.time or self.sequence


Shapes: TypeAlias = dict[int, tuple[tuple[Row, ...], tuple[str, ...]]]
"""Columns and key columns of blocks, by their hash."""

_MAX_SHAPES = 10_000
_SUMS = ("count", "truncates", "updates", "deletes", "logged")


def summarize(
    blocks: DataFrame, report: Report, known: Shapes | None = None
) -> dict[TableName, list[TableVersion]]:
    """Find the versions of each table with rows, in one pass over the blocks.

    The driver adds up the few blocks: an aggregation in Spark would compile classes.

    :param report: counts are added to it.
    :param known: shapes of earlier batches, to which new ones are added.
    """
    shapes = {} if known is None else known
    blocks = blocks.withColumn("shape", f.xxhash64("columns", "key_columns"))
    parts: dict[tuple[Any, ...], list[Row]] = {}
    for row in blocks.drop("columns", "key_columns", "payload").collect():
        key = row.kind, row.database, row.schema, row.table, row.protocol, row.shape
        parts.setdefault(key, []).append(row)
    _add_shapes(shapes, blocks, {key[-1] for key in parts if key[0] == "row"})
    found: dict[TableName, list[TableVersion]] = {}
    for (kind, *name, protocol, number), those in parts.items():
        total = Counter[str]()
        for row in those:
            total.update({each: row[each] or 0 for each in _SUMS})
        report.events += total["count"]
        if kind == "corrupt":
            report.corrupt += total["count"]
        elif kind == "ddl":
            report.statements += total["count"]
        elif kind == "row":
            report.statements += total["truncates"]
            times = (report.latest, *(row.latest for row in those))
            report.latest = max(filter(None, times), default=None)
            if total["count"] > total["truncates"]:
                version = _version(protocol, shapes[number], total, those)
                found.setdefault((name[0], name[1], name[2]), []).append(version)
    for versions in found.values():
        versions.sort(key=lambda version: version.first)
    return found


def _version(
    protocol: str,
    shape: tuple[tuple[Row, ...], tuple[str, ...]],
    total: Mapping[str, int],
    rows: Sequence[Row],
) -> TableVersion:
    """Merge blocks with the same shape into a version."""
    log = max((row.log for row in rows if row.log is not None), default=None)
    first_log = min((row.first_log for row in rows if row.first_log is not None), default=None)
    is_logged = total["logged"] == total["count"]
    servers = {server for row in rows for server in row.servers or ()}
    return TableVersion(
        protocol,
        *shape,
        frozenset(place for row in rows for place in row.places),
        At(*min(row["first"] for row in rows)),
        At(*max(row["last"] for row in rows)),
        LogPlace.of(servers, log.file, log.pos) if log and is_logged else None,
        total["count"] - total["truncates"],
        sum(row["count"] for row in rows if row.is_read),
        total["updates"],
        total["deletes"],
        all(row.form == MESSAGES for row in rows) and not total["truncates"],
        LogPlace.of(servers, first_log.file, first_log.pos) if first_log and is_logged else None,
    )


def _add_shapes(shapes: Shapes, blocks: DataFrame, wanted: set[int]) -> None:
    if len(shapes) > _MAX_SHAPES:
        shapes.clear()
    if new := wanted - shapes.keys():
        rows = blocks.select("shape", "columns", "key_columns").where(f.col("shape").isin(*new))
        for row in rows.dropDuplicates(["shape"]).collect():
            shapes[row.shape] = tuple(row.columns or ()), tuple(row.key_columns or ())


def read_statements(events: DataFrame) -> dict[TableName, list[TableStatement]]:
    """The statements of a batch in order, without their copies on other partitions."""
    rows = (
        events.where("kind = 'ddl' OR op = 'truncate'")
        .select(
            *("database", "schema", "table", "ddl", "commit_ts", "source_time", "_source"),
            _place().alias("place"),
            f.to_json("extra").alias("extra"),
        )
        .collect()
    )
    found: dict[TableName, dict[Any, TableStatement]] = {}
    times = Counter[Any]()
    for statement in sorted(map(_statement, rows), key=lambda each: each.sequence):
        same = statement.identity
        if statement.place is not None:
            # A partition has no copies: two equal statements of one second (the unit of binlog
            # clocks) are two statements.
            here = statement.name, same, statement.place
            times[here] += 1
            same = same, times[here]
        found.setdefault(statement.name, {}).setdefault(same, statement)
    return {name: [*each.values()] for name, each in found.items()}


def _statement(row: Row) -> TableStatement:
    query: str = row.ddl.query if row.ddl else "TRUNCATE"
    type_: DdlType = row.ddl.type if row.ddl else "TRUNCATE"
    extra: dict[str, Any] = {} if row.extra is None else json.loads(row.extra)
    event = SchemaChange(
        query,
        type_,
        row.database or "",
        row.table or "",
        row.schema,
        sequence_commit=extra.get("sequence_commit"),
        commit_ts=row.commit_ts,
        index=row._source["index"] or 0,
        extra=extra,
    )
    source = row._source
    message = Message(
        None, None, partition=source.partition, offset=source.offset or 0, epoch=source.epoch or 0
    )
    cells = change_position(message, event, "truncate", ())["sequence"]
    is_logged = cells["commit"] == 0 and cells["pos"] is not None
    return TableStatement(
        (row.database, row.schema, row.table),
        query,
        type_,
        tuple(cells.values())[:COMPARED],
        row.place,
        row.source_time,
        extra.get("snapshot") not in (None, False, "false"),
        LogPlace.of([cells["server"] or 0], cells["file"], cells["pos"]) if is_logged else None,
        row.commit_ts is not None,
    )


def _place() -> Column:
    """The topic partition or file of an event that has no commit to order it."""
    file = f.concat(f.lit(FILE), f.coalesce("_source.path", f.lit("")))
    place = f.when(f.col("_source.topic").isNull(), file).otherwise(
        f.concat_ws("/", "_source.topic", "_source.partition")
    )
    return f.when(f.coalesce("commit_ts", sequence_commit()).isNull(), place)
