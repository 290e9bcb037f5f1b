"""A new plugin is only a folder: the globs of the workspace find it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.workspace import ROOT

from cdcfmt_cli.template import create_plugin

pytestmark = [pytest.mark.slow, pytest.mark.one_python]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """The repository's workspace with one more format, as ``cdcfmt new`` makes it."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "tests/support", tmp_path / "tests/support")
    for project in ROOT.glob("plugins/*/*"):
        link = tmp_path / project.relative_to(ROOT)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(project)
    create_plugin("acme-json", tmp_path / "plugins/formats")
    return tmp_path


def support(workspace: Path, *program: str) -> subprocess.CompletedProcess[str]:
    source = workspace / "plugins/formats/cdcfmt-acme-json/src"
    path = os.pathsep.join(map(str, (workspace / "tests", source)))
    return subprocess.run(
        [sys.executable, *program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_new_plugin_is_a_workspace_member(workspace: Path) -> None:
    listing = "from support.workspace import projects\nprint(*projects(), sep='\\n')"
    names = [Path(line).name for line in support(workspace, "-c", listing).stdout.split()]
    assert {"cdcfmt-acme-json", "canal-json", "kafka"} <= set(names)


def test_import_contracts_include_the_new_plugin(workspace: Path) -> None:
    kept = support(workspace, "-m", "support.imports")
    assert kept.returncode == 0, kept.stdout + kept.stderr
    package = workspace / "plugins/formats/cdcfmt-acme-json/src/cdcfmt_acme_json"
    (package / "rows.py").write_text("from pyspark.sql import Row\n\n__all__ = ['Row']\n")
    broken = support(workspace, "-m", "support.imports")
    assert broken.returncode == 1, broken.stdout + broken.stderr
    assert "cdcfmt_acme_json.rows -> pyspark (l.1)" in broken.stdout
