"""The packages of the workspace, as `[tool.uv.workspace]` finds them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SUPPORT = ROOT / "tests/support"
KERNEL = ROOT / "spark_bridge/kernel"
"""The one package that is not built by hatchling, and needs Rust."""


def settings(project: Path) -> dict[str, Any]:
    """The ``pyproject.toml`` of a project."""
    return tomllib.loads((project / "pyproject.toml").read_text("utf-8"))


def projects() -> list[Path]:
    """The folders of all packages, the core's first."""
    members = settings(ROOT)["tool"]["uv"]["workspace"]["members"]
    found = {path for pattern in members for path in ROOT.glob(f"{pattern}/pyproject.toml")}
    return [ROOT, *sorted(path.parent for path in found)]
