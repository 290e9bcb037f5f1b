"""``cdcfmt sniff``: the formats of the messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli_tools import run, run_json, write_messages
from support.golden_data import load_variant, native_messages

FOLDERS = {
    "canal/canal_flat": "canal-json",
    "debezium/noschema_default": "debezium",
    "dts/dts": "dts-avro",
}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mixed")
    for name, protocol in FOLDERS.items():
        write_messages(folder / f"{protocol}.jsonl", native_messages(name))
    golden = (g.message for g in load_variant("open", "default").messages)
    write_messages(folder / "open.jsonl", golden)
    return folder


def test_every_format_of_a_folder(mixed: Path) -> None:
    mode = ("-o", "timePrecisionMode=adaptive_time_microseconds")
    found = run_json("sniff", mixed, "--sample", 50, "--json", *mode)
    assert found.keys() - {"no value (tombstone)"} == {*FOLDERS.values(), "open-protocol"}
    assert sum(item["messages"] for item in found.values()) == 4 * 50
    assert all(item["corrupt"] == 0 for item in found.values())
    assert found["canal-json"]["confidence"] == 1.0
    text = run("sniff", mixed).stdout
    assert "next: cdcfmt stats" in text


@pytest.mark.parametrize("protocol", FOLDERS.values())
def test_one_format_and_next_command(mixed: Path, protocol: str) -> None:
    path = mixed / f"{protocol}.jsonl"
    text = run("sniff", path).stdout
    assert f"next: cdcfmt cat --protocol {protocol} {path}" in text


def test_unknown_messages(tmp_path: Path) -> None:
    path = write_messages(tmp_path / "m.jsonl", native_messages("maxwell/maxwell"))
    result = run("sniff", path)
    assert result.exit_code == 1
    assert "not recognised" in result.stdout
    assert "offset 0" in result.stdout
    assert "next: cdcfmt formats" in result.stdout
    (tmp_path / "empty.jsonl").write_bytes(b"")
    empty = run("sniff", tmp_path / "empty.jsonl")
    assert (empty.exit_code, empty.stdout) == (1, "There are no messages.\n")
    nothing = run("sniff", path, "--sample", 0)
    assert (nothing.exit_code, "0 is not in the range x>=1" in nothing.stderr) == (2, True)
