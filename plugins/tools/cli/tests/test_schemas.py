"""``cdcfmt schemas``: contents of a schema store, broken files, and removal."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli_tools import run, run_lines

from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.schemas.records import SchemaRecord
from cdcfmt_core.types import Int
from cdcfmt_toolkit.schema_directory import SchemaDirectory


@pytest.fixture
def store(tmp_path: Path) -> Path:
    directory = SchemaDirectory(str(tmp_path / "store"))
    for table, version in (("orders", 1), ("orders", 2), ("a.b", 1)):
        columns = tuple(Column(f"c{at}", "int", Int(32)) for at in range(version))
        directory.save(SchemaRecord(TableSchema("shop", table, columns), (version,), "s"))
    return tmp_path / "store"


def test_the_tables(store: Path) -> None:
    lines = run_lines("schemas", "list", store, "--json")
    assert [line["table"] for line in lines] == ["shop.`a.b`", "shop.orders"]
    schemas = {tuple(s["position"]): s["columns"] for s in lines[1]["schemas"]}
    assert schemas == {(1,): ["c0"], (2,): ["c0", "c1"]}
    text = run("schemas", "list", store).stdout
    assert [line.split()[:2] for line in text.splitlines()[2:]] == [
        ["shop.`a.b`", "1"], ["shop.orders", "2"],
    ]  # fmt: skip
    (store.parent / "file").touch()
    for command in ("list", "check"):
        for path in (store / "no", store.parent / "file"):
            missing = run("schemas", command, path)
            assert missing.exit_code == 3
            assert missing.stderr == f"error: schema store {path}: the folder does not exist\n"


def test_broken_files_are_listed_and_removed(store: Path) -> None:
    assert run("schemas", "check", store).exit_code == 0
    (store / "bad.json").write_text("{")
    assert "files without a valid schema: 1" in run("schemas", "list", store).stderr
    found = run("schemas", "check", store)
    assert (found.exit_code, "bad.json" in found.stdout) == (1, True)
    assert "1 broken: 3 schemas" in found.stdout
    as_json = run("schemas", "check", store, "--json")
    assert (as_json.exit_code, '"file":"bad.json"' in as_json.stdout) == (1, True)
    assert run("schemas", "forget", store, "--broken").exit_code == 0
    assert "all good: 3 schemas" in run("schemas", "check", store).stdout


def test_table_is_removed(store: Path) -> None:
    assert run("schemas", "forget", store).exit_code == 2
    options = ("--storage-options", '{"auto_mkdir": true}')
    near = run("schemas", "forget", store, "--table", "shop.order", *options)
    assert (near.exit_code, "did you mean shop.orders" in near.stderr) == (1, True)
    done = run("schemas", "forget", store, "--table", "shop.orders")
    assert (done.exit_code, "forgotten: 2 files" in done.stderr) == (0, True)
    assert [line["table"] for line in run_lines("schemas", "list", store, "--json")] == [
        "shop.`a.b`"
    ]
