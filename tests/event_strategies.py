"""Arbitrary events, for round trips: tables of all logical types, boundary values, Unicode.

A codec says by :class:`Carries` what it can say; the strategies keep to that.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import attrs
from hypothesis import strategies as st

from cdcfmt_core.events import Column, Image, Op, RowChange, SchemaChange, TableSchema
from cdcfmt_core.mysql.type_output import column_type, type_text
from cdcfmt_core.types import (
    Binary,
    Bit,
    Date,
    DateTime,
    Decimal,
    Enum,
    Float,
    Geometry,
    GeometryValue,
    Int,
    InvalidValue,
    Json,
    LogicalType,
    Set,
    Text,
    Time,
    Timestamp,
    Vector,
    Year,
)

MAX_COMMIT_TS = (253_402_300_799_999 << 18) - 1
"""The end of the year 9999."""


@attrs.frozen
class Carries:
    """What a format's events may hold: logical types, operations, and whether dates may be
    such that no calendar has them."""

    types: tuple[LogicalType, ...]
    ops: tuple[Op, ...] = ("insert", "update", "delete")
    invalid_dates: bool = True
    commit_ts: bool = True
    source_time: bool = False
    emit_time: bool = False
    smallest_year: int = 1


NAMES = ("a", "b", "c,d", "e'f", "中", "12", "\\", "")
MEMBERS = ("x", "y y", "中", "0")

ALL_TYPES: tuple[LogicalType, ...] = (
    *(Int(bits, signed) for bits in (8, 16, 24, 32, 64) for signed in (True, False)),
    Float(32),
    Float(64),
    Decimal(10, 2),
    Decimal(65, 30),
    Decimal(20, 0),
    Text(),
    Binary(),
    Bit(1),
    Bit(10),
    Bit(64),
    Date(),
    *(kind(fsp) for kind in (DateTime, Timestamp, Time) for fsp in (0, 1, 3, 6)),
    Year(),
    Enum(NAMES),
    Set(MEMBERS),
    Json(),
    Vector(),
    Geometry(),
)
"""As full type texts tell them, but for fsp 0: :data:`DECLARED` is what it comes back as."""


def declared(logical: LogicalType) -> LogicalType:
    """The type as its text says it: ``datetime`` has no fsp."""
    if isinstance(logical, (DateTime, Timestamp, Time)) and logical.fsp == 0:
        return attrs.evolve(logical, fsp=None)
    return logical


def _decimals(logical: Decimal) -> st.SearchStrategy[Any]:
    scale = logical.scale or 0
    largest = 10 ** (logical.precision or 65) - 1
    context = decimal.Context(prec=100)
    return st.one_of(
        st.integers(-largest, largest), st.sampled_from([0, 1, -1, largest, -largest])
    ).map(lambda unscaled: decimal.Decimal(unscaled).scaleb(-scale, context))


def _float32(value: float) -> float:
    number: float
    (number,) = struct.unpack("<f", struct.pack("<f", value))
    return number


def _floats(bits: int) -> st.SearchStrategy[Any]:
    return st.floats(allow_nan=False, allow_infinity=False, width=32 if bits == 32 else 64)


def _microseconds(fsp: int | None) -> st.SearchStrategy[int]:
    unit = 10 ** (6 - (fsp or 0))
    return st.integers(0, 999_999).map(lambda number: number // unit * unit)


def texts() -> st.SearchStrategy[str]:
    """Any Unicode but surrogates, with what JSON writers escape or stumble over."""
    return st.one_of(
        st.text(st.characters(exclude_categories=("Cs",)), max_size=20),
        st.sampled_from(["", "<&>\u2028\u2029", "\b\f\\b\\\\f\x00\x7f\x80\x9f", '"\\\n\r\t', "😀"]),
    )


def values(logical: LogicalType, carries: Carries) -> st.SearchStrategy[Any]:
    """Values of one type, NULL apart."""
    return _VALUES[type(logical)](logical, carries)


def _dates(logical: Any, carries: Carries) -> st.SearchStrategy[Any]:
    known = st.dates(min_value=date(carries.smallest_year, 1, 1))
    if not carries.invalid_dates:
        return known
    return st.one_of(known, st.sampled_from(["0000-00-00", "2023-00-15"]).map(InvalidValue))


def _datetimes(logical: Any, carries: Carries) -> st.SearchStrategy[Any]:
    known = st.builds(
        lambda value, fraction: value.replace(microsecond=fraction),
        st.datetimes(min_value=datetime(carries.smallest_year, 1, 1)),
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


def _sets(logical: Any, carries: Carries) -> st.SearchStrategy[Any]:
    return st.sets(st.sampled_from(logical.names)).map(
        lambda chosen: ",".join(name for name in logical.names if name in chosen)
    )


_VALUES: dict[type, Callable[[Any, Carries], st.SearchStrategy[Any]]] = {
    Int: lambda t, c: st.one_of(st.integers(*t.bounds), st.sampled_from(t.bounds)),
    Float: lambda t, c: _floats(t.bits),
    Decimal: lambda t, c: _decimals(t),
    Text: lambda t, c: texts(),
    Binary: lambda t, c: st.one_of(st.binary(max_size=20), st.just(bytes(range(256)))),
    Bit: lambda t, c: st.integers(0, (1 << t.bits) - 1),
    Date: _dates,
    DateTime: _datetimes,
    Timestamp: _timestamps,
    Time: _times,
    Year: lambda t, c: st.one_of(st.just(0), st.integers(1901, 2155)),
    Enum: lambda t, c: st.sampled_from(t.names),
    Set: _sets,
    Json: lambda t, c: texts(),
    Vector: lambda t, c: st.lists(_floats(32), max_size=4),
    Geometry: lambda t, c: st.builds(
        GeometryValue, st.integers(0, 2**32 - 1), st.binary(min_size=5, max_size=30), st.none()
    ),
}


def names() -> st.SearchStrategy[str]:
    return texts().filter(bool)


@st.composite
def tables(draw: st.DrawFn, carries: Carries, schema: str | None = None) -> TableSchema:
    """A table of one to six columns; the first ones are its key, or none."""
    types = draw(st.lists(st.sampled_from(carries.types), min_size=1, max_size=6))
    column_names = draw(st.lists(names(), min_size=len(types), max_size=len(types), unique=True))
    keys = draw(st.integers(0, min(2, len(types))))
    columns = []
    for index, (name, logical) in enumerate(zip(column_names, types, strict=True)):
        parsed = column_type(Column(name, "", logical))
        columns.append(
            Column(name, type_text(parsed, full=True), declared(logical), key=index < keys)
        )
    return TableSchema(
        draw(names()), draw(names()), tuple(columns), tuple(column_names[:keys]), schema
    )


@st.composite
def row_changes(draw: st.DrawFn, carries: Carries, count: int = 3) -> list[RowChange]:
    """Row changes of one table."""
    table = draw(tables(carries))
    images = st.tuples(
        *(
            values(column.type, carries)
            if column.key
            else st.one_of(values(column.type, carries), st.none())
            for column in table.columns
        )
    ).map(lambda row: Image(dict(zip(table.column_names, row, strict=True))))
    events = []
    for _ in range(draw(st.integers(1, count))):
        op = draw(st.sampled_from(carries.ops))
        events.append(
            RowChange(
                op,
                table,
                draw(images) if op in ("update", "delete") else None,
                None if op == "delete" else draw(images),
                **draw(_occurrences(carries)),
            )
        )
    return events


@st.composite
def _occurrences(draw: st.DrawFn, carries: Carries) -> dict[str, Any]:
    milliseconds = st.integers(1_000_000_000_000, 4_000_000_000_000)
    said: dict[str, Any] = {}
    if carries.commit_ts:
        said["commit_ts"] = draw(milliseconds) << 18 | draw(st.integers(0, (1 << 18) - 1))
    if carries.source_time:
        time = said["commit_ts"] >> 18 if carries.commit_ts else draw(milliseconds)
        said["source_time"] = time * 1000
    if carries.emit_time:
        said["emit_time"] = draw(milliseconds) * 1000
    return said


@st.composite
def schema_changes(draw: st.DrawFn, carries: Carries) -> SchemaChange:
    return SchemaChange(
        "alter table t add column " + draw(texts()),
        "ALTER",
        draw(names()),
        draw(names()),
        **draw(_occurrences(carries)),
    )


def same_events(expected: list[Any], actual: list[Any]) -> None:
    """Equal, tables by their content; floats of 32 bits by their bits."""
    assert len(actual) == len(expected), actual
    for event, other in zip(expected, actual, strict=True):
        if isinstance(event, RowChange):
            assert isinstance(other, RowChange), other
            assert attrs.asdict(other.table, recurse=False) == attrs.asdict(
                event.table, recurse=False
            )
            assert other.op == event.op
            for image, got in ((event.before, other.before), (event.after, other.after)):
                assert (image is None) == (got is None)
                if image is None or got is None:
                    continue
                assert list(got.values) == list(image.values)
                assert (got.complete, got.completed) == (image.complete, image.completed)
                for column in event.table.columns:
                    if column.name in image.values:
                        same_value(column, image.values[column.name], got.values[column.name])
            event = attrs.evolve(event, table=other.table, before=other.before, after=other.after)
        assert other == event


def same_value(column: Column, value: Any, other: Any) -> None:
    assert type(value) is type(other), (column, value, other)
    if column.type == Float(32) and value is not None:
        value, other = _float32(value), _float32(other)
    elif isinstance(column.type, Vector) and value is not None:
        value, other = [_float32(v) for v in value], [_float32(v) for v in other]
    elif isinstance(column.type, Decimal) and value is not None:
        # 0 and 0.00 are equal, and not the same.
        value, other = format(value, "f"), format(other, "f")
    assert value == other, column
