"""PostgreSQL's rows written again: as parsed, they equal those of the connector."""

from __future__ import annotations

import decimal
import struct
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import UUID

import pytest
from support.framed_data import framed_decoder, framed_messages
from support.framed_encoding import STRATEGIES
from support.schema_registry import OfflineRegistry, offline_registry

from cdcfmt_core import opening
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column, Image, RowChange, TableSchema
from cdcfmt_core.types import (
    Array,
    Binary,
    Bit,
    Bool,
    Date,
    DateTime,
    Decimal,
    Enum,
    Float,
    Geometry,
    GeometryValue,
    Int,
    Interval,
    IntervalValue,
    InvalidValue,
    Json,
    LogicalType,
    Map,
    Struct,
    Text,
    Time,
    Timestamp,
    TimeTz,
    Unknown,
    Uuid,
    Vector,
    Year,
)
from cdcfmt_debezium.message import DEFAULT_PLACEHOLDER
from cdcfmt_toolkit.avro_output import forget

VARIANTS: dict[str, dict[str, Any]] = {
    "schema_default": {},
    "schema_strings": {"binaryHandlingMode": "hex"},
    "schema_micros_avronames": {
        "binaryHandlingMode": "base64",
        "unavailableValuePlaceholder": "__gone__",
    },
    "schema_adaptive_micros": {},
    "avro_confluent": {},
    "avro_confluent_decstring": {},
    "avro_apicurio_headers": {},
}
"""Streams of the golden set, and options for reading them."""
PAIRS = [
    ("schema_default", "json"),
    ("schema_default", "avro"),
    ("schema_strings", "json"),
    ("schema_micros_avronames", "json"),
    ("schema_adaptive_micros", "avro"),
    ("avro_confluent", "avro"),
    ("avro_confluent_decstring", "json"),
    ("avro_apicurio_headers", "avro"),
]
"""Each stream, and the form in which it is written."""


@pytest.fixture
def server() -> Iterator[OfflineRegistry]:
    forget()
    with offline_registry() as found:
        yield found


def rows(variant: str) -> Iterator[RowChange]:
    decoder = framed_decoder("debezium", f"postgres/{variant}", **VARIANTS[variant])
    for message in framed_messages(f"postgres/{variant}"):
        for event in decoder.decode(message):
            if isinstance(event, RowChange):
                yield event


LOST = {
    "zero": "JSON: -0.0 is -0, as in TiCDC, which is read as 0",
    "placeholder": "a text that is the placeholder of unknown values is read as unknown",
}
_ZEROS = {("zero", column) for column in ("t_num.c_double", "t_num.c_real")} | {
    ("zero", column) for column in ("t_numspecial.c_double", "t_numspecial.c_real")
}
_PLACEHOLDERS = {("placeholder", "t_text.c_text"), ("placeholder", "t_text.c_vc")}
"""Its stream has ``unavailable.value.placeholder=__gone__``."""


def expected_losses(variant: str, wire: str) -> set[tuple[str, str]]:
    """Reason and column: each of them, and no other one."""
    has_placeholders = variant == "schema_micros_avronames"
    return (_ZEROS if wire == "json" else set()) | (_PLACEHOLDERS if has_placeholders else set())


@pytest.mark.parametrize(("variant", "wire"), PAIRS, ids="-to-".join)
def test_rows_written_again_equal_those_of_the_connector(
    variant: str, wire: str, server: OfflineRegistry
) -> None:
    """Tables, columns, types and values; of the envelope, TiCDC's form has no more than times."""
    registry = {"schema.registry.url": server.url} if wire == "avro" else {}
    options = {"encodingFormat": wire, "synthesizeCommitTs": True}
    if wire == "avro":
        options |= {**registry, **STRATEGIES, "schema.registry.topic": "again"}
    counts = Counter[str]()
    encoder = opening.open_encoder("debezium", options, counts=counts)
    decoder = opening.open_decoder("debezium", registry)
    count, lost = 0, set[tuple[str, str]]()
    for event in rows(variant):
        (message,) = encoder.encode(event)
        (back,) = decoder.decode(message)
        assert isinstance(back, RowChange)
        assert described(back) == described(event)
        for one, other in ((event.before, back.before), (event.after, back.after)):
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                lost |= check_image(event.table, one, other)
        count += 1
    assert count > 400
    assert counts == {"commit_ts made from source time": count}
    assert lost == expected_losses(variant, wire)


def described(event: RowChange) -> Any:
    table = event.table
    return event.op, table.name, table.key_columns, table.columns


def check_image(table: TableSchema, one: Image, other: Image) -> set[tuple[str, str]]:
    """The values that were lost."""
    lost = set[tuple[str, str]]()
    for column in table.columns:
        name = f"{table.table}.{column.name}"
        if column.name not in other.values and one.values.get(column.name) == DEFAULT_PLACEHOLDER:
            lost.add(("placeholder", name))
            continue
        assert (column.name in one.values) == (column.name in other.values), name
        value, back = one.values.get(column.name), other.values.get(column.name)
        if isinstance(value, float) and repr(value) == "-0.0" and repr(back) == "0.0":
            lost.add(("zero", name))
        elif column.type == Float(32) and value is not None:
            # The same binary32, of which JSON and Avro have other digits.
            assert struct.pack("<f", value) == struct.pack("<f", back), name
        else:
            assert repr(back) == repr(value), name
    if not lost:
        assert one.complete == other.complete
    return lost


# --- Arrays, maps and structs of other sources ------------------------------------------

NOON = datetime(2024, 2, 29, 12, 0, 0, 5)
PARTS: list[tuple[str, LogicalType, Any]] = [
    ("flag", Bool(), True),
    ("byte", Int(16), -128),
    ("long", Int(64), -(1 << 63)),
    ("single", Float(32), 1.5),
    ("double", Float(64), -0.0),
    ("price", Decimal(38, 2), decimal.Decimal("12345678901234567890.50")),
    ("open", Decimal(), decimal.Decimal("9" * 130 + ".5")),
    ("text", Text(), "a\u2028"),
    ("data", Binary(), b"\x00\xff"),
    ("bits", Bit(12), 0xABC),
    ("day", Date(), date(1, 1, 1)),
    ("clock", DateTime(), NOON),
    ("instant", Timestamp(), NOON.replace(tzinfo=UTC)),
    ("time", Time(), timedelta(hours=-838, microseconds=1)),
    ("zoned", TimeTz(), time(1, 2, 3, 5, tzinfo=UTC)),
    ("year", Year(), 2024),
    ("mood", Enum(("a", "b,c")), "b,c"),
    ("id", Uuid(), UUID(int=1)),
    ("doc", Json(), '{"a": 1}'),
    ("wait", Interval(), IntervalValue(14, -3, -1)),
    ("micros", Interval(months=False, days=False), IntervalValue(0, 0, -1)),
    ("numbers", Vector(64), [0.5, 1e300]),
    ("place", Geometry(), GeometryValue(4326, b"\x01")),
    ("list", Array(Array(Text())), [["a", None], None, []]),
    ("map", Map(Text(), Decimal(10, 2)), {"k": decimal.Decimal("1.50"), "": None}),
    ("struct", Struct((("a b", Int(32)), ("c", Array(Date())))), {"a b": 1, "c": None}),
]


@pytest.mark.parametrize("wire", ["json", "avro"])
def test_parts_of_every_type(wire: str, server: OfflineRegistry) -> None:
    row = Struct(tuple((name, type_) for name, type_, _ in PARTS))
    columns = (
        Column("id", "", Int(32), nullable=False, key=True),
        Column("row", "", row),
        Column("rows", "", Array(row)),
        Column("map", "", Map(Text(), row)),
    )
    table = TableSchema("shop", "t", columns, ("id",))
    value = {name: each for name, _, each in PARTS}
    nothing = dict.fromkeys(value)
    image = Image({"id": 1, "row": value, "rows": [value, None, nothing], "map": {"k": value}})
    options = {"schema.registry.url": server.url} if wire == "avro" else {}
    given = options and {**options, "schema.registry.topic": "again"}
    encoder = opening.open_encoder("debezium", {"encodingFormat": wire, **given})
    (message,) = encoder.encode(RowChange("insert", table, None, image, commit_ts=5 << 18))
    (back,) = opening.open_decoder("debezium", options).decode(message)
    assert isinstance(back, RowChange)
    assert back.after is not None
    assert repr(back.after.values) == repr(image.values)
    assert back.table.columns[1].type == row


UNWRITTEN: list[tuple[LogicalType, Any, str]] = [
    (Map(Int(32), Text()), {1: "a"}, "maps have keys of text"),
    (Array(Unknown("x")), [1], "not known"),
    (Array(Int(8)), [128], "out of|beyond|128"),
    (Array(Decimal(3, 2)), [decimal.Decimal("10.00")], r"decimal\(4,2\)"),
    (Array(Text()), "a", "not a list"),
    (Map(Text(), Text()), [("a", "b")], "not a dict"),
    (Struct((("a", Text()),)), {"b": "x"}, "an unknown field 'b'"),
    (Array(Date()), [InvalidValue("0000-00-00")], "a value that this format cannot write|number"),
]


@pytest.mark.parametrize(("type_", "value", "error"), UNWRITTEN)
def test_values_that_are_not_written(type_: LogicalType, value: Any, error: str) -> None:
    table = TableSchema("shop", "t", (Column("c", "", type_),))
    event = RowChange("insert", table, None, Image({"c": value}), commit_ts=5 << 18)
    with pytest.raises(EncodeError, match=f"table shop.t, column c.*({error})"):
        opening.open_encoder("debezium").encode(event)
