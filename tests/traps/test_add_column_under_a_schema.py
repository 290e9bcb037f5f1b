"""Columns that the source adds, drops or renames, while the user's schema stayed as it was.

The schema is a projection: the new column is left out, and one that is gone is NULL.  No
warning reported it, above all in a stream, whose tasks see a part of the topic each.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType
from support.canal_messages import ddl_message
from support.golden_data import native_messages

from cdcfmt_core.errors import PolicyError
from cdcfmt_core.events import Message
from cdcfmt_files.sources import wrap_line
from pyspark_cdcfmt.options import parse_options
from pyspark_cdcfmt.read.engine import Engine
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.source import CdcDataSource
from pyspark_cdcfmt.testing import parsed

# Of shop.pair in Canal's golden messages: then come extra, and last, which becomes renamed.
NAMES = {"a": LongType(), "b": StringType(), "v": StringType(), "n": LongType()}
SCHEMA = StructType([StructField(name, type_) for name, type_ in NAMES.items()])
OPTIONS = {"protocol": "canal-json", "table": "shop.pair"}


def test_a_batch_warns_on_the_driver(tmp_path: Path) -> None:
    lines = [wrap_line(message) + b"\n" for message in native_messages("canal/canal_flat")]
    path = tmp_path / "topic.jsonl"
    path.write_bytes(b"".join(lines))
    marked = StructType([*SCHEMA, StructField("_change_type", StringType())])
    reader = CdcDataSource(OPTIONS | {"path": str(path)}).reader(marked)
    warning = r"shop\.pair: .*gained columns.*left out: extra, last, renamed;"
    with pytest.warns(UserWarning, match=warning):
        reader.partitions()


@pytest.mark.parametrize("by_kernel", [False, True])
def test_a_task_counts_each_column_once(by_kernel: bool) -> None:
    engine = Engine(ReadTask(SCHEMA, parsed(OPTIONS)), by_kernel=by_kernel)
    rows = sum(batch.num_rows for batch in engine.batches(native_messages("canal/canal_flat")))
    assert rows > 60
    counts = {text: count for text, count in engine.counts.items() if "gained" in text}
    assert counts == {
        f"{name}: column that the table gained, left out": 1
        for name in ("extra", "last", "renamed")
    }


def in_a_stream(statement: str, **options: str) -> dict[str, int]:
    """A stream's counts at a statement that is its task's only message."""
    given = parse_options(OPTIONS | {"table": "shop.orders"} | options).in_stream()
    engine = Engine(ReadTask(SCHEMA, given))
    ddl = json.dumps(ddl_message(statement, "ALTER")).encode()
    assert list(engine.batches([Message(None, ddl, topic="orders", partition=0, offset=7)])) == []
    return dict(engine.counts)


@pytest.mark.parametrize(
    ("statement", "column", "reason"),
    [
        ("alter table orders add x int, add a int", "x", "the table gains a column"),
        ("alter table orders add (X int) ", "X", "the table gains a column"),
        ("alter table orders drop column V", "V", "the table loses a column"),
        ("alter table orders rename column v to w", "v", "the column is now 'w'"),
        ("alter table orders change u v varchar(9)", "u", "the column is now 'v'"),
    ],
)
def test_a_stream_stops_at_the_statement(statement: str, column: str, reason: str) -> None:
    reason_text = rf"topic orders, partition 0, offset 7: shop\.orders\.{column}: by '.*' {reason}"
    with pytest.raises(PolicyError, match=reason_text + r".*\(onSchemaChange=fail;"):
        in_a_stream(statement)
    with pytest.raises(PolicyError, match=reason_text):
        in_a_stream(statement, ignoreColumns="y")
    assert in_a_stream(statement, ignoreColumns=f"y, {column.lower()}") == {}
    assert in_a_stream(statement, ignoreColumns="*") == {}
    (count,) = in_a_stream(statement, onSchemaChange="ignore").items()
    assert count == (f"{column}: DDL that the schema does not follow", 1)


@pytest.mark.parametrize(
    "statement",
    [
        "alter table orders add a int, modify n int, add index (n), drop index k",
        "alter table orders drop column other, rename column x to y",
        "alter table orders rename column v to b",
        "alter table orders add g int as (a + 1) virtual",
        "create table orders (a int, x int)",
    ],
)
def test_stream_continues_if_the_schema_stays_valid(statement: str) -> None:
    assert in_a_stream(statement) == {}


@pytest.mark.parametrize(
    ("statement", "reason", "option", "value"),
    [
        ("alter table orders rename column v", "cannot be parsed", "ignoreColumns", "*"),
        ('alter table orders add "z" int', "cannot be parsed", "ignoreColumns", "*"),
        ("alter table orders drop primary key", "new primary key", "keyColumns", "id"),
        ("alter table orders truncate partition p0", "removes partitions", "onTruncate", "ignore"),
    ],
)
def test_stream_stops_at_changes_missing_in_rows(
    statement: str, reason: str, option: str, value: str
) -> None:
    with pytest.raises(PolicyError, match=rf"shop\.orders: by '.*{reason}.*{option}"):
        in_a_stream(statement)
    with pytest.raises(PolicyError, match=reason):
        in_a_stream(statement, onTruncate="row")
    assert in_a_stream(statement, **{option: value}) == {}


def test_a_stream_stops_at_rows_that_gained_a_column() -> None:
    """Of topics without DDL, and of a table that was dropped and made anew."""
    messages = [m for m in native_messages("canal/canal_flat") if b'"isDdl":true' not in m.value]
    given = parse_options(OPTIONS | {"incompleteRows": "emit"}).in_stream()
    with pytest.raises(PolicyError, match=r"shop\.pair\.extra: the table gains a column"):
        list(Engine(ReadTask(SCHEMA, given)).batches(messages))
    given = parse_options(OPTIONS | {"incompleteRows": "emit", "ignoreColumns": "*"}).in_stream()
    engine = Engine(ReadTask(SCHEMA, given))
    assert sum(batch.num_rows for batch in engine.batches(messages)) > 60
