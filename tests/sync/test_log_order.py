"""The order of changes by the source's log: real messages of PostgreSQL, spread over partitions."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from support.cli_tools import write_messages
from support.framed_data import framed_messages

from cdcfmt_core.events import Message
from cdcfmt_toolkit.row_changes import log_position
from pyspark_cdcfmt import SEQUENCE
from pyspark_cdcfmt.blocks.summary import log_of
from pyspark_cdcfmt.sync.expressions import LogPlace
from pyspark_cdcfmt.sync.order import ORDER, UNORDERED, is_newer, with_order
from pyspark_cdcfmt.sync.states import TableState
from pyspark_cdcfmt.sync.summary import read_statements

PARTITIONS = 3
STATE = TableState(("cdc", "public", "pair"), "pair")
MINUTE = 60_000_000
TYPE = SEQUENCE.simpleString()


def spread(table: str) -> tuple[list[Any], dict[str, list[tuple[int, int]]]]:
    """The rows of a topic, each in another partition than the one before it.

    Also the places of each key's changes, in the order of the real topic.  A later change has a
    lower partition and no higher offset, so that neither orders the changes.
    """
    rows = [
        message
        for message in framed_messages("postgres/schema_default")
        if (message.topic or "").endswith(f".{table}") and message.value is not None
    ]
    placed, of_keys = [], defaultdict(list)
    for number, message in enumerate(rows):
        partition, offset = PARTITIONS - 1 - number % PARTITIONS, number // PARTITIONS
        placed.append(attrs.evolve(message, partition=partition, offset=offset))
        of_keys[str(message.key)].append((partition, offset))
    return placed, of_keys


@pytest.mark.parametrize(("table", "keys"), [("pair", "ab"), ("t_geo", ["id"]), ("toast", ["id"])])
def test_lsns_order_changes_from_any_partition(
    spark: SparkSession, tmp_path: Path, table: str, keys: Sequence[str]
) -> None:
    """Rows of the snapshot, too: their LSN is before all changes."""
    placed, of_keys = spread(table)
    changes = (
        spark.read.format("cdc")
        .option("protocol", "debezium")
        .option("table", f"cdc.public.{table}")
        .option("images", "after")
        .option("incompleteRows", "emit")
        .load(str(write_messages(tmp_path / "topic.jsonl", placed)))
        .where("_change_type IS NOT NULL")
    )
    ordered = with_order(changes, [*keys], "`_sequence`", STATE, spread=True)
    place = f.struct("_sequence.partition", "_sequence.offset")
    found = ordered.groupBy(*keys).agg(
        f.sort_array(f.collect_list(f.struct(ORDER, place.alias("place")))).alias("changes")
    )
    rows = [[tuple(each.place) for each in row.changes] for row in found.collect()]
    assert sorted(rows) == sorted(of_keys.values())
    assert max(map(len, rows)) > 2


@pytest.mark.parametrize(
    ("extra", "file", "pos"),
    [
        ({"file": "binlog.000007", "pos": 9, "server_id": 3}, "binlog.000007", 9),
        ({"lsn": 24023128}, "", 24023128),
        ({"commit_lsn": "27:5", "change_lsn": "27:3", "event_serial_no": 2}, "27:5/27:3", 2),
        ({"commit_lsn": "27:5", "change_lsn": ""}, "27:5/~", 0),
        ({"scn": "900", "commit_scn": "1000"}, "1000", 900),
        ({"scn": "900"}, "900", 900),
        ({"scn": "0", "commit_scn": "1000"}, "1000", 0),
        ({"scn": "900", "commit_scn": "0"}, "0", 900),
        ({"scn": "0"}, "0", 0),
        ({"commit_scn": "1000", "lsn": 7}, "1000", 1000),
        ({"scn": "9" * 19, "commit_lsn": "", "file": "x"}, None, None),
        ({}, None, None),
    ],
)
def test_blocks_have_the_positions_of_rows(
    extra: dict[str, Any], file: str | None, pos: int | None
) -> None:
    texts = ("file", "commit_lsn", "change_lsn", "scn", "commit_scn")
    longs = ("pos", "lsn", "event_serial_no")
    names = [*((n, pa.string()) for n in texts), *((n, pa.int64()) for n in longs)]
    rows = pa.record_batch({n: pa.array([extra.get(n), None], type_) for n, type_ in names})
    assert [each.to_pylist() for each in log_of(rows)] == [[file, None], [pos, None]]
    assert log_position(SimpleNamespace(extra=extra))[1:] == (file, pos)


def test_a_truncate_has_the_position_of_its_message(spark: SparkSession, tmp_path: Path) -> None:
    """As the document of PostgreSQL's connector has it."""
    source = {"connector": "postgresql", "db": "cdc", "schema": "public", "table": "pair"}
    source |= {"lsn": 24023128, "ts_ms": 1, "snapshot": "false"}
    value = json.dumps({"op": "t", "source": source, "ts_ms": 1}).encode()
    lines = write_messages(tmp_path / "t.jsonl", [Message(None, value, (), "t", 2, 5)])
    events = spark.read.format("cdc").option("protocol", "debezium").load(str(lines))
    ((statement,),) = read_statements(events).values()
    assert (statement.name, statement.place) == (("cdc", "public", "pair"), "t/2")
    assert statement.log == LogPlace.of([0], "", 24023128)
    assert not statement.of_snapshot


def place(partition: int, time: int, server: int | None, file: str, pos: int) -> tuple[Any, ...]:
    return (0, 0, 0, partition, 9 - partition, 0, 1, time, server, file, pos)


SNAPSHOT = place(0, MINUTE * 10, 0, "", 5000)
"""A row of a snapshot of PostgreSQL."""
COMMIT = "00000027:00000758:0005"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (SNAPSHOT, place(1, MINUTE * 9, None, "", 5000)),
        (SNAPSHOT, place(1, MINUTE * 9, None, "", 5001)),
        # It was open when the snapshot began.
        (SNAPSHOT, place(1, MINUTE * 12, None, "", 4000)),
        # A snapshot that was taken again.
        (place(1, MINUTE * 8, None, "", 4000), SNAPSHOT),
        (place(1, MINUTE * 8, 0, "", 4000), SNAPSHOT),
        (place(1, 7, None, "", 4000), place(0, 7, None, "", 5000)),
        # Changes of one commit of SQL Server, and a snapshot at this commit.
        (place(1, 7, None, f"{COMMIT}/27:3", 1), place(0, 7, None, f"{COMMIT}/27:4", 1)),
        (place(1, 7, None, f"{COMMIT}/27:3", 1), place(0, 7, None, f"{COMMIT}/27:3", 2)),
        # Oracle's SCNs have no leading zeros.
        (place(1, 7, None, "999", 999), place(0, 7, None, "1000", 998)),
        (place(1, 7, None, "1000", 998), place(0, 7, None, "1000", 999)),
        (place(1, MINUTE, None, "1000", 998), place(0, MINUTE * 2, 0, "1000", 1000)),
        (place(0, MINUTE * 2, 0, "1000", 1000), place(1, MINUTE, None, "1001", 998)),
    ],
)
def test_positions_of_every_database(
    spark: SparkSession, earlier: tuple[Any, ...], later: tuple[Any, ...]
) -> None:
    pairs = spark.createDataFrame([(earlier, later)], f"a {TYPE}, b {TYPE}")
    found = pairs.selectExpr(is_newer("b", "a", STATE), is_newer("a", "b", STATE)).first()
    assert tuple(found or ()) == (True, False)


@pytest.mark.parametrize("minutes", [9, 10, 11])
def test_rows_near_a_snapshot_are_in_doubt(spark: SparkSession, minutes: int) -> None:
    """Written before its LSN, and committed when it was taken: inside or not."""
    near = place(1, MINUTE * minutes, None, "", 4000)
    pairs = spark.createDataFrame([(SNAPSHOT, near)], f"a {TYPE}, b {TYPE}")
    for one, other in ("ab", "ba"):
        with pytest.raises(Exception, match=UNORDERED):
            pairs.selectExpr(is_newer(one, other, STATE)).collect()
