"""A pattern of `includeTables` or `excludeTables` that matches no table.

The rows of the one were missing in silence, those of the other were there.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from support.canal_messages import INSERT, row_message, write_lines
from support.cli_tools import run

from pyspark_cdcfmt.rows.row_schemas import events_schema
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


def test_unmatched_exclusion_is_reported(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "all.json", INSERT)
    options = {"path": path, "excludeTables": "shop.orders, Shop.orders"}
    schema = events_schema(parsed(options))
    message = r"excludeTables: Shop\.orders matches no table of.*; did you mean shop\.orders\?"
    with pytest.warns(UserWarning, match=message):
        CdcDataSource(options).reader(schema).partitions()
    reader: Any = CdcDataSource(options).streamReader(schema)
    start = reader.initialOffset()
    with pytest.warns(UserWarning, match=message):
        reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options["excludeTables"] = "shop.o*"
        CdcDataSource(options).reader(schema).partitions()
    printed = run("cat", path, "--exclude-tables", "Shop.orders")
    assert printed.exit_code == 0
    assert "no table Shop.orders in the input; did you mean shop.orders?" in printed.stderr
    assert run("cat", path, "--exclude-tables", "shop.orders").stderr == ""
