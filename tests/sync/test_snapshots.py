"""Initial rows of a table, in the stores with history: snapshot reads, and given snapshots."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from debezium_messages import column, ddl, envelope_schema, message, row
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from support.canal_messages import COMMIT_TS
from support.sync_lake import Lake, put, remove
from support.turns import in_turn

from cdcfmt_files.sources import wrap_line
from pyspark_cdcfmt.sync.control import Control

FIELDS = {
    "id": {"type": "int32"},
    "name": {"type": "string"},
    "doc": {"type": "string", "name": "io.debezium.data.Json"},
}


@pytest.fixture
def lake(delta: SparkSession, tmp_path: Path) -> Lake:
    return Lake(delta, tmp_path)


def sent(op: str, offset: int, id_: int, name: str) -> bytes:
    """A message of Debezium, as a line with its place."""
    cells = {"id": id_, "name": name, "doc": '{"b": 1, "a": [2]}'}
    images = {"before": cells, "after": None} if op == "d" else {"before": None, "after": cells}
    payload = row(op, {"snapshot": "true"} if op == "r" else None, **images)
    value = {"schema": envelope_schema(FIELDS), "payload": payload}
    place: dict[str, Any] = {"topic": "prefix.shop.orders", "partition": 0, "offset": offset}
    return wrap_line(message(value, {"id": id_}, **place))


TABLE = wrap_line(
    message(
        ddl(
            "CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(20), doc JSON)",
            [column("id", "INT"), column("name", "VARCHAR"), column("doc", "JSON")],
            pos=50,
            snapshot="true",
        ),
        topic="prefix",
        partition=0,
        offset=0,
    )
)
SNAPSHOT = (
    TABLE,
    *(sent("r", 0, 1, "a"), sent("r", 1, 2, "b"), sent("r", 2, 3, "c"), sent("u", 3, 1, "aa")),
    *(sent("r", 4, 4, "d"), sent("r", 5, 4, "d")),
)
AGAIN = (
    # One row changed without a message.
    *(sent("r", 6, 1, "aa"), sent("r", 7, 2, "B"), sent("r", 8, 3, "c")),
    *(sent("d", 9, 3, "c"), sent("r", 10, 3, "c")),
)


def versions(table: DataFrame, part: str) -> list[tuple[Any, ...]]:
    spans = table.selectExpr("id", "name", f"__START_AT.{part}", f"__END_AT.{part} AS end")
    return sorted(map(tuple, spans.collect()), key=lambda span: (span[0], span[2]))


def test_read_rows_open_a_history_once(lake: Lake) -> None:
    lake.options = {"store": "scd2"}
    lake.source = {"protocol": "debezium"}
    lake.run(*SNAPSHOT)
    lake.run(*AGAIN)
    assert dict(lake.table().dtypes)["doc"] == "variant"
    assert versions(lake.table(), "offset") == [
        (1, "a", 0, 3),
        (1, "aa", 3, None),
        (2, "b", 1, 7),
        (2, "B", 7, None),
        (3, "c", 2, 9),
        (3, "c", 10, None),
        (4, "d", 4, None),
    ]


def test_read_rows_are_inserts_of_a_changelog(lake: Lake) -> None:
    lake.options = {"store": "changelog"}
    lake.source = {"protocol": "debezium"}
    lake.run(*SNAPSHOT)
    lake.run(*AGAIN)
    changes = lake.table().orderBy("_sequence").select("_sequence.offset", "_change_type", "id")
    kinds = {3: "update_postimage", 9: "delete"}
    ids = (1, 2, 3, 1, 4, 4, 1, 2, 3, 3, 3)
    assert [tuple(change) for change in changes.collect()] == [
        (offset, kinds.get(offset, "insert"), id_) for offset, id_ in enumerate(ids)
    ]


def given(spark: SparkSession) -> DataFrame:
    rows = [(1, "a", Decimal("1.50")), (2, "b", Decimal("1.50"))]
    return spark.createDataFrame(rows, "id INT, name STRING, price DECIMAL(10,2)")


STREAM = (put(2, "old", 5), remove(1, 4), put(2, "new", 6, was=2), put(3, "c", 6))


@pytest.mark.parametrize("store", in_turn(["scd2", "changelog"], of=2))
def test_a_given_snapshot_has_the_changes_up_to_its_commit(lake: Lake, store: str) -> None:
    lake.options = {
        "store": store,
        "snapshot": {"shop.orders": given(lake.spark)},
        "snapshot_commit_ts": COMMIT_TS + 5,
    }
    lake.run(*STREAM)
    at, end = COMMIT_TS + 5, COMMIT_TS + 6
    if store == "scd2":
        # Once more, and it stays as it is.
        lake.run(*STREAM)
        expected = [(1, "a", at, None), (2, "b", at, end), (2, "new", end, None)]
        assert versions(lake.table(), "commit") == [*expected, (3, "c", end, None)]
        return
    # A producer that sends again what is in the snapshot.
    lake.run(*STREAM[:2])
    changes = lake.table().select("_commit_version", "_change_type", "id", "name").collect()
    assert sorted(map(tuple, changes)) == [
        (at, "insert", 1, "a"),
        (at, "insert", 2, "b"),
        (end, "insert", 3, "c"),
        (end, "update_postimage", 2, "new"),
    ]


def test_a_given_snapshot_is_older_than_every_change(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there once, also behind a run that was cut off; another query does not take it."""
    lake.options = {"store": "scd2", "snapshot": {"shop.orders": given(lake.spark)}}
    with monkeypatch.context() as cut:
        cut.setattr(Control, "save", Mock(side_effect=InterruptedError("cut off")))
        with pytest.raises(StreamingQueryException, match="cut off"):
            lake.run(put(2, "new", 6, was=2))
    lake.run()
    end = COMMIT_TS + 6
    expected = [(1, "a", -1, None), (2, "b", -1, end), (2, "new", end, None)]
    assert versions(lake.table(), "commit") == expected
    lake.options["checkpoint"] = f"{lake.folder}/other"
    error = "snapshot of shop.orders: the target .* already has rows"
    with pytest.raises(StreamingQueryException, match=error):
        lake.run()
    # As a query without a snapshot it ends equal.
    del lake.options["snapshot"]
    lake.run()
    assert versions(lake.table(), "commit") == expected
