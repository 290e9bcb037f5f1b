"""Messages of every producer, as their documents show them, decoded by hand.

Origins: [ticdc] docs.pingcap.com/tidb/stable/ticdc-canal-json; [canal] Canal's
``MQMessageUtils`` and ``FlatMessage``; [cloudcanal] CloudCanal, "MQ message formats", Canal
Json; [ckafka] and [drs] what Tencent CKafka and Huawei DRS send.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import lz4.frame
import pytest

from cdcfmt_core import default_registry, opening, types
from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.events import (
    Corrupt,
    Event,
    Image,
    Message,
    RowChange,
    SchemaChange,
    Watermark,
)


def open_decoder(*, claims: Path | None = None, **options: Any) -> MessageDecoder:
    if claims is not None:
        options["claimCheckStorageUri"] = str(claims)
    return opening.open_decoder("canal-json", options)


def decode(value: str | bytes | dict[str, Any], **options: Any) -> list[Event]:
    data = json.dumps(value) if isinstance(value, dict) else value
    data = data if isinstance(data, bytes) else data.encode()
    return open_decoder(**options).decode(Message(None, data))


def decode_rows(value: str | bytes | dict[str, Any], **options: Any) -> list[RowChange]:
    events = decode(value, **options)
    for event in events:
        assert isinstance(event, RowChange), event
    return [event for event in events if isinstance(event, RowChange)]


def decode_row(value: str | bytes | dict[str, Any], **options: Any) -> RowChange:
    (event,) = decode_rows(value, **options)
    return event


def decode_ddl(value: str | dict[str, Any], **options: Any) -> SchemaChange:
    (event,) = decode(value, **options)
    assert isinstance(event, SchemaChange)
    return event


def corrupt_reason(value: str | dict[str, Any], **options: Any) -> str:
    (event,) = decode(value, **options)
    assert isinstance(event, Corrupt)
    return event.error.summary


# TiCDC

TICDC_DDL = """{
    "id": 0,
    "database": "test",
    "table": "",
    "pkNames": null,
    "isDdl": true,
    "type": "QUERY",
    "es": 1639633094670,
    "ts": 1639633095489,
    "sql": "drop database if exists test",
    "sqlType": null,
    "mysqlType": null,
    "data": null,
    "old": null,
    "_tidb": {
        "commitTs": 429918007904436226
    }
}"""  # [ticdc] DDL Event

TICDC_DML = """{
    "id": 0,
    "database": "test",
    "table": "tp_int",
    "pkNames": [
        "id"
    ],
    "isDdl": false,
    "type": "INSERT",
    "es": 1639633141221,
    "ts": 1639633142960,
    "sql": "",
    "sqlType": {
        "c_bigint": -5,
        "c_int": 4,
        "c_mediumint": 4,
        "c_smallint": 5,
        "c_tinyint": -6,
        "id": 4
    },
    "mysqlType": {
        "c_bigint": "bigint",
        "c_int": "int",
        "c_mediumint": "mediumint",
        "c_smallint": "smallint",
        "c_tinyint": "tinyint",
        "id": "int"
    },
    "data": [
        {
            "c_bigint": "9223372036854775807",
            "c_int": "2147483647",
            "c_mediumint": "8388607",
            "c_smallint": "32767",
            "c_tinyint": "127",
            "id": "2"
        }
    ],
    "old": null,
    "_tidb": {
        "commitTs": 429918007904436226
    }
}"""  # [ticdc] DML Event

TICDC_WATERMARK = """{
    "id": 0,
    "database": "",
    "table": "",
    "pkNames": null,
    "isDdl": false,
    "type": "TIDB_WATERMARK",
    "es": 1640007049196,
    "ts": 1640007050284,
    "sql": "",
    "sqlType": null,
    "mysqlType": null,
    "data": null,
    "old": null,
    "_tidb": {
        "watermarkTs": 429918007904436226
    }
}"""  # [ticdc] WATERMARK Event

COMMIT_TS = 429918007904436226
TP_INT = {
    "c_bigint": 9223372036854775807,
    "c_int": 2147483647,
    "c_mediumint": 8388607,
    "c_smallint": 32767,
    "c_tinyint": 127,
    "id": 2,
}


def dml(**fields: Any) -> dict[str, Any]:
    """TiCDC's DML example with other fields; None of Python is null, ``...`` drops one."""
    wire: dict[str, Any] = json.loads(TICDC_DML) | fields
    return {name: value for name, value in wire.items() if value is not ...}


def table(types_of: dict[str, str | None], *rows: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A message over columns of these types."""
    return dml(mysqlType=types_of, sqlType=dict.fromkeys(types_of, 12), data=list(rows), **fields)


def test_ticdc_ddl() -> None:
    assert decode_ddl(TICDC_DDL) == SchemaChange(
        query="drop database if exists test",
        ddl_type="QUERY",
        database="test",
        table="",
        commit_ts=COMMIT_TS,
        source_time=1639633094670_000,
        emit_time=1639633095489_000,
    )


def test_ticdc_dml() -> None:
    event = decode_row(TICDC_DML)
    assert event.op == "insert"
    assert event.before is None
    assert event.after == Image(TP_INT)
    assert (event.commit_ts, event.index, event.extra) == (COMMIT_TS, 0, None)
    assert (event.source_time, event.emit_time) == (1639633141221_000, 1639633142960_000)
    # The order is by commit_ts, so es is not needed for it.
    assert event.sequence_commit is None
    schema = event.table
    assert (schema.database, schema.schema, schema.table) == ("test", None, "tp_int")
    assert schema.key_columns == ("id",)
    assert [(column.name, column.type, column.key) for column in schema.columns] == [
        ("c_bigint", types.Int(64), False),
        ("c_int", types.Int(32), False),
        ("c_mediumint", types.Int(24), False),
        ("c_smallint", types.Int(16), False),
        ("c_tinyint", types.Int(8), False),
        ("id", types.Int(32), True),
    ]
    assert all(column.nullable is None for column in schema.columns)
    assert [column.source_type for column in schema.columns][:2] == ["bigint", "int"]


def test_ticdc_watermark() -> None:
    assert decode(TICDC_WATERMARK) == [
        Watermark(
            commit_ts=COMMIT_TS,
            source_time=1640007049196_000,
            emit_time=1640007050284_000,
        )
    ]


OLD = {name: str(value) for name, value in TP_INT.items()}
NEW = OLD | {"c_int": "0", "c_tinyint": "0"}


def test_ticdc_update_with_the_whole_old_row() -> None:
    # [ticdc] UPDATE events
    event = decode_row(dml(type="UPDATE", data=[NEW], old=[OLD]))
    assert event.op == "update"
    assert event.before == Image(TP_INT)
    assert event.after == Image(TP_INT | {"c_int": 0, "c_tinyint": 0})


def test_ticdc_update_with_the_changed_columns() -> None:
    # [ticdc] UPDATE events, as official Canal and with only_output_updated_columns
    old = {"c_int": "2147483647", "c_tinyint": "127"}
    event = decode_row(dml(type="UPDATE", data=[NEW], old=[old]))
    assert event.before == Image(TP_INT, completed=("c_bigint", "c_mediumint", "c_smallint", "id"))


def test_an_update_of_nothing() -> None:
    # only-output-updated-columns, where no column changed
    event = decode_row(dml(type="UPDATE", data=[NEW], old=[{}]))
    assert event.before is not None
    assert event.after is not None
    assert event.before.values == event.after.values
    assert event.before.completed == tuple(NEW)


@pytest.mark.parametrize("old", [None, [], ...])
def test_an_update_without_old(old: Any) -> None:
    event = decode_row(dml(type="UPDATE", data=[NEW], old=old))
    assert (event.op, event.before) == ("update", None)


@pytest.mark.parametrize("old", [None, [OLD], ...])
def test_ticdc_delete(old: Any) -> None:
    # [ticdc] Changes to the old field in DELETE events: before v5.4.0 it equals data
    event = decode_row(dml(type="DELETE", data=[OLD], old=old))
    assert (event.op, event.before, event.after) == ("delete", Image(TP_INT), None)


def test_ticdc_delete_of_the_handle_key() -> None:
    # delete-only-output-handle-key-columns leaves no mark but this one
    event = decode_row(dml(type="DELETE", data=[{"id": "2"}]))
    assert event.before == Image({"id": 2}, complete=False)
    # A handle that is no primary key leaves none at all.
    message = dml(type="DELETE", data=[{"c_int": "1"}], pkNames=[])
    assert decode_row(message).before == Image({"c_int": 1})
    event = decode_row(message, deleteOnlyOutputHandleKeyColumns="true")
    assert event.before == Image({"c_int": 1}, complete=False)


def test_ticdc_delete_of_a_table_without_a_key() -> None:
    event = decode_row(dml(type="DELETE", sqlType=None, mysqlType={}, data=[{}], pkNames=[]))
    assert event.before == Image({}, complete=False)
    assert event.table.columns == ()


def test_ticdc_binary() -> None:
    # [ticdc] Binary and Blob types, "Encoding example"
    data = bytes([5, 7, 10, 15, 36, 50, 43, 99, 120, 60, 38, 255, 254, 45, 55, 70])
    message = r"""{"id":0,"database":"test","table":"t","pkNames":null,"isDdl":false,
        "type":"INSERT","es":1639633141221,"ts":1639633142960,"sql":"",
        "sqlType":{"c_varbinary":2004},"mysqlType":{"c_varbinary":"varbinary"},"old":null,
        "data":[{"c_varbinary":"\u0005\u0007\n\u000f$2+cx\u003c\u0026ÿþ-7F"}]}"""
    event = decode_row(message)
    assert event.after == Image({"c_varbinary": data})
    assert event.table.columns[0].type == types.Binary()


def test_ticdc_types_without_and_with_parameters() -> None:
    # [ticdc] The mysqlType field: TiCDC's own, then official Canal's (a space in decimal)
    plain = {
        "c_binary": "binary",
        "c_bit": "bit",
        "c_char": "char",
        "c_decimal": "decimal",
        "c_enum": "enum",
        "c_set": "set",
        "c_varbinary": "varbinary",
        "c_varchar": "varchar",
        "id": "int",
    }
    compatible = {
        "c_binary": "binary(16)",
        "c_bit": "bit(64)",
        "c_char": "char(16)",
        "c_decimal": "decimal(10, 4)",
        "c_enum": "enum('a','b','c')",
        "c_set": "set('a','b','c')",
        "c_varbinary": "varbinary(16)",
        "c_varchar": "varchar(16)",
        "id": "int",
    }
    row = {
        "c_binary": "abc" + "\0" * 13,
        "c_bit": "65",
        "c_char": "abc",
        "c_decimal": "123.4560",
        "c_enum": "1",
        "c_set": "3",
        "c_varbinary": "abc",
        "c_varchar": "abc",
        "id": "1",
    }
    values = {
        "c_binary": b"abc" + bytes(13),
        "c_bit": 65,
        "c_char": "abc",
        "c_decimal": Decimal("123.4560"),
        "c_enum": 1,
        "c_set": 3,
        "c_varbinary": b"abc",
        "c_varchar": "abc",
        "id": 1,
    }
    event = decode_row(table(dict(plain), row))
    assert event.after == Image(values)
    assert {column.name: column.type for column in event.table.columns} == {
        "c_binary": types.Binary(),
        "c_bit": types.Bit(),
        "c_char": types.Text(),
        "c_decimal": types.Decimal(),
        "c_enum": types.Enum(),
        "c_set": types.Set(),
        "c_varbinary": types.Binary(),
        "c_varchar": types.Text(),
        "id": types.Int(32),
    }
    # The zeros at the end of a BINARY are lost on the way through official Canal.
    event = decode_row(table(dict(compatible), row | {"c_binary": "abc"}))
    assert event.after == Image(values | {"c_enum": "a", "c_set": "a,b"})
    by_name = {column.name: column.type for column in event.table.columns}
    assert by_name["c_decimal"] == types.Decimal(10, 4)
    assert by_name["c_bit"] == types.Bit(64)
    assert by_name["c_enum"] == types.Enum(("a", "b", "c"))


def test_a_length_that_no_binary_has_is_not_padded_to() -> None:
    event = decode_row(table({"a": "binary(999999999)"}, {"a": "x"}))
    assert event.after == Image({"a": b"x"})


def test_enums_and_sets_by_name() -> None:
    # Some versions of Canal, and its full synchronisation
    types_of = {"e": "enum('a','b')", "s": "set('x','y')", "u": "enum"}
    event = decode_row(table(dict(types_of), {"e": "b", "s": "x,y", "u": "b"}))
    assert event.after == Image({"e": "b", "s": "x,y", "u": "b"})


def test_only_handle_key() -> None:
    message = dml(
        type="UPDATE",
        data=[{"id": "2"}],
        old=[{"id": "2"}],
        mysqlType={"id": "int"},
        sqlType={"id": 4},
        _tidb={"commitTs": COMMIT_TS, "onlyHandleKey": True},
    )
    event = decode_row(message)
    assert event.before == event.after == Image({"id": 2}, complete=False)
    assert event.extra == {"only_handle_key": True}
    # Nothing can be said of what is absent.
    event = decode_row(message | {"data": [NEW], "old": [{"id": "1"}]})
    assert event.before == Image({"id": 1}, complete=False)


def test_a_claim_check(tmp_path: Path) -> None:
    location = "s3://bucket/prefix/9e48ab20.json"
    message = dml(data=[{"id": "2"}], _tidb={"commitTs": COMMIT_TS, "claimCheckLocation": location})
    reason = corrupt_reason(message)
    assert f"claim check for '{location}'" in reason
    assert "set claimCheckStorageUri" in reason

    (tmp_path / "9e48ab20.json").write_text(TICDC_DML, encoding="utf-8")
    event = decode_row(message, claims=tmp_path)
    assert event.after == Image(TP_INT)
    assert event.extra == {"claim_check": location}
    # One that leads to another, or to itself.
    (tmp_path / "9e48ab20.json").write_text(json.dumps(message), encoding="utf-8")
    assert "leads to another one" in corrupt_reason(message, claims=tmp_path)
    (tmp_path / "9e48ab20.json").unlink()
    assert "claim check 9e48ab20.json cannot be read" in corrupt_reason(message, claims=tmp_path)


def test_compressed_messages() -> None:
    data = lz4.frame.compress(TICDC_DML.encode())
    event = decode_row(data, largeMessageHandleCompression="lz4")
    assert event.after == Image(TP_INT)
    (corrupt,) = decode(data)
    assert isinstance(corrupt, Corrupt)
    assert "set largeMessageHandleCompression=lz4" in corrupt.error.reason


def test_with_and_without_extension_in_one_topic() -> None:
    decoder = open_decoder()
    values = [TICDC_DML, json.dumps(dml(_tidb=...)), TICDC_DML]
    events = [event for value in values for event in decoder.decode(Message(None, value.encode()))]
    assert [getattr(event, "commit_ts", 0) for event in events] == [COMMIT_TS, None, COMMIT_TS]
    assert [getattr(event, "sequence_commit", 0) for event in events] == [
        None,
        1639633141221 << 18,
        None,
    ]
    # One table, one schema.
    assert len({id(event.table) for event in events if isinstance(event, RowChange)}) == 1


@pytest.mark.parametrize(
    ("fields", "options", "expected"),
    [
        ({}, {}, 1639633141221 << 18),
        ({"_tidb": None}, {}, 1639633141221 << 18),
        ({"_tidb": {}}, {}, 1639633141221 << 18),
        ({"_tidb": {"commitTs": COMMIT_TS}}, {}, None),
        ({"id": 7}, {}, None),
        ({"es": 0}, {}, None),
        ({"es": ...}, {}, None),
        # Seconds are not TiCDC's.
        ({"es": 1639633141}, {}, None),
        ({}, {"dialect": "ticdc"}, 1639633141221 << 18),
        ({"id": 7}, {"dialect": "ticdc"}, 1639633141221 << 18),
        ({}, {"dialect": "canal"}, None),
        ({}, {"dialect": "cloudcanal"}, None),
    ],
)
def test_only_ticdcs_es_orders_changes(
    fields: dict[str, Any], options: dict[str, Any], expected: int | None
) -> None:
    assert decode_row(dml(**({"_tidb": ...} | fields)), **options).sequence_commit == expected


def test_a_schema_is_one_object() -> None:
    decoder = open_decoder()
    message = json.loads(TICDC_DML)
    shuffled = message | {
        "mysqlType": dict(reversed(message["mysqlType"].items())),
        # It depends on the values and says nothing where mysqlType does.
        "sqlType": {**message["sqlType"], "c_bigint": 3},
    }
    other_columns = message | {"data": [{"id": "3"}]}
    other_types = message | {"mysqlType": message["mysqlType"] | {"c_int": "int unsigned"}}
    schemas = []
    for value in (message, shuffled, other_columns, other_types, message):
        (event,) = decoder.decode(Message(None, json.dumps(value).encode()))
        assert isinstance(event, RowChange)
        schemas.append(event.table)
    first, second, columns, unsigned, again = schemas
    assert first is second is again
    assert columns.column_names == ("id",)
    assert unsigned is not first
    assert unsigned.columns[1].type == types.Int(32, signed=False)


def test_what_no_column_takes_is_extra() -> None:
    tidb = {"commitTs": COMMIT_TS, "rowkey": "dGVzdA==", "more": [1]}
    event = decode_row(dml(id=12, gtid="uuid:1-5", sql="insert", cluster="c1", _tidb=tidb))
    assert event.extra == {
        "id": 12,
        "gtid": "uuid:1-5",
        "sql": "insert",
        "cluster": "c1",
        "rowkey": "dGVzdA==",
        "more": [1],
    }
    assert decode_row(dml(_tidb={"rowkey": "dGVzdA=="})).extra == {"rowkey": "dGVzdA=="}
    ddl = decode_ddl(json.loads(TICDC_DDL) | {"gtid": "g", "site": 3})
    assert ddl.extra == {"gtid": "g", "site": 3}


# Official Canal: fields in alphabetical order, several rows, typed mysqlType

CANAL_BATCH = """{
    "data": [
        {"id": "1", "name": "b", "price": "1.50"},
        {"id": "2", "name": "x", "price": "2.50"},
        {"id": "3", "name": "y", "price": "3.50"}
    ],
    "database": "shop",
    "es": 1639633141000,
    "gtid": "",
    "id": 5,
    "isDdl": false,
    "mysqlType": {"id": "INT(11) UNSIGNED", "name": "VARCHAR(10)", "price": "DECIMAL(8, 2)"},
    "old": [
        {"name": "a"},
        {"name": "x", "price": null},
        {"name": "z", "price": "3.50"}
    ],
    "pkNames": ["id"],
    "sql": "",
    "sqlType": {"id": 4, "name": 12, "price": 3},
    "table": "items",
    "ts": 1639633142960,
    "type": "UPDATE"
}"""  # [canal] the columns that a row changed stay in `old` of all rows after it


def test_canal_batch() -> None:
    events = decode_rows(CANAL_BATCH)
    assert [event.index for event in events] == [0, 1, 2]
    befores = [event.before.values for event in events if event.before]
    assert befores == [
        {"id": 1, "name": "a", "price": Decimal("1.50")},
        # It was NULL, which is not absent.
        {"id": 2, "name": "x", "price": None},
        {"id": 3, "name": "z", "price": Decimal("3.50")},
    ]
    assert [event.before.completed for event in events if event.before] == [
        ("id", "price"),
        ("id",),
        ("id",),
    ]
    assert all(event.before.complete for event in events if event.before)
    assert len({id(event.table) for event in events}) == 1
    first = events[0]
    assert [column.type for column in first.table.columns] == [
        types.Int(32, signed=False),
        types.Text(),
        types.Decimal(8, 2),
    ]
    assert first.table.columns[0].source_type == "INT(11) UNSIGNED"
    assert (first.commit_ts, first.sequence_commit) == (None, None)
    assert first.extra == {"id": 5}


CANAL_INSERT = """{
    "data": [{"id": "1", "price": "1.5", "at": "2024-01-02 03:04:05", "raw": "ÿ\\u0000"}],
    "database": "shop", "es": 1639633141000, "gtid": "", "id": 5, "isDdl": false,
    "mysqlType": MYSQL, "old": null, "pkNames": ["id"], "sql": "",
    "sqlType": SQL, "table": "items", "ts": 1639633142960, "type": "INSERT"
}"""


@pytest.mark.parametrize("mysql_type", ["null", "{}", '{"id":"","price":null,"at":" ","raw":null}'])
def test_canal_without_mysql_type(mysql_type: str) -> None:
    # [canal] MySQL 8 with binlog_row_metadata and without access to the table
    codes = '{"id": 4, "price": 3, "at": 93, "raw": 2004}'
    event = decode_row(CANAL_INSERT.replace("MYSQL", mysql_type).replace("SQL", codes))
    assert event.after == Image(
        # TIMESTAMP's code is DATETIME's, too: it stays text.
        {"id": 1, "price": Decimal("1.5"), "at": "2024-01-02 03:04:05", "raw": b"\xff\0"}
    )
    assert [column.source_type for column in event.table.columns] == [
        "jdbc 4",
        "jdbc 3",
        "jdbc 93",
        "jdbc 2004",
    ]


def test_canal_without_any_type() -> None:
    event = decode_row(CANAL_INSERT.replace("MYSQL", "null").replace("SQL", "null"))
    assert event.after == Image(
        {"id": "1", "price": "1.5", "at": "2024-01-02 03:04:05", "raw": "ÿ\0"}
    )
    assert {column.type for column in event.table.columns} == {types.Unknown()}


def test_canal_statement_that_is_no_ddl() -> None:
    message = {
        "data": None,
        "database": "shop",
        "es": 1639633141000,
        "gtid": "",
        "id": 6,
        "isDdl": False,
        "mysqlType": None,
        "old": None,
        "pkNames": None,
        "sql": "INSERT INTO items SELECT * FROM others",
        "sqlType": None,
        "table": "items",
        "ts": 1639633142960,
        "type": "QUERY",
    }
    event = decode_ddl(message)
    assert (event.ddl_type, event.query) == ("QUERY", "INSERT INTO items SELECT * FROM others")
    assert event.extra == {"id": 6, "is_ddl": False}


def test_canal_ddl_with_a_comment() -> None:
    sql = "/* ApplicationName=DBeaver */ ALTER TABLE items ADD COLUMN a int"
    message = {"data": None, "database": "shop", "es": 1, "id": 6, "isDdl": True, "sql": sql}
    event = decode_ddl(message | {"table": "items", "ts": 2, "type": "ALTER"})
    assert (event.ddl_type, event.query) == ("ALTER", sql)


@pytest.mark.parametrize("fields", [{"isDdl": ...}, {"isDdl": None}])
def test_is_ddl_is_missing(fields: dict[str, Any]) -> None:
    assert decode_row(dml(**fields)).op == "insert"
    event = decode_ddl(dml(type="TRUNCATE", sql="truncate table tp_int", data=None, **fields))
    assert event.ddl_type == "TRUNCATE"


def test_wide_types_of_canal() -> None:
    types_of = {
        "a": "DOUBLE PRECISION(10,7) unsigned zerofill",
        "b": "SERIAL",
        "c": "FIXED(40,3)",
        "d": "TINYINT(2) unsigned",
        "e": "timestamp(3)",
        "f": "json",
    }
    event = decode_row(
        table(
            dict(types_of),
            {
                "a": "1.5000000",
                "b": "18446744073709551615",
                "c": "1234567890123456789012345678901234567.100",
                "d": "255",
                "e": "2024-01-02 03:04:05.123",
                "f": '{"a": 1.10}',
            },
        ),
        sourceTimeZone="Asia/Shanghai",
    )
    assert event.after == Image(
        {
            "a": 1.5,
            "b": 18446744073709551615,
            "c": Decimal("1234567890123456789012345678901234567.100"),
            "d": 255,
            "e": datetime(2024, 1, 1, 19, 4, 5, 123000, UTC),
            "f": '{"a": 1.10}',
        }
    )
    assert event.table.columns[1].type == types.Int(64, signed=False)
    assert event.table.columns[4].type == types.Timestamp(3)


def test_zero_dates_are_values() -> None:
    event = decode_row(table({"d": "date", "t": "datetime"}, {"d": "0000-00-00", "t": None}))
    assert event.after == Image({"d": types.InvalidValue("0000-00-00"), "t": None})


# Numbers where Canal writes text

NUMBERS = {
    "dec": "decimal(30,3)",
    "big": "bigint unsigned",
    "tiny": "tinyint(1)",
    "dbl": "double",
    "txt": "varchar(10)",
}


def number_message(row: str) -> str:
    return json.dumps(table(dict(NUMBERS), {"ROW": 1})).replace('{"ROW": 1}', row)


@pytest.mark.parametrize(
    ("row", "values"),
    [
        ('{"dec":1.10}', {"dec": Decimal("1.10")}),
        ('{"dec":12345678901234567890.123}', {"dec": Decimal("12345678901234567890.123")}),
        ('{"dec":7}', {"dec": Decimal(7)}),
        ('{"dec":0.1,"dbl":0.1}', {"dec": Decimal("0.1"), "dbl": 0.1}),
        ('{"big":18446744073709551615}', {"big": 18446744073709551615}),
        ('{"big":1E2}', {"big": 100}),
        ('{"big":1.0}', {"big": 1}),
        ('{"tiny":true}', {"tiny": 1}),
        ('{"tiny":false}', {"tiny": 0}),
        ('{"dbl":1}', {"dbl": 1.0}),
        ('{"dbl":-1.5e300}', {"dbl": -1.5e300}),
        ('{"dec":null}', {"dec": None}),
    ],
)
def test_numbers(row: str, values: dict[str, Any]) -> None:
    event = decode_row(number_message(row))
    assert event.after == Image(values)
    assert event.after is not None
    for name, value in event.after.values.items():
        assert type(value) is type(values[name])
        assert str(value) == str(values[name])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('{"big":18446744073709551616}', "data[0].big"),
        ('{"big":-1}', "data[0].big"),
        ('{"big":1.5}', "data[0].big"),
        ('{"big":true}', "data[0].big"),
        ('{"dbl":1e400}', "data[0].dbl"),
        ('{"dec":1e66}', "data[0].dec"),
        ('{"txt":1}', "data[0].txt"),
        ('{"txt":{"a":1}}', "data[0].txt"),
        ('{"dec":[1]}', "data[0].dec"),
    ],
)
def test_numbers_that_do_not_fit(row: str, reason: str) -> None:
    (event,) = decode(number_message(row))
    assert isinstance(event, Corrupt)
    assert event.error.field == reason
    assert event.error.sample is not None


# Tencent CKafka: seconds, no types

CKAFKA_UPDATE = """{
    "data": [{"id": "1", "name": "b"}],
    "database": "shop", "es": 1639633141, "id": 0, "isDdl": false, "mysqlType": null,
    "old": [{"id": "1", "name": "a"}], "pkNames": null, "sql": "", "sqlType": null,
    "table": "items", "ts": 1639633142, "type": "UPDATE"
}"""  # [ckafka]


@pytest.mark.parametrize("dialect", ["auto", "ckafka"])
def test_ckafka(dialect: str) -> None:
    event = decode_row(CKAFKA_UPDATE, dialect=dialect)
    assert (event.source_time, event.emit_time) == (1639633141_000_000, 1639633142_000_000)
    assert event.before == Image({"id": "1", "name": "a"})
    assert event.after == Image({"id": "1", "name": "b"})
    assert event.table.key_columns == ()
    assert event.sequence_commit is None


# Huawei DRS: snapshot rows, deleted rows in old


def drs(**fields: Any) -> dict[str, Any]:
    return {
        "mysqlType": {"id": "int(11)", "name": "varchar(10)"},
        "id": 13,
        "es": 1639633141000,
        "ts": 1639633142960,
        "database": "shop",
        "table": "items",
        "type": "INIT",
        "isDdl": False,
        "sql": "",
        "sqlType": {"id": 4, "name": 12},
        "data": [{"id": "1", "name": "a"}],
        "old": None,
        "pkNames": ["id"],
    } | fields


def test_drs_snapshot() -> None:
    event = decode_row(drs())
    assert (event.op, event.before) == ("read", None)
    assert event.after == Image({"id": 1, "name": "a"})
    ddl = decode_ddl(drs(type="INIT_DDL", isDdl=True, sql="CREATE TABLE items (id int)", data=None))
    assert ddl.ddl_type == "CREATE"
    assert ddl.extra == {"id": 13, "ddl_type": "INIT_DDL"}


@pytest.mark.parametrize("dialect", ["auto", "drs"])
@pytest.mark.parametrize("data", [None, []])
def test_drs_delete(dialect: str, data: Any) -> None:
    message = drs(type="DELETE", data=data, old=[{"id": "1", "name": "a"}])
    event = decode_row(message, dialect=dialect)
    assert (event.op, event.after) == ("delete", None)
    assert event.before == Image({"id": 1, "name": "a"})
    assert "has no rows" in corrupt_reason(message, dialect="canal")


# CloudCanal

CLOUDCANAL_DDL = """{
"data":[],
"database":"db_test",
"es":1669790951000,
"id":0,
"isDdl":true,
"mysqlType":{
"col1":"varchar(22)",
"col2":"varchar(22)",
"col_pk":"varchar(22)"
},
"old":[],
"pkNames":[],
"sql":"alter table table_test add col2 varchar(22) null",
"sqlType":{
"col1":12,
"col2":12,
"col_pk":12
},
"table":"table_test",
"tableChanges":{
"table":{
"columns":[
{
"jdbcType":12,
"name":"col1",
"position":0,
"typeExpression":"varchar(22)",
"typeName":"varchar"
},
{
"jdbcType":12,
"name":"col2",
"position":1,
"typeExpression":"varchar(22)",
"typeName":"varchar"
},
{
"jdbcType":12,
"name":"col_pk",
"position":2,
"typeExpression":"varchar(22)",
"typeName":"varchar"
}
],
"primaryKeyColumnNames":["col_pk"]
},
"type":"ALTER"
},
"ts":1669790952584,
"type":"ALTER"
}"""  # [cloudcanal] DDL

CLOUDCANAL_DML = """{
"data":[
{
"col1":"11",
"col2":"11",
"col_pk":"11"
}
],
"database":"db_test",
"es":1669790847000,
"id":0,
"isDdl":false,
"mysqlType":{
"col1":"varchar(22)",
"col2":"varchar(22)",
"col_pk":"varchar(22)"
},
"old":[
{
"col1":"22",
"col2":"22",
"col_pk":"22"
}
],
"pkNames":["col_pk"],
"sql":"",
"sqlType":{
"col1":12,
"col2":12,
"col_pk":12
},
"table":"table_test",
"ts":1669790848072,
"type":"INSERT/DELETE/UPDATE"
}"""  # [cloudcanal] DML; the type is one of the three


@pytest.mark.parametrize("dialect", ["auto", "cloudcanal"])
def test_cloudcanal_ddl(dialect: str) -> None:
    event = decode_ddl(CLOUDCANAL_DDL, dialect=dialect)
    assert event.query == "alter table table_test add col2 varchar(22) null"
    assert (event.ddl_type, event.database, event.table) == ("ALTER", "db_test", "table_test")
    assert (event.commit_ts, event.extra) == (None, None)
    assert (event.source_time, event.emit_time) == (1669790951000_000, 1669790952584_000)
    schema = event.table_schema
    assert schema is not None
    assert (schema.database, schema.table) == ("db_test", "table_test")
    assert schema.column_names == ("col1", "col2", "col_pk")
    assert schema.key_columns == ("col_pk",)
    assert [column.key for column in schema.columns] == [False, False, True]
    assert {(column.source_type, column.type) for column in schema.columns} == {
        ("varchar(22)", types.Text())
    }
    assert event.previous_table_schema is None


def cloudcanal_ddl(changes: Any, **fields: Any) -> dict[str, Any]:
    return json.loads(CLOUDCANAL_DDL) | {"tableChanges": changes} | fields


def test_cloudcanal_table_changes() -> None:
    columns = [
        {"name": "b", "position": 1, "typeName": "int", "typeExpression": None},
        {"name": "a", "position": 0, "typeName": "", "jdbcType": -5},
        {"name": "c", "position": 2},
    ]
    schema = decode_ddl(cloudcanal_ddl({"table": {"columns": columns}})).table_schema
    assert schema is not None
    assert [(column.name, column.source_type, column.type) for column in schema.columns] == [
        ("a", "jdbc -5", types.Int(64)),
        ("b", "int", types.Int(32)),
        ("c", "", types.Unknown()),
    ]
    assert schema.key_columns == ()
    # As they came, where a position is missing.
    del columns[2]["position"]
    schema = decode_ddl(cloudcanal_ddl({"table": {"columns": columns}})).table_schema
    assert schema is not None
    assert schema.column_names == ("b", "a", "c")


@pytest.mark.parametrize("changes", [None, {}, [], {"type": "DROP"}, {"table": None}])
def test_cloudcanal_ddl_without_columns(changes: Any) -> None:
    assert decode_ddl(cloudcanal_ddl(changes)).table_schema is None


def test_cloudcanal_ddl_with_table_changes_alone() -> None:
    changes = json.loads(CLOUDCANAL_DDL)["tableChanges"]
    event = decode_ddl(cloudcanal_ddl(changes, sql=""))
    assert event.table_schema is not None
    assert event.query == ""
    assert "a required field of a DDL event is missing" in corrupt_reason(
        cloudcanal_ddl(None, sql="")
    )


@pytest.mark.parametrize(
    "changes",
    [
        "text",
        [{"type": "ALTER"}],
        {"table": []},
        {"table": {"columns": {}}},
        {"table": {"columns": ["a"]}},
        {"table": {"columns": [{"name": 1}]}},
        {"table": {"columns": [], "primaryKeyColumnNames": "col_pk"}},
        {"table": {"columns": [], "primaryKeyColumnNames": [1]}},
    ],
    ids=repr,
)
def test_cloudcanal_table_changes_of_another_shape(changes: Any) -> None:
    (event,) = decode(cloudcanal_ddl(changes))
    assert isinstance(event, Corrupt)
    assert (event.error.field or "").startswith(("tableChanges", "primaryKeyColumnNames"))
    assert not event.error.reason.startswith("the decoder failed")


@pytest.mark.parametrize("dialect", ["auto", "cloudcanal"])
def test_cloudcanal_dml(dialect: str) -> None:
    new = {"col1": "11", "col2": "11", "col_pk": "11"}
    old = {"col1": "22", "col2": "22", "col_pk": "22"}
    by_type = {
        word: decode_row(CLOUDCANAL_DML.replace("INSERT/DELETE/UPDATE", word), dialect=dialect)
        for word in ("INSERT", "DELETE", "UPDATE")
    }
    assert [(event.before, event.after) for event in by_type.values()] == [
        (None, Image(new)),
        (Image(new), None),
        (Image(old), Image(new)),
    ]
    assert {event.sequence_commit for event in by_type.values()} == {None}
    assert by_type["UPDATE"].table.key_columns == ("col_pk",)


# Recognising


@pytest.mark.parametrize(
    "value",
    [
        TICDC_DDL,
        TICDC_DML,
        TICDC_WATERMARK,
        CANAL_BATCH,
        CKAFKA_UPDATE,
        json.dumps(drs()),
        CLOUDCANAL_DDL,
        CLOUDCANAL_DML,
    ],
)
def test_sniffing(value: str) -> None:
    sniff = default_registry().get_codec("canal-json").sniff
    assert sniff(Message(None, value.encode())) >= 0.9


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"{}",
        b"[]",
        b"\0",
        b'{"database":"d","type":"t","data":[],"es":1}',
        # Debezium, Open Protocol, Simple, CloudCanal Json
        b'{"before":null,"after":{"id":1},"source":{"db":"d","table":"t"},"op":"c","ts_ms":1}',
        b'{"u":{"id":{"t":3,"h":true,"f":11,"v":1}}}',
        b'{"version":1,"database":"d","table":"t","type":"INSERT","commitTs":1,"data":{},"old":{}}',
        b'{"action":"INSERT","before":[],"bid":0,"data":[{}],"db":"d","dbValType":{},"execTs":1}',
    ],
)
def test_sniffing_of_others(value: bytes | None) -> None:
    assert default_registry().get_codec("canal-json").sniff(Message(None, value)) == 0.0
