"""The options of every reading command: each has its effect in every way to set it."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import click
import pytest
from support.cli_tools import run, run_json, run_lines, write_messages
from support.golden_data import load_variant, native_messages
from support.workspace import ROOT

from cdcfmt_cli.app import COMMANDS, app

TESTS = Path(__file__).parent


@pytest.fixture(scope="module")
def canal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    messages = (golden.message for golden in load_variant("canal-json", "tidb-extension").messages)
    return write_messages(tmp_path_factory.mktemp("canal") / "canal.jsonl", messages)


def test_tables_and_times(canal: Path) -> None:
    everything = run_lines("cat", canal)
    without = run_lines("cat", canal, "--exclude-tables", "golden.*,ddl_db.t1")
    assert without == run_lines("cat", canal, "-o", "excludeTables=golden.*,ddl_db.t1")
    left_out = [
        e
        for e in everything
        if e.get("database") == "golden" or (e.get("database"), e.get("table")) == ("ddl_db", "t1")
    ]
    assert left_out
    assert [e for e in without if e["kind"] == "row"] == [
        e for e in everything if e["kind"] == "row" and e not in left_out
    ]
    middle = sorted(int(e["commit_ts"]) for e in everything)[len(everything) // 2]
    early = run_lines("cat", canal, "--ending-commit-ts", middle)
    late = run_lines("cat", canal, "--starting-commit-ts", middle + 1)
    assert [e["commit_ts"] for e in early] == [
        e["commit_ts"] for e in everything if int(e["commit_ts"]) <= middle
    ]
    assert len(early) + len(late) == len(everything)


def test_time_zone_and_type_map(canal: Path) -> None:
    def instant(*options: str) -> str:
        rows = run_lines("cat", canal, "--include-tables", "golden.pk_time", *options)
        text: str = next(e["after"]["ts"] for e in rows if e.get("op") == "insert")
        return text

    assert instant().startswith("2024-01-01T12:00:00")
    assert instant("--source-time-zone", "Asia/Shanghai").startswith("2024-01-01T04:00:00")
    assert instant("--type-map", "mysql") == instant()
    unknown = run("cat", canal, "--type-map", "oracle")
    assert unknown.exit_code == 2
    assert "oracle" in unknown.stderr


def test_claim_checks(tmp_path: Path) -> None:
    variant = load_variant("canal-json", "claim-check")
    path = write_messages(tmp_path / "m.jsonl", (golden.message for golden in variant.messages))
    assert run("validate", path, "--claim-check-storage-uri", variant.claims).exit_code == 0
    without = run("validate", path)
    assert without.exit_code == 1
    assert "claimCheckStorageUri" in without.stdout


def test_schemas(tmp_path: Path) -> None:
    messages = [
        attrs.evolve(golden.message, offset=number)
        for number, golden in enumerate(load_variant("simple-json", "default").messages)
    ]
    write_messages(tmp_path / "a.jsonl", (m for m in messages if b"tableSchema" not in m.value))  # type: ignore[operator]
    write_messages(tmp_path / "b.jsonl", (m for m in messages if b"tableSchema" in m.value))  # type: ignore[operator]
    assert run("validate", tmp_path).exit_code == 0
    # In one pass, rows precede their schemas; and a store for one schema evicts others.
    for option in (["--no-scan-schemas"], ["--max-cached-schema-bytes", "1"]):
        missing = run("validate", tmp_path, *option)
        assert missing.exit_code == 1
        assert "not seen" in missing.stdout


def test_files(tmp_path: Path) -> None:
    value = next(m.value for m in native_messages("canal/canal_flat") if m.value) or b""
    (tmp_path / "a.jsonl").write_bytes(value + b"\x1e" + value)
    (tmp_path / "b.txt").write_bytes(b"no message")

    def count(*options: str) -> int:
        found: int = run_json("stats", tmp_path, "--json", *options)["messages"]
        return found

    chosen = ("--path-glob-filter", "*.jsonl")
    assert (count(), count(*chosen)) == (2, 1)
    assert count(*chosen, "--line-sep", "\x1e") == 2
    wrong = run("stats", tmp_path, "--storage-options", "{not JSON: secret}")
    assert wrong.exit_code == 2
    assert "--storage-options" in wrong.stderr
    assert "secret" not in wrong.stderr
    assert count("--storage-options", "{}") == 2


def test_key_columns_and_samples(canal: Path) -> None:
    table = ("--table", "golden.txn_a")
    (first, *_) = run_lines("cat", canal, "--op", "insert", "--include-tables", "golden.txn_a")
    assert first["key_columns"] == ["id"]
    (other, *_) = run_lines(
        "cat", canal, "--op", "insert", "--include-tables", "golden.txn_a", "--key-columns", "v"
    )
    assert other["key_columns"] == ["v"]
    assert run("schema", canal, *table, "--infer-sample-messages", 1).exit_code == 0
    assert run("schema", canal, *table, "--infer-sample-messages", 0).exit_code == 2


def test_every_option_of_every_command_is_tested() -> None:
    """By its name, somewhere in these tests or in the examples of docs/cli.md, which run."""
    texts = [path.read_text(encoding="utf-8") for path in TESTS.glob("*.py")]
    texts.append((ROOT / "docs/cli.md").read_text(encoding="utf-8"))
    text = "\n".join(texts)
    context = click.Context(app)
    for name in COMMANDS:
        command = app.get_command(context, name)
        assert command is not None
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                spellings = [*parameter.opts, *parameter.secondary_opts]
                assert any(
                    re.search(rf"(?<![\w-]){re.escape(spelling)}(?![\w-])", text)
                    for spelling in spellings
                ), f"{name} {spellings}"
