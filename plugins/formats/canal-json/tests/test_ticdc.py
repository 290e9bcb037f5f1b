"""TiCDC's messages, as its document shows them (docs.pingcap.com/tidb/stable/ticdc-canal-json)."""

from __future__ import annotations

from typing import Any

import pytest
from dialect_messages import (
    COMMIT_TS,
    NEW,
    OLD,
    TICDC_DDL,
    TICDC_DML,
    TICDC_WATERMARK,
    TP_INT,
    decode,
    decode_ddl,
    decode_row,
    dml,
)

from cdcfmt_core import types
from cdcfmt_core.events import (
    Image,
    SchemaChange,
    Watermark,
)


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
    # The order is by commit_ts, not by es.
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


def test_update_without_changed_columns() -> None:
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
    # the only sign of delete-only-output-handle-key-columns
    event = decode_row(dml(type="DELETE", data=[{"id": "2"}]))
    assert event.before == Image({"id": 2}, complete=False)
    # A handle that is not a primary key leaves no key columns.
    message = dml(type="DELETE", data=[{"c_int": "1"}], pkNames=[])
    assert decode_row(message).before == Image({"c_int": 1})
    event = decode_row(message, deleteOnlyOutputHandleKeyColumns="true")
    assert event.before == Image({"c_int": 1}, complete=False)


def test_ticdc_delete_of_a_table_without_a_key() -> None:
    event = decode_row(dml(type="DELETE", sqlType=None, mysqlType={}, data=[{}], pkNames=[]))
    assert event.before == Image({}, complete=False)
    assert event.table.columns == ()
