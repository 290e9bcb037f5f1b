from __future__ import annotations

import json

import pytest

from cdcfmt_core import types
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.schemas.records import SchemaRecord
from cdcfmt_toolkit.schema_json import FORMAT, record_from_json, record_to_json

ALL_TYPES = [
    types.Bool(),
    types.Int(64, signed=False),
    types.Float(32),
    types.Decimal(65, 30),
    types.Decimal(),
    types.Text("utf8mb4"),
    types.Binary(),
    types.Bit(64),
    types.Date(),
    types.DateTime(6),
    types.Timestamp(None),
    types.Time(3),
    types.Year(),
    types.Enum(("a,b", "c'd", "")),
    types.Set(None),
    types.Json(),
    types.Vector(),
    types.Geometry(),
    types.Uuid(),
    types.Interval(days=False),
    types.TimeTz(3),
    types.Array(types.Array(types.Decimal(10, 2))),
    types.Map(types.Text(), types.Enum(("a", "b"))),
    types.Struct((("a", types.Date()), ("b\udcff", types.Struct((("c", types.Text()),))))),
    types.Unknown("polygon\udcff"),
]


def record(*columns: Column, **changes: object) -> SchemaRecord:
    table = TableSchema("shop", "orders", columns, ("id",), None)
    return SchemaRecord(table, (449_000_000_000_000_000, "binlog.000003"), "cluster")


def test_every_logical_type_survives() -> None:
    # A column has the storage of an Extension as its type.
    every = set(types.LogicalType.__args__) - {types.Extension}  # type: ignore[attr-defined]
    assert {type(logical) for logical in ALL_TYPES} == every
    columns = [
        Column(f"c{at}", "text of it", logical, nullable, key, flags)
        for at, logical in enumerate(ALL_TYPES)
        for nullable, key, flags in [(None, False, ()), (True, True, ("unsigned", "hidden"))]
    ]
    columns.append(Column("price", "money", types.Extension("acme.money", types.Decimal(19, 4))))
    original = record(*columns)
    back = record_from_json(record_to_json(original))
    assert back.table.columns == original.table.columns
    assert back.table.key_columns == original.table.key_columns
    assert (back.position, back.stream) == (original.position, original.stream)
    assert (back.table.database, back.table.schema, back.table.table) == ("shop", None, "orders")
    assert record_to_json(back) == record_to_json(original)


def test_names_in_invalid_utf8_are_escaped_to_ascii() -> None:
    text = record_to_json(record(Column("n\udcff", "int", types.Int(32))))
    assert text.isascii()
    assert record_from_json(text).table.column_names == ("n\udcff",)


@pytest.mark.parametrize(
    "change",
    [
        {"format": FORMAT + 1},
        {"columns": None},
        {"columns": [{"name": "a"}]},
        {"columns": [{**json.loads(record_to_json(record(Column("a", "int", types.Int(32)))))}]},
        {"position": None},
    ],
)
def test_invalid_schema_is_rejected(change: dict[str, object]) -> None:
    fields = json.loads(record_to_json(record())) | change
    with pytest.raises(ValueError, match=r"newer version|not a table schema"):
        record_from_json(json.dumps(fields))


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "null", "[" * 100_000, '{"format": 1}'])
def test_other_texts_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        record_from_json(text)


def test_unknown_type_is_rejected() -> None:
    fields = json.loads(record_to_json(record(Column("a", "int", types.Int(32)))))
    fields["columns"][0]["type"]["name"] = "os"
    with pytest.raises(ValueError, match="not a table schema"):
        record_from_json(json.dumps(fields))
