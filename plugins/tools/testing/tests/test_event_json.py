"""Events as JSON: round trips of every kind and type."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import chain
from typing import Any

import pytest

from cdcfmt_core import types
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import (
    Column,
    Corrupt,
    Event,
    Heartbeat,
    Image,
    LogicalMessage,
    RowChange,
    SchemaChange,
    TableSchema,
    TableSchemaEvent,
    Transaction,
    Watermark,
)
from cdcfmt_testing import events_from_json, events_to_json
from cdcfmt_testing.event_json import value_from_json, value_to_json

VALUES: list[Any] = [
    None, True, False, 0, -(1 << 64), 10**65, 1.5, -0.0, 1e300, math.inf, -math.inf,
    "", "中 \udcff",
    Decimal("1.10"), Decimal("-0"), Decimal("1E-30"), b"", b"\0\xff", date(1, 2, 3),
    datetime(2024, 1, 2, 3, 4, 5), datetime(2024, 1, 2, 3, 4, 5, 6, UTC),
    datetime(2024, 1, 2, tzinfo=timezone(timedelta(hours=8))), timedelta(0),
    -timedelta(hours=838, minutes=59, seconds=59, microseconds=1), timedelta(microseconds=1),
    [], [1, [Decimal("1.0"), None]], {}, {"decimal": "1"}, {"a": {"b": [b"x"]}}, (), ("a", 1),
    types.GeometryValue(4326, b"\1"), types.GeometryValue(None, None, "POINT(1 2)"),
    types.InvalidValue("0000-00-00"),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values(value: Any) -> None:
    back = value_from_json(value_to_json(value))
    assert type(back) is type(value)
    assert repr(back) == repr(value)


def test_nan() -> None:
    assert math.isnan(value_from_json(value_to_json(math.nan)))


@pytest.mark.parametrize("value", [{1}, object(), 1j])
def test_value_to_json_rejects_foreign_types(value: Any) -> None:
    with pytest.raises(TypeError, match="an event cannot hold a"):
        value_to_json(value)


def table(*types_: types.LogicalType, database: str = "d", **more: Any) -> TableSchema:
    columns = tuple(Column(f"c{i}", "text", logical) for i, logical in enumerate(types_))
    return TableSchema(database, "t", columns, **more)


FIRST = table(types.Int(64), types.Decimal(10, 2), types.Enum(("a", "b,c")), key_columns=("c0",))
SECOND = TableSchema(
    "d", "t", (Column("c", "int", types.Unknown("x"), False, True, ("gen",)),), ("c",), "public"
)
EVENTS: list[list[Event]] = [
    [
        RowChange("insert", FIRST, None, Image({"c0": 1, "c1": None}), commit_ts=5),
        RowChange(
            "update",
            FIRST,
            Image({"c0": 1, "c1": Decimal("1.10")}, False, ("c1",)),
            Image({"c0": 2}),
            index=1,
            extra={"gtid": "x", "more": {"a": [1]}},
            sequence_commit=7,
        ),
        RowChange("truncate", SECOND, None, None, index=2, source_time=1, emit_time=2),
    ],
    [],
    [
        SchemaChange("alter", "ALTER", "d", "t", "s", SECOND, FIRST, 3),
        TableSchemaEvent(table(types.Float(32)), index=1),
        Watermark(6, index=2),
        Transaction("begin", "x", index=3),
        Heartbeat(index=4),
        LogicalMessage("p", b"c", index=5),
    ],
]


def test_events() -> None:
    text = events_to_json(EVENTS)
    back = events_from_json(text)
    assert events_to_json(back) == text
    assert list(map(len, back)) == [3, 0, 6]
    tables = "table_schema", "previous_table_schema", "table"
    for given, read in zip(chain(*EVENTS), chain(*back), strict=True):
        assert type(given) is type(read)
        for name in given.__slots__:
            if not name.startswith("__") and name not in tables:
                assert repr(getattr(read, name)) == repr(getattr(given, name))
    row, ddl = back[0][0], back[2][0]
    assert isinstance(row, RowChange)
    assert isinstance(ddl, SchemaChange)
    assert ddl.table_schema is not None
    for schema, expected in ((row.table, FIRST), (ddl.table_schema, SECOND)):
        assert schema.columns == expected.columns
        assert (schema.database, schema.schema) == (expected.database, expected.schema)
        assert schema.key_columns == expected.key_columns
    # One schema object for all events of it.
    assert row.table is ddl.previous_table_schema


def test_errors() -> None:
    error = DecodeError("is bad", field="a[0]", sample=b"x")
    error = error.at(protocol="p", partition=3, offset=9)
    ((back,),) = events_from_json(events_to_json([[Corrupt(error, 2)]]))
    assert isinstance(back, Corrupt)
    assert (str(back.error), back.index) == (str(error), 2)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "no tables and messages"),
        ('{"tables": {"a": {}}, "messages": []}', r"tables\['a'\] is not a table schema"),
        ('{"tables": {}, "messages": [[{"kind": "x"}]]}', r"messages\[0\]\[0\] is not an event"),
        ('{"tables": {}, "messages": [[], [{"kind": "watermark"}]]}', r"messages\[1\]\[0\]"),
        ('{"tables": {}, "messages": [[5]]}', r"messages\[0\]\[0\] is not an event"),
    ],
)
def test_invalid_event_json(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        events_from_json(text)
