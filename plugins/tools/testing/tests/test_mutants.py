"""The kit catches mistakes of authors: bugs in copies of open-protocol."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from open_messages import build_wire, parse_wire
from open_round_trips import DIFFERENCES, ROUND_TRIPS
from support.mutants_of_decoders import MUTANTS as DECODERS
from support.mutants_of_decoders import Mutant
from support.mutants_of_encoders import MUTANTS as ENCODERS
from support.workspace import ROOT

from cdcfmt_testing import CodecTests, Subject, limits, load_cases
from cdcfmt_testing.checks import malformed
from cdcfmt_testing.limits import memory_limit, time_limit

pytestmark = pytest.mark.one_python

MUTANTS = [*DECODERS, *ENCODERS]
PLUGIN = ROOT / "plugins/formats/open-protocol"


def conformance(
    folder: Path, monkeypatch: pytest.MonkeyPatch, mutant: Mutant | None = None
) -> CodecTests:
    """The kit on a copy of the plugin, under a name of its own, with a bug in it."""
    number = MUTANTS.index(mutant) if mutant else "none"
    name = f"mutant_{number}"
    package = folder / name
    package.mkdir()
    for path in (PLUGIN / "src/cdcfmt_open_protocol").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        if mutant and path.stem == mutant.file:
            assert text.count(mutant.old) >= 1, f"{mutant.bug}: sow it elsewhere in {path.name}"
            text = text.replace(mutant.old, mutant.new)
        text = text.replace("cdcfmt_open_protocol", name)
        (package / path.name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()
    (spec,) = importlib.import_module(name).cdcfmt_register_codecs()
    cases = load_cases(PLUGIN / "tests/cases")
    subject = Subject(spec, cases, parse_wire=parse_wire, build_wire=build_wire)
    members = {
        "codec": spec.name,
        "_subject": subject,
        "round_trips": ROUND_TRIPS,
        "differences": DIFFERENCES,
    }
    tests = type("Tests", (CodecTests,), members)()
    assert isinstance(tests, CodecTests)
    return tests


QUICK = [
    "test_golden",
    "test_written_again",
    "test_round_trip",
    "test_absent_is_not_written_as_null",
    "test_bad_values_are_not_written",
    "test_every_kind_of_event",
    "test_own_messages_are_recognised",
    "test_every_option_works",
    "test_factories_and_options_are_pickled",
    "test_events_share_no_state",
    "test_absent_is_not_null",
    "test_errors_name_the_field",
    "test_cut_off_at_every_byte",
]


def run(tests: CodecTests, name: str) -> None:
    test = getattr(tests, name)
    if name in ("test_golden", "test_written_again"):
        for case in tests.subject().cases:
            test(case)
    elif name == "test_round_trip":
        for trip in tests.round_trips:
            test(trip)
    else:
        test()


def test_unmodified_copy_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tests = conformance(tmp_path, monkeypatch)
    # The plugin's own tests run all of them.
    for name in QUICK:
        run(tests, name)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.bug)
def test_the_bug_is_caught(mutant: Mutant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 3.0)
    # That it fails is enough here, without the smallest message that does it.
    quick = settings(malformed._quiet, phases=[Phase.generate])
    monkeypatch.setattr(malformed, "_quiet", quick)
    tests = conformance(tmp_path, monkeypatch, mutant)
    for name in mutant.tests.split():
        with pytest.raises(AssertionError) as caught:
            run(tests, name)
        assert str(caught.value)


def test_every_kit_test_catches_a_mutant() -> None:
    """Each test of the kit must fail for a mutant; else it would assert nothing."""
    tests = {name for name in dir(CodecTests) if name.startswith("test_")}
    seen = {name for mutant in MUTANTS for name in mutant.tests.split()}
    # Two hold the author's lists against the others (test_suite.py), one needs a format with
    # layouts (test_kernel_kit.py), and one messages of one row (test_kernel_layout_shapes.py).
    assert tests - seen == {
        "test_known_failures_name_tests",
        "test_listed_differences_exist",
        "test_kernel_equals_reference",
        "test_images_are_not_swapped",
    }


def test_limits() -> None:
    def endless() -> None:
        with time_limit("it", 0.1):
            while True:
                pass

    def large(size: int) -> None:
        with memory_limit() as limit, limit(10, "a message"):
            bytes(size)

    with pytest.raises(AssertionError, match=r"it takes longer than 0\.1 seconds"):
        endless()
    large(1 << 20)
    with pytest.raises(AssertionError, match="a message of 10 bytes takes"):
        large(1 << 27)
