"""Values by MySQL type, JDBC code and encoding of bytes."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from cloudcanal_decode import change, decode, typed

from cdcfmt_core.events import (
    Corrupt,
    Image,
    RowChange,
)
from cdcfmt_core.types import Binary, Enum, Int, Json, Text, Timestamp, Unknown
from cdcfmt_core.types import Decimal as DecimalType

KEY = UUID("550e8400-e29b-41d4-a716-446655440000")


@pytest.mark.parametrize(
    ("type_", "jdbc", "wire", "logical", "value"),
    [
        ("bigint unsigned", None, str(2**64 - 1), Int(64, False), 2**64 - 1),
        ("bigint unsigned", None, 2**64 - 1, Int(64, False), 2**64 - 1),
        ("decimal(20,2)", 3, "1.50", DecimalType(20, 2), Decimal("1.50")),
        ("enum('a','b')", None, "b", Enum(("a", "b")), "b"),
        ("blob", None, "\0ÿ", Binary(), b"\0\xff"),
        ("json", None, '{"a": 1}', Json(), '{"a": 1}'),
        ("varchar(9)", None, 5, Text(), "5"),
        ("varchar(9)", None, True, Text(), "true"),
        ("json", None, [1, {"a": None}], Json(), '[1,{"a":null}]'),
        (
            "timestamp",
            93,
            "2024-01-02 03:04:05",
            Timestamp(),
            datetime(2024, 1, 2, 3, 4, 5, 0, UTC),
        ),
        ("int", 10000, None, Int(32), None),
        (None, 4, "7", Int(64), 7),
        (None, 12, "7", Text(), "7"),
        (None, 91, "2024-01-02", None, date(2024, 1, 2)),
        (None, 10000, "x", Unknown("jdbc 10000"), "x"),
        (None, 10000, {"a": 1}, Unknown("jdbc 10000"), {"a": 1}),
        (None, None, 1.5, Unknown(), 1.5),
        ("nonsense(", 4, "x", Unknown("nonsense("), "x"),
    ],
    ids=repr,
)
def test_values(type_: str | None, jdbc: int | None, wire: Any, logical: Any, value: Any) -> None:
    event = change(typed(type_, wire, jdbc))
    assert event.after == Image({"c": value})
    assert logical is None or event.table.columns[0].type == logical


@pytest.mark.parametrize("schema", ["public", "db_test"])
@pytest.mark.parametrize(
    ("type_", "wire", "value"),
    [
        ("integer[]", "{1,NULL}", [1, None]),
        ("uuid", str(KEY), KEY),
        ("boolean", True, True),
        ("numeric(10,2)", 1.5, Decimal("1.50")),
        ("bytea", "\\x00ff", b"\0\xff"),
        ("text", "a", "a"),
        ("text", 5, "5"),
        ("jsonb", [1, {"a": None}], '[1,{"a":null}]'),
    ],
    ids=repr,
)
def test_a_type_map_reads_its_texts(schema: str, type_: str, wire: Any, value: Any) -> None:
    event = change(typed(type_, wire, schema=schema), type_map="postgresql")
    assert event.after == Image({"c": value})


def test_a_bad_text_of_a_type_map() -> None:
    (event,) = decode(typed("bytea", "\\x0", schema="public"), type_map="postgresql")
    assert isinstance(event, Corrupt)
    assert (event.error.field, event.error.reason) == ("data[0].c", "is not a bytea of PostgreSQL")


@pytest.mark.parametrize(
    ("type_", "wire", "logical", "value"),
    [
        ("int8", "7", Int(64), 7),
        ("serial", "7", Unknown("serial"), "7"),
        ("numeric(10,2)", "1.50", DecimalType(10, 2), Decimal("1.50")),
        ("NUMBER(10)", "7", DecimalType(10, 0), Decimal(7)),
        ("NUMBER(10,2)", "7.50", DecimalType(10, 2), Decimal("7.50")),
        ("NUMBER", "7.5", DecimalType(), Decimal("7.5")),
        ("VARCHAR2(10)", "x", Text(), "x"),
        ("character varying(3)", "x", Text(), "x"),
        ("DATE", "2024-01-02 03:04:05", Unknown("DATE"), "2024-01-02 03:04:05"),
        ("timestamp", "2024-01-02 03:04:05", Unknown("timestamp"), "2024-01-02 03:04:05"),
        ("boolean", True, Unknown("boolean"), True),
        ("tinyint", "255", Unknown("tinyint"), "255"),
        ("jsonb", "{}", Json(), "{}"),
    ],
    ids=repr,
)
def test_values_of_other_databases(type_: str, wire: Any, logical: Any, value: Any) -> None:
    event = change(typed(type_, wire, schema="public"))
    assert (event.table.database, event.table.schema) == ("db_test", "public")
    assert event.table.columns[0].type == logical
    assert event.after == Image({"c": value})


def test_the_source_may_be_named() -> None:
    other = change(typed("tinyint", "255"), sourceDatabase="other")
    assert other.table.columns[0].type == Unknown("tinyint")
    mysql = change(typed("tinyint", "5", schema="dbo"), sourceDatabase="mysql")
    assert mysql.table.columns[0].type == Int(8)


@pytest.mark.parametrize(
    ("encoding", "text"), [("latin1", "\0ÿ"), ("base64", "AP8="), ("hex", "00ff")]
)
def test_binary_encodings(encoding: str, text: str) -> None:
    assert change(typed("blob", text), binaryEncoding=encoding).after == Image({"c": b"\0\xff"})
    (event,) = decode(typed("blob", "€!"), binaryEncoding=encoding)
    assert isinstance(event, Corrupt)
    assert event.error.field == "data[0].c"


@pytest.mark.parametrize(
    ("type_", "text", "data"),
    [
        ("blob", "\0ÿ", b"\0\xff"),  # not in the other two alphabets
        ("blob", "plain text", b"plain text"),
        ("blob", "", b""),
        ("blob", "abc", b"abc"),
        ("binary(16)", KEY.hex.upper(), KEY.bytes),
        ("binary(16)", "VQ6EAOKbQdSnFkRmVUQAAA==", KEY.bytes),
        ("binary(2)", "0xAB01", b"\xab\x01"),
        ("binary(4)", "test", b"test"),  # base64 of three bytes
        ("varbinary(4)", "AAEC/w==", b"\0\1\2\xff"),
    ],
)  # fmt: skip
def test_byte_encoding_is_detected(type_: str, text: str, data: bytes) -> None:
    assert change(typed(type_, text)).after == Image({"c": data})


@pytest.mark.parametrize(
    ("type_", "text", "reason"),
    [
        ("blob", "AP8=", "latin1 of 4 bytes or base64 of 2 bytes"),
        ("blob", "00ff", "latin1 of 4 bytes or base64 of 3 bytes or hex of 2 bytes"),
        ("varbinary(50)", "12345678", "latin1 of 8 bytes or base64 of 6 bytes or hex of 4 bytes"),
        ("binary(2)", "too long", "not Latin-1, base64 or hexadecimal of at most 2 bytes"),
    ],
)
def test_ambiguous_byte_encoding_is_rejected(type_: str, text: str, reason: str) -> None:
    (event,) = decode(typed(type_, text))
    assert isinstance(event, Corrupt)
    assert reason in str(event.error)
    assert "set binaryEncoding to how the messages have bytes" in str(event.error)


def test_keys_and_unknown_fields() -> None:
    event = change(typed("int", "1", pks=["c"], more={"x": 1}, sql="insert …"))
    assert event.table.key_columns == ("c",)
    assert event.table.columns[0].key
    assert event.extra == {"bid": 0, "sql": "insert …", "more": {"x": 1}}


def test_numbers_keep_their_digits() -> None:
    digits = "1.10000000000000000000000000000000001"
    for type_, wire, text in (
        ("json", f'{{"a":[{digits},2]}}', f'{{"a":[{digits},2]}}'),
        ("text", digits, digits),
        ("decimal(65,40)", digits, Decimal(digits)),
    ):
        value = json.dumps(typed(type_, "VALUE")).replace('"VALUE"', wire)
        (event,) = decode(value.encode())
        assert isinstance(event, RowChange)
        assert event.after == Image({"c": text})


def test_unexpected_objects_become_json_text() -> None:
    for wire in ('["\\ud800"]', "[" * 300 + "]" * 300, f"[{2**70}]"):
        value = json.dumps(typed("json", "VALUE")).replace('"VALUE"', wire)
        (event,) = decode(value.encode())
        assert isinstance(event, RowChange)
        assert event.after == Image({"c": wire})
