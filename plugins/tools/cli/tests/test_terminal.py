"""A narrow terminal: whole words, nothing left of the progress bar, and Ctrl-C."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.cli_tools import write_messages
from support.golden_data import native_messages
from support.terminal import Terminal

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def canal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("terminal") / "canal.jsonl"
    return write_messages(path, [*native_messages("canal/canal_flat")] * 3)


@pytest.mark.parametrize("width", [40, 60])
def test_the_bar_leaves_nothing_and_notes_break_between_words(canal: Path, width: int) -> None:
    terminal = Terminal(width)
    written = terminal.run("validate", canal)
    assert terminal.exit_code == 0
    for title in ("reading", "looking for tab"):
        assert title in written
    assert " ".join(filter(None, terminal.lines)) == (
        "all good: 1,359 messages, 1,455 good events note: shop.wide has TIMESTAMP columns, and "
        "this format does not send their time zone: they are read as UTC; set "
        "--source-time-zone to the source's zone (and 2 more like it)"
    )
    assert max(map(len, terminal.lines)) <= width


@pytest.mark.parametrize("width", [40, 60])
@pytest.mark.parametrize(
    ("command", "text"),
    [
        (["stats", "x.jsonl", "--header"],
         "Error: No such option: --header: messages are lines of JSON, or binary, and not CSV"),
        (["convert", "x.jsonl", "--to", "simple", "--output", "kafka://broker/orders"],
         "Error: Invalid value for '--output': kafka://broker/orders is a topic: Spark writes "
         'topics, by df.write.format("cdc") or writeStream.'),
        (["cat"], "Error: Missing argument 'INPUT...'."),
        (["replay", "x.jsonl"],
         "Error: No such command 'replay'; did you mean python -m pyspark_cdcfmt.sync --replay?"),
        (["--heder"], "Error: No such option '--heder'. Did you mean '--help'?"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)  # fmt: skip
def test_usage_errors_break_between_words(command: list[str], text: str, width: int) -> None:
    terminal = Terminal(width)
    terminal.run(*command)
    assert terminal.exit_code == 2
    lines = terminal.lines
    assert max(map(len, lines)) <= width
    path = "cdcfmt" if command[0] in ("--heder", "replay") else f"cdcfmt {command[0]}"
    screen = " ".join(filter(None, map(str.strip, lines)))
    assert screen.startswith(f"Usage: {path} ")
    assert f"Try '{path} --help' for help. Error: " in screen
    assert screen.endswith(text)


@pytest.fixture
def pipe(canal: Path, tmp_path: Path) -> Iterator[Path]:
    """A named pipe with 1,000 messages, whose end never comes."""
    lines = canal.read_bytes().splitlines(keepends=True)[:1000]
    path = tmp_path / "pipe"
    os.mkfifo(path)
    held = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    writer = threading.Thread(target=lambda: path.write_bytes(b"".join(lines)))
    writer.start()
    yield path
    while writer.is_alive():
        with suppress(BlockingIOError):
            os.read(held, 1 << 16)
        writer.join(0.01)
    os.close(held)


@pytest.mark.parametrize(
    ("command", "counted"),
    [
        (["stats"], ["messages       1,000,", "interrupted: the counts are of 1,000 messages"]),
        (["validate"], ["none corrupt so far: 1,000 messages", "interrupted: 1,000 messages"]),
        (["cat", "-f", "table", "--where", "a = 51 AND b = 'new'"],
         ["51", "interrupted: 4 rows of 1,000 messages"]),
        (["cat", "-f", "table", "--tail", "2", "--table", "shop.pair"],
         ["update_postimage", "rows of 1,000 messages"]),
        (["convert", "--to", "canal-json", "--output", "{}/new.jsonl"],
         ["interrupted: 1,", "/new.jsonl is not written"]),
    ],
    ids=lambda value: value[0] if "-" not in value[0] else None,
)  # fmt: skip
def test_ctrl_c_prints_what_was_counted(
    command: list[str], counted: list[str], pipe: Path, tmp_path: Path
) -> None:
    terminal = Terminal(120)
    given = [argument.format(tmp_path) for argument in command]
    written = terminal.run(*given, pipe, interrupt=lambda text: "1,000 messages" in text)
    assert terminal.exit_code == 130
    assert "Traceback" not in written
    screen = " ".join(terminal.lines)
    for text in counted:
        assert text in screen, screen
    assert "reading" not in screen
    assert [*tmp_path.iterdir()] == [pipe]


def test_ctrl_c_while_rows_are_printed(pipe: Path) -> None:
    terminal = Terminal(60)
    command = "cat", "--op", "delete", "--columns", "a"
    written = terminal.run(*command, pipe, interrupt=lambda text: text.count("_source") >= 40)
    assert terminal.exit_code == 130
    counted = re.search(r"interrupted: (\d+) rows of", written)
    assert counted is not None
    # The last one may have been printed a moment before it was counted.
    assert written.count("_source") - int(counted[1]) in (0, 1)
