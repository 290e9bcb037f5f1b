"""The installed command as a process: pipes, signals, exit codes, and life without click."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli_tools import WIDE, start, write_messages
from support.golden_data import load_variant
from support.terminal import Terminal

from cdcfmt_cli.app import COMMANDS, EXIT_CODES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def canal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    messages = [golden.message for golden in load_variant("canal-json", "default").messages]
    return write_messages(tmp_path_factory.mktemp("canal") / "canal.jsonl", messages)


@pytest.fixture(scope="module")
def more_than_a_pipe_holds(canal: Path) -> Path:
    path = canal.with_name("long.jsonl")
    path.write_bytes(canal.read_bytes() * 5)
    return path


@pytest.mark.parametrize("command", [["cat"], ["inspect", "--count", "2000"]])
def test_closed_pipe(command: list[str], more_than_a_pipe_holds: Path) -> None:
    process = start(*command, more_than_a_pipe_holds)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(60) == 141
    assert b"Error" not in process.stderr.read()
    process.stderr.close()


def test_a_closed_list_of_samples(tmp_path: Path) -> None:
    process = start("sample", tmp_path / "samples")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(60) == 141
    assert b"error" not in process.stderr.read()
    process.stderr.close()


def test_in_a_pipe(more_than_a_pipe_holds: Path) -> None:
    first = start("cat", more_than_a_pipe_holds, "--kind", "row")
    assert first.stdout is not None
    second = start("stats", "-", "--json", stdin=more_than_a_pipe_holds.open("rb"))
    count = sum(1 for _ in first.stdout)
    out, _ = second.communicate(timeout=60)
    assert first.wait(60) == 0
    assert json.loads(out)["kinds"]["row"] == count
    first.communicate()


def test_lines_come_at_once_and_ctrl_c_ends_it(canal: Path, tmp_path: Path) -> None:
    first_line = canal.read_bytes().partition(b"\n")[0] + b"\n"
    # A pipe that stays open: the command waits for more.
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)
    with open(tmp_path / "pipe", "rb", buffering=0) as pipe:
        process = start("cat", "-", stdin=pipe)
        os.write(writer, first_line)
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b'{"kind":"ddl"')
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    os.close(writer)
    assert process.returncode == 130
    assert b"Traceback" not in errors


def test_exit_codes(canal: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(canal.read_bytes()[:-10])
    for arguments, code in (
        (["validate", canal], 0),
        (["validate", bad], 1),
        (["cat", canal, "--nothing"], 2),
        (["cat", tmp_path / "nothing"], 3),
    ):
        process = start(*arguments)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == code
        assert b"Traceback" not in errors
    assert EXIT_CODES.keys() == {0, 1, 2, 3, 130, 141}


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_data_is_utf_8_in_every_locale(canal: Path, encoding: str) -> None:
    environment = os.environ | WIDE | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    command = [str(Path(sys.executable).with_name("cdcfmt"))]
    for arguments in (["cat", canal], ["stats", canal], ["inspect", canal, "--nth", "3"]):
        done = subprocess.run(
            [*command, *map(str, arguments)], env=environment, capture_output=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert "测试char" in done.stdout.decode() or arguments[0] == "stats"


def test_colours_and_progress_are_for_terminals(canal: Path) -> None:
    written = Terminal(100).run("stats", canal)
    assert "\x1b[32m" in written
    assert "messages" in written
    piped = start("stats", canal)
    out, errors = piped.communicate(timeout=60)
    assert b"\x1b" not in out + errors
    # Rows and a progress bar on one screen would overwrite each other.
    assert "reading" not in Terminal(100).run("cat", canal)


def test_without_click_and_rich() -> None:
    # As if the extra were not installed.
    hidden = "import sys; sys.modules['{}'] = None; from cdcfmt_cli import main; main()"
    for name in ("click", "rich"):
        done = subprocess.run(
            [sys.executable, "-c", hidden.format(name)], capture_output=True, text=True
        )
        assert done.returncode == 1
        assert f"needs {name}: pip install cdcfmt-cli" in done.stderr
    listing = (
        "import sys; sys.modules['click'] = sys.modules['rich'] = None; import runpy;"
        "runpy.run_module('cdcfmt_core', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True)
    assert done.stdout.startswith("FORMAT ")
    assert done.returncode == 0


def test_spark_is_not_started(canal: Path) -> None:
    check = (
        "import json, sys; from cdcfmt_cli.app import app\n"
        "for arguments in json.loads(sys.argv[1]):\n"
        "    try: app(arguments)\n"
        "    except SystemExit as ended: assert not ended.code, arguments\n"
        "    loaded = [m for m in sys.modules if m.startswith(('pyspark', 'py4j'))]\n"
        "    assert not loaded, arguments"
    )
    more = {"convert": ["--to", "canal-json"]}
    commands = set(COMMANDS) - {"formats", "schema", "schemas", "doctor", "new", "sample", "drain"}
    every = json.dumps([[name, str(canal), *more.get(name, [])] for name in sorted(commands)])
    done = subprocess.run([sys.executable, "-c", check, every], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
