"""Outputs: files that are written whole, full disks, closed streams, and widths."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli_tools import WIDE, run, run_json, run_lines, write_messages
from support.golden_data import native_messages

TO = ("--to", "canal-json")
FULL = "No space left on device"


@pytest.fixture
def canal(tmp_path: Path) -> Path:
    (tmp_path / "dump").mkdir()
    return write_messages(tmp_path / "dump/canal.jsonl", native_messages("canal/canal_flat"))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_input_file_is_rejected_as_output(canal: Path) -> None:
    data, folder = canal.read_bytes(), canal.parent
    (folder / "link").symlink_to(canal)
    (folder / "hard").hardlink_to(canal)
    for source in (canal, folder, folder / "*.jsonl"):
        for output in (canal, folder / "link", folder / "hard"):
            for command in (["convert", *TO, "--output"], ["stats", "--html"]):
                result = run(*command, output, source)
                assert result.exit_code == 2
                assert result.stderr == (
                    f"error: {output} is a file of the input: write to another one\n"
                )
    assert canal.read_bytes() == data
    assert names(folder) == ["canal.jsonl", "hard", "link"]


def test_folder_is_rejected_as_output(canal: Path, tmp_path: Path) -> None:
    for output in (f"{tmp_path}/new/", f"{canal.parent}/"):
        for command in (["convert", *TO, "--output"], ["stats", "--html"]):
            result = run(*command, output, canal)
            assert result.exit_code == 2
            assert f"{output} is a folder: add the name of a file" in result.stderr
    assert names(tmp_path) == ["dump"]


def test_error_keeps_the_existing_file(canal: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.write_text("good")
    for command, code in (
        (["convert", "--to", "open-protocol", "--output"], 1),
        (["convert", *TO, "--include-tables", "no.table", "--output"], 1),
        (["stats", "--table", "no.table", "--html"], 1),
        (["convert", *TO, "--output", output.with_suffix(".gz"), "--kind", "x", "--output"], 2),
    ):
        assert run(*command, output, canal).exit_code == code
        assert output.read_text() == "good"
        assert run(*command, tmp_path / "new", canal).exit_code == code
    assert names(tmp_path) == ["dump", "out"]


def test_output_replaces_the_file(canal: Path, tmp_path: Path) -> None:
    output, link = tmp_path / "out.jsonl", tmp_path / "link.jsonl"
    output.write_text("old")
    output.chmod(0o640)
    link.symlink_to(output)
    expected = run("convert", canal, *TO).stdout_bytes
    assert run("convert", canal, *TO, "--output", link).exit_code == 0
    assert output.read_bytes() == expected
    assert output.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert names(tmp_path) == ["dump", "link.jsonl", "out.jsonl"]


def test_pipes_are_written_as_they_are(canal: Path, tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", tmp_path / "read"
    os.mkfifo(pipe)
    with read.open("wb") as file, subprocess.Popen(["cat", pipe], stdout=file) as reader:
        assert run("convert", canal, *TO, "--output", pipe).exit_code == 0
        assert reader.wait(60) == 0
    assert read.read_bytes() == run("convert", canal, *TO).stdout_bytes
    assert pipe.is_fifo()
    assert run("convert", canal, *TO, "--output", "/dev/null").exit_code == 0


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_by_suffix(canal: Path, tmp_path: Path, suffix: str) -> None:
    output, plain = tmp_path / f"out.jsonl{suffix}", tmp_path / "out.jsonl"
    for path in (output, plain):
        assert run("convert", canal, *TO, "--output", path).exit_code == 0
    assert output.stat().st_size < plain.stat().st_size / 2
    rows = [[e["table"], e["after"]] for e in run_lines("cat", output, "--op", "insert")]
    assert rows == [[e["table"], e["after"]] for e in run_lines("cat", plain, "--op", "insert")]
    if suffix == ".gz":
        assert gzip.decompress(output.read_bytes()) == plain.read_bytes()


def test_outputs_that_are_no_files(canal: Path) -> None:
    for command in (("convert", *TO, "--output"), ("stats", "--html")):
        topic = run(*command, "kafka://me:secret@broker:9092/orders?a=b", canal)
        assert topic.exit_code == 2
        assert "kafka://me:…@broker:9092/orders?… is a topic: Spark writes topics" in topic.stderr
        url = run(*command, "s3://bucket/x", canal)
        assert (url.exit_code, "s3://bucket/x is a URL: name a local file" in url.stderr) == (
            2,
            True,
        )


def test_unsupported_output_compressions(canal: Path, tmp_path: Path) -> None:
    for suffix in (".bz2", ".xz", ".zip"):
        output = tmp_path / f"out{suffix}"
        result = run("convert", canal, *TO, "--output", output)
        assert result.exit_code == 2
        assert result.stderr == (
            f"error: --output {output}: use .gz, .zst or no suffix instead of {suffix}\n"
        )
    assert names(tmp_path) == ["dump"]


def test_json_beside_the_page(canal: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run_json("stats", canal, "--json", "--html", page)["messages"] == 453
    assert page.read_text().startswith("<!doctype html>")


COMMANDS = (["cat"], ["cat", "-f", "table"], ["stats"], ["convert", *TO])


def by_shell(redirections: str, *arguments: object) -> tuple[int, str]:
    """Exit code and stderr."""
    command = [str(Path(sys.executable).with_name("cdcfmt")), *map(str, arguments)]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirections}', "sh", *command],
        env=os.environ | WIDE,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stderr.splitlines()[-1] if done.stderr else ""


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_full_disks_and_closed_streams(canal: Path, command: list[str]) -> None:
    error = "error: standard output cannot be written: "
    assert by_shell("> /dev/full", *command, canal) == (3, error + FULL)
    assert by_shell(">&-", *command, canal) == (3, error + "Bad file descriptor")
    assert by_shell("2>&-", *command, canal) == (0, "")


def test_full_disk_for_an_output_file(canal: Path, tmp_path: Path) -> None:
    for command in (["convert", *TO, "--output"], ["stats", "--html"]):
        result = run(*command, "/dev/full", canal)
        assert result.exit_code == 3
        assert result.stderr.endswith(f"error: /dev/full cannot be written: {FULL}\n")
    # With a file to write, nothing goes to stdout.
    output = tmp_path / "out.jsonl"
    assert by_shell(">&-", "convert", "-q", *TO, "--output", output, canal) == (0, "")
    assert output.read_bytes() == run("convert", canal, *TO).stdout_bytes


def test_invalid_terminal_widths(canal: Path) -> None:
    wide = run("stats", canal, width=120)
    for width in (0, -1):
        assert run("stats", canal, width=width).stdout == wide.stdout
    missing = run("stats", "nothing", width=0)
    reason = f"error: path does not exist: nothing, relative to {Path.cwd()}\n"
    assert (missing.exit_code, missing.stderr) == (3, reason)
