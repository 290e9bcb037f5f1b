"""Control sequences in messages are escaped on a terminal, and unchanged in pipes."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import click.testing
import pytest
from support.cli_tools import run, write_messages

from cdcfmt_core.events import Column, Message, TableSchema
from cdcfmt_core.schemas.records import SchemaRecord
from cdcfmt_core.types import Int
from cdcfmt_toolkit.schema_directory import SchemaDirectory

EVIL = "\x1b]0;x\x07\x1b[2J\x7f\x9b2J\u202etxt\u2066\u061c"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
NAME = f"t{EVIL}"


def wire(**changes: Any) -> bytes:
    row = {"id": "1", f"c{EVIL}": f"v{EVIL}", "j": json.dumps({"a": EVIL}, ensure_ascii=False)}
    fields = {
        "isDdl": False, "type": "INSERT", "database": f"d{EVIL}", "table": NAME, "es": 1, "ts": 1,
        "pkNames": ["id"], "mysqlType": dict.fromkeys(row, f"int{EVIL}") | {"j": "json"},
        "sqlType": {}, "data": [row], "sql": "",
    } | changes  # fmt: skip
    return json.dumps(fields, ensure_ascii=False).encode()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ddl = f"CREATE TABLE `{NAME}` (id int /* {EVIL} */)"
    values = [
        wire(),
        wire(isDdl=True, type="CREATE", sql=ddl, data=None),
        wire(data=[{f"c{EVIL}": [EVIL]}]),
        wire(type=EVIL),
        f'{{"data": {EVIL}'.encode(),
    ]
    messages = [Message(EVIL.encode(), v, (("h" + EVIL, EVIL.encode()),), EVIL) for v in values]
    return write_messages(tmp_path_factory.mktemp("hostile") / f"{EVIL}.jsonl", messages)


TABLE = ("--table", f"`d{EVIL}`.`{NAME}`")
COMMANDS: list[tuple[str, ...]] = [
    ("cat",), ("cat", "-f", "csv"), ("cat", "-f", "table"), ("cat", *TABLE),
    ("cat", "-f", "csv", *TABLE), ("cat", "-f", "table", *TABLE),
    ("stats",), ("stats", "--json"), ("sniff",), ("sniff", "--json"),
    ("validate",), ("validate", "--json"), ("validate", *TABLE),
    ("inspect", "--count", "9", "--raw"), ("inspect", "--count", "9", "--json"),
    ("schema",), ("schema", *TABLE), ("schema", *TABLE, "--as", "create-table"),
    ("schema", *TABLE, "--as", "spark"), ("schema", *TABLE, "--as", "json"),
    ("convert", "--to", "canal-json", "--lines", "value"),
    ("cat", "--include-tables", f"`{EVIL}`.x"), ("cat", "--protocol", EVIL),
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_terminal_output_has_no_control_sequences(
    command: tuple[str, ...], hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda _: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    result = run(*command, hostile)
    for text in (result.stdout, result.stderr):
        # Progress bars draw over themselves; they hold no foreign text.
        text = re.sub(r"\r|\x1b\[(\?25[lh]|1A|2K)", "", COLOURS.sub("", text))
        assert OBEYED.search(text) is None, repr(OBEYED.search(text))
    assert result.output


@pytest.mark.parametrize("command", ["list", "check"])
def test_schema_store_listing_has_no_control_sequences(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = (Column(f"c{EVIL}", f"int{EVIL}", Int(32)),)
    directory = SchemaDirectory(str(tmp_path))
    directory.save(SchemaRecord(TableSchema(f"d{EVIL}", NAME, columns), (1,), f"s{EVIL}"))
    (folder,) = tmp_path.iterdir()
    (folder / f"bad{EVIL}.json").write_text(f'{{"format": "{EVIL}"}}')
    test_terminal_output_has_no_control_sequences(("schemas", command), tmp_path, monkeypatch)


def test_piped_data_is_unescaped(hostile: Path) -> None:
    text = run("cat", hostile, *TABLE, "-n", 1).stdout
    assert OBEYED.search(text) is None
    row = json.loads(text)
    assert row[f"c{EVIL}"] == f"v{EVIL}"
    assert row["j"] == {"a": EVIL}
    rows = csv.DictReader(io.StringIO(run("cat", hostile, *TABLE, "-f", "csv").stdout, newline=""))
    assert next(rows)[f"c{EVIL}"] == f"v{EVIL}"
    sql = run("schema", hostile, *TABLE, "--as", "create-table").stdout
    assert f"/* {EVIL} */" in sql


@pytest.mark.parametrize("shape", ["create-table", "spark", "delta"])
def test_names_cannot_end_a_sql_comment(shape: str, tmp_path: Path) -> None:
    message = wire(table="t\r\nDROP TABLE u; --", data=[{"id": "1"}])
    path = write_messages(tmp_path / "m.jsonl", [Message(None, message)])
    head = run("schema", path, "--as", shape, "-q").stdout.split("\n")[0]
    assert head.endswith("t\\r\\nDROP TABLE u; --`")
