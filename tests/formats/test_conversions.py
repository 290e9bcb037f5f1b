"""Every format into every other one: what survives is what the docs say."""

from __future__ import annotations

import pytest
from support.conversions import SOURCES, Survivors, survey, targets
from support.doc_tables import ROOT, conversions, render

pytestmark = pytest.mark.one_python

PAIRS = [(source, target) for source in SOURCES for target in targets()]


def test_the_docs_say_what_survives() -> None:
    text = (ROOT / "docs/writing.md").read_text(encoding="utf-8")
    assert render(text, "conversions", conversions()) == text, "run make docs"


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=" to ".join)
def test_what_every_conversion_keeps(source: str, target: str) -> None:
    found: Survivors = survey()[source, target]
    assert {"insert", "update", "delete"} <= found.kinds
    # Whatever is lost is an error unless the user says otherwise, and these never are.
    assert not found.lost & {"insert", "update", "delete", "ddl"}
    assert found.share("key") == "yes"
    assert found.share("before") == "yes"


@pytest.mark.parametrize("name", ["canal-json", "open-protocol"])
def test_a_format_keeps_all_of_its_own(name: str) -> None:
    found = survey()[name, name]
    assert (found.lost, found.refused, found.changed) == (set(), set(), set())
    assert found.share("commit_ts") == "yes"
