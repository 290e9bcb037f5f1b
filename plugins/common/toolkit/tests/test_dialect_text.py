"""The value encoding ``dialect-text``: text as the type map of the source reads it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from cdcfmt_core import types
from cdcfmt_core.codec import DecoderContext
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.plugins import PluginInfo, Registration, ResolvedTypes
from cdcfmt_core.registry import default_registry
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import (
    IntervalValue,
    InvalidValue,
    LogicalType,
    Timestamp,
    TypeMap,
    Unknown,
)
from cdcfmt_mysql.json_values import InexactNumber
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.images import ReadValue
from cdcfmt_toolkit.plans import encoded_plan

BERLIN = ZoneInfo("Europe/Berlin")


def opened(
    resolve_type: ResolvedTypes, source_type: str, encoding: str = "dialect-text"
) -> tuple[ReadValue, DecoderContext]:
    """The reader of a column of this type, and the context with its counts."""
    context = DecoderContext(resolve_type, SchemaStore(), source_time_zone=BERLIN)
    column = Column("c", source_type, context.resolve_type(source_type))
    table = TableSchema("d", "t", (column,))
    encodings: Any = {"c": Encoding(encoding)}  # type: ignore[arg-type]
    return encoded_plan(table, context, encodings).readers["c"], context


def reader(type_map: str, source_type: str, encoding: str = "dialect-text") -> ReadValue:
    return opened(default_registry().get_type_map(type_map), source_type, encoding)[0]


def own_map(logical: LogicalType, open_reader: Any = None) -> ResolvedTypes:
    """The type map ``own``, whose every text is this type."""
    own = TypeMap("own", lambda _: logical, open_reader=open_reader)
    return ResolvedTypes([Registration(own, PluginInfo("own", "own", "1"))])


def returning(logical: LogicalType, value: object) -> ReadValue:
    """The reader of a column whose type map reads every text as this value."""
    return opened(own_map(logical, lambda _: lambda text: value), "OWN")[0]


@pytest.mark.parametrize("encoding", ["dialect-text", "mysql-json", "mysql-text"])
@pytest.mark.parametrize(
    ("source_type", "wire", "value"),
    [
        ("boolean", "t", True),
        ("boolean", False, False),
        ("numeric(10,2)", "1.50", Decimal("1.50")),
        ("numeric", Decimal("1E+3"), Decimal(1000)),
        ("integer", 7, 7),
        ("text[]", '{"a,b",NULL}', ["a,b", None]),
        ("bytea", "\\x00ff", b"\x00\xff"),
        # A domain that no map knows.
        ("email", "a@b", "a@b"),
    ],
)
def test_the_type_map_reads_values(
    encoding: str, source_type: str, wire: Any, value: object
) -> None:
    assert reader("postgresql", source_type, encoding)(wire) == value


def test_only_the_source_s_own_text_is_read_by_the_type_map() -> None:
    assert reader("postgresql", "bytea", "hex")("00ff") == b"\x00\xff"
    assert reader("postgresql", "date", "epoch-days")(1) == date(1970, 1, 2)
    wrapped = base64.b64encode(b"t").decode()
    assert reader("postgresql", "boolean", "base64-text")(wrapped) is True
    with pytest.raises(ValueError, match="is not text"):
        reader("postgresql", "boolean", "base64-text")(1)


@pytest.mark.parametrize("wire", ["1.5", 1 << 40, True, [1], {}])
def test_other_values_are_errors(wire: Any) -> None:
    with pytest.raises(ValueError, match=r"is not (text|an integer)"):
        reader("postgresql", "integer")(wire)


def test_a_number_must_have_all_its_digits() -> None:
    with pytest.raises(InexactNumber):
        reader("postgresql", "numeric")(1.5)


def test_a_map_without_readers_has_texts_of_mysql() -> None:
    assert reader("mysql", "bit(3)")("5") == 5
    assert reader("mysql", "decimal(5,2)")("1.50") == Decimal("1.50")
    with pytest.raises(ValueError, match="c is a bytea"):
        reader("mysql", "bytea")


ARRAY = types.Array(types.Int(32))
STRUCT = types.Struct((("a", types.Int(32)), ("b", types.Text())))


@pytest.mark.parametrize(
    "logical",
    [ARRAY, STRUCT, types.Map(types.Text(), types.Text()), types.Interval(), types.TimeTz()],
)
@pytest.mark.parametrize("encoding", ["dialect-text", "mysql-json", "mysql-text"])
def test_types_that_mysql_lacks_need_a_reader(logical: LogicalType, encoding: str) -> None:
    read, _ = opened(own_map(types.Extension("x", logical)), "OWN[]", encoding)
    with pytest.raises(ValueError, match="MySQL's text has no") as caught:
        read("{1}")
    assert str(caught.value) == (
        f"there is no reader of type map 'own' for 'OWN[]', and MySQL's text has no {logical}: "
        "return one from open_reader of the type map, or set typeMap to another type map"
    )


def test_uuids_have_one_text() -> None:
    read, _ = opened(own_map(types.Uuid()), "uuid")
    text = "550e8400-e29b-41d4-a716-446655440000"
    assert read(text) == UUID(text)
    with pytest.raises(ValueError, match="not a UUID"):
        read("not-a-uuid")


def test_clocks_are_in_the_zone_of_the_source() -> None:
    """A map whose text has no zone, such as Oracle's TIMESTAMP WITH LOCAL TIME ZONE."""
    types_ = own_map(Timestamp(0), lambda _: datetime.fromisoformat)
    read, context = opened(types_, "TIMESTAMP")
    assert read("2024-07-01 12:00:00") == datetime(2024, 7, 1, 10, tzinfo=UTC)
    assert read("2024-07-01 12:00:00+00:00") == datetime(2024, 7, 1, 12, tzinfo=UTC)
    assert read("2024-10-27 02:30:00") == datetime(2024, 10, 27, 0, 30, tzinfo=UTC)
    assert context.counts == {"timestamp ambiguous in Europe/Berlin": 1}


NOON, INSTANT = datetime(2024, 7, 1, 12), datetime(2024, 7, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("logical", "value", "expected"),
    [
        (types.Array(Timestamp()), [NOON, None], [INSTANT, None]),
        (types.Struct((("t", Timestamp()),)), {"t": NOON}, {"t": INSTANT}),
        (types.Map(types.Text(), Timestamp()), {"a": NOON}, {"a": INSTANT}),
        (types.Map(Timestamp(), types.Text()), {NOON: "a"}, {INSTANT: "a"}),
    ],
)
def test_clocks_in_other_values_are_in_the_zone_of_the_source(
    logical: LogicalType, value: object, expected: object
) -> None:
    assert returning(logical, value)("…") == expected


def test_instants_are_in_utc() -> None:
    found = returning(Timestamp(), NOON.replace(tzinfo=timezone(timedelta(hours=2))))("…")
    assert (found, found.tzinfo) == (INSTANT, UTC)
    first = datetime.min.replace(tzinfo=timezone(timedelta(hours=2)))
    assert returning(Timestamp(), first)("…") == InvalidValue("0001-01-01 00:00:00+02:00")


@pytest.mark.parametrize(
    ("logical", "value", "problem"),
    [
        (types.Date(), "2024-01-01", "str is not a value of Date()"),
        (types.Date(), NOON, "datetime is not a value of Date()"),
        (types.Int(8), 300, "300 is outside of Int(bits=8, signed=True)"),
        (types.Int(8), True, "bool is not a value of Int(bits=8, signed=True)"),
        (types.Bit(1), 2, "2 is outside of Bit(bits=1)"),
        (types.Decimal(5, 2), 1.5, "float is not a value of Decimal(precision=5, scale=2)"),
        (types.DateTime(), INSTANT, "an instant in DateTime(fsp=None)"),
        (types.TimeTz(), time(1), "a time without an offset in TimeTz(fsp=None)"),
        (types.Time(), timedelta(days=40), "is outside of Time(fsp=None)"),
        (types.Vector(), [1.0, 1], "are not all floats"),
        (types.Interval(months=False), IntervalValue(1, 0, 0), "is not a value of Interval("),
        (ARRAY, (1, 2), "tuple is not a value of Array("),
        (ARRAY, ["1"], "str is not a value of Int(bits=32, signed=True)"),
        (STRUCT, {"a": 1}, "fields ['a'] instead of ['a', 'b']"),
        (STRUCT, {"a": 1, "b": 2}, "int is not a value of Text(charset=None)"),
        (types.Map(types.Text(), types.Text()), {None: "a"}, "NoneType is not a value of Text"),
    ],
    ids=str,
)
def test_values_of_other_types_are_errors(
    logical: LogicalType, value: object, problem: str
) -> None:
    with pytest.raises(ValueError, match="of type map") as caught:
        returning(logical, value)("…")
    start = "the reader of type map 'own' for 'OWN' returned a wrong value: "
    assert str(caught.value).startswith(start)
    assert problem in str(caught.value)


def test_values_that_python_lacks_are_kept() -> None:
    assert returning(types.Date(), InvalidValue("0000-00-00"))("…") == InvalidValue("0000-00-00")
    assert returning(ARRAY, [InvalidValue("x"), 1])("…") == [InvalidValue("x"), 1]
    assert returning(types.Decimal(), Decimal("NaN"))("…") == InvalidValue("NaN")


def test_none_is_no_value() -> None:
    with pytest.raises(ValueError, match="of type map") as caught:
        returning(types.Text(), None)("NULL?")
    assert str(caught.value) == (
        "the reader of type map 'own' for 'OWN' returned None for text that is not NULL"
    )


def failing(error: BaseException) -> Callable[[str], object]:
    def fail(text: str) -> object:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (KeyError("x"), "the reader of type map 'own' for 'OWN' failed: KeyError: 'x'"),
        (OverflowError(), "the reader of type map 'own' for 'OWN' failed: OverflowError"),
        (ValueError(), "the reader of type map 'own' for 'OWN' failed: ValueError"),
        (SystemExit(1), "the reader of type map 'own' for 'OWN' failed: SystemExit: 1"),
        (ValueError("is not a date"), "is not a date"),
    ],
    ids=repr,
)
def test_failures_of_readers_name_them(error: BaseException, problem: str) -> None:
    read, _ = opened(own_map(types.Date(), lambda _: failing(error)), "OWN")
    with pytest.raises(ValueError, match=r".") as caught:
        read("x")
    assert str(caught.value) == problem


def test_an_interruption_is_no_failure() -> None:
    read, _ = opened(own_map(types.Date(), lambda _: failing(KeyboardInterrupt())), "OWN")
    with pytest.raises(KeyboardInterrupt):
        read("x")


@pytest.mark.parametrize(
    ("open_reader", "problem"),
    [
        (failing(ZeroDivisionError()), "failed for 'OWN': ZeroDivisionError"),
        (lambda _: 5, "returned 5 for 'OWN', not a function or None"),
    ],
)
def test_failures_to_open_a_reader_are_errors_of_the_values(open_reader: Any, problem: str) -> None:
    read, _ = opened(own_map(types.Date(), open_reader), "OWN")
    with pytest.raises(ValueError, match="open_reader") as caught:
        read("2024-01-01")
    assert str(caught.value) == f"open_reader of type map 'own' {problem}"


def test_unknown_types_stay_unknown() -> None:
    assert default_registry().get_type_map("postgresql")("email") == Unknown("email")
