"""Small inputs of producers that do not run here, with their correct values.

Each is read in both shapes, by kernel and reference, which must agree (``check_equal``).
``tests/golden/cases/README.md`` has the values.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import attrs
import pytest
from pyspark.sql.types import VariantVal
from support.golden_data import case_messages

from cdcfmt_canal_json.sniff import sniff
from cdcfmt_core import opening
from cdcfmt_core.errors import OptionError
from cdcfmt_core.events import Message
from pyspark_cdcfmt.kernel.formats import is_installed
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import Result, check_equal, inferred_schema, parsed

# The kernel reads a table from its second message on.
COPIES = 3


def repeated(messages: Sequence[Message]) -> list[Message]:
    many = [message for _ in range(COPIES) for message in messages]
    return [attrs.evolve(message, offset=at) for at, message in enumerate(many)]


def by_kernel(result: Result, messages: int) -> None:
    """That the kernel, where it was built, read so many of the copies."""
    assert result.by_kernel == (messages if is_installed() else 0)


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
    by_kernel(result, 12 if types else 0)
    for name, ids in {"dbo": [0, 4], "audit": [1]}.items():
        rows, result = read_changes(messages, f"app.{name}.orders", protocol="canal-json")
        assert [row["id"] for row in rows] == ids
        by_kernel(result, len(ids) * COPIES - 1 if types else 0)
    rows, _ = read_changes(messages, "app.orders", protocol="canal-json")
    assert [row["id"] for row in rows] == [2, 3]


def test_mysql_has_no_schema() -> None:
    types = {"id": "int", "v": "varchar(9)"}
    messages = [canal("app", at, mysqlType=types) for at in range(3)]
    rows, result = read_changes(messages, "app.orders", protocol="canal-json")
    assert [row["id"] for row in rows] == [0, 1, 2]
    by_kernel(result, 8)
    # Without MySQL's types, it is the schema of the same name.
    rows, _ = read_changes([canal("app", 1)], "app.app.orders", protocol="canal-json")
    assert [row["id"] for row in rows] == [1]


def test_truncate_in_another_schema_has_no_effect() -> None:
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
        by_kernel(result, 2 if options else 0)
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
def test_error_of_ambiguous_bytes_names_the_option(types: Any, row: Any) -> None:
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
def test_too_many_bytes_for_the_column_are_an_error(type_: str, form: str) -> None:
    text = {"latin1": "wxyz", "auto": "wxyz", "hex": "61626364", "base64": "YWJjZA=="}[form]
    fits = {"latin1": "xyz", "auto": "xyz", "hex": "616263", "base64": "YWJj"}[form]
    messages = dts({"b": type_}, {"b": fits}, {"b": text}, {"b": fits})
    events, result = read_events(messages, protocol="canal-json", binaryEncoding=form)
    assert [event["kind"] for event in events] == ["row", "corrupt", "row"]
    reason = events[1]["_corrupt_record"]["reason"]
    assert "4 bytes in a column of at most 3" in reason
    assert "binaryEncoding" in reason
    by_kernel(result, 5)


@pytest.mark.parametrize(
    "text",
    [
        "2021-05-17 07:22:42 +00:00",
        "2021-05-17 15:22:42 +08:00",
        "2021-05-17 01:52:42.000000 -05:30",
        "2021-05-17 07:22:42Z",
        "2021-05-17T07:22:42.000Z",
        "2021-05-17 07:22:42+00:00",
    ],
)
def test_timestamps_with_a_zone_are_instants(text: str) -> None:
    messages = dts({"t": "timestamp(6)"}, {"t": text})
    options = {"protocol": "canal-json", "sourceTimeZone": "America/New_York"}
    rows, result = read_changes(messages, "inv.t", **options)
    assert rows[0]["t"] == datetime(2021, 5, 17, 7, 22, 42, tzinfo=UTC)
    by_kernel(result, 2)


@pytest.mark.parametrize("text", ["2021-05-17 07:22:42 UTC", "2021-05-17 07:22:42 +24:00"])
def test_other_zones_are_errors(text: str) -> None:
    events, _ = read_events(dts({"t": "timestamp"}, {"t": text}), protocol="canal-json")
    assert "not a " in events[0]["_corrupt_record"]["reason"]


# --- Debezium -----------------------------------------------------------------------------


def extra(event: dict[str, Any]) -> dict[str, Any]:
    found = event["extra"]
    return VariantVal(found["value"], found["metadata"]).toPython() if found else {}


def test_added_fields_are_not_columns() -> None:
    messages = case_messages("29_flat_other_fields")
    events, _ = read_events(messages, **FLAT)
    assert [event["after"] for event in events] == [
        {"id": 1, "v": "a"},
        {"ID": 1, "V": "a"},
        {"id": 1, "v": "a"},
    ]
    assert [extra(event) for event in events] == [
        {"commit_lsn": "00000027:00000758:0005", "change_lsn": "00000027:00000758:0003"},
        {"scn": "123", "commit_scn": "124"},
        {"lsn": 12, "txId": 5},
    ]
    assert {event["op"] for event in events} == {"update"}
    rows, _ = read_changes(messages[:1], "dbo.orders", **FLAT)
    # Types are unknown.
    assert [columns(row) for row in rows] == [{"id": "1", "v": "a"}]


@pytest.mark.parametrize("prefix", ["cdc_", "__", "_x.", "meta-"])
def test_any_prefix_of_added_fields(prefix: str) -> None:
    value = {"id": 1, f"{prefix}op": "c", f"{prefix}keyspace": "k", "__deleted": "false"}
    key = {"id": 1, f"{prefix}part": 2}
    value |= {f"{prefix}part": 2, f"{prefix}table": "t", f"{prefix}db": "d"}
    headers = ((f"{prefix}shard", b'"-80"'),)
    message = Message(json.dumps(key).encode(), json.dumps(value).encode(), headers, "orders", 0, 0)
    events, _ = read_events([message], flattenedPrefix=prefix, **FLAT)
    event = events[0]
    assert (event["database"], event["table"], event["op"]) == ("d", "t", "insert")
    assert event["after"] == {"id": 1, f"{prefix}part": 2}
    assert extra(event) == {"keyspace": "k", "shard": "-80"}


def test_key_fields_that_are_not_columns() -> None:
    messages = case_messages("62_logical_router_key")
    update, gone = read_events(messages[:2], **FLAT)[0]
    assert (update["op"], update["key_columns"]) == ("update", ["id"])
    assert (gone["op"], gone["before"], gone["key_columns"]) == ("delete", {"id": 1}, ["id"])
    assert extra(gone)["__dbz__physicalTableIdentifier"] == "srv.inv.t_01"
    events, _ = read_events(messages, protocol="debezium")
    assert [event["op"] for event in events] == ["update", "delete"]
    assert (events[1]["before"], events[1]["key_columns"]) == ({"id": 1}, ["id"])
    assert extra(events[1])["__dbz__physicalTableIdentifier"] == "srv.public.t_01"
    rows, _ = read_changes(messages[2:], "d.public.t_01", protocol="debezium")
    assert columns(rows[0]) == {"id": 1}


def test_negative_integers() -> None:
    signed, unsigned = case_messages("24_negative_bigint")
    events, result = read_events([signed], protocol="debezium")
    assert events[0]["after"] == {"id": -5, "v": -1}
    assert "ambiguous_unsigned" not in extra(events[0])
    by_kernel(result, 2)
    assert not result.counts
    rows, _ = read_changes([signed], "d.public.neg", protocol="debezium")
    assert columns(rows[0]) == {"id": -5, "v": -1}
    events, _ = read_events([unsigned], protocol="debezium")
    assert events[0]["after"] == {"id": -5, "u": 2**64 - 1}
    assert "ambiguous_unsigned" not in extra(events[0])
    rows, _ = read_changes([unsigned], "inv.neg", protocol="debezium")
    assert columns(rows[0]) == {"id": -5, "u": 2**64 - 1}


def with_source(message: Message, **source: Any) -> Message:
    wire = json.loads(message.value or b"")
    wire["payload"]["source"] |= source
    return attrs.evolve(message, value=json.dumps(wire).encode())


@pytest.mark.parametrize("connector", ["sqlserver", "oracle", "db2", "yugabytedb", "other"])
def test_negative_integers_of_databases_with_schemas(connector: str) -> None:
    message = with_source(case_messages("24_negative_bigint")[0], connector=connector)
    events, _ = read_events([message], protocol="debezium")
    assert "ambiguous_unsigned" not in extra(events[0])
    assert events[0]["after"] == {"id": -5, "v": -1}


def test_untyped_bigint_of_mysql_is_ambiguous() -> None:
    message = case_messages("24_negative_bigint")[1]
    wire = json.loads(message.value or b"")
    for image in wire["schema"]["fields"][:2]:
        for field in image["fields"]:
            field.pop("parameters")
    bare = attrs.evolve(message, value=json.dumps(wire).encode())
    events, _ = read_events([bare], protocol="debezium")
    assert extra(events[0])["ambiguous_unsigned"] == ["id", "u"]


@pytest.mark.parametrize(
    ("field", "parameters", "wire", "expected"),
    [
        ("string", {"type": "VARBINARY", "length": "10"}, "3q2+7w==", b"\xde\xad\xbe\xef"),
        ("string", {"type": "BINARY", "length": "3"}, "AAH/", b"\x00\x01\xff"),
        ("int64", {"type": "INT UNSIGNED", "length": "10"}, 2**32 - 1, 2**32 - 1),
        ("int64", {"type": "BIGINT UNSIGNED ZEROFILL"}, -2, 2**64 - 2),
        ("string", {"type": "DECIMAL", "length": "6", "scale": "2"}, "1.50", Decimal("1.50")),
        ("double", {"type": "DECIMAL", "length": "6", "scale": "2"}, 1.5, Decimal("1.50")),
        ("string", {"type": "ENUM", "length": "1"}, "a", "a"),
        ("string", {"type": "VARCHAR", "length": "9"}, "a", "a"),
    ],
)
def test_the_propagated_type_of_a_column(
    field: str, parameters: dict[str, str], wire: Any, expected: Any
) -> None:
    message = case_messages("24_negative_bigint")[1]
    envelope = json.loads(message.value or b"")
    propagated = {f"__debezium.source.column.{name}": text for name, text in parameters.items()}
    for image in envelope["schema"]["fields"][:2]:
        image["fields"][1] |= {"type": field, "parameters": propagated}
    envelope["payload"]["after"]["u"] = wire
    given = attrs.evolve(message, value=json.dumps(envelope).encode())
    rows, _ = read_changes([given], "inv.neg", protocol="debezium")
    assert rows[0]["u"] == expected


def test_vectors_of_doubles() -> None:
    messages = case_messages("70_vector_double")
    rows, _ = read_changes(messages, "D.S.V", protocol="debezium")
    assert columns(rows[0]) == {"id": 1, "dv": [0.1234567890123456, 1e300]}
    events, _ = read_events(messages, protocol="debezium")
    assert events[0]["after"] == {"id": 1, "dv": [0.1234567890123456, 1e300]}


def test_the_schema_history_gives_types() -> None:
    messages = case_messages("28_schema_history")
    for protocol in ("debezium", "auto"):
        events, _ = read_events(messages, protocol=protocol)
        ddl, row = events
        assert (ddl["kind"], ddl["ddl"]["type"]) == ("ddl", "CREATE")
        assert row["after"] == {"id": 1, "d": "2024-01-02", "v": 2**64 - 1}
        assert "ambiguous_unsigned" not in extra(row)
        rows, _ = read_changes(messages, "inv.h", protocol=protocol, onTruncate="ignore")
        assert columns(rows[-1]) == {"id": 1, "d": date(2024, 1, 2), "v": 2**64 - 1}


def test_control_messages_are_recognised() -> None:
    messages = case_messages("31_control")
    kinds = [
        *("row", "row", "message", "message", "transaction", "transaction"),
        *("heartbeat", "heartbeat", "row", "message"),
    ]
    found = {}
    for protocol in ("debezium", "auto"):
        events, _ = read_events(messages, protocol=protocol)
        assert [event["kind"] for event in events] == kinds
        assert not any("message" in extra(event) for event in events)
        found[protocol] = [(event["kind"], event["op"], extra(event)) for event in events]
    assert found["auto"] == found["debezium"]
    assert [event[1] for event in found["auto"][:2]] == ["truncate", "truncate"]
    for message in messages:
        event = read_events([message], protocol="auto")[0][0]
        assert (event["kind"], event["_source"]["protocol"]) != ("corrupt", None)


def test_flink_cdcs_schemas_declare_only_images() -> None:
    messages = case_messages("67_flinkcdc_include_schema")
    expected = {
        "id": 3,
        "b3": b"\x01\x02",
        "vb": b"\x03\x04",
        "bl": b"\x05\x06\x07",
        "d": Decimal("7.123"),
        "dt": date(1970, 4, 11),
        "t": "00:00:00",
        "ts": datetime(2023, 1, 1),
        "tz": datetime(2023, 1, 1, tzinfo=UTC),
    }
    for protocol in ("debezium", "auto"):
        rows, _ = read_changes(messages, "d.t", protocol=protocol)
        assert columns(rows[0]) == expected
    events, _ = read_events(messages, protocol="debezium")
    assert (events[0]["op"], events[0]["after"]["d"]) == ("insert", 7.123)


# --- Tables without a database, messages without a table ------------------------------------


def test_a_keyspace_is_a_database() -> None:
    messages = case_messages("15_vitess")
    for protocol in ("debezium", "auto"):
        events, _ = read_events(messages, protocol=protocol)
        assert (events[0]["database"], events[0]["table"]) == ("commerce", "customers")
        assert extra(events[0])["keyspace"] == "commerce"
        rows, _ = read_changes(messages, "commerce.customers", protocol=protocol)
        assert columns(rows[0]) == {"id": "18446744073709551615", "e": "a", "n": "1.10"}
    other = with_source(messages[0], keyspace="other")
    events, _ = read_events([messages[0], other], protocol="debezium")
    assert [event["database"] for event in events] == ["commerce", "other"]


def test_a_table_without_a_database_is_selected_by_its_name() -> None:
    message = with_source(case_messages("15_vitess")[0], keyspace=None)
    named = case_messages("15_vitess")[0]
    rows, _ = read_changes([message, named], "customers", protocol="debezium")
    assert [columns(row)["n"] for row in rows] == ["1.10"]
    events, _ = read_events([message, named], protocol="debezium", includeTables="*.cust*")
    assert [event["database"] for event in events] == ["", "commerce"]
    events, _ = read_events([message, named], protocol="debezium", excludeTables="*.customers")
    assert not events


FLINK_SQL = {
    "canal-json": [b'{"data":[{"id":1,"v":"a"}],"type":"INSERT"}'],
    "debezium": [b'{"before":null,"after":{"id":1,"v":"a"},"op":"c"}'],
}


@pytest.mark.parametrize("protocol", list(FLINK_SQL))
def test_messages_without_a_table_take_the_default(protocol: str) -> None:
    messages = [Message(None, value, topic="t", partition=0) for value in FLINK_SQL[protocol]]
    for given in (protocol, "auto"):
        default = {"defaultTable": "shop.`or.ders`"}
        rows, _ = read_changes(messages, "shop.`or.ders`", protocol=given, **default)
        assert columns(rows[0]) == {"id": "1", "v": "a"}
        events, _ = read_events(messages, protocol=given, defaultTable="shop.dbo.orders")
        names = [events[0][part] for part in ("database", "schema", "table", "op")]
        assert names == ["shop", "dbo", "orders", "insert"]
        events, _ = read_events(messages, protocol=given)
        assert "set defaultTable" in events[0]["_corrupt_record"]["reason"]
    with pytest.raises(OptionError, match="option defaultTable"):
        opening.open_decoder(protocol, {"defaultTable": "a.b.c.d"})


def test_flink_cdcs_canal_json_is_recognised() -> None:
    wire = {"old": None, "data": [{"id": 1}], "type": "INSERT", "database": "d", "table": "t"}
    value = json.dumps(wire | {"pkNames": ["id"]}).encode()
    messages = [Message(None, value, topic="t", partition=0)]
    events, _ = read_events(messages, protocol="auto")
    assert (events[0]["table"], events[0]["key_columns"]) == ("t", ["id"])
    for rows in ({"id": 1}, None):
        # Maxwell's rows are not lists.
        maxwell = json.dumps(wire | {"data": rows, "xid": 1}).encode()
        assert sniff(Message(None, maxwell)) == 0.0
