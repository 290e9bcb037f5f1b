"""Metadata of packages for an index, one version for all, and type information."""

from __future__ import annotations

import re
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support.workspace import KERNEL, ROOT, projects, settings

from cdcfmt_core.known import packages

PROJECTS = projects()
BRIDGE = ROOT / "spark_bridge"
VERSION: str = settings(ROOT)["project"]["version"]
URLS = settings(ROOT)["project"]["urls"]
OWN = {settings(folder)["project"]["name"] for folder in PROJECTS}

every_project = pytest.mark.parametrize("folder", PROJECTS, ids=lambda folder: folder.name)


@every_project
def test_metadata_for_an_index(folder: Path) -> None:
    project = settings(folder)["project"]
    assert {"change-data-capture", "cdc"} < set(project["keywords"])
    assert {"Typing :: Typed", "Topic :: Database"} < set(project["classifiers"])
    assert project["license"] == "Apache-2.0"
    assert project["urls"] == URLS
    for pattern in project["license-files"]:
        assert (folder / pattern).is_file()


@every_project
def test_links_in_long_descriptions_lead_somewhere(folder: Path) -> None:
    text = (folder / settings(folder)["project"]["readme"]).read_text("utf-8")
    assert text.startswith("# ")
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert [link for link in links if "://" not in link] == []
    files = f"{URLS['Repository']}/blob/main/"
    for link in links:
        if link.startswith(files):
            assert (ROOT / link.removeprefix(files).partition("#")[0]).is_file(), link
    # An index shows these pages to readers who have no repository.
    assert not re.search(r"`docs/[\w/-]+\.md`", text)


@every_project
def test_one_version_of_all_packages(folder: Path) -> None:
    """The root has it; hatchling reads it from there, and maturin cannot."""
    found = settings(folder)
    if folder in (ROOT, KERNEL):
        assert found["project"]["version"] == VERSION
    else:
        assert found["project"]["dynamic"] == ["version"]
        source = found["tool"]["hatch"]["version"]["path"]
        assert (folder / source).resolve() == ROOT / "pyproject.toml"
        assert {"file": source} in found["tool"]["uv"]["cache-keys"]


def test_the_crate_has_the_version_of_all_packages() -> None:
    assert f'\nversion = "{VERSION}"\n' in (KERNEL / "Cargo.toml").read_text("utf-8")


@every_project
def test_requirements_between_packages_accept_the_version(folder: Path) -> None:
    project = settings(folder)["project"]
    lists = [project.get("dependencies", []), *project.get("optional-dependencies", {}).values()]
    for needed in (Requirement(text) for each in lists for text in each):
        if needed.name in OWN - {project["name"]}:
            assert VERSION in needed.specifier, str(needed)
            assert str(needed.specifier), f"{needed} accepts every version"


def test_the_changelog_is_one_log() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    versions = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert re.fullmatch(rf"\[(Unreleased|{re.escape(VERSION)})\].*", versions[0])
    for version in versions:
        assert re.fullmatch(r"\[Unreleased\]|\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", version)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)$", text, re.MULTILINE)) <= kinds


def test_extras_of_the_bridge() -> None:
    extras = settings(BRIDGE)["project"]["optional-dependencies"]
    names = {extra: {Requirement(each).name for each in extras[extra]} for extra in extras}
    assert names["formats"] == set(packages("formats").values())
    (everything,) = map(Requirement, extras["all"])
    assert everything.extras == set(extras) - {"all", "java", "spark"}


def test_the_extra_all_brings_every_package_but_the_kit() -> None:
    by_name = {settings(folder)["project"]["name"]: settings(folder) for folder in PROJECTS}
    seen: set[str] = set()
    waiting = [Requirement("pyspark-cdcfmt[all]")]
    while waiting:
        needed = waiting.pop()
        if str(needed) in seen or needed.name not in by_name:
            continue
        seen.add(str(needed))
        project = by_name[needed.name]["project"]
        lists = [project.get("optional-dependencies", {})[extra] for extra in needed.extras]
        waiting += [Requirement(text) for each in lists for text in each]
        waiting += map(Requirement, project.get("dependencies", ()))
    assert OWN - {Requirement(text).name for text in seen} == {"cdcfmt-testing"}


@pytest.mark.parametrize("folder", [p for p in PROJECTS if p != KERNEL], ids=lambda p: p.name)
def test_wheels_include_type_information(folder: Path) -> None:
    package, *_ = settings(folder)["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert (folder / package / "py.typed").is_file()


def test_uv_override_equals_pysparks_requirements() -> None:
    (known,) = settings(ROOT)["tool"]["uv"]["dependency-metadata"]
    required = map(Requirement, requires(known["name"]) or ())
    assert [*map(Requirement, known["requires-dist"])] == [
        each for each in required if not each.marker
    ]
