"""Small inputs of producers that do not run here, with their correct values.

Each is read in both shapes, by kernel and reference, which must agree (``check_equal``).
``tests/golden/cases/README.md`` has the values.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
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


# --- Bytes in hexadecimal -----------------------------------------------------------------


def dts(types: dict[str, str], *rows: dict[str, Any], **more: Any) -> list[Message]:
    """Inserts as Tencent DTS writes them."""
    ((line,),) = ([message.value for message in case_messages("34b_tencent_dts_hex")],)
    wire = json.loads(line or b"") | {"mysqlType": {"id": "int(11)"} | types} | more
    messages = []
    for at, row in enumerate(rows):
        value = json.dumps(wire | {"data": [{"id": str(at)} | row]}, separators=(",", ":"))
        messages.append(Message(None, value.encode(), topic="t", partition=0, offset=at))
    return messages


def test_hexadecimal_bytes() -> None:
    messages = case_messages("34b_tencent_dts_hex")
    expected = {"id": 1, "b": b"MySQL", "bl": b"MySQL", "vb": b"\xff\x00"}
    for options in ({}, {"binaryEncoding": "hex"}):
        rows, result = read_changes(messages, "inv.t", protocol="canal-json", **options)
        assert [columns(row) for row in rows] == [expected]
        # The kernel leaves the decision to the reference.
        assert bool(result.by_kernel) == bool(options)
        events, _ = read_events(messages, protocol="canal-json", **options)
        base64 = {"id": 1, "b": "TXlTUUw=", "bl": "TXlTUUw=", "vb": "/wA="}
        assert events[0]["after"] == base64


@pytest.mark.parametrize(
    ("types", "row", "expected"),
    [
        # Longer than the column as it stands.
        ({"b": "varbinary(3)"}, {"b": "616263"}, {"b": b"abc"}),
        ({"b": "binary(3)"}, {"b": "0X"}, {"b": b"0X\0"}),
        ({"b": "binary(4)"}, {"b": "616263"}, {"b": b"abc\0"}),
        # Exactly as long.
        ({"b": "binary(4)"}, {"b": "6162"}, {"b": b"6162"}),
        # No hexadecimal.
        ({"b": "blob"}, {"b": "abcg"}, {"b": b"abcg"}),
        ({"b": "blob"}, {"b": "abc"}, {"b": b"abc"}),
        ({"b": "blob"}, {"b": "aBcD"}, {"b": b"aBcD"}),
        ({"b": "blob"}, {"b": ""}, {"b": b""}),
        ({"b": "blob"}, {"b": None}, {"b": None}),
        # Other bytes of the message show the form.
        ({"b": "blob", "c": "blob"}, {"b": "6162", "c": "\xff"}, {"b": b"6162", "c": b"\xff"}),
        ({"b": "blob", "c": "binary(1)"}, {"b": "6162", "c": "ff"}, {"b": b"ab", "c": b"\xff"}),
    ],
)
def test_the_form_of_bytes_is_detected(types: Any, row: Any, expected: Any) -> None:
    messages = dts(types, row)
    rows, _ = read_changes(messages, "inv.t", protocol="canal-json")
    assert columns(rows[0]) == {"id": 0} | expected


@pytest.mark.parametrize(
    ("types", "row"),
    [
        ({"b": "blob"}, {"b": "6162"}),
        ({"b": "varbinary(10)"}, {"b": "0xFF00"}),
        ({"b": "binary(9)"}, {"b": "6162"}),
        # Two forms in one message.
        (
            {"b": "blob", "c": "binary(1)", "d": "blob"},
            {"b": "6162", "c": "ff", "d": "\xff"},
        ),
    ],
)
def test_an_open_form_of_bytes_names_the_option(types: Any, row: Any) -> None:
    messages = dts(types, row)
    events, _ = read_events(messages, protocol="canal-json")
    assert {event["kind"] for event in events} == {"corrupt"}
    assert "binaryEncoding" in events[0]["_corrupt_record"]["reason"]
    latin1 = {"binaryEncoding": "latin1"}
    for options in (latin1, {"dialect": "canal"}):
        rows, _ = read_changes(
            dts(types, row | {"c": "f"}), "inv.t", protocol="canal-json", **options
        )
        assert rows[0]["b"].rstrip(b"\0") == row["b"].encode()
    ticdc = {"_tidb": {"commitTs": 1}}
    rows, _ = read_changes(dts(types, row | {"c": "f"}, **ticdc), "inv.t", protocol="canal-json")
    assert rows[0]["b"].rstrip(b"\0") == row["b"].encode()


@pytest.mark.parametrize("form", ["latin1", "hex", "base64", "auto"])
@pytest.mark.parametrize("type_", ["binary(3)", "varbinary(3)"])
def test_more_bytes_than_the_columns_are_an_error(type_: str, form: str) -> None:
    text = {"latin1": "wxyz", "auto": "wxyz", "hex": "61626364", "base64": "YWJjZA=="}[form]
    fits = {"latin1": "xyz", "auto": "xyz", "hex": "616263", "base64": "YWJj"}[form]
    messages = dts({"b": type_}, {"b": fits}, {"b": text}, {"b": fits})
    events, result = read_events(messages, protocol="canal-json", binaryEncoding=form)
    assert [event["kind"] for event in events] == ["row", "corrupt", "row"]
    reason = events[1]["_corrupt_record"]["reason"]
    assert "4 bytes in a column of at most 3" in reason
    assert "binaryEncoding" in reason
    assert result.by_kernel == 5


@pytest.mark.parametrize(
    "text",
    [
        "2021-05-17 07:22:42 +00:00",
        "2021-05-17 15:22:42 +08:00",
        "2021-05-17 01:52:42.000000 -05:30",
        "2021-05-17 07:22:42Z",
        "2021-05-17 07:22:42.000 Z",
        "2021-05-17 07:22:42+00:00",
        "2021-05-17 15:22:42+08",
    ],
)
def test_timestamps_with_a_zone_are_instants(text: str) -> None:
    messages = dts({"t": "timestamp(6)"}, {"t": text})
    options = {"protocol": "canal-json", "sourceTimeZone": "America/New_York"}
    rows, result = read_changes(messages, "inv.t", **options)
    assert rows[0]["t"] == datetime(2021, 5, 17, 7, 22, 42, tzinfo=UTC)
    assert result.by_kernel == 2


@pytest.mark.parametrize("text", ["2021-05-17 07:22:42 UTC", "2021-05-17 07:22:42 +24:00"])
def test_other_zones_are_errors(text: str) -> None:
    events, _ = read_events(dts({"t": "timestamp"}, {"t": text}), protocol="canal-json")
    assert "not a " in events[0]["_corrupt_record"]["reason"]
