"""Files as an input: division into slices, streams by their offsets, and the registered spec."""

from __future__ import annotations

import json
import os
import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cdcfmt_core.errors import OptionError, SourceError
from cdcfmt_core.options import validate
from cdcfmt_core.registry import default_registry
from cdcfmt_files import FILES
from cdcfmt_testing.transports import Harness, TransportSubject
from cdcfmt_testing.transports.checks import declaration
from cdcfmt_toolkit.inputs import BadLine, Input, Slice
from cdcfmt_toolkit.topic_input import open_input

INITIAL = {"v": 1}


def files_input(path: Path, **more: Any) -> Input:
    others = {"storageOptions": None, "minPartitions": None, "protocol": "auto"}
    others |= {"maxMessageBytes": 1 << 20}
    given = {"path": str(path), **more}
    return open_input(FILES, {**validate(given, FILES.options, owner="test"), **others}, {})


def write(path: Path, rows: range, age: int = 0) -> None:
    path.write_text("".join(f'{{"row": {row}}}\n' for row in rows))
    now = 1_700_000_000 - age
    os.utime(path, (now, now))


def rows(source: Input, slices: list[Slice]) -> list[int]:
    messages = list(source.read_all(slices))
    assert not any(isinstance(message, BadLine) for message in messages)
    return [json.loads(message.value or b"")["row"] for message in messages]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(5):
        start = number * 1000
        write(tmp_path / f"{number}.jsonl", range(start, start + 1000), age=10 - number)
    (tmp_path / "empty.jsonl").touch()
    return tmp_path


def test_every_division_has_each_message_once_in_order(folder: Path) -> None:
    source = files_input(folder, maxPartitionBytes="1k")
    whole = source.plan()
    assert [Path(path).name for each in whole for path in each.paths] == [
        *(f"{number}.jsonl" for number in range(5)),
        "empty.jsonl",
    ]
    assert rows(source, whole) == [*range(5000)]
    size = sum(path.stat().st_size for path in folder.iterdir())
    for count, slices in ((5, source.divide(whole, 200)), (60, source.divide(whole))):
        assert len(slices) >= count
        assert sum(each.size for each in slices) == size
        assert rows(pickle.loads(pickle.dumps(source)), slices) == [*range(5000)]
    first, *_, last = (message.value for message in source.ends(whole))
    assert first == b'{"row": 0}'
    assert last is not None


def test_stream_reads_each_file_once_oldest_first(folder: Path) -> None:
    source = files_input(folder, maxFilesPerTrigger="2", maxFileAge="1h")
    assert source.limits() == (2, None)
    progress, at = source.open_progress(), dict(INITIAL)
    batches: list[tuple[dict[str, Any], dict[str, Any], list[int]]] = []

    def run() -> None:
        nonlocal at
        while (moved := progress.advance(at, *source.limits())) != at:
            moved = json.loads(json.dumps(moved))
            slices = source.divide(source.batch(at, moved))
            batches.append((at, moved, rows(source, slices)))
            at = moved

    run()
    assert [len(found) for _, _, found in batches] == [2000, 2000, 1000]
    assert [row for _, _, found in batches for row in found] == [*range(5000)]
    write(folder / "5.jsonl", range(5000, 5010), age=-1)
    # Another process goes on from the offset alone.
    source = pickle.loads(pickle.dumps(source))
    progress = source.open_progress()
    run()
    assert batches[-1][2] == [*range(5000, 5010)]
    for start, end, found in batches:
        assert rows(source, source.batch(start, end)) == found
    assert source.batch(at, at) == []
    with pytest.raises(SourceError, match="spans steps 0 to 4"):
        source.batch(INITIAL, at)
    assert progress.latest() == {"waiting": 0, "tooLate": 0, "changed": 0}


def test_stop_at_latest_reads_no_later_file(folder: Path) -> None:
    source = files_input(folder)
    progress = source.open_progress()
    progress.stop_at_latest()
    write(folder / "5.jsonl", range(5000, 5010), age=-1)
    end = progress.advance(INITIAL, None, None)
    assert rows(source, source.batch(INITIAL, end)) == [*range(5000)]
    assert progress.advance(end, None, None) == end


def test_files_are_a_registered_transport() -> None:
    registered = default_registry().get_transport("files")
    assert (registered.options, registered.chosen_by) == (FILES.options, ("path", "paths"))
    declaration.check_spec(TransportSubject(FILES, Harness()))
    assert pickle.loads(pickle.dumps(FILES)).options == FILES.options
    by_name = {option.name: option for option in FILES.options}
    assert by_name["maxFileAge"].default == timedelta(days=1)
    assert all(option.help for option in FILES.options)


def test_files_have_no_watermarks_before_them(folder: Path) -> None:
    with pytest.raises(OptionError, match="option deduplicate is for topics: files do not have"):
        files_input(folder).check_duplicates()
