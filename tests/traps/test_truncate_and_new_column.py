"""TRUNCATE and a new column in the MERGE recipe of the quickstart.

The rows of a TRUNCATE were bad rows that the MERGE filtered away: the target kept 54 rows where
the source had 2.  Of a new column there was no word.  (Rows older than a TRUNCATE of an earlier
batch, and INT that became BIGINT, are in tests/docs/test_merge_by_hand.py.)
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from support.canal_messages import COMMIT_TS, ddl_message, row_message, write_lines
from support.doc_snippets import snippets


@pytest.fixture
def orders(delta: SparkSession) -> Iterator[SparkSession]:
    yield delta
    delta.sql("DROP TABLE IF EXISTS orders")


def row(type_: str, id_: int, v: str, n: int, at: int) -> dict[str, Any]:
    data = {"id": str(id_), "v": v, "n": str(n)}
    types = {"v": "varchar(20)", "n": "int"}
    return row_message(type_, data, commit_ts=COMMIT_TS + at, types=types)


def test_the_recipe(orders: SparkSession, tmp_path: Path) -> None:
    (recipe,) = (
        block.code for block in snippets("docs/merge-by-hand.md") if block.needs == "delta"
    )
    recipe = recipe.replace("golden.txn_a", "shop.orders")
    recipe = recipe.replace("checkpoints/orders", str(tmp_path / "checkpoint"))
    dump = tmp_path / "dump"
    dump.mkdir()

    def run(code: str) -> None:
        exec(code, {"spark": orders, "dump": str(dump)})

    def target() -> list[tuple[int, str, int]]:
        found = orders.table("orders").where("NOT _deleted").select("id", "v", "n")
        return sorted(map(tuple, found.collect()))

    write_lines(
        dump / "1.json",
        *(row("INSERT", id_, "old", id_, id_) for id_ in range(1, 6)),
        ddl_message("truncate table orders", "TRUNCATE", commit_ts=COMMIT_TS + 10),
        *(row("INSERT", id_, "new", id_, 10 + id_) for id_ in (5, 6)),
    )
    reason = r"shop\.orders: the table is truncated or dropped by 'truncate table orders' "
    with pytest.raises(StreamingQueryException, match=reason + r"\(onTruncate=fail; .* set row"):
        run(recipe.replace('.option("onTruncate", "row")', ""))
    assert target() == []
    run(recipe)
    assert target() == [(5, "new", 5), (6, "new", 6)]

    alter = "alter table orders add x int"
    # At the end of a batch: no row behind it tells of the column.
    statement = ddl_message(alter, "ALTER", commit_ts=COMMIT_TS + 30)
    write_lines(dump / "2.json", row("UPDATE", 5, "five", 5, 29), statement)
    reason = rf"2\.json, offset \d+: shop\.orders\.x: by '{alter}' the table gains a column "
    with pytest.raises(StreamingQueryException, match=reason + ".*ignoreColumns"):
        run(recipe)
    assert target() == [(5, "new", 5), (6, "new", 6)]

    orders.sql("ALTER TABLE orders ADD COLUMN x INT")
    run(recipe.replace("n INT", "n INT, x INT").replace("id, v, n,", "id, v, n, x,"))
    assert target() == [(5, "five", 5), (6, "new", 6)]
