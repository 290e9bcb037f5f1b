"""Framed messages that the golden sets do not have: names, JSON Schema, Flink, logical types."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import attrs
import fastavro
import pytest
from support.framed_data import Decoder, decoder_of

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Message, RowChange
from cdcfmt_core.schema_registry import Framed, WriterSchema
from cdcfmt_core.types import Bool, Date, DateTime, Int, Text
from cdcfmt_core.types import Decimal as DecimalType
from cdcfmt_debezium.avro import unescaped
from cdcfmt_debezium.sniff import sniff_schema


@attrs.frozen
class Schemas:
    """Schemas by the first byte of the data."""

    by_id: Mapping[int, WriterSchema]

    def split(self, data: bytes, headers: Any, part: str, *_: Any) -> Framed | None:
        return Framed(self.by_id[data[0]], data[1:]) if data[0] in self.by_id else None


def open_decoder(*schemas: tuple[str, Any], **options: Any) -> Decoder:
    """A decoder that knows schemas of these kinds as 1, 2, …"""
    by_id = {
        number: WriterSchema(number, kind, json.dumps(schema))
        for number, (kind, schema) in enumerate(schemas, 1)
    }
    return decoder_of("debezium", Schemas(by_id), **options)


def row_of(decoder: Decoder, message: Message) -> RowChange:
    (event,) = decoder.decode(message)
    assert isinstance(event, RowChange)
    return event


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field, "type": type_} for field, type_ in fields.items()],
    }


SOURCE = record(
    "io.debezium.Source", connector="string", db="string", schema="string", table="string"
)


def envelope(value: dict[str, Any]) -> dict[str, Any]:
    return record(
        value["name"].removesuffix("Value") + "Envelope",
        before=["null", value],
        after=["null", value["name"]],
        source=SOURCE,
        op="string",
    )


def datum(number: int, schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return bytes([number]) + out.getvalue()


def inserted(schema: Any, row: Mapping[str, Any]) -> bytes:
    source = {"connector": "postgresql", "db": "d", "schema": "s", "table": "t"}
    return datum(1, schema, {"before": None, "after": row, "source": source, "op": "c"})


# --- Names ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("escaped", "name"),
    [
        ("c_u005fint", "c_int"),
        ("unit_u0020price", "unit price"),
        ("_u540d_u79f0", "名称"),
        ("_u0031st", "1st"),
        ("emo_ud83d_ude00ji", "emo😀ji"),
        ("tab_u009x", "tab\tx"),
        ("tab_u009a", "tab\ta"),
        ("nl_u00ax", "nl\nx"),
        ("_u00dcn_u00ef", "Ünï"),
        ("a_b", "a_b"),
        ("a_u12", "a_u12"),
        ("__op", "__op"),
    ],
)
def test_escapes_of_avro_unicode(escaped: str, name: str) -> None:
    assert unescaped(escaped) == name


@pytest.mark.parametrize(
    ("topic", "names", "own"),
    [
        ("p.s.t", ["a_u005fb"], ["a_b"]),
        ("p.s.t", ["a_u005fb", "c_d"], ["a_u005fb", "c_d"]),
        ("p.s.t", ["x_u00e9"], ["xé"]),
        ("p_u005fq.s.t", ["x_u00e9"], ["xé"]),
        # The topic has its underscore: no name is escaped.
        ("p_q.s.t", ["grp_u2024"], ["grp_u2024"]),
        # A letter is never escaped.
        ("p.s.t", ["grp_u0061"], ["grp_u0061"]),
        ("p.s.t", ["plain"], ["plain"]),
    ],
)
def test_escaped_names_are_recognised(topic: str, names: list[str], own: list[str]) -> None:
    schema = envelope(record(f"{topic}.Value", **dict.fromkeys(names, "int")))
    message = Message(None, inserted(schema, dict.fromkeys(names, 1)))
    assert list(row_of(open_decoder(("avro", schema)), message).table.column_names) == own
    for mode, expected in (("avro_unicode", [unescaped(n) for n in names]), ("avro", names)):
        decoder = open_decoder(("avro", schema), fieldNameAdjustmentMode=mode)
        assert list(row_of(decoder, message).table.column_names) == expected


def test_a_key_has_the_names_of_its_value() -> None:
    schema = envelope(record("p.s.t.Value", a_u2024="int", c_d="int"))
    key = record("p.s.t.Key", a_u2024="int")
    decoder = open_decoder(("avro", schema), ("avro", key))
    value = inserted(schema, {"a_u2024": 1, "c_d": 2})
    assert row_of(decoder, Message(b"\2\2", value)).table.key_columns == ("a_u2024",)


# --- Types ------------------------------------------------------------------------------


def test_logical_types_without_connect_names() -> None:
    """As Flink and other writers have them."""
    value = record(
        "p.s.t.Value",
        day={"type": "int", "logicalType": "date"},
        at={"type": "long", "logicalType": "timestamp-micros"},
        price={"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
        flag="boolean",
    )
    plain = record("p.s.t.Value", day="int", at="long", price="bytes", flag="boolean")
    data = inserted(envelope(plain), {"day": 1, "at": 5, "price": b"\xff\x01", "flag": True})
    event = row_of(open_decoder(("avro", envelope(value))), Message(None, data))
    assert [type(column.type) for column in event.table.columns] == [
        Date,
        DateTime,
        DecimalType,
        Bool,
    ]
    assert event.after is not None
    assert event.after.values["price"] == Decimal("-2.55")


def test_flinks_envelope_has_no_source() -> None:
    value = record("row", id="int")
    schema = record("record_", before=["null", value], after=["null", "row"], op="string")
    decoder = open_decoder(("avro", schema), defaultTable="shop.orders")
    data = datum(1, schema, {"before": None, "after": {"id": 3}, "op": "c"})
    event = row_of(decoder, Message(None, data))
    assert (event.table.database, event.table.table) == ("shop", "orders")
    assert event.after is not None
    assert event.after.values == {"id": 3}
    assert event.table.columns[0].type == Int(32)


def test_nulls_and_defaults_at_both_places_of_a_union() -> None:
    value = record("p.s.t.Value", a=["null", "int"], b=["int", "null"])
    value["fields"][1]["default"] = 7
    schema = envelope(value)
    decoder = open_decoder(("avro", schema))
    for row in ({"a": None, "b": None}, {"a": 1, "b": 7}):
        event = row_of(decoder, Message(None, inserted(schema, row)))
        assert event.after is not None
        assert event.after.values == row
    assert dict(decoder.counts) == {
        "values equal to the default of a nullable column: NULL arrives as the default, too": 1
    }


def test_unavailable_values_are_absent() -> None:
    text = "__debezium_unavailable_value"
    value = record(
        "p.s.t.Value", id="int", text="string", data="bytes", list={"type": "array", "items": "int"}
    )
    schema = envelope(value)
    row = {"id": 1, "text": text, "data": text.encode(), "list": list(text.encode())}
    event = row_of(open_decoder(("avro", schema)), Message(None, inserted(schema, row)))
    assert event.after is not None
    assert event.after.values == {"id": 1}
    assert not event.after.complete


# --- Schemas of other kinds -------------------------------------------------------------

JSON_SCHEMA = {
    "type": "object",
    "title": "p.s.t.Envelope",
    "properties": {
        "before": {"connect.index": 0, "oneOf": [{"type": "null"}, {"$ref": "#/definitions/row"}]},
        "after": {"connect.index": 1, "oneOf": [{"type": "null"}, {"$ref": "#/definitions/row"}]},
        "source": {
            "connect.index": 2,
            "type": "object",
            "properties": {"db": {"type": "string", "connect.index": 0}},
        },
        "op": {"type": "string", "connect.index": 3},
    },
    "definitions": {
        "row": {
            "type": "object",
            "title": "p.s.t.Value",
            "properties": {
                "name": {"connect.index": 1, "oneOf": [{"type": "null"}, {"type": "string"}]},
                "id": {"type": "integer", "connect.type": "int16", "connect.index": 0},
                "day": {
                    "type": "integer",
                    "connect.type": "int32",
                    "title": "io.debezium.time.Date",
                    "connect.index": 2,
                },
            },
        }
    },
}


def test_json_schema_of_confluents_converter() -> None:
    payload = {
        "before": None,
        "after": {"id": 1, "name": None, "day": 2},
        "source": {"connector": "postgresql", "db": "d", "schema": "s", "table": "t"},
        "op": "c",
    }
    data = b"\1" + json.dumps(payload).encode()
    event = row_of(open_decoder(("json", JSON_SCHEMA)), Message(None, data))
    columns = [(c.name, c.type, c.nullable) for c in event.table.columns]
    assert columns == [("id", Int(16), False), ("name", Text(), True), ("day", Date(), False)]


@pytest.mark.parametrize(
    ("kind", "schema", "reason"),
    [
        ("protobuf", "", "schema 1 of the registry is of kind protobuf"),
        ("json", {"properties": {"a": 5}}, "schema 1 of the registry is not a schema of JSON"),
        ("json", {"$ref": "#"}, "lead in a circle"),
        ("json", {"title": "x", "$ref": "#/definitions/y"}, "leads to no schema"),
        ("avro", {"type": "x"}, "schema 1 of the registry is not Avro"),
    ],
)
def test_other_schemas_are_errors(kind: str, schema: Any, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        open_decoder((kind, schema)).decode(Message(None, b"\1{}"))


@pytest.mark.parametrize(
    ("schema", "is_debezium"),
    [
        (envelope(record("p.s.t.Value", id="int")), True),
        (record("p.s.t.Key", id="int") | {"connect.name": "p.s.t.Key"}, True),
        (JSON_SCHEMA, True),
        (record("com.example.Order", id="int", apiKey="string"), False),
        (record("com.example.Before", before="string", after="string"), False),
    ],
)
def test_schemas_are_recognised(schema: Any, is_debezium: bool) -> None:
    found = sniff_schema(WriterSchema(1, "avro", json.dumps(schema)))
    assert (found >= 0.5) == is_debezium
