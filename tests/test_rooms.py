"""The rooms of the bridge: imports point down, without circles, and no file is large."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import pyspark_cdcfmt

ROOT = Path(pyspark_cdcfmt.__file__).parent
PREFIX = "pyspark_cdcfmt."
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
}
BASE = {"options", "option_groups", "write_options"}
BELOW = {
    "options": BASE,
    "option_groups": BASE,
    "write_options": BASE,
    "rows": {"rows"} | BASE,
    "kernel": {"kernel", "rows"} | BASE,
    "read": {"read", "kernel", "rows"} | BASE,
    "write": {"write", "rows"} | BASE,
    "demo": set(),
    # Of the others it has what the package itself exports.
    "sync": {"sync"},
}
"""What each room may import; `source`, `testing` and the package itself import any."""
MOST_LINES = 300
MOST_MODULES = 50
MOST_MODULES_OF_SYNC = 24


def imported(path: Path) -> Iterator[str]:
    """The modules of the bridge that a module imports, in functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            assert not node.level
            for alias in node.names:
                for name in (f"{node.module}.{alias.name}", node.module):
                    if name.removeprefix(PREFIX) in MODULES and name.startswith(PREFIX):
                        yield name.removeprefix(PREFIX)
                        break


GRAPH = {name: set(imported(path)) for name, path in MODULES.items()}


def test_there_are_no_circles() -> None:
    order = [*TopologicalSorter(GRAPH).static_order()]
    assert order.index("rows.types") < order.index("kernel.feeding") < order.index("read.engine")


@pytest.mark.parametrize("room", BELOW)
def test_imports_point_down(room: str) -> None:
    for name, targets in GRAPH.items():
        if name.partition(".")[0] == room:
            assert {target.partition(".")[0] for target in targets} <= BELOW[room], name


def test_modules_are_few() -> None:
    texts = {name: path.read_text() for name, path in MODULES.items()}
    # That of a package may be its docstring alone.
    count = Counter(
        name.split(".")[0] == "sync"
        for name, text in texts.items()
        if len(ast.parse(text).body) > 1
    )
    assert count[False] <= MOST_MODULES
    assert count[True] <= MOST_MODULES_OF_SYNC


def test_files_are_small() -> None:
    sizes = {str(path): path.read_text().count("\n") for path in product_files()}
    assert {name: size for name, size in sizes.items() if size > MOST_LINES} == {}


def product_files() -> Iterator[Path]:
    """The Python files that users install."""
    root = Path(__file__).parents[1]
    yield from root.glob("cdcfmt_core/**/*.py")
    yield from root.glob("plugins/*/src/**/*.py")
    yield from ROOT.rglob("*.py")
