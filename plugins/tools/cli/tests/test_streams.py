"""Standard input and pipes: compressed or not, empty, cut off; names that people guess."""

from __future__ import annotations

import bz2
import gzip
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from support.cli_tools import run, write_messages
from support.golden_data import native_messages

CDCFMT = (sys.executable, "-c", "from cdcfmt_cli import main; main()")
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "zstd": zstandard.compress,
}


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("dump") / "canal.jsonl"
    return write_messages(path, native_messages("canal/canal_flat")).read_bytes()


def piped(data: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*CDCFMT, *arguments], input=data, capture_output=True, check=False)


@pytest.mark.parametrize("name", COMPRESS)
def test_standard_input_is_decompressed(name: str, dump: bytes) -> None:
    done = piped(COMPRESS[name](dump), "validate", "-q", "-")
    assert (done.returncode, done.stdout.split(b"\n")[0].rstrip()) == (
        0, b"all good: 453 messages, 485 good events"
    )  # fmt: skip


def test_compressed_input_that_is_cut_off_gives_what_is_there(dump: bytes) -> None:
    done = piped(gzip.compress(dump)[:100_000], "validate", "-q", "-")
    assert done.returncode == 1
    assert b"the gzip data is cut off" in done.stdout


@pytest.mark.parametrize("name", ["plain", "gzip"])
def test_a_named_pipe_is_read_as_it_arrives(name: str, dump: bytes, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(COMPRESS[name](dump)))
    writer.start()
    result = run("validate", "-q", str(pipe))
    writer.join()
    assert "all good: 453 messages" in result.stdout


def test_a_pipe_is_read_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    result = run("stats", str(tmp_path / "pipe"), str(tmp_path))
    assert (result.exit_code, "are read alone" in result.stderr) == (2, True)


def test_an_empty_input_is_not_good(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    result = run("validate", str(tmp_path / "empty.jsonl"))
    assert result.stdout.strip() == "no messages: nothing was checked"
    assert piped(b"", "validate", "-").stdout.strip() == b"no messages: nothing was checked"


@pytest.mark.parametrize(
    ("given", "meant"),
    [("stat", "stats"), ("head", "cat -n 10"), ("tail", "cat --tail 10"), ("valdate", "validate")],
)
def test_a_guessed_command_names_the_one_that_exists(given: str, meant: str) -> None:
    result = run(given, "dump/")
    assert result.exit_code == 2
    assert f"No such command {given!r}; did you mean {meant}?" in result.stderr
