"""The files of .github: ``make workflows`` is their linter, where Go is installed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.workspace import ROOT

yaml = pytest.importorskip("yaml", reason="the environment has no docs group")

GITHUB = ROOT / ".github"
FORMS = [path for path in GITHUB.glob("ISSUE_TEMPLATE/*.yml") if path.name != "config.yml"]


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


@pytest.mark.parametrize("path", [*GITHUB.glob("workflows/*.yml")], ids=lambda path: path.name)
def test_workflows_only_call_targets_of_the_makefile(path: Path) -> None:
    targets = set(re.findall(r"^([a-z -]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    steps = [step for job in load(path)["jobs"].values() for step in job["steps"]]
    for command in (step["run"] for step in steps if "run" in step):
        make, *called = command.split()
        assert make == "make"
        assert {*called} <= {name for names in targets for name in names.split()}, command


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_issue_forms_have_what_the_forge_requires(path: Path) -> None:
    form = load(path)
    assert {"name", "description", "body"} <= set(form)
    ids = [part["id"] for part in form["body"]]
    assert len(ids) == len(set(ids))
    for part in form["body"]:
        assert part["type"] in {"checkboxes", "dropdown", "input", "textarea"}
        assert part["attributes"]["label"]
        assert set(part) <= {"type", "id", "attributes", "validations"}
