"""No message raises, hangs or allocates by what it claims; what is bad says why and where."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from bad_input import check_error, check_row, patient
from golden_data import open_decoder, scan_schemas
from hypothesis import given
from hypothesis import strategies as st
from simple_messages import (
    AVRO_DATA,
    BUILD,
    DATA,
    ID,
    NAME,
    PRIMARY,
    TS,
    bootstrap,
    column,
    ddl,
    decode,
    row,
    table,
    the_error,
    the_row,
    timestamp,
    to_avro,
    to_json,
    unsigned,
)

from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.events import KIND_OF, Corrupt, Event, Message, RowChange
from cdcfmt_core.schemas.store import SchemaStore

EVERY_TYPE = (
    ID,
    NAME,
    column("big", "bigint", unsigned=True),
    column("at", "timestamp"),
    column("price", "decimal", length=10, decimal=2),
    column("kind", "enum", elements=["a", "b"]),
    column("tags", "set", elements=["a", "b"]),
    column("bits", "bit", length=10),
    column("raw", "blob"),
    column("f", "float"),
    column("d", "double"),
    column("day", "date"),
)
FULL = {
    "id": "1",
    "name": "John",
    "big": "18446744073709551615",
    "at": {"location": "Asia/Shanghai", "value": "2023-12-27 12:27:23"},
    "price": "1.50",
    "kind": "1",
    "tags": "3",
    "bits": "5",
    "raw": "AP8=",
    "f": "0.5",
    "d": "0.25",
    "day": "2023-12-27",
}
AVRO_FULL = {
    "id": ("long", 1),
    "name": ("string", "John"),
    "big": unsigned(-1),
    "at": timestamp("2023-12-27 12:27:23"),
    "price": ("string", "1.50"),
    "kind": ("long", 1),
    "tags": ("long", 3),
    "bits": ("string", "5"),
    "raw": ("bytes", b"\0\xff"),
    "f": ("float", 0.5),
    "d": ("double", 0.25),
    "day": ("string", "2023-12-27"),
}
CHECKSUM = {"version": 1, "corrupted": False, "current": 7, "previous": 0}
WATERMARK = {"version": 1, "type": "WATERMARK", "commitTs": TS, "buildTs": BUILD}
TOLD = bootstrap(*EVERY_TYPE)
WIRES = [
    TOLD,
    ddl(tableSchema=table(version=3), preTableSchema=table(version=2)),
    ddl("QUERY", tableSchema=None, sql="create database d"),
    WATERMARK,
    row("INSERT", FULL, checksum=CHECKSUM),
    row("UPDATE", FULL, FULL | {"name": "x"}),
    row("DELETE", None, {"id": "1"}, handleKeyOnly=True),
]
AVRO_WIRES = [
    *WIRES[:4],
    row("INSERT", AVRO_FULL, checksum=CHECKSUM),
    row("UPDATE", AVRO_FULL, AVRO_FULL | {"name": ("string", "x")}),
    row("DELETE", None, {"id": ("long", 1)}, handleKeyOnly=True),
]
JSON_VALUES = [to_json(wire) for wire in WIRES]
AVRO_VALUES = [to_avro(wire) for wire in AVRO_WIRES]
VALUES = [*JSON_VALUES, *AVRO_VALUES]


@cache
def known() -> tuple[MessageDecoder, SchemaStore]:
    """A decoder that knows the table, and what it knows."""
    store = scan_schemas([Message(None, JSON_VALUES[0])], protocol="simple")
    return open_decoder(schemas=store, protocol="simple", verifyChecksum="true"), store


def checked(value: bytes | None) -> list[Event]:
    """The events of a message, after what must hold for all of them was checked."""
    reader, store = known()
    events = reader.decode(Message(None, value, topic="t", partition=3, offset=99))
    if store.changes != 1:
        # What a damaged message tells of the table must not stay.
        known.cache_clear()
    assert type(events) is list
    for event in events:
        assert type(event) in KIND_OF
        if isinstance(event, Corrupt):
            check_error(event.error, "simple")
        elif isinstance(event, RowChange):
            check_row(event)
    # Whoever looks for schemas first must survive it, too.
    scan_schemas([Message(None, value)], protocol="simple")
    return events


def long(number: int) -> bytes:
    """Avro's encoding, of numbers up to 64 bits."""
    number = (number << 1) ^ (number >> 63)
    number &= (1 << 64) - 1
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def test_the_messages_are_good() -> None:
    for value in VALUES:
        (event,) = checked(value)
        assert not isinstance(event, Corrupt), event


# --- Bytes -----------------------------------------------------------------------------


@pytest.mark.parametrize("value", AVRO_VALUES, ids=range(len(AVRO_VALUES)))
def test_bytes_after_the_end(value: bytes) -> None:
    for rest in (b"\0", b"\x02", b"\x16\0"):
        error = the_error(JSON_VALUES[0], value + rest)
        assert error.reason == f"{len(rest)} bytes follow the message"


# --- Avro's union branches and numbers ---------------------------------------------------


def in_the_image(encoded: bytes) -> bytes:
    """A row with one column ``id``, whose branch and value are these bytes."""
    whole = to_avro(row("INSERT", {"id": None}))
    assert whole.endswith(b"\x02\x02\x04id\0\0\0")
    return whole[:-3] + encoded + b"\0\0"


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [
        (long(8), "branch 8 does not exist: there are 8"),
        (long(-1), "branch -1 does not exist: there are 8"),
        (long(1 << 40), "does not exist: there are 8"),
        (long(1) + long(1 << 40), "not within -2147483648 and 2147483647"),
        (long(1) + b"\xff" * 10 + b"\x01", "a number has more than 64 bits"),
        (long(4) + long(-3) + b"abc", "a length is -3"),
        (long(4) + long(1 << 40) + b"abc", "ends before its end"),
        (long(4) + long(3) + b"abc", "not an integer"),
        (long(5) + long(1) + b"a", "bytes are not a value of this type"),
        (long(3) + bytes(8), "float stands where an exact number is needed"),
        (long(3) + bytes(3), "ends before its end"),
        (long(2) + bytes(1), "ends before its end"),
        (long(6) + long(3) + b"UTC" + long(1) + b"x", "not an integer"),
        (long(7) + long(-1), "not within"),
    ],
)
def test_values_in_avro(encoded: bytes, reason: str) -> None:
    error = the_error(JSON_VALUES[0], in_the_image(encoded))
    assert reason in error.reason
    assert error.field in ("data.id", "data", None)


def test_numbers_with_more_bytes_than_they_need() -> None:
    value = in_the_image(b"\x82\x00" + b"\x82\x80\x00")
    event = the_row(JSON_VALUES[0], value)
    assert event.after is not None
    assert event.after.values == {"id": 1}
    longer = value.replace(b"\x04id", b"\x84\x80\x00id")
    event = the_row(JSON_VALUES[0], longer)
    assert event.after is not None
    assert event.after.values == {"id": 1}


def test_columns_with_long_names() -> None:
    names = ["中" * 64, "x" * 63, "x" * 64, "y" * 200]
    told = bootstrap(ID, *(column(name, "int") for name in names))
    data = {name: ("long", index) for index, name in enumerate(["id", *names])}
    event = the_row(told, to_avro(row("INSERT", data)))
    assert event.after is not None
    assert event.after.values == {name: index for name, (_, index) in data.items()}


def test_blocks_with_their_size() -> None:
    """Avro's maps may come in blocks, each with a count below zero and its bytes."""
    whole = to_avro(row("INSERT", {"id": ("long", 1)}))
    head, entry = whole[: -len(b"\x02\x02\x04id\x02\x02\0\0") + 1], b"\x04id\x02\x02"
    for blocks in (b"\x01\x0a" + entry + b"\0", b"\x01\x0a" + entry + b"\x02" + entry + b"\0"):
        event = the_row(JSON_VALUES[0], head + blocks + b"\0")
        assert event.after is not None
        assert event.after.values == {"id": 1}


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ((1, long(4)), "message type 4 does not exist"),
        ((1, long(-1)), "message type -1 does not exist"),
        ((2, long(2)), "the message is a DML and holds a DDL"),
        ((2, long(9)), "payload 9 does not exist"),
    ],
)
def test_kinds_of_avro_messages(damage: tuple[int, bytes], reason: str) -> None:
    position, filling = damage
    value = to_avro(row("INSERT", AVRO_DATA))
    error = the_error(value[:position] + filling + value[position + 1 :])
    assert reason in error.reason


def test_another_avro_schema() -> None:
    """Of the type text that the older one has, where the message's is unknown."""
    value = to_avro(WATERMARK, older=True)
    error = the_error(value.replace(b"WATERMARK", b"WATERMELN"))
    assert error.field == "type"
    assert "unknown Avro schema" in error.reason


# --- JSON of other shapes ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"commitTs": ...}, "commitTs"),
        ({"commitTs": -1}, "commitTs"),
        ({"commitTs": 1 << 63}, "commitTs"),
        ({"commitTs": "1"}, "commitTs"),
        ({"table": ""}, "table"),
        ({"table": ...}, "table"),
        ({"database": 5}, "database"),
        ({"schemaVersion": -1}, "schemaVersion"),
        ({"schemaVersion": 1 << 64}, "schemaVersion"),
        ({"schemaVersion": "1"}, "schemaVersion"),
        ({"handleKeyOnly": "yes"}, "handleKeyOnly"),
        ({"buildTs": "now"}, "buildTs"),
        ({"buildTs": 1 << 62}, "buildTs"),
        ({"data": []}, "data"),
        ({"data": ...}, "data"),
        ({"type": 5}, "type"),
        ({"type": "UPSERT"}, "sql"),
        ({"data": DATA | {"id": "x"}}, "data.id"),
        ({"data": DATA | {"id": 1.5}}, "data.id"),
        ({"data": DATA | {"name": 5}}, "data.name"),
        ({"data": DATA | {"name": {"a": 1}}}, "data.name"),
    ],
)
def test_fields_of_rows(change: dict[str, Any], field: str) -> None:
    wire = {name: value for name, value in (row("INSERT", DATA) | change).items()
            if value is not ...}  # fmt: skip
    assert the_error(bootstrap(), wire).field == field


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"location": "Asia/Nowhere", "value": "2023-12-27 12:27:23"}, "is not a time zone"),
        ({"location": "../../etc/passwd", "value": "2023-12-27 12:27:23"}, "is not a time zone"),
        ({"location": "x" * 5_000, "value": "2023-12-27 12:27:23"}, "is not a time zone"),
        ({"location": "a\0b", "value": "2023-12-27 12:27:23"}, "is not a time zone"),
        ({"location": "UTC", "value": "yesterday"}, "not a datetime"),
        ({"location": "UTC"}, "not an object of location and value"),
        ({"value": "2023-12-27 12:27:23"}, "not an object of location and value"),
        ({"location": 5, "value": "2023-12-27 12:27:23"}, "not an object of location and value"),
        ({}, "not an object of location and value"),
        ([], "an array is not a value of this type"),
        (5, "a number is not a value of this type"),
        ("yesterday", "not a datetime"),
    ],
)
def test_timestamps(value: Any, reason: str) -> None:
    error = the_error(TOLD, row("INSERT", FULL | {"at": value}))
    assert reason in error.reason
    assert error.field == "data.at"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda told: told.update(columns=5), "tableSchema.columns"),
        (lambda told: told.update(columns=[5]), "tableSchema.columns[0]"),
        (lambda told: told.update(columns=[ID, ID]), "tableSchema.columns"),
        (lambda told: told["columns"][0].update(name=""), "tableSchema.columns[0].name"),
        (lambda told: told["columns"][0].update(dataType=[]), "tableSchema.columns[0].dataType"),
        (lambda told: told["columns"][0].update(nullable=1), "tableSchema.columns[0].nullable"),
        (lambda told: told["columns"][0].update(default=[]), "tableSchema.columns[0].default"),
        (
            lambda told: told["columns"][0].update(default="x" * 9, dataType={"mysqlType": "bit"}),
            "tableSchema.columns[0].default",
        ),
        (
            lambda told: told["columns"][0]["dataType"].update(length="x"),
            "tableSchema.columns[0].length",
        ),
        (lambda told: told.update(table=""), "tableSchema.table"),
        (lambda told: told.update(version=-1), "tableSchema.version"),
        (lambda told: told.update(indexes={}), "tableSchema.indexes"),
        (lambda told: told.update(indexes=[5]), "tableSchema.indexes[0]"),
        (lambda told: told.update(indexes=[PRIMARY | {"columns": ["x"]}]), "tableSchema.indexes"),
        (lambda told: told.update(indexes=[PRIMARY | {"columns": [5]}]), "tableSchema.columns"),
    ],
)
def test_fields_of_schemas(change: Callable[[dict[str, Any]], None], field: str) -> None:
    wire = json.loads(to_json(bootstrap()))
    change(wire["tableSchema"])
    assert the_error(wire).field == field
    # A bad schema is none: its rows say so.
    assert "not seen" in the_error(wire, row("INSERT", DATA)).reason


def test_a_default_of_half_a_character() -> None:
    told = bootstrap(column("b", "bit", length=4, default="@"))
    value = to_json(told).replace(b'"@"', b'"\\ud800"')
    assert the_error(value).field == "tableSchema.columns[0].default"


def test_schemas_and_statements_that_are_missing() -> None:
    assert the_error({"type": "BOOTSTRAP"}).field == "tableSchema"
    assert the_error(ddl(sql="")).field == "sql"
    assert the_error({"type": "WATERMARK"}).field == "commitTs"
    assert the_error({}).field == "type"


def test_rows_without_columns() -> None:
    for image in ({}, None):
        assert decode(bootstrap(), row("INSERT", image))[1] is not None
        assert isinstance(decode(bootstrap(), row("INSERT", image))[1], Corrupt)
    assert "has no columns" in the_error(bootstrap(), row("INSERT", {})).reason


def test_deep_nesting() -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        deep = (opening * 100_000 + "1" + closing * 100_000).encode()
        assert the_error(deep).reason
        inside = to_json(row("INSERT", DATA)).replace(b'"John"', deep)
        assert the_error(bootstrap(), inside).reason


@pytest.mark.parametrize("number", ["1" + "0" * 5_000, "1e400", "-1e999999999", "9" * 900])
def test_huge_numbers(number: str) -> None:
    for field in ("commitTs", "schemaVersion", "buildTs"):
        wire = row("INSERT", DATA)
        original = f'"{field}":{wire[field]}'.encode()
        value = to_json(wire).replace(original, f'"{field}":{number}'.encode())
        assert the_error(bootstrap(), value).reason
    value = to_json(row("INSERT", DATA)).replace(b'"id":"1"', f'"id":{number}'.encode())
    assert the_error(bootstrap(), value).reason
    assert the_error(bootstrap(), row("INSERT", DATA | {"id": number})).reason


TYPES = [
    "int", "double", "decimal", "datetime", "timestamp", "time", "json", "bit", "year", "set",
    "enum", "vector", "date", "blob",
]  # fmt: skip


@pytest.mark.parametrize("mysql_type", TYPES)
@given(text=st.text(max_size=30) | st.from_regex(r"[-+0-9.eE:/ ]{0,30}", fullmatch=True))
@patient
def test_any_text_in_any_column(mysql_type: str, text: str) -> None:
    members = {"elements": ["a", "b"]} if mysql_type in ("set", "enum") else {}
    told = bootstrap(ID, column("c", mysql_type, length=10, decimal=2, **members))
    text = text.encode("utf-8", "replace").decode()
    for value in (
        to_json(row("INSERT", {"id": "1", "c": text})),
        to_avro(row("INSERT", {"id": ("long", 1), "c": ("string", text)})),
    ):
        event = decode(told, value)[1]
        if isinstance(event, RowChange):
            check_row(event)
        else:
            assert isinstance(event, Corrupt)
            assert not event.error.reason.startswith("the decoder failed")


# --- Checksums that lie ------------------------------------------------------------------


@pytest.mark.parametrize("encode", [to_json, to_avro])
def test_a_checksum_that_lies(encode: Any) -> None:
    full = FULL if encode is to_json else AVRO_FULL
    wire = encode(row("UPDATE", full, full, checksum=CHECKSUM | {"previous": 8}))
    told = encode(TOLD)
    assert "checksum_mismatch" not in (the_row(told, wire).extra or {})
    event = the_row(told, wire, verifyChecksum="true")
    assert event.extra is not None
    computed = event.extra["checksum_mismatch"]
    assert computed.keys() == {"current", "previous"}
    assert computed["current"] == computed["previous"] != 7
    assert event.extra["checksum"] == CHECKSUM | {"previous": 8}
    error = the_error(told, wire, verifyChecksum="fail")
    assert error.field == "checksum.current"
    right = CHECKSUM | {"current": computed["current"]}
    event = the_row(told, encode(row("INSERT", full, checksum=right)), verifyChecksum="fail")
    assert "checksum_mismatch" not in (event.extra or {})


@pytest.mark.parametrize("checksum", [{}, {"current": "x", "previous": 0}, {"current": 1}, [], 5])
def test_checksums_of_other_shapes(checksum: Any) -> None:
    wire = row("INSERT", FULL, checksum=checksum)
    field = the_error(TOLD, wire, verifyChecksum="true").field
    assert field is not None
    assert field.startswith("checksum")
    assert the_row(TOLD, wire).extra is not None


def test_parts_of_rows_have_no_checksum() -> None:
    wire = row("INSERT", {"id": "1"}, checksum=CHECKSUM, handleKeyOnly=True)
    assert "checksum_mismatch" not in (the_row(TOLD, wire, verifyChecksum="fail").extra or {})
