"""Arbitrary events and schemas for hypothesis, within a format's :class:`Carries`.

Values of all logical types include boundaries, Unicode and invalid dates.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from hypothesis import strategies as st

from cdcfmt_core import types
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
from cdcfmt_core.types import Binary, GeometryValue, IntervalValue, InvalidValue, LogicalType, Text
from cdcfmt_testing.carries import Carries


def values(logical: LogicalType, carries: Carries) -> st.SearchStrategy[Any]:
    """Values of one type, without NULL."""
    return _VALUES[type(logical)](logical, carries)


def _or_null(logical: LogicalType, carries: Carries) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values(logical, carries))


def texts() -> st.SearchStrategy[str]:
    """Any Unicode except surrogates, with characters that JSON writers escape or get wrong."""
    return st.one_of(
        st.text(st.characters(codec="utf-8"), max_size=20),
        st.sampled_from(["", "<&>\u2028\u2029", "\b\f\\b\\\\f\x00\x7f\x80\x9f", '"\\\n\r\t', "😀"]),
    )


def _decimals(logical: Any, carries: Carries) -> st.SearchStrategy[Any]:
    scale = logical.scale or 0
    largest = 10 ** (logical.precision or 65) - 1
    context = decimal.Context(prec=100)
    return st.one_of(
        st.integers(-largest, largest), st.sampled_from([0, 1, -1, largest, -largest])
    ).map(lambda unscaled: decimal.Decimal(unscaled).scaleb(-scale, context))


def _floats(bits: int) -> st.SearchStrategy[Any]:
    return st.floats(allow_nan=False, allow_infinity=False, width=32 if bits == 32 else 64)


def _microseconds(fsp: int | None) -> st.SearchStrategy[int]:
    unit = 10 ** (6 - (fsp or 0))
    return st.integers(0, 999_999).map(lambda number: number // unit * unit)


def _dates(logical: Any, carries: Carries) -> st.SearchStrategy[Any]:
    known = st.dates(min_value=date(carries.earliest_year, 1, 1))
    if not carries.invalid_dates:
        return known
    return st.one_of(known, st.sampled_from(["0000-00-00", "2023-00-15"]).map(InvalidValue))


def _datetimes(logical: Any, carries: Carries) -> st.SearchStrategy[Any]:
    known = st.builds(
        lambda value, fraction: value.replace(microsecond=fraction, fold=0),
        st.datetimes(min_value=datetime(carries.earliest_year, 1, 1)),
        _microseconds(logical.fsp),
    )
    if not carries.invalid_dates:
        return known
    return st.one_of(known, st.just(InvalidValue("0000-00-00 00:00:00")))


def _timestamps(logical: Any, carries: Carries) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda seconds, fraction: (
            datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=fraction)
        ),
        st.integers(1, 2**31 - 1),
        _microseconds(logical.fsp),
    )


def _times(logical: Any, carries: Carries) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda sign, seconds, fraction: sign * timedelta(seconds=seconds, microseconds=fraction),
        st.sampled_from([1, -1]),
        st.integers(0, 838 * 3600 + 59 * 60 + 58),
        _microseconds(logical.fsp),
    )


def _intervals(logical: Any, carries: Carries) -> st.SearchStrategy[Any]:
    nothing = st.just(0)
    return st.builds(
        IntervalValue,
        st.integers(-(10**6), 10**6) if logical.months else nothing,
        st.integers(-(10**6), 10**6) if logical.days else nothing,
        st.integers(-(2**62), 2**62) if logical.micros else nothing,
    )


def _sets(logical: Any, carries: Carries) -> st.SearchStrategy[Any]:
    return st.sets(st.sampled_from(logical.names)).map(
        lambda chosen: ",".join(name for name in logical.names if name in chosen)
    )


_VALUES: Final[dict[type, Callable[[Any, Carries], st.SearchStrategy[Any]]]] = {
    types.Bool: lambda t, c: st.booleans(),
    types.Int: lambda t, c: st.one_of(st.integers(*t.bounds), st.sampled_from(t.bounds)),
    types.Float: lambda t, c: _floats(t.bits),
    types.Decimal: _decimals,
    types.Text: lambda t, c: texts(),
    types.Binary: lambda t, c: st.one_of(st.binary(max_size=20), st.just(bytes(range(256)))),
    types.Bit: lambda t, c: st.integers(0, (1 << t.bits) - 1),
    types.Date: _dates,
    types.DateTime: _datetimes,
    types.Timestamp: _timestamps,
    types.Time: _times,
    types.Year: lambda t, c: st.one_of(st.just(0), st.integers(1901, 2155)),
    types.Enum: lambda t, c: st.sampled_from(t.names),
    types.Set: _sets,
    types.Json: lambda t, c: texts(),
    types.Vector: lambda t, c: st.lists(_floats(32), max_size=4),
    types.Geometry: lambda t, c: st.builds(
        GeometryValue, st.integers(0, 2**32 - 1), st.binary(min_size=5, max_size=30), st.none()
    ),
    types.Uuid: lambda t, c: st.uuids(),
    types.Interval: _intervals,
    types.TimeTz: lambda t, c: st.times(timezones=st.just(UTC)),
    types.Array: lambda t, c: st.lists(_or_null(t.element, c), max_size=4),
    types.Map: lambda t, c: st.dictionaries(values(t.key, c), _or_null(t.value, c), max_size=4),
    types.Struct: lambda t, c: st.fixed_dictionaries(
        {name: _or_null(each, c) for name, each in t.fields}
    ),
    # The unchanged JSON value.
    types.Unknown: lambda t, c: st.one_of(st.integers(-(2**63), 2**63 - 1), st.booleans(), texts()),
}


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
