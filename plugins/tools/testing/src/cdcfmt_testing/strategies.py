"""Arbitrary events and schemas for hypothesis, within a format's :class:`Carries`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hypothesis import strategies as st

from cdcfmt_core.events import (
    Event,
    Heartbeat,
    Image,
    Kind,
    LogicalMessage,
    Op,
    RowChange,
    SchemaChange,
    TableSchema,
    TableSchemaEvent,
    Transaction,
    Watermark,
)
from cdcfmt_core.types import Binary, LogicalType, Text
from cdcfmt_testing.carries import Carries
from cdcfmt_testing.values import texts, values

_ALL_OPS: Final[tuple[Op, ...]] = ("insert", "update", "delete")


@st.composite
def event_lists(draw: st.DrawFn, carries: Carries, *, wide: bool = False) -> list[Event]:
    """Row changes of one table, with events of other kinds between them.

    A ``wide`` table has columns of all types, and a key of text and bytes.
    """
    kinds = carries.kinds or frozenset({"row"})
    events: list[Event] = []
    if "row" in kinds:
        events += draw(row_changes(carries, table=wide_tables(carries) if wide else None))
    others = [_OTHERS[kind](carries) for kind in sorted(kinds - {"row", "corrupt"})]
    if others:
        least = 0 if events else 1
        for other in draw(st.lists(st.one_of(others), min_size=least, max_size=3)):
            events.insert(draw(st.integers(0, len(events))), other)
    if carries.ddl_first and "row" in kinds:
        events.insert(0, _telling(carries, events))
    return events


def names() -> st.SearchStrategy[str]:
    return texts().filter(bool)


@st.composite
def tables(draw: st.DrawFn, carries: Carries) -> TableSchema:
    """A table of one to six columns; the first zero to two are its key."""
    types = draw(st.lists(st.sampled_from(carries.types), min_size=1, max_size=6))
    return draw(_tables_of(carries, types, draw(st.integers(0, min(2, len(types))))))


def wide_tables(carries: Carries) -> st.SearchStrategy[TableSchema]:
    """Tables with a column of every type."""
    keys = [logical for logical in (Text(), Binary()) if logical in carries.types]
    return _tables_of(carries, [*keys, *carries.types], len(keys))


@st.composite
def _tables_of(
    draw: st.DrawFn, carries: Carries, types: list[LogicalType], keys: int
) -> TableSchema:
    column_names = draw(st.lists(names(), min_size=len(types), max_size=len(types), unique=True))
    columns = [
        carries.column(name, logical, index < keys)
        for index, (name, logical) in enumerate(zip(column_names, types, strict=True))
    ]
    return TableSchema(draw(names()), draw(names()), tuple(columns), tuple(column_names[:keys]))


def _milliseconds() -> st.SearchStrategy[int]:
    return st.integers(1_000_000_000_000, 4_000_000_000_000)


def _commit_ts() -> st.SearchStrategy[int]:
    return st.builds(
        lambda physical, logical: physical << 18 | logical,
        _milliseconds(),
        st.integers(0, (1 << 18) - 1),
    )


@st.composite
def _occurrences(draw: st.DrawFn, carries: Carries) -> dict[str, Any]:
    """The times of an event, limited to those that the format carries."""
    fields: dict[str, Any] = {}
    unit = carries.time_unit
    if "commit_ts" in carries.times:
        fields["commit_ts"] = draw(_commit_ts())
    if "source_time" in carries.times:
        time = fields["commit_ts"] >> 18 if "commit_ts" in fields else draw(_milliseconds())
        fields["source_time"] = time * 1_000 // unit * unit
    if "emit_time" in carries.times:
        fields["emit_time"] = draw(_milliseconds()) * 1_000 // unit * unit
    return fields


@st.composite
def row_changes(
    draw: st.DrawFn,
    carries: Carries,
    count: int = 4,
    table: st.SearchStrategy[TableSchema] | None = None,
) -> list[RowChange]:
    """Row changes of one table, each with the images of its operation."""
    of = draw(tables(carries) if table is None else table)
    images = st.tuples(
        *(
            values(column.type, carries)
            if column.key
            else st.one_of(values(column.type, carries), st.none())
            for column in of.columns
        )
    ).map(lambda row: Image(dict(zip(of.column_names, row, strict=True))))
    events = []
    for _ in range(draw(st.integers(1, count))):
        op = draw(st.sampled_from(carries.ops or _ALL_OPS))
        has_before, has_after = op in ("update", "delete"), op not in ("delete", "truncate")
        events.append(
            RowChange(
                op,
                of,
                draw(images) if has_before else None,
                draw(images) if has_after else None,
                **draw(_occurrences(carries)),
            )
        )
    return events


@st.composite
def schema_changes(draw: st.DrawFn, carries: Carries) -> SchemaChange:
    """A statement about one table."""
    fields: dict[str, Any] = draw(_occurrences(carries))
    database, table = draw(names()), draw(names())
    if carries.ddl_tables:
        fields["table_schema"] = after = draw(tables(carries))
        database, table = after.database, after.table
    if carries.ddl_tables == 2:
        fields["previous_table_schema"] = draw(tables(carries))
    query = f"alter table t add column {draw(texts())}, drop column x"
    return SchemaChange(query, "ALTER", database, table, **fields)


def _telling(carries: Carries, events: list[Event]) -> SchemaChange:
    """A DDL with the schema of the rows' table, older than all rows."""
    table = next(event.table for event in events if isinstance(event, RowChange))
    times = {"commit_ts": 1_000 << 18, "source_time": 1_000_000, "emit_time": 2_000_000}
    fields: dict[str, Any] = {name: time for name, time in times.items() if name in carries.times}
    return SchemaChange(
        "create table t (…)",
        "CREATE",
        table.database,
        table.table,
        table_schema=table,
        **fields,
    )


@st.composite
def _watermarks(draw: st.DrawFn, carries: Carries) -> Watermark:
    fields = draw(_occurrences(carries))
    fields.setdefault("commit_ts", draw(_commit_ts()))
    return Watermark(**fields)


@st.composite
def _transactions(draw: st.DrawFn, carries: Carries) -> Transaction:
    number = draw(texts().filter(bool) | st.none()) if carries.transaction_ids else None
    status = draw(st.sampled_from(carries.statuses))
    return Transaction(status, number, **draw(_occurrences(carries)))


@st.composite
def _schema_events(draw: st.DrawFn, carries: Carries) -> TableSchemaEvent:
    fields = draw(_occurrences(carries))
    # A schema without a statement has no commit.
    fields.pop("commit_ts", None)
    return TableSchemaEvent(draw(tables(carries)), **fields)


_OTHERS: Final[dict[Kind, Callable[[Carries], st.SearchStrategy[Any]]]] = {
    "ddl": schema_changes,
    "watermark": _watermarks,
    "schema": _schema_events,
    "transaction": _transactions,
    "heartbeat": lambda carries: _occurrences(carries).map(lambda fields: Heartbeat(**fields)),
    "message": lambda carries: st.builds(
        lambda fields, prefix, content: LogicalMessage(prefix, content, **fields),
        _occurrences(carries),
        texts(),
        st.binary(max_size=20),
    ),
}
