"""The kit catches mistakes of authors of transports: bugs in copies of the example."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.mutants_of_decoders import Mutant
from support.mutants_of_transports import MUTANTS
from support.workspace import ROOT

from cdcfmt_core import TransportSpec
from cdcfmt_testing.transports import Harness, TransportTests, subject

pytestmark = pytest.mark.one_python

EXAMPLE = ROOT / "docs/example/cdcfmt-spool"


def example_tests() -> ModuleType:
    """The example's own tests."""
    path = EXAMPLE / "tests/test_conformance.py"
    found = importlib.util.spec_from_file_location("spool_conformance", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def harness_in(root: Path) -> Harness:
    """The example's harness, with a restart: it moves to another folder."""

    class Restarted(example_tests().SpoolHarness):  # type: ignore[misc]
        def restart(self) -> None:
            copy = self.root.with_suffix(".copy")
            shutil.copytree(self.root, copy)
            shutil.rmtree(self.root)
            copy.rename(self.root)

    root.mkdir()
    harness = Restarted(root)
    assert isinstance(harness, Harness)
    return harness


def conformance(
    folder: Path, monkeypatch: pytest.MonkeyPatch, mutant: Mutant | None = None
) -> TransportTests:
    """The kit on a copy of the example, under a name of its own, with a bug in it."""
    name = f"mutant_of_spool_{MUTANTS.index(mutant) if mutant else 'none'}"
    (folder / name).mkdir()
    for path in (EXAMPLE / "src/cdcfmt_spool").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        if mutant and path.stem == mutant.file:
            assert text.count(mutant.old) >= 1, f"{mutant.bug}: sow it elsewhere in {path.name}"
            text = text.replace(mutant.old, mutant.new)
        (folder / name / path.name).write_text(text.replace("cdcfmt_spool", name), encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()
    (found,) = importlib.import_module(name).cdcfmt_register_transports()

    class Tests(TransportTests):
        transport = "spool"

        @classmethod
        def spec(cls) -> TransportSpec:
            assert isinstance(found, TransportSpec)
            return found

    return Tests()


def run(tests: TransportTests, name: str, harness: Harness) -> None:
    """A test, also of one sample: ``test_messages_are_whole[no key]``."""
    match = re.fullmatch(r"(\w+)(?:\[(.+)\])?", name)
    assert match is not None
    more: list[Any] = [match[2]] if match[2] else []
    getattr(tests, match[1])(harness, *more)


def names_of(mutant: Mutant) -> list[str]:
    """The tests that must see a bug; samples have blanks in their names."""
    return re.findall(r"test_\w+(?:\[[^\]]+\])?", mutant.tests)


@pytest.mark.parametrize("name", sorted({n for mutant in MUTANTS for n in names_of(mutant)}))
def test_unmodified_copy_passes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(conformance(tmp_path, monkeypatch), name, harness_in(tmp_path / "spool"))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.bug)
def test_the_bug_is_caught(mutant: Mutant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "SECONDS", 5.0)
    tests = conformance(tmp_path, monkeypatch, mutant)
    for number, name in enumerate(names_of(mutant)):
        with pytest.raises(AssertionError) as caught:
            run(tests, name, harness_in(tmp_path / f"spool{number}"))
        assert str(caught.value)
        print(name, caught.value)


def test_every_kit_test_catches_a_mutant() -> None:
    """Each test of the kit must fail for a mutant; else it would assert nothing."""
    tests = {name for name in dir(TransportTests) if name.startswith("test_")}
    seen = {name.partition("[")[0] for mutant in MUTANTS for name in names_of(mutant)}
    # It holds the author's list against the others.
    assert tests - seen == {"test_known_failures_name_tests"}


def test_failure_has_reason_and_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (mutant,) = (each for each in MUTANTS if each.bug == "first message left out")
    tests = conformance(tmp_path, monkeypatch, mutant)
    with pytest.raises(AssertionError) as caught:
        run(tests, "test_every_message_once", harness_in(tmp_path / "spool"))
    text = str(caught.value)
    for part in ("topic-", "-0: ", "expected 40 messages, got ", "missing: (b'k0', ", "number 0"):
        assert part in text
