"""The MERGE of docs/merge-by-hand.md, word for word, ends equal to its source.

Or it stops with an error that names a remedy, and continues after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from support.canal_messages import COMMIT_TS, ddl_message, row_message, write_lines
from support.doc_snippets import snippets

(WIDEN,) = [block for block in snippets("docs/merge-by-hand.md") if block.language == "sql"]
(RECIPE,) = [block for block in snippets("docs/merge-by-hand.md") if block.needs == "delta"]


class Source:
    """A table ``orders`` as TiCDC announces its changes; ``rows`` is what it holds."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[str, int]] = {}
        self.commit_ts = COMMIT_TS
        self.sent: list[dict[str, Any]] = []
        self.types = {"id": "int", "v": "varchar(20)", "n": "int"}

    def _tick(self) -> int:
        self.commit_ts += 1 << 18
        return self.commit_ts

    def _row(
        self, type_: str, row: tuple[int, str, int], old: tuple[int, str, int] | None = None
    ) -> None:
        columns = {name: str(len(name)) for name in self.types}
        data, before = (
            image and {**columns, **dict(zip(("id", "v", "n"), map(str, image), strict=True))}
            for image in (row, old)
        )
        assert data
        self.sent.append(row_message(type_, data, before, commit_ts=self._tick(), types=self.types))

    def put(self, id_: int, v: str, n: int, *, was: int | None = None) -> None:
        """An INSERT or UPDATE; ``was`` is the former key."""
        key = id_ if was is None else was
        old = self.rows.pop(key, None)
        self.rows[id_] = v, n
        self._row("UPDATE" if old else "INSERT", (id_, v, n), old and (key, *old))

    def delete(self, id_: int) -> None:
        self._row("DELETE", (id_, *self.rows.pop(id_)))

    def ddl(self, sql: str, type_: str, **types: str) -> None:
        self.types |= types
        self.sent.append(ddl_message(sql, type_, commit_ts=self._tick()))
        if type_ == "TRUNCATE":
            self.rows.clear()


@pytest.fixture
def orders(delta: SparkSession) -> Iterator[SparkSession]:
    yield delta
    delta.sql("DROP TABLE IF EXISTS orders")


def test_merge_ends_equal_to_the_source(orders: SparkSession, tmp_path: Path) -> None:
    spark, source = orders, Source()
    dump = tmp_path / "dump"
    dump.mkdir()

    def run(number: int, messages: Iterable[dict[str, Any]], n: str = "INT", x: str = "") -> None:
        write_lines(dump / f"{number}.json", *messages)
        code = RECIPE.code.replace("golden.txn_a", "shop.orders")
        code = code.replace("n INT", f"n {n}{x and ', x INT'}").replace(
            "id, v, n,", f"id, v, n,{x}"
        )
        code = code.replace("checkpoints/", f"{tmp_path}/")
        exec(compile(code, RECIPE.id, "exec"), {"spark": spark, "dump": str(dump)})

    def target() -> dict[int, tuple[str, int]]:
        rows = spark.table("orders").where("NOT _deleted").select("id", "v", "n").collect()
        assert len({row.id for row in rows}) == len(rows)
        return {row.id: (row.v, row.n) for row in rows}

    for id_ in range(1, 6):
        source.put(id_, "a", id_)
    source.put(2, "b", 2)
    source.put(30, "c", 3, was=3)
    source.delete(4)
    first = source.sent
    run(1, first)
    assert target() == source.rows

    # Redelivered without the delete and the change of the key, and in another order.
    source.sent = []
    source.put(5, "d", 5)
    run(2, [*first[:5], *source.sent, *reversed(first[:7])])
    assert target() == source.rows

    source.sent = []
    source.put(6, "lost", 6)
    source.put(7, "lost", 7)
    source.ddl("TRUNCATE TABLE orders", "TRUNCATE")
    source.put(7, "new", 7)
    source.ddl("ALTER TABLE orders MODIFY n BIGINT", "ALTER", n="bigint")
    source.put(1, "wide", 3_000_000_000)
    source.ddl("ALTER TABLE orders ADD COLUMN x INT", "ALTER", x="int")
    source.put(8, "more", 8)
    reason = r"3\.json, offset \d+: shop\.orders\.n: 3000000000 does not fit in 32 bits; "
    reason += ".*is 'ALTER TABLE orders MODIFY n BIGINT' .*onSchemaChange="
    with pytest.raises(StreamingQueryException, match=reason):
        run(3, [*first, *source.sent])
    # As the page says.
    *widen, add = WIDEN.code.strip().rstrip(";").split(";\n")
    for statement in widen:
        spark.sql(statement)
    alter = "ALTER TABLE orders ADD COLUMN x INT"
    reason = rf"3\.json, offset \d+: shop\.orders\.x: by '{alter}' the table gains a column "
    with pytest.raises(StreamingQueryException, match=reason + ".*ignoreColumns"):
        run(4, [], n="BIGINT")
    spark.sql(add)
    run(5, [], n="BIGINT", x=" x,")
    wide = 1, ("wide", 3_000_000_000)
    assert target() == source.rows == dict([wide, (7, ("new", 7)), (8, ("more", 8))])
    assert [row.x for row in spark.table("orders").where("x IS NOT NULL").collect()] == [1]

    # A change older than the TRUNCATE, redelivered alone.
    run(6, first, n="BIGINT", x=" x,")
    assert target() == source.rows
