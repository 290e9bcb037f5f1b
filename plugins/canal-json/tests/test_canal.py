"""Official Canal's messages, as ``MQMessageUtils`` and ``FlatMessage`` make them, and numbers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from dialect_messages import CANAL_BATCH, decode, decode_ddl, decode_row, decode_rows, dml, table

from cdcfmt_core import types
from cdcfmt_core.events import (
    Corrupt,
    Image,
)


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
