"""A table, or a pattern of tables, that the input does not have ends with exit code 1."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli_tools import run, write_messages
from support.golden_data import native_messages


@pytest.fixture(scope="module")
def canal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("names") / "canal.jsonl"
    return write_messages(path, native_messages("canal/canal_flat"))


COMMANDS = (["cat"], ["cat", "-f", "csv"], ["cat", "-f", "table"], ["stats"], ["stats", "--json"],
            ["validate"], ["validate", "--json"], ["schema"])  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_missing_table(command: list[str], canal: Path) -> None:
    for table, near in (("shop.wied", "did you mean shop.wide"), ("SHOP.Pair", "shop.pair")):
        result = run(*command, canal, "--table", table)
        assert (result.exit_code, f"no table {table} in the input" in result.stderr) == (1, True)
        assert near in result.stderr
    far = run(*command, canal, "--table", "x.qqqqqq")
    assert "it has other.o, shop.later" in far.stderr
    assert run(*command, canal, "--table", "shop.pair").exit_code == 0


def test_a_pattern_without_a_match(canal: Path) -> None:
    for command in (["cat"], ["stats"], ["validate"], ["convert", "--to", "canal-json"]):
        found = run(*command, canal, "--include-tables", "shop.pair,shop.wied*", "--kind", "ddl")
        assert found.exit_code == 1, command
        assert "no table shop.wied* in the input" in found.stderr
    assert run("cat", canal, "--include-tables", "shop.p*", "--op", "insert").exit_code == 0
    # The table exists, but has no such event.
    assert run("cat", canal, "--table", "shop.later", "--op", "delete").exit_code == 0
    # All requested events were shown.
    assert run("cat", canal, "--include-tables", "shop.*,x.y", "-n", 1).exit_code == 0


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_table_excluded_by_patterns(command: list[str], canal: Path) -> None:
    for pattern in (("--include-tables", "shop.wide,x.*"), ("--exclude-tables", "*.pair")):
        result = run(*command, canal, "--table", "shop.pair", *pattern)
        assert result.exit_code == 2
        assert result.stderr == (
            "error: --include-tables and --exclude-tables exclude table shop.pair\n"
        )
    both = run(*command, canal, "--table", "shop.pair", "--include-tables", "shop.p*")
    assert both.exit_code == 0


def test_a_filter_of_files_without_a_match(canal: Path) -> None:
    folder = canal.parent
    result = run("cat", folder, "--path-glob-filter", "*.zip")
    assert result.exit_code == 3
    assert result.stderr == (
        f"error: no file in {folder} matches --path-glob-filter *.zip; "
        "names that start with _ or . are hidden\n"
    )


def test_empty_option_values(canal: Path) -> None:
    result = run("cat", "")
    assert (result.exit_code, "the path is empty" in result.stderr) == (2, True)
    result = run("cat", canal, "--table", "")
    assert (result.exit_code, "'' is not database.table" in result.stderr) == (2, True)
