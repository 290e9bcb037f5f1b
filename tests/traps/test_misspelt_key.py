"""A name in `keyColumns` that the table lacks.

The option stands in place of the key that the messages name, so updates of the key were no longer
split, the old row stayed after a merge, and the warning of messages without a key was silent.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, StringType, StructType
from support.canal_messages import INSERT, KEY_UPDATE, row_message, write_lines
from support.cli_tools import run

from cdcfmt_core.events import Message
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.source import CdcDataSource
from pyspark_cdcfmt.testing import parsed, read

SCHEMA = StructType().add("id", IntegerType()).add("_change_type", StringType())
MESSAGES = [
    Message(None, json.dumps(message).encode(), topic="orders", partition=0, offset=offset)
    for offset, message in enumerate((INSERT, KEY_UPDATE))
]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return write_lines(tmp_path / "orders.json", INSERT, KEY_UPDATE)


def source(path: str, keys: str, **options: str) -> CdcDataSource:
    return CdcDataSource({"path": path, "keyColumns": keys, **options})


def test_the_driver_names_the_nearest_column(path: str) -> None:
    table = {"table": "shop.orders", "images": "after"}
    message = r"keyColumns: idd: table shop\.orders has no such column.*price; did you mean id\? \("
    with pytest.raises(Exception, match=message):
        source(path, "idd", **table).reader(SCHEMA).partitions()
    inferred = source(path, "name, idd", **table)
    found = inferred.schema()
    assert isinstance(found, StructType)
    with pytest.raises(Exception, match=message):
        inferred.reader(found).partitions()
    source(path, "ID, name", **table).reader(SCHEMA).partitions()
    source(path, "idd", requireTables="false", **table).reader(SCHEMA).partitions()
    events = events_schema(parsed({"path": path}))
    with pytest.raises(Exception, match=r"idd: no table has such a column.*did you mean id\?"):
        source(path, "idd").reader(events).partitions()
    source(path, "id").reader(events).partitions()


def test_a_stream_warns(path: str) -> None:
    reader: Any = source(path, "idd", table="shop.orders").streamReader(SCHEMA)
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    with pytest.warns(UserWarning, match=r"keyColumns: idd: .*did you mean id\?.*ends the stream"):
        reader.partitions(start, end)


@pytest.mark.parametrize("by_kernel", [True, False])
def test_a_task_ends_at_a_row_without_the_key(by_kernel: bool) -> None:
    def rows(**options: str) -> Any:
        given = parsed({"table": "shop.orders", "images": "after", "keyColumns": "idd", **options})
        return read(MESSAGES, SCHEMA, given, by_kernel=by_kernel, inferred=False)

    error = rows(onSchemaChange="fail", mode="PERMISSIVE").error
    assert error is not None
    assert error.startswith("canal-json topic orders, partition 0, offset 0: shop.orders: ")
    assert "keyColumns names idd, which the table lacks; did you mean id? (onSchemaChange" in error
    # The key of the messages stands in, and that is counted.
    result = rows(onSchemaChange="ignore")
    assert result.rows.column("id").to_pylist() == [1, 1, 2]
    assert result.rows.column("_change_type").to_pylist() == ["insert", "delete", "insert"]
    assert sum(n for what, n in result.counts.items() if "keyColumns names idd" in what) == 2


def test_partial_rows_need_no_key(tmp_path: Path) -> None:
    delete = row_message("DELETE", {"id": "1"}, onlyHandleKey=True)
    options = {"table": "shop.orders", "keyColumns": "name"}
    source(write_lines(tmp_path / "d.json", delete), "name", table="shop.orders").reader(
        SCHEMA
    ).partitions()
    message = Message(None, json.dumps(delete).encode(), offset=0)
    result = read([message], SCHEMA, parsed(options), by_kernel=True, inferred=False)
    assert (result.error, result.rows.column("id").to_pylist()) == (None, [1])


def test_cat_ends_with_an_error(path: str) -> None:
    for options in (("--table", "shop.orders"), ()):
        result = run("cat", path, "--key-columns", "idd", *options)
        assert result.exit_code > 0
        assert "--key-columns names idd, which the table lacks; did you mean id?" in result.stderr
    assert run("cat", path, "--key-columns", "name").exit_code == 0
