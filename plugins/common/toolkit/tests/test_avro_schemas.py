"""Schemas and data of Avro: as fastavro writes them, and invalid ones."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import fastavro
import pytest

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.schema_registry import WriterSchema
from cdcfmt_toolkit.avro_schemas import open_datum_reader, parse_avro, plain_schema

RECORD = {
    "type": "record",
    "name": "Row",
    "namespace": "a.b",
    "fields": [
        {"name": "flag", "type": "boolean"},
        {"name": "int", "type": "int"},
        {"name": "long", "type": ["null", "long"]},
        {"name": "text", "type": ["string", "null"], "default": "x"},
        {"name": "bytes", "type": "bytes"},
        {"name": "float", "type": "float"},
        {"name": "double", "type": "double"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "again", "type": "Kind"},
        {"name": "fixed", "type": {"type": "fixed", "name": "Two", "size": 2}},
        {"name": "list", "type": {"type": "array", "items": ["null", "int"]}},
        {"name": "map", "type": {"type": "map", "values": "string"}},
        {"name": "inner", "type": ["null", "Row"]},
    ],
}
ROW: dict[str, Any] = {
    "flag": True,
    "int": -1,
    "long": 1 << 62,
    "text": None,
    "bytes": b"\0\xff",
    "float": 1.5,
    "double": math.inf,
    "kind": "B",
    "again": "A",
    "fixed": b"ab",
    "list": [1, None],
    "map": {"k": "中"},
    "inner": None,
}


def writer(schema: Any, *references: tuple[str, Any]) -> WriterSchema:
    return WriterSchema(
        7, "avro", json.dumps(schema), tuple((name, writer(each)) for name, each in references)
    )


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def read(schema: Any, data: bytes, *references: tuple[str, Any]) -> Any:
    return open_datum_reader(parse_avro(writer(schema, *references)), 1 << 20)(data)


def test_every_type() -> None:
    row = ROW | {"inner": ROW}
    assert read(RECORD, written(RECORD, row)) == row


def test_the_plain_schema_reads_the_same_data() -> None:
    plain = plain_schema(parse_avro(writer(RECORD)))
    assert read(plain, written(RECORD, ROW)) == ROW


def test_references_are_followed() -> None:
    inner = {
        "type": "record",
        "name": "I",
        "namespace": "x",
        "fields": [{"name": "n", "type": "int"}],
    }
    outer = {
        "type": "record",
        "name": "O",
        "namespace": "x",
        "fields": [{"name": "near", "type": "I"}, {"name": "far", "type": ["null", "x.I"]}],
    }
    data = b"\x02\x02\x04"
    assert read(outer, data, ("x.I", inner)) == {"near": {"n": 1}, "far": {"n": 2}}
    with pytest.raises(DecodeError, match=r"schema 7 .* the type I is unknown"):
        read(outer, data)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2046},
        {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 5},
        {"type": "bytes", "logicalType": "decimal"},
    ],
)
def test_invalid_logical_types_are_read_as_the_plain_type(schema: Any) -> None:
    assert read(schema, b"\x04\x01\x02") == b"\x01\x02"


def test_text_that_is_not_utf8_is_kept() -> None:
    assert read("string", b"\x04\xff\xfe") == "\udcff\udcfe"


def test_floats_have_their_shortest_digits() -> None:
    assert read("float", written("float", 1.1)) == 1.1
    assert math.isnan(read("float", written("float", math.nan)))


@pytest.mark.parametrize(
    ("schema", "data", "reason"),
    [
        ("string", b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", "more than 64 bits"),
        ("string", b"\xfe\xff\xff\xff\x0f", "truncated"),
        ("bytes", b"\x03", "a length is -2"),
        ("int", b"\xfe\xff\xff\xff\xff\x0f", "more than 32 bits"),
        ("boolean", b"\x02", "a boolean is 2"),
        ("double", b"\0\0", "truncated"),
        (["null", "int"], b"\x04", "branch 2 does not exist"),
        (["null", "int"], b"\x02", "truncated"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02", "symbol 1 does not exist"),
        ({"type": "fixed", "name": "F", "size": 4}, b"\0", "truncated"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\x0f", "too many items"),
        ({"type": "array", "items": "int"}, b"\xff\xff\xff\xff\x0f\x00", "too many items"),
        ({"type": "map", "values": "int"}, b"\x02", "truncated"),
        ("int", b"\x02\x02", "ends at byte 1 of 2: the message was written with another schema"),
        ("int", b"", "truncated"),
    ],
)
def test_hostile_bytes_are_errors(schema: Any, data: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        read(schema, data)


def test_an_error_names_the_field() -> None:
    with pytest.raises(DecodeError, match="kind: symbol 9 does not exist"):
        read(RECORD, written(RECORD, ROW).replace(b"\x02\x00ab", b"\x12\x00ab"))


def test_endless_recursion_is_an_error() -> None:
    chain = {"type": "record", "name": "C", "fields": [{"name": "next", "type": ["null", "C"]}]}
    assert read(chain, b"\x02\x00") == {"next": {"next": None}}
    with pytest.raises(DecodeError, match="nested too deeply"):
        read(chain, b"\x02" * 100_000)
    endless = {"type": "record", "name": "C", "fields": [{"name": "next", "type": "C"}]}
    with pytest.raises(DecodeError, match="nested too deeply"):
        read(endless, b"\x02")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "5",
        '{"type": "row"}',
        '{"type": "record", "name": "R"}',
        '{"type": "array"}',
        "[" * 9_999,
        '{"type": "fixed", "name": "F", "size": -1}',
        '{"type": "record", "name": 1, "fields": []}',
    ],
)
def test_other_schemas_are_errors(text: str) -> None:
    with pytest.raises(DecodeError, match="schema 7 of the registry is not Avro"):
        parse_avro(WriterSchema(7, "avro", text))


def test_a_primitive_type_without_quotes() -> None:
    node = parse_avro(WriterSchema(7, "avro", "string"))
    assert open_datum_reader(node, 100)(b"\x02a") == "a"
