"""A pattern of `includeTables` that matches no table: its rows were missing in silence."""

from __future__ import annotations

from pathlib import Path

import pytest
from canal_messages import INSERT, row_message, write_lines

from pyspark_cdcfmt.event_schema import events_schema
from pyspark_cdcfmt.source import CdcDataSource
from pyspark_cdcfmt.testing import parsed


def plan(path: str, patterns: str) -> None:
    options = {"path": path, "includeTables": patterns}
    CdcDataSource(options).reader(events_schema(parsed(options))).partitions()


def test_each_pattern_matches_a_table(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "all.json", INSERT, row_message("INSERT", {"id": "1"}, table="items")
    )
    plan(path, "shop.orders, shop.i*")
    with pytest.raises(Exception, match=r"Shop\.\* matches no table.*did you mean shop\.items"):
        plan(path, "shop.orders, Shop.*")
    with pytest.raises(Exception, match=r"shop\.order matches no.*did you mean shop\.orders"):
        plan(path, "shop.items, shop.order")
