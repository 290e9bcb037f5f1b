"""The crate's folders use only those above them in its README, and no modules use each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

import pytest
from support.crates import KERNEL

SOURCE = KERNEL / "src"
FACES = {"mod.rs", "lib.rs"}
"""Files that list what others use of their folder."""
_USE = re.compile(r"^(\s*)(pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
_PATH = re.compile(r"(?<![\w:])crate(?:::\w+)+")
_TESTS = "#[cfg(test)]\nmod tests"

Module = tuple[str, ...]


def modules() -> dict[Module, str]:
    """Their code, without comments and tests, by path: ``src/read/plans/mod.rs`` is read, plans."""
    found = {}
    for path in SOURCE.rglob("*.rs"):
        place = path.relative_to(SOURCE)
        name = place.parent.parts if path.name in FACES else place.with_suffix("").parts
        code = path.read_text(encoding="utf-8").partition(_TESTS)[0]
        found[name] = re.sub(r"//[^\n]*", "", code)
    return found


def paths(tree: str) -> Iterator[str]:
    """The paths of ``a::{b, c::{d, e}}``: ``a::b``, ``a::c::d`` and ``a::c::e``."""
    tree = re.sub(r"\bas\s+\w+", "", tree)
    prefix, opened, inner = tree.partition("{")
    if not opened:
        yield re.sub(r"\s", "", tree)
        return
    depth, item = 0, ""
    for character in inner.rpartition("}")[0] + ",":
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            if item.strip():
                yield from paths(prefix + item)
            item = ""
        else:
            item += character


class Crate:
    """Modules, and the names that faces re-export.

    Attributes:
        code: The code of each module.
        exports: By face and name, the path that the face gives it.
    """

    def __init__(self, code: Mapping[Module, str]) -> None:
        self.code = code
        self.exports = {
            (face, path.rpartition("::")[2]): path
            for face, text in code.items()
            for _, public, tree in _USE.findall(text)
            if public
            for path in paths(tree)
        }

    def module_of(self, path: str, user: Module) -> Module | None:
        """The module that defines what a path names; None outside of the crate."""
        head, *rest = path.split("::")
        names = rest
        if head == "crate":
            module: Module = ()
        elif head == "super":
            module = user[:-1]
        elif head == "self":
            module = user
        elif (*user, head) in self.code:
            module, names = user, [head, *rest]
        else:
            return None
        while names and (*module, names[0]) in self.code:
            module, names = (*module, names[0]), names[1:]
        exported = self.exports.get((module, names[0])) if names else None
        return (self.module_of(exported, module) if exported else None) or module

    def uses(self, user: Module) -> set[Module]:
        """The modules that a module names; what a face re-exports is not its own use."""
        text = self.code[user]
        named = [
            path for _, public, tree in _USE.findall(text) if not public for path in paths(tree)
        ]
        named += _PATH.findall(_USE.sub("", text))
        found = {self.module_of(path, user) for path in named}
        return {module for module in found if module is not None} - {user}


@pytest.fixture(scope="module")
def crate() -> Crate:
    return Crate(modules())


def rows() -> dict[Module, int]:
    """The row of each folder in the README's table."""
    lines = (KERNEL / "README.md").read_text(encoding="utf-8").splitlines()
    table = [line.split("|")[1] for line in lines if line.startswith("| `")]
    return {
        tuple(folder.split("/")): row
        for row, cell in enumerate(table)
        for folder in re.findall(r"`([^`]+)`", cell)
    }


def test_no_modules_use_each_other(crate: Crate) -> None:
    graph = {module: crate.uses(module) for module in crate.code}
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        ring = " -> ".join("/".join(module) for module in reversed(error.args[1]))
        pytest.fail(f"a ring of modules: {ring}")
    assert ("read", "kernel") in order, "no module was read"


def test_folders_use_only_those_above_them(crate: Crate) -> None:
    table = rows()

    def row(module: Module) -> int:
        """That of the innermost folder that has one; the crate itself is below all."""
        folders = (module[:size] for size in range(len(module), 0, -1))
        return next((table[folder] for folder in folders if folder in table), len(table))

    above = {
        ("/".join(user), "/".join(used))
        for user in crate.code
        for used in crate.uses(user)
        if row(used) > row(user)
    }
    assert above == set()


def test_every_folder_is_in_the_table(crate: Crate) -> None:
    table = rows()
    assert {module[:1] for module in crate.code if module} <= set(table)
