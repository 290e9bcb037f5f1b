"""Small inputs of producers that do not run here, with their correct values.

Each is read in both shapes, by kernel and reference, which must agree (``check_equal``).
``tests/golden/cases/README.md`` has the values.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from golden_data import case_messages

from cdcfmt_core.events import Message
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import Result, check_equal, inferred_schema, parsed

# The kernel reads a table from its second message on.
COPIES = 3


def repeated(messages: Sequence[Message]) -> list[Message]:
    many = [message for _ in range(COPIES) for message in messages]
    return [attrs.evolve(message, offset=at) for at, message in enumerate(many)]


def read_events(messages: Sequence[Message], **options: str) -> tuple[list[dict[str, Any]], Result]:
    """The events of the messages, and how copies of them were read; images are parsed JSON."""
    read = parsed({"imageFormat": "json", **options})
    result = check_equal(repeated(messages), events_schema(read), read)
    variants = parsed(options)
    check_equal(repeated(messages), events_schema(variants), variants)
    rows = result.rows.to_pylist()
    for row in rows:
        for image in ("before", "after"):
            if row[image] is not None:
                row[image] = json.loads(row[image])
    return rows[: len(rows) // COPIES], result


def read_changes(
    messages: Sequence[Message], table: str, **options: str
) -> tuple[list[dict[str, Any]], Result]:
    """The typed changes of a table, and how copies of them were read."""
    read = parsed({"table": table, **options})
    schema = inferred_schema(messages, read)
    assert schema is not None, f"no row of {table}"
    result = check_equal(repeated(messages), schema, read)
    assert result.error is None
    rows = result.rows.to_pylist()
    return rows[: len(rows) // COPIES], result


def columns(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.startswith("_")}


# --- Three-part names ---------------------------------------------------------------------


FLAT = {"protocol": "debezium", "flattened": "true"}


def test_a_topic_of_four_parts_has_a_schema() -> None:
    messages = case_messages("69_flat_sqlserver_topics")
    events, _ = read_events(messages, **FLAT)
    assert [(e["database"], e["schema"], e["table"]) for e in events] == [
        ("testDB", "dbo", "orders"),
        ("testDB", "audit", "orders"),
        ("public", None, "orders"),
        ("testDB", "audit", "orders"),
    ]
    values = {}
    for table in ("testDB.dbo.orders", "testDB.audit.orders", "public.orders"):
        rows, _ = read_changes(messages, table, **FLAT)
        values[table] = [row["v"] for row in rows]
    assert values == {
        "testDB.dbo.orders": ["a"],
        "testDB.audit.orders": ["b", "d"],
        "public.orders": ["c"],
    }
    included, _ = read_events(messages, includeTables="testDB.*.orders", **FLAT)
    assert [event["after"]["v"] for event in included] == ["a", "b", "d"]
    others, _ = read_events(messages, excludeTables="testDB.audit.*", **FLAT)
    assert [event["after"]["v"] for event in others] == ["a", "c"]


def canal(schema: Any, at: int, **more: Any) -> Message:
    """As Huawei DRS writes rows of PostgreSQL, Oracle and SQL Server."""
    wire = {
        "data": [{"id": str(at), "v": schema or "none"}],
        "database": "app",
        "es": 1_700_000_000_000 + at,
        "id": at,
        "isDdl": False,
        "mysqlType": None,
        "old": None,
        "pkNames": ["id"],
        "schema": schema,
        "sql": "",
        "sqlType": {"id": 4, "v": 12},
        "table": "orders",
        "ts": 1_700_000_000_123,
        "type": "INSERT",
    } | more
    value = json.dumps(wire, separators=(",", ":")).encode()
    return Message(None, value, topic="t", partition=0, offset=at)


@pytest.mark.parametrize("types", [None, {"id": "int", "v": "varchar(9)"}])
def test_a_schema_in_canal_json_is_part_of_the_name(types: Any) -> None:
    schemas = ["dbo", "audit", None, "", "dbo"]
    messages = [canal(schema, at, mysqlType=types) for at, schema in enumerate(schemas)]
    events, result = read_events(messages, protocol="canal-json")
    assert [(e["schema"], e["after"]["v"]) for e in events] == [
        ("dbo", "dbo"),
        ("audit", "audit"),
        (None, "none"),
        (None, "none"),
        ("dbo", "dbo"),
    ]
    assert all("schema" not in (event["extra"] or {}) for event in events)
    # Each table has a plan of its own.
    assert result.by_kernel == (12 if types else 0)
    for name, ids in {"dbo": [0, 4], "audit": [1]}.items():
        rows, result = read_changes(messages, f"app.{name}.orders", protocol="canal-json")
        assert [row["id"] for row in rows] == ids
        assert bool(result.by_kernel) == bool(types)
    rows, _ = read_changes(messages, "app.orders", protocol="canal-json")
    assert [row["id"] for row in rows] == [2, 3]


def test_mysql_has_no_schema() -> None:
    types = {"id": "int", "v": "varchar(9)"}
    messages = [canal("app", at, mysqlType=types) for at in range(3)]
    rows, result = read_changes(messages, "app.orders", protocol="canal-json")
    assert [row["id"] for row in rows] == [0, 1, 2]
    assert result.by_kernel > 3
    # Without MySQL's types, it is the schema of the same name.
    rows, _ = read_changes([canal("app", 1)], "app.app.orders", protocol="canal-json")
    assert [row["id"] for row in rows] == [1]


def test_a_statement_of_another_schema_empties_nothing_here() -> None:
    rows = [canal("dbo", at) for at in range(2)]
    statement = {"isDdl": True, "type": "TRUNCATE", "data": None}
    fail = {"onTruncate": "row", "protocol": "canal-json"}
    for query in ("TRUNCATE TABLE orders", "TRUNCATE TABLE audit.orders", "DROP TABLE orders"):
        other = canal("audit", 3, sql=query, **statement)
        changes, _ = read_changes([*rows, other], "app.dbo.orders", **fail)
        assert {row["_change_type"] for row in changes} == {"insert"}
        changes, _ = read_changes(
            [*rows, canal("dbo", 2), other, canal("audit", 4)], "app.audit.orders", **fail
        )
        assert [row["_change_type"] for row in changes] == ["truncate", "insert"]
    own = canal("audit", 3, sql="TRUNCATE TABLE dbo.orders", **statement)
    changes, _ = read_changes([*rows, own], "app.dbo.orders", **fail)
    assert [row["_change_type"] for row in changes] == ["insert", "insert", "truncate"]
