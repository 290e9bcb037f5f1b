"""TRUNCATE, and INT that became BIGINT, in the MERGE recipe of the quickstart.

Both were bad rows that the MERGE filtered away: the target kept 54 rows where the source had 2,
and rows with the larger values stayed as they had been.
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
    (recipe,) = (block.code for block in snippets("docs/quickstart.md") if block.needs == "delta")
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
