"""The campaign of faults finds faults: each kind is provoked."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import findings
import kernel_mutants
import mutants
import paths
import pytest
import states
import watching
from corpus import FORMATS, Corpus, corpora
from table import BEGIN, END, Row, as_text, write_page

from cdcfmt_core import default_registry
from cdcfmt_core.events import Message

pytestmark = pytest.mark.one_python


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Corpus:
    monkeypatch.setattr(findings, "FOLDER", tmp_path / "findings")
    monkeypatch.setattr(mutants, "CHUNK", 64)
    return next(corpora("canal-json"))


def test_every_format_has_golden_messages() -> None:
    # This format needs a registry; test_registry_avro.py and the kit damage its messages.
    assert {"ticdc-avro", *FORMATS} == set(default_registry().codecs())


def test_failing_decoder_is_found_and_reproduced(
    small: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot = watching.Slot()
    made = mutants.decode_chunk(small, "seed", slot)
    assert (slot.mutants.value, slot.failed.value, slot.slow.value) == (64, 0, 0)
    assert slot.bad.value > 0
    assert slot.held() == Message(made[-1].key, made[-1].value or b"")
    assert mutants.decode_chunk(small, "seed", watching.Slot()) == made

    class Broken:
        def decode(self, message: Message) -> Any:
            if message in made:
                raise KeyError("v")

    monkeypatch.setattr(mutants, "open_decoder", lambda **_: Broken())
    broken = watching.Slot()
    mutants.decode_chunk(small, "seed", broken)
    assert broken.failed.value == 64
    files = sorted(findings.FOLDER.iterdir())
    assert len(files) == mutants.MAX_FINDINGS
    ((message,), about) = findings.load(files[0])
    assert message in [attrs.evolve(m, headers=(), topic=None) for m in made]
    assert about["problem"] == "raised KeyError: 'v'"


def test_different_paths_are_found(small: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    slot = watching.Slot()
    made = mutants.decode_chunk(small, "seed", slot)
    queries = paths.Queries(small)
    for seed in ("a", "b", "c"):
        mutants.compare_chunk(small, seed, made, queries, slot)
    assert slot.rows.value > 0
    assert slot.different.value == 0
    read_fast = paths.read_fast
    monkeypatch.setattr(paths, "read_fast", lambda messages, query: read_fast(messages[1:], query))
    for seed in ("a", "b", "c"):
        mutants.compare_chunk(small, seed, made, queries, slot)
    assert slot.different.value > 0
    assert list(findings.FOLDER.iterdir())


@pytest.mark.kernel
def test_a_panic_of_the_kernel_is_found(small: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_mutants, "CHUNK", 2_000)
    target = kernel_mutants.Target(small)
    query = target.any(random.Random(1))
    slot = watching.Slot()
    kept = kernel_mutants.feed_chunk(target, "seed", query, slot)
    assert kept is not None
    assert (len(kept), slot.mutants.value, slot.failed.value) == (20, 2_000, 0)
    assert slot.events.value > 100
    # Any other reason, in the place of a panic's.
    monkeypatch.setattr(kernel_mutants, "PANIC", "MESSAGE")
    kernel_mutants.feed_chunk(target, "seed", query, slot)
    assert slot.failed.value == 1
    (path,) = findings.FOLDER.iterdir()
    messages, about = findings.load(path)
    assert (len(messages), about["problem"]) == (500, "AssertionError: time is out of range")


def test_hanging_message_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "STUCK_CPU", 0.2)
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        watched = watching.Watched(process, watching.Slot())
        while not watched.is_stuck():
            watched.slot.bad.value += 1
        # A message more, and its time begins anew.
        watched.slot.mutants.value += 1
        assert not watched.is_stuck()
    finally:
        process.kill()
        process.wait()


def test_the_table(tmp_path: Path) -> None:
    good = Row(campaign="kills", runs=3, events=1_200, max_rss=500, rss_bound=600)
    assert not good.failures()
    for fault in ({"lost": 1}, {"doubled": 2}, {"different": 1}, {"hangs": 1}, {"max_rss": 601}):
        assert attrs.evolve(good, **fault).failures(), fault
    assert Row(campaign="kills").failures() == ["nothing was run"]
    assert "1,200" in as_text([good])
    page = tmp_path / "page.md"
    page.write_text(f"a\n{BEGIN}\nold\n{END}\nb\n")
    write_page([good], 5, page)
    text = page.read_text()
    assert "| kills | all |  | 3 | 0 | 1,200 |" in text
    assert ", 5 minutes on " in text
    assert "old" not in text
    assert text.endswith(f"{END}\nb\n")


@pytest.mark.parametrize("name", states.STATES)
def test_damaged_states_are_errors_of_cdcfmt(name: str) -> None:
    dice = random.Random(name)
    assert {states.damage(name, dice) for _ in range(300)} == {None}
    valid, read = states.STATES[name]
    assert read(valid) is not None
