"""What the index shows of every package of the workspace, and what type checkers need of it."""

from __future__ import annotations

import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
KERNEL = ROOT / "spark_bridge/kernel"
PROJECTS = [ROOT, *sorted(ROOT.glob("plugins/*")), ROOT / "spark_bridge", KERNEL]


@pytest.mark.parametrize("folder", PROJECTS, ids=lambda folder: folder.name)
def test_a_package_says_what_it_is(folder: Path) -> None:
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    assert {"change-data-capture", "cdc"} < set(project["keywords"])
    assert {"Typing :: Typed", "Topic :: Database"} < set(project["classifiers"])
    assert project["license"] == "Apache-2.0"
    assert (folder / project["readme"]).read_text("utf-8").startswith("# ")
    for pattern in project["license-files"]:
        assert (folder / pattern).is_file()


@pytest.mark.parametrize("folder", [p for p in PROJECTS if p != KERNEL], ids=lambda p: p.name)
def test_types_come_with_a_wheel(folder: Path) -> None:
    build = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    (package,) = build["targets"]["wheel"]["packages"]
    assert (folder / package / "py.typed").is_file()


def test_pyspark_requires_what_uv_takes_for_granted() -> None:
    uv = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["uv"]
    (known,) = uv["dependency-metadata"]
    required = map(Requirement, requires(known["name"]) or ())
    assert [*map(Requirement, known["requires-dist"])] == [
        each for each in required if not each.marker
    ]
