"""Rows, DDL and other entries, as the document shows them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from cloudcanal_decode import change, decode, typed
from cloudcanal_messages import DDL_EXAMPLE, DML

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import (
    Corrupt,
    Heartbeat,
    Image,
    RowChange,
    SchemaChange,
    Transaction,
)
from cdcfmt_core.types import Text


def ddl(wire: dict[str, Any]) -> SchemaChange:
    (event,) = decode(wire)
    assert isinstance(event, SchemaChange)
    return event


NEW = {"col1": "11", "col2": "11", "col_pk": "11"}


OLD = {"col1": "22", "col2": "22", "col_pk": "22"}


def test_the_documents_update() -> None:
    event = change(DML | {"action": "UPDATE"})
    assert (event.op, event.before, event.after) == ("update", Image(OLD), Image(NEW))
    table = event.table
    assert (table.database, table.schema, table.table) == ("db_test", None, "table_test")
    assert table.key_columns == ()
    assert [(c.name, c.source_type, c.type) for c in table.columns] == [
        (name, "varchar(22)", Text()) for name in NEW
    ]
    assert (event.source_time, event.emit_time) == (1669789152000_000, 1669789153377_000)
    assert (event.commit_ts, event.extra) == (None, {"bid": 0})


def test_the_documents_insert() -> None:
    for before in ([], None, DML["before"]):
        event = change(DML | {"action": "INSERT", "before": before})
        assert (event.op, event.before, event.after) == ("insert", None, Image(NEW))


@pytest.mark.parametrize(
    ("data", "before", "image"),
    [([NEW], [], NEW), ([NEW], [OLD], NEW), ([], [OLD], OLD), (None, [OLD], OLD)],
)
def test_deleted_row_is_read_from_either_list(data: Any, before: Any, image: Any) -> None:
    event = change(DML | {"action": "DELETE", "data": data, "before": before})
    assert (event.op, event.before, event.after) == ("delete", Image(image), None)


def test_the_documents_ddl() -> None:
    event = ddl(DDL_EXAMPLE)
    assert event.query == "alter table table_test add col2 varchar(22) null"
    assert (event.database, event.schema, event.table) == ("db_test", None, "table_test")
    assert event.ddl_type == "ALTER"
    assert event.table_schema is not None
    assert event.table_schema.column_names == ("col1", "col2", "col_pk")
    assert event.table_schema.key_columns == ("col_pk",)
    assert event.source_time == 1669789188000_000
    assert event.emit_time == 1669789189533_000


def test_ddl_of_older_versions() -> None:
    wire = {name: value for name, value in DDL_EXAMPLE.items() if name != "isDdl"}
    older = ddl(wire | {"ddl": True, "tableChanges": None, "action": "CREATE_INDEX",
                        "sql": "create index i on table_test(col1)"})  # fmt: skip
    assert (older.ddl_type, older.table_schema) == ("CINDEX", None)
    assert older.extra == {"bid": 0, "ddl_type": "CREATE_INDEX"}
    assert change(DML | {"action": "INSERT", "ddl": False}).op == "insert"


def test_ddl_of_a_third_partys_encoder() -> None:
    event = ddl({"action": "DDL", "entryType": "DDL", "db": "d", "schema": "s", "table": "t",
                 "sql": None, "execTs": 1, "sendTs": 2})  # fmt: skip
    assert (event.query, event.ddl_type, event.schema) == ("", "QUERY", "s")
    assert event.extra == {"entry_type": "DDL", "ddl_type": "DDL"}


def test_rows_of_a_third_partys_encoder() -> None:
    wire = {"action": "INSERT", "db": "d", "schema": "d", "table": "t", "entryType": "ROWDATA",
            "data": [{"id": 1, "ok": True, "doc": {"a": [1]}, "raw": "AP8=", "n": 1.5}],
            "dbValType": {"id": "int", "ok": "tinyint(1)", "doc": "json", "raw": "blob",
                          "n": "decimal(3,1)"},
            "execTs": 1, "sendTs": 2}  # fmt: skip
    event = change(wire, binaryEncoding="base64")
    assert event.after == Image(
        {"id": 1, "ok": 1, "doc": '{"a":[1]}', "raw": b"\0\xff", "n": Decimal("1.5")}
    )
    delete = {name: value for name, value in wire.items() if name != "data"}
    event = change(delete | {"action": "DELETE", "before": [{"id": 1}]})
    assert event.before == Image({"id": 1})


def test_several_rows_per_message() -> None:
    rows = [{"c": str(i)} for i in range(3)]
    olds = [{"c": str(i)} for i in range(10, 13)]
    events = decode(typed("int", "") | {"action": "UPDATE", "data": rows, "before": olds})
    assert [(e.before, e.after, e.index) for e in events if isinstance(e, RowChange)] == [
        (Image({"c": i + 10}), Image({"c": i}), i) for i in range(3)
    ]
    assert len({id(event.table) for event in events if isinstance(event, RowChange)}) == 1
    with pytest.raises(DecodeError, match="data has 3 rows and before has 2"):
        decode(typed("int", "") | {"action": "UPDATE", "data": rows, "before": olds[:2]})


def test_one_bad_row_among_good_ones() -> None:
    rows: list[Any] = [{"c": "1"}, {"c": "x"}, "row", {"c": "4"}]
    events = decode(typed("int", "") | {"data": rows})
    assert [type(event) for event in events] == [RowChange, Corrupt, Corrupt, RowChange]
    fields = [event.error.field for event in events if isinstance(event, Corrupt)]
    assert fields == ["data[1].c", "data[2]"]


def test_partial_before_image_is_not_completed() -> None:
    event = change(DML | {"action": "UPDATE", "before": [{"col1": "22"}]})
    assert event.before == Image({"col1": "22"}, complete=False)
    wider = change(DML | {"action": "UPDATE", "before": [OLD | {"gone": "1"}]})
    assert wider.before == Image(OLD | {"gone": "1"})
    assert wider.table.column_names == (*NEW, "gone")


@pytest.mark.parametrize(
    ("entry_type", "status"), [("TRANSACTIONEND", "commit"), ("TRANSACTIONBEGIN", "begin")]
)
def test_transactions(entry_type: str, status: str) -> None:
    wire = {"action": None, "entryType": entry_type, "bid": 7, "execTs": 5, "data": []}
    (event,) = decode(wire)
    assert isinstance(event, Transaction)
    assert (event.status, event.source_time) == (status, 5000)
    assert event.extra == {"bid": 7, "entry_type": entry_type}


def test_other_entries() -> None:
    (event,) = decode({"entryType": "HEARTBEAT", "sendTs": 5})
    assert isinstance(event, Heartbeat)
    assert (event.emit_time, event.extra) == (5000, {"entry_type": "HEARTBEAT"})
