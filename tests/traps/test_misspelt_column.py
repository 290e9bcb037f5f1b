"""A column of `.schema(...)` that the table lacks: it was NULL in every row, silently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StringType, StructType
from support.canal_messages import INSERT, row_message, write_lines

from pyspark_cdcfmt.source import CdcDataSource


def plan(path: str, *columns: str, **options: Any) -> None:
    schema = StructType()
    for name in {"_change_type": None, **dict.fromkeys(columns)}:
        schema.add(name, StringType())
    given = {"path": path, "table": "shop.orders", **options}
    CdcDataSource(given).reader(schema).partitions()


def test_the_nearest_column_is_named(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "orders.json", INSERT)
    plan(path, "name", "_change_type")
    with pytest.raises(Exception, match=r"column nmae of the schema: table shop\.orders has no"):
        plan(path, "id", "nmae")
    with pytest.raises(Exception, match=r"but id, name, price; did you mean name\? \(requireT"):
        plan(path, "id", "nmae")
    with pytest.raises(Exception, match="did you mean _sequence"):
        plan(path, "id", "_sequnce")
    plan(path, "id", "nmae", requireTables="false")


def test_column_of_the_last_messages_is_accepted(tmp_path: Path) -> None:
    added = row_message("INSERT", {"id": "1", "note": "2"})
    path = write_lines(tmp_path / "orders.json", *[INSERT] * 1000, added)
    plan(path, "note")


def test_partial_rows_do_not_reject_columns(tmp_path: Path) -> None:
    """TiCDC's deletes of keys alone have no other column."""
    delete = row_message("DELETE", {"id": "1"}, onlyHandleKey=True)
    plan(write_lines(tmp_path / "deletes.json", *[delete] * 3), "name")
