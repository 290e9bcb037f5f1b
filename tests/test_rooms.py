"""No file is large, and the bridge has few modules; what a room may import is in pyproject.toml."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyspark_cdcfmt

ROOT = Path(pyspark_cdcfmt.__file__).parent
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
}
MAX_LINES = 300
MAX_MODULES = {"sync": 26, "blocks": 4, "cli": 5, "": 51}
"""Of these rooms, and of all others together."""


def test_modules_are_few() -> None:
    texts = {name: path.read_text() for name, path in MODULES.items()}
    # That of a package may be its docstring alone.
    count = Counter(
        room if (room := name.split(".")[0]) in MAX_MODULES else ""
        for name, text in texts.items()
        if len(ast.parse(text).body) > 1
    )
    assert all(count[room] <= most for room, most in MAX_MODULES.items())


def test_files_are_small() -> None:
    sizes = {str(path): path.read_text().count("\n") for path in product_files()}
    assert {name: size for name, size in sizes.items() if size > MAX_LINES} == {}


def product_files() -> Iterator[Path]:
    """The Python files that users install."""
    root = Path(__file__).parents[1]
    yield from root.glob("cdcfmt_core/**/*.py")
    yield from root.glob("plugins/*/src/**/*.py")
    yield from ROOT.rglob("*.py")
