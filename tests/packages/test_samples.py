"""``cdcfmt sample`` writes the golden messages that each format ships."""

from __future__ import annotations

from pathlib import Path

from support.cli_tools import run
from support.samples import SAMPLES

from cdcfmt_core.known import packages
from cdcfmt_files.sources.whole_messages import as_message, load_message

FRAMED = {"ticdc-avro"}
"""Formats whose messages cannot be read without the schemas in their registry."""


def test_every_format_has_samples_of_its_producers(tmp_path: Path) -> None:
    printed = run("sample", str(tmp_path / "new" / "samples")).stdout
    paths = [Path(line) for line in printed.splitlines()]
    assert {path.stem for path in paths} == set(SAMPLES) == set(packages("formats")) - FRAMED
    for path in paths:
        loaded = (load_message(line, True) for line in path.read_bytes().splitlines())
        written = [as_message(each, 0, None) for each in loaded if each is not None]
        assert [(m.key, m.value, m.headers) for m in written] == [
            (m.key, m.value, m.headers) for m in SAMPLES[path.stem]()
        ]
        result = run("validate", "-q", str(path))
        assert result.exit_code == 0, result.stdout


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("sample", str(tmp_path / "file" / "samples"))
    assert result.exit_code == 3
    assert "the samples cannot be written" in result.stderr
