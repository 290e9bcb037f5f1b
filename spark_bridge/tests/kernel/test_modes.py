"""Bytes and decimals of Debezium's connectors: refused where the reference refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdcfmt_core.events import Message
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

SOURCE = {"connector": "mysql", "name": "p", "ts_ms": 1, "db": "shop", "table": "orders"}
DDL = [
    ("id", "INT", None, None),
    ("fixed", "BINARY", 16, None),
    ("free", "BLOB", None, None),
    ("price", "DECIMAL", 10, 2),
    ("count", "DECIMAL", 10, 0),
]
UUID = "6ba7b8109dad11d180b400c04fd430c8"
ROWS = [
    ("a6e4EJ2tEdGAtADAT9QwyA==", "/+8=", "MDk=", "Aw=="),
    (UUID, "_-8=", "-1.50", "-12"),
    (UUID, "abcd", "1234", "12345"),
    (UUID, "00ff0", "0.00", "1234"),
    (UUID, None, "12.34", None),
]


def message(offset: int, value: dict[str, Any]) -> Message:
    data = json.dumps(value, separators=(",", ":")).encode()
    return Message(b'{"id":1}', data, offset=offset)


def messages(rows: list[tuple[str | None, ...]]) -> list[Message]:
    columns = [
        {"name": name, "typeName": type_, "length": length, "scale": scale, "optional": True}
        for name, type_, length, scale in DDL
    ]
    table = {"columns": columns, "primaryKeyColumnNames": ["id"]}
    source = SOURCE | {"file": "binlog.1"}
    ddl = {
        "source": source | {"pos": 1},
        "ddl": "alter table orders",
        "tableChanges": [{"type": "ALTER", "id": '"shop"."orders"', "table": table}],
    }
    return [message(0, ddl)] + [
        message(
            offset,
            {
                "before": None,
                "after": dict(zip([name for name, *_ in DDL], (offset, *row), strict=True)),
                "source": source | {"pos": 10 * offset},
                "op": "c",
                "ts_ms": 1,
            },
        )
        for offset, row in enumerate(rows, 1)
    ]


@pytest.mark.parametrize(
    "more", [{}, {"binaryHandlingMode": "hex"}, {"decimalHandlingMode": "string"}]
)
@pytest.mark.parametrize("some", [ROWS, ROWS[1:], ROWS[::-1]], ids=["all", "no base64", "reversed"])
def test_modes(more: dict[str, str], some: list[tuple[str | None, ...]]) -> None:
    """Also where Arrow could read every text as a number."""
    rows = messages(some * 3)
    options = parsed({"protocol": "debezium", "table": "shop.orders", **more})
    schema = inferred_schema(rows, options)
    assert schema is not None
    result = check_equal(rows, schema, options)
    assert result.by_kernel
    reasons = [row["reason"] for row in result.rows["_corrupt_record"].to_pylist() if row]
    assert any("HandlingMode" in reason for reason in reasons)
