"""``sync`` with statements whose messages do not name the tables that they empty, and SQL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import TimestampType
from support.canal_messages import COMMIT_TS, ddl_message, row_message
from support.sync_lake import Lake, put
from support.turns import in_turn


def test_statements_are_held_and_appear_in_changelogs(delta: SparkSession, tmp_path: Path) -> None:
    drop = ddl_message("DROP DATABASE shop", "QUERY", table="", commit_ts=COMMIT_TS + 2)
    both = ddl_message("DROP TABLE x, `orders`, items", "ERASE", table="x", commit_ts=COMMIT_TS + 5)
    lake = Lake(
        delta, tmp_path / "scd1", {"on_drop": "apply", "tables": ["shop.orders", "*.audit"]}
    )
    lake.folder.mkdir()
    keyless = {"pkNames": None}
    lake.run(put(1, "a", 1), put(1, "a", 1, table="audit") | keyless, drop, put(2, "b", 3))
    assert lake.rows() == {2: ("b", "1.50")}
    lake.options |= {"keys": {"shop.audit": ["id"]}, "resume": ["shop.audit"]}
    lake.run(put(2, "b", 4, table="audit") | keyless, both, put(3, "c", 6))
    assert lake.rows("audit") == {2: ("b", "1.50")}
    assert lake.rows() == {3: ("c", "1.50")}

    log = Lake(delta, tmp_path / "changelog", {"on_drop": "apply", "store": "changelog"})
    log.folder.mkdir()
    log.run(put(1, "a", 1), drop, put(2, "b", 3), both, put(3, "c", 6))
    kinds = [row["_change_type"] for row in log.table().orderBy("_sequence").collect()]
    assert kinds == ["insert", "truncate", "insert", "truncate", "insert"]


def test_one_statement_twice_in_a_second(delta: SparkSession, tmp_path: Path) -> None:
    """A binlog's clock has seconds: the same statement at another offset is a different one."""
    truncate = ddl_message("TRUNCATE TABLE orders", "TRUNCATE")
    messages = [put(0, "a", 0), truncate, put(1, "a", 0), truncate, put(2, "a", 0)]
    for message in messages:
        message.pop("_tidb", None)
    lake = Lake(delta, tmp_path, source={"dialect": "canal"})
    lake.run(*messages)
    assert lake.rows().keys() == {2}


OTHER_SQL = {
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
}
"""Settings of the user's session under which the same SQL means something else, or nothing."""


@pytest.mark.parametrize("store", in_turn(["scd2", "scd1"], of=2))
def test_names_are_quoted_in_sql(delta: SparkSession, tmp_path: Path, store: str) -> None:
    """Spark puts variables into SQL, as secret as that of the environment may be."""
    name = "${env:HOME}'\\"

    def renamed(message: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(message)
        for each in ("orders", "id", "name"):
            text = text.replace(f'"{each}"', json.dumps(each + name))
        return cast(dict[str, Any], json.loads(text))

    lake = Lake(delta, tmp_path, {"store": store})
    for setting, value in OTHER_SQL.items():
        delta.conf.set(setting, value)
    times = row_message(
        "INSERT", {"id": "1", "at": "2024-05-06 07:08:09"}, types={"at": "timestamp"}, table="times"
    )
    # Rows from before it have its DEFAULT and the renamed values, without a change of theirs.
    alter = (
        "ALTER TABLE o ADD n VARCHAR(20) NOT NULL DEFAULT 'it''s ${env:HOME}', "
        "RENAME COLUMN price TO cost"
    )
    added = row_message(
        "INSERT",
        {"id": "4", "name": "d", "cost": "2.50", "n": "new"},
        commit_ts=COMMIT_TS + 5,
        types={"n": "varchar(20)", "cost": "decimal(10,2)"},
    )
    try:
        lake.run(put(1, "a", 1), renamed(put(1, "a", 1)), put(1, "a", 1, database=""), times)
        statement = ddl_message(alter, "ALTER", commit_ts=COMMIT_TS + 4)
        changes = put(2, "b", 2), put(3, "c", 3, was=1), statement, added
        lake.run(*map(renamed, changes))
    finally:
        for setting in OTHER_SQL:
            delta.conf.unset(setting)
    assert lake.rows().keys() == {1}
    assert lake.table("times").schema["at"].dataType == TimestampType()
    (halted,) = (row.detail for row in lake.control("log") if row.action == "halt")
    assert halted == "its messages name no database: leave the table out by exclude"
    (target,) = {path.name for path in (tmp_path / "lake" / "shop").iterdir()} - {"orders", "times"}
    rows = lake.table(target)
    assert rows.columns[:2] == [f"id{name}", f"name{name}"]
    current = rows.where("__END_AT IS NULL") if store == "scd2" else rows
    filled = "it's ${env:HOME}"
    cells = {row[0]: (row[1], row.n, str(row.cost)) for row in current.collect()}
    assert cells == {2: ("b", filled, "1.50"), 3: ("c", filled, "1.50"), 4: ("d", "new", "2.50")}
    if store == "scd2":
        # It ended before.
        assert [row.n for row in rows.where("__END_AT IS NOT NULL").collect()] == [None]
