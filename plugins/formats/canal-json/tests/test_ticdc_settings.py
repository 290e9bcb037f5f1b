"""TiCDC's messages by its settings: types, handle keys, claim checks, compression, extension."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
from dialect_messages import (
    COMMIT_TS,
    NEW,
    TICDC_DDL,
    TICDC_DML,
    TP_INT,
    corrupt_reason,
    decode,
    decode_ddl,
    decode_row,
    dml,
    open_decoder,
    table,
)

from cdcfmt_core import types
from cdcfmt_core.events import (
    Corrupt,
    Image,
    Message,
    RowChange,
)


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


def test_impossible_binary_length_is_not_padded() -> None:
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
    # The values of absent columns are unknown.
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
    # A claim check that refers to another, or to itself.
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
        # It depends on the values; mysqlType overrides it.
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


def test_remaining_fields_are_kept_in_extra() -> None:
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
