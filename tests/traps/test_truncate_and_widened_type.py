"""TRUNCATE, INT that became BIGINT, and a new column, in the MERGE recipe of the quickstart.

The first two were bad rows that the MERGE filtered away: the target kept 54 rows where the source
had 2, and rows with the larger values stayed as they had been.  Rows older than a TRUNCATE of an
earlier batch came back, and of the new column there was no word.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from canal_messages import COMMIT_TS, ddl_message, row_message, write_lines
from doc_snippets import snippets
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession


@pytest.fixture
def orders(delta: SparkSession) -> Iterator[SparkSession]:
    yield delta
    delta.sql("DROP TABLE IF EXISTS orders")


def row(type_: str, id_: int, v: str, n: int, at: int, type_of_n: str = "int") -> dict[str, Any]:
    data = {"id": str(id_), "v": v, "n": str(n)}
    types = {"v": "varchar(20)", "n": type_of_n}
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
    told = r"shop\.orders: the table is truncated or dropped by 'truncate table orders' "
    with pytest.raises(StreamingQueryException, match=told + r"\(onTruncate=fail; .* set row"):
        run(recipe.replace('.option("onTruncate", "row")', ""))
    assert target() == []
    run(recipe)
    assert target() == [(5, "new", 5), (6, "new", 6)]

    # Older than the TRUNCATE, from another partition; and one that comes again.
    write_lines(dump / "1b.json", row("INSERT", 7, "old", 7, 6), row("INSERT", 5, "new", 5, 15))
    run(recipe)
    assert target() == [(5, "new", 5), (6, "new", 6)]

    alter = "alter table orders modify n bigint"
    write_lines(
        dump / "2.json",
        ddl_message(alter, "ALTER", commit_ts=COMMIT_TS + 20),
        row("UPDATE", 5, "wide", 5_000_000_000, 21, "bigint"),
    )
    told = r"2\.json, offset \d+: shop\.orders\.n: 5000000000 does not fit in 32 bits; "
    with pytest.raises(StreamingQueryException, match=f"{told}.*is '{alter}' .*onSchemaChange="):
        run(recipe)
    assert target() == [(5, "new", 5), (6, "new", 6)]

    wider = recipe.replace("n INT", "n BIGINT")
    orders.sql("ALTER TABLE orders SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    orders.sql("ALTER TABLE orders ALTER COLUMN n TYPE BIGINT")
    run(wider)
    assert target() == [(5, "wide", 5_000_000_000), (6, "new", 6)]

    alter = "alter table orders add x int"
    with_x = row_message(
        "UPDATE",
        {"id": "6", "v": "new", "n": "6", "x": "1"},
        commit_ts=COMMIT_TS + 31,
        types={"v": "varchar(20)", "n": "bigint", "x": "int"},
    )
    statement = ddl_message(alter, "ALTER", commit_ts=COMMIT_TS + 30)
    # At the end of a batch: no row behind it tells of the column.
    write_lines(dump / "3.json", row("UPDATE", 5, "five", 5, 29, "bigint"), statement)
    told = rf"3\.json, offset \d+: shop\.orders\.x: by '{alter}' the table gains a column "
    with pytest.raises(StreamingQueryException, match=told + ".*ignoreColumns"):
        run(wider)
    orders.sql("ALTER TABLE orders ADD COLUMN x INT")
    widest = wider.replace("n BIGINT", "n BIGINT, x INT").replace("id, v, n,", "id, v, n, x,")
    run(widest)
    assert target() == [(5, "five", 5), (6, "new", 6)]
    write_lines(dump / "4.json", with_x)
    run(widest)
    assert orders.table("orders").where("id = 6").head()["x"] == 1
    # The key changes, and everything comes again.
    moved = {"id": "9", "v": "new", "n": "6", "x": "1"}
    types = {"v": "varchar(20)", "n": "bigint", "x": "int"}
    key_change = row_message("UPDATE", moved, {"id": "6"}, commit_ts=COMMIT_TS + 40, types=types)
    write_lines(dump / "5.json", key_change, with_x)
    for path in sorted(dump.glob("*.json")):
        (dump / f"again-{path.name}").write_bytes(path.read_bytes())
    run(widest)
    assert target() == [(5, "five", 5), (9, "new", 6)]
