"""The class that authors inherit, and how cases are found, as their own pytest runs them."""

from __future__ import annotations

import decimal
import json
import shutil
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.workspace import ROOT

from cdcfmt_core.events import Column, Image, RowChange, TableSchema
from cdcfmt_core.known import packages
from cdcfmt_core.registry import default_registry
from cdcfmt_core.types import Vector
from cdcfmt_testing import Carries, load_case, load_cases
from cdcfmt_testing.__main__ import main
from cdcfmt_testing.cases import read_messages
from cdcfmt_testing.checks.recognising import sample_messages
from cdcfmt_testing.outcome import check_row

pytest_plugins = ["pytester"]

CASES = ROOT / "plugins/formats/open-protocol/tests/cases"

TESTS = """
from pathlib import Path

from cdcfmt_testing import CodecTests


class TestOpen(CodecTests):
    codec = "open-protocol"
    cases = Path(__file__).parent / "cases"
    known_failures = {known!r}
"""

GOLDEN, KINDS, KNOWN = "test_golden", "test_every_kind_of_event", "test_known_failures_name_tests"


def run(
    pytester: pytest.Pytester, *tests: str, known: dict[str, str] | None = None
) -> dict[str, int]:
    """The outcomes of some tests of the class, by their names."""
    pytester.makepyfile(test_open=TESTS.format(known=known or {}))
    folder = pytester.path / "cases"
    if not folder.exists():
        shutil.copytree(CASES, folder)
    names = [f"test_open.py::TestOpen::{name}" for name in tests]
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", *names)
    return result.parseoutcomes()


def test_five_line_class_passes(pytester: pytest.Pytester) -> None:
    assert run(pytester, GOLDEN, KINDS, KNOWN) == {"passed": 3}


def test_a_case_that_differs_fails(pytester: pytest.Pytester) -> None:
    shutil.copytree(CASES, pytester.path / "cases")
    path = pytester.path / "cases/batched/events.json"
    path.write_text(path.read_text().replace('"kind": "watermark"', '"kind": "heartbeat"'))
    assert run(pytester, GOLDEN) == {"failed": 1}
    # Listed as a known failure, it passes: by the test's name or by one case's.
    for name in ("test_golden", "test_golden[batched]"):
        assert run(pytester, GOLDEN, known={name: "a reason"}) == {"xfailed": 1}


def test_a_known_failure_that_passes_fails(pytester: pytest.Pytester) -> None:
    assert run(pytester, KINDS, known={KINDS: "it did once"}) == {"failed": 1}


def test_unknown_name_in_known_failures_fails(pytester: pytest.Pytester) -> None:
    for name in ("test_gold", "test_golden[batch]"):
        assert run(pytester, KNOWN, known={name: "a reason"}) == {"failed": 1}


# Cases


def copy(tmp_path: Path) -> Path:
    shutil.copytree(CASES / "batched", tmp_path / "batched")
    return tmp_path / "batched"


def test_a_case(tmp_path: Path) -> None:
    (case,) = load_cases(CASES)
    assert case.name == "batched"
    assert case.options == {"sourceTimeZone": "Asia/Shanghai"}
    assert case.events is not None
    assert len(case.events) == len(case.messages) == 13
    folder = copy(tmp_path)
    (folder / "events.json").unlink()
    (folder / "claims").mkdir()
    case = load_case(folder)
    assert case.events is None
    assert case.options["claimCheckStorageUri"] == str(folder / "claims")


def test_incomplete_case(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no cases"):
        load_cases(tmp_path)
    folder = copy(tmp_path)
    (folder / "origin.txt").unlink()
    with pytest.raises(ValueError, match=r"case batched has no origin\.txt"):
        load_case(folder)
    (folder / "origin.txt").touch()
    (folder / "event.json").touch()
    with pytest.raises(ValueError, match=r"has 'event\.json', which is not a case file"):
        load_case(folder)
    (folder / "event.json").unlink()
    messages = folder / "messages.jsonl"
    lines = messages.read_bytes().splitlines(keepends=True)
    messages.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(ValueError, match="has 12 messages but events for 13"):
        load_case(folder)
    messages.write_bytes(lines[0] + b'{"value": 5}\n')
    with pytest.raises(ValueError, match=r"messages\.jsonl, line 2: value: not base64 text"):
        load_case(folder)
    messages.write_bytes(b"")
    with pytest.raises(ValueError, match="case batched has no messages"):
        load_case(folder)
    messages.write_bytes(b"".join(lines))
    events = (folder / "events.json").read_bytes()
    (folder / "events.json").unlink()
    with pytest.raises(ValueError, match=r"case batched has no events\.json: write it with"):
        load_cases(tmp_path)
    for name, text in {"events": b"", "options": b"[]", "writing": b"{x"}.items():
        (folder / f"{name}.json").write_bytes(text)
        with pytest.raises(ValueError, match=rf"case batched, {name}\.json: "):
            load_cases(tmp_path)
        (folder / f"{name}.json").unlink()
        (folder / "events.json").write_bytes(events)
    (folder / "writing.json").write_text("null")
    (case,) = load_cases(tmp_path)
    assert case.writing is None


def test_limits_of_a_format() -> None:
    with pytest.raises(ValueError, match=r"carries: .*Vector.* is not a type, such as"):
        Carries(types=(Vector,))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"carries: unknown times {'time'}: use commit_ts"):
        Carries(times=frozenset({"time"}))  # type: ignore[arg-type]


def test_writing_events(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = copy(tmp_path)
    expected = (folder / "events.json").read_bytes()
    assert main(["open-protocol", str(folder)]) == 1
    assert "already exists" in capsys.readouterr().err
    (folder / "events.json").unlink()
    assert main(["open-protocol", str(folder)]) == 0
    assert "the events of 13 messages" in capsys.readouterr().out
    assert (folder / "events.json").read_bytes() == expected
    (folder / "options.json").write_text(json.dumps({"sourceTimeZone": "UTC"}))
    assert main(["open-protocol", str(folder), "--again"]) == 0
    assert (folder / "events.json").read_bytes() != expected
    with (folder / "messages.jsonl").open("ab") as file:
        file.write(b'{"no": "message"}\n')
    assert read_messages(folder / "messages.jsonl")[-1].value == b'{"no": "message"}'
    (folder / "events.json").unlink()
    assert main(["open-protocol", str(folder)]) == 1
    assert "1 of 14 are corrupt: open-protocol " in capsys.readouterr().err
    assert not (folder / "events.json").exists()
    assert main(["open-protocol", str(folder), "--corrupt"]) == 0
    assert '"kind": "corrupt"' in (folder / "events.json").read_text()
    for arguments in (["no-such-format", str(folder)], ["open-protocol", str(tmp_path / "x")]):
        assert main(arguments) == 1
    assert "unknown format 'no-such-format'" in capsys.readouterr().err


# Samples


def test_there_are_samples_of_every_first_party_format() -> None:
    assert sample_messages().keys() == packages("formats").keys()
    for messages in sample_messages().values():
        assert messages
        assert all(message.value for message in messages)


# Writing

WRITING = """
import json
from pathlib import Path

from cdcfmt_core import CodecSpec, Encoder, default_registry, hookimpl
from cdcfmt_core.events import Heartbeat, Message
from cdcfmt_testing import Case, CodecTests


def open_decoder(options, context):
    return lambda message: [Heartbeat(source_time=json.loads(message.value)["time"])]


class Beats(Encoder):
    kinds = frozenset({"heartbeat"})

    def encode(self, event):
        return [Message(None, json.dumps({"time": event.source_time}).encode())]


class Plugin:
    @hookimpl
    def cdcfmt_register_codecs(self):
        return [
            CodecSpec(
                name="beats-NAME", summary="Beats", spec_url="https://example.com",
                open_decoder=open_decoder, sniff=lambda message: 0.0,
                emits=frozenset({"heartbeat"}), type_map="mysql", api_version=1,
                open_encoder=ENCODER,
            )
        ]


default_registry().register(Plugin(), "beats-NAME")


class TestBeats(CodecTests):
    codec = "beats-NAME"
    differences = DIFFERENCES

    @classmethod
    def load_cases(cls):
        yield Case("beats", (Message(None, b'{"at": "a", "time": 1}'),))
"""


def written(
    pytester: pytest.Pytester, name: str, encoder: str, differences: dict[str, str]
) -> dict[str, int]:
    source = WRITING.replace("NAME", name).replace("ENCODER", encoder)
    pytester.makepyfile(**{f"test_{name}": source.replace("DIFFERENCES", repr(differences))})
    result = pytester.runpytest_inprocess(
        "-p", "no:cacheprovider", "-k", "written_again or differences", f"test_{name}.py"
    )
    default_registry.cache_clear()
    return result.parseoutcomes()


def test_written_differently_is_strict(pytester: pytest.Pytester) -> None:
    def beats(name: str, *places: str) -> dict[str, int]:
        found = written(
            pytester, name, "lambda *_: Beats()", dict.fromkeys(places, "it is not kept")
        )
        return {outcome: found.get(outcome, 0) for outcome in ("passed", "failed")}

    assert beats("listed", "heartbeat: at") == {"passed": 2, "failed": 0}
    assert beats("any", "*: a*") == {"passed": 2, "failed": 0}
    # An unlisted difference, and a listed one that does not exist.
    assert beats("unlisted") == {"passed": 1, "failed": 1}
    assert beats("more", "heartbeat: at", "heartbeat: time") == {"passed": 1, "failed": 1}


def test_read_only_format_is_not_written(pytester: pytest.Pytester) -> None:
    assert written(pytester, "read", "None", {})["skipped"] == 2


@pytest.mark.parametrize("value", [[1], ["1"], [decimal.Decimal(1)], [1.0, None]])
def test_items_of_vectors_are_floats(value: list[Any]) -> None:
    """Arrow refuses any other, and the read ends."""
    table = TableSchema("shop", "t", (Column("v", "vector", Vector()),))
    good = RowChange("insert", table, None, Image({"v": [1.5]}))
    check_row(good)
    with pytest.raises(AssertionError, match=r"column 'v': .* are not all floats"):
        check_row(attrs.evolve(good, after=Image({"v": value})))
