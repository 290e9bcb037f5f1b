"""Watermarks of a stream, over its batches and restarts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cdcfmt_core.errors import SinkError
from pyspark_cdcfmt.write.watermarks import FOLDER, KeptWatermarks, Watermarks

A, B = ("orders", None, 0), ("orders", None, 1)
FILE = (None, "/dump/a.jsonl", None)


def batch(checkpoint: Path, number: int, *reports: Watermarks) -> int | None:
    kept = KeptWatermarks(str(checkpoint), number)
    lowest = kept.lowest(reports)
    kept.save()
    return lowest


def test_lagging_partition_holds_the_watermark(tmp_path: Path) -> None:
    assert batch(tmp_path, 0, {A: 10, B: 7}, {A: 12}) == 7
    # Nothing of B: its rows from 7 on are still to come.
    assert batch(tmp_path, 1, {A: 30}) is None
    assert batch(tmp_path, 2, {B: None}) is None
    assert batch(tmp_path, 3, {B: 20}) == 20
    # Run again after a restart, the same comes out.
    assert batch(tmp_path, 3, {B: 20}) == 20
    assert batch(tmp_path, 4, {A: 31, B: 40}) == 31
    assert sorted(os.listdir(tmp_path / FOLDER)) == ["2.json", "3.json", "4.json"]


def test_partition_without_a_watermark(tmp_path: Path) -> None:
    assert batch(tmp_path, 0, {A: None}) is None
    assert batch(tmp_path, 1, {B: 20}) is None
    assert batch(tmp_path, 2, {A: 5}) == 5


def test_files_are_counted_once(tmp_path: Path) -> None:
    assert batch(tmp_path, 0, {FILE: 10}) == 10
    assert batch(tmp_path, 1, {(None, "/dump/b.jsonl", None): 20}) == 20
    assert batch(tmp_path, 2, {(None, "/dump/c.jsonl", None): None}) is None
    assert not (tmp_path / FOLDER).exists()


@pytest.mark.parametrize("broken", [None, "nowhere-known://x", "file"])
def test_unusable_checkpoint(tmp_path: Path, broken: str | None) -> None:
    checkpoint = broken
    if broken == "file":
        (tmp_path / "file").write_bytes(b"")
        checkpoint = str(tmp_path / "file")
    # Without a watermark there is no risk.
    kept = KeptWatermarks(checkpoint, 0)
    assert kept.lowest([{A: None}]) is None
    kept.save()
    kept = KeptWatermarks(checkpoint, 0)

    def keep() -> None:
        kept.lowest([{A: 3}])
        kept.save()

    with pytest.raises(SinkError, match=r"set checkpointLocation .* or leave watermarks out"):
        keep()


def test_damaged_state(tmp_path: Path) -> None:
    batch(tmp_path, 0, {A: 10, B: 7})
    (tmp_path / FOLDER / "0.json").write_text('{"version"')
    with pytest.raises(SinkError, match="of earlier batches cannot be read"):
        batch(tmp_path, 1, {A: 30})
