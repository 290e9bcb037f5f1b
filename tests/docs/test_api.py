"""The page of public names covers the imports of plugin authors and of the docs."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator

import pytest
from support.doc_api import PUBLIC, names
from support.doc_snippets import snippets
from support.workspace import ROOT, projects, settings

MODULES = [module for table in PUBLIC.values() for module in table]
PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in ROOT.glob("docs/**/*.md")
    if "_build" not in path.parts
]
OWN = {settings(path)["project"]["name"].replace("-", "_") for path in projects()}


def sources() -> Iterator[str]:
    """The examples, the template, and the code in the docs."""
    template = ROOT / "plugins/tools/cli/src/cdcfmt_cli/template/files"
    for pattern in ("docs/example/*/src/**/*.py", "docs/example/*/tests/*.py"):
        for path in ROOT.glob(pattern):
            yield path.read_text("utf-8")
    for path in template.rglob("*.py.in"):
        yield path.read_text("utf-8").replace("@", "")
    for page in PAGES:
        for snippet in snippets(page):
            if snippet.language == "python":
                yield snippet.code


def imported() -> Iterator[tuple[str, str]]:
    """Each module and name of our packages that a source imports."""
    for source in sources():
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue  # a part of a function
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OWN:
                yield from ((str(node.module), alias.name) for alias in node.names)


@pytest.mark.parametrize("module", MODULES)
def test_public_names_exist(module: str) -> None:
    found = importlib.import_module(module)
    assert names(module)
    assert [name for name in names(module) if not hasattr(found, name)] == []


def test_authors_and_docs_use_public_names_only() -> None:
    public = {(module, name) for module in MODULES for name in names(module)}
    public |= {tuple(module.rsplit(".", 1)) for module in MODULES if "." in module}
    used = {*imported()}
    assert len(used) > 50
    assert used - public == set()
