"""The import contracts of pyproject.toml, checked: ``python -m support.imports``.

import-linter takes lists of packages alone.  In its settings here ``plugins`` stands for the
packages of all folders under ``plugins``, and the name of such a folder (``formats``) for those
in it, so that a new one adds a folder and nothing else.
"""

from __future__ import annotations

import json
import sys
import tempfile
import tomllib
from itertools import chain
from typing import Any

from importlinter.cli import lint_imports

from support.workspace import ROOT

_LISTS = ("root_packages", "modules", "source_modules", "forbidden_modules", "ancestors")


def groups() -> dict[str, list[str]]:
    """The packages of each folder under ``plugins``, and of all of them as ``plugins``."""
    found: dict[str, list[str]] = {}
    for path in sorted(ROOT.glob("plugins/*/*/src/*/__init__.py")):
        group = path.relative_to(ROOT).parts[1]
        found.setdefault(group, []).append(path.parent.name)
    return {**found, "plugins": [*chain(*found.values())]}


def settings() -> dict[str, Any]:
    """``[tool.importlinter]`` with the names of the plugins."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
        "importlinter"
    ]
    packages = groups()
    for each in (found, *found["contracts"]):
        for name in _LISTS:
            if name in each:
                each[name] = [*chain(*(packages.get(one, [one]) for one in each[name]))]
        if "layers" in each:
            # Packages of one layer may not import each other.
            split = (line.split(" | ") for line in each["layers"])
            each["layers"] = [
                " | ".join(chain(*(packages.get(one, [one]) for one in line))) for line in split
            ]
    return found


def main() -> int:
    """Print the contracts that hold and those that are broken; 1 if any is broken."""
    found = settings()
    tables = [("[tool.importlinter]", found)]
    tables += [("[[tool.importlinter.contracts]]", each) for each in found.pop("contracts")]
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        for title, table in tables:
            # JSON's texts, lists and booleans are TOML's.
            lines = (f"{name} = {json.dumps(value)}" for name, value in table.items())
            print(title, *lines, sep="\n", file=file, flush=True)
        return lint_imports(file.name, cache_dir=None, no_logo=True)


if __name__ == "__main__":
    sys.exit(main())
