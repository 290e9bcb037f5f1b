"""CloudCanal's Canal Json, as its document "MQ message formats" shows it; recognition."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dialect_messages import (
    CANAL_BATCH,
    CKAFKA_UPDATE,
    TICDC_DDL,
    TICDC_DML,
    TICDC_WATERMARK,
    corrupt_reason,
    decode_ddl,
    decode_row,
    drs,
)

from cdcfmt_core import default_registry, types
from cdcfmt_core.events import (
    Image,
    Message,
)

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
    # In their original order, where a position is missing.
    del columns[2]["position"]
    schema = decode_ddl(cloudcanal_ddl({"table": {"columns": columns}})).table_schema
    assert schema is not None
    assert schema.column_names == ("b", "a", "c")


NO_COLUMNS = [None, {}, [], {"type": "DROP"}, {"table": None}, {"table": {"columns": []}}]


@pytest.mark.parametrize("changes", NO_COLUMNS)
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
    """The statement is kept."""
    event = decode_ddl(cloudcanal_ddl(changes))
    assert event.query == json.loads(CLOUDCANAL_DDL)["sql"]
    assert event.table_schema is None
    assert event.extra is not None
    assert event.extra["schema_error"].startswith(("tableChanges", "primaryKeyColumnNames"))


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
