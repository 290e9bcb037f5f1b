"""Messages of Tencent CKafka and Huawei DRS."""

from __future__ import annotations

from typing import Any

import pytest
from dialect_messages import CKAFKA_UPDATE, corrupt_reason, decode_ddl, decode_row, drs

from cdcfmt_core.events import (
    Image,
)


@pytest.mark.parametrize("dialect", ["auto", "ckafka"])
def test_ckafka(dialect: str) -> None:
    event = decode_row(CKAFKA_UPDATE, dialect=dialect)
    assert (event.source_time, event.emit_time) == (1639633141_000_000, 1639633142_000_000)
    assert event.before == Image({"id": "1", "name": "a"})
    assert event.after == Image({"id": "1", "name": "b"})
    assert event.table.key_columns == ()
    assert event.sequence_commit is None


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
