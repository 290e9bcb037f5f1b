"""Every format into every other one: the values that survive equal those in the docs."""

from __future__ import annotations

import pytest
from support.conversions import SOURCES, Survivors, survey, targets
from support.doc_tables import ROOT, conversions, render

pytestmark = pytest.mark.one_python

PAIRS = [(source, target) for source in SOURCES for target in targets()]


def test_docs_list_the_values_that_survive() -> None:
    text = (ROOT / "docs/conversions.md").read_text(encoding="utf-8")
    assert render(text, "conversions", conversions()) == text, "run make tables"


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=" to ".join)
def test_values_kept_by_every_conversion(source: str, target: str) -> None:
    found: Survivors = survey()[source, target]
    assert {"insert", "update", "delete"} <= found.kinds
    # A loss is an error unless an option allows it; these events never lose values.
    assert not found.lost & {"insert", "update", "delete", "ddl"}
    if target != "ticdc-avro":
        # Its names are changed to what Avro allows.
        assert found.share("key") == "yes"
    assert found.share("before") == "yes"


@pytest.mark.parametrize("name", ["canal-json", "open-protocol"])
def test_format_converted_to_itself_keeps_everything(name: str) -> None:
    found = survey()[name, name]
    assert (found.lost, found.refused, found.changed) == (set(), set(), set())
    assert found.share("commit_ts") == "yes"
