"""Regular expressions that every supported Python reads alike.

CPython before 3.11.5 reads possessive quantifiers and atomic groups wrongly where their
subpattern can backtrack (gh-106052): a type loses its sign without an error.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.workspace import ROOT

_UNSAFE = re.compile(r"(?<!\\)(?:[*+?}]\+|\(\?>)")


def _modules_with_patterns() -> Iterator[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.split():
        path = ROOT / name
        if path != Path(__file__) and path.exists() and "import re\n" in path.read_text("utf-8"):
            yield path


def _unsafe_lines(source: str) -> list[int]:
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if _UNSAFE.search(text):
                lines.append(node.lineno)
    return lines


def test_no_possessive_quantifiers_and_atomic_groups() -> None:
    checked = list(_modules_with_patterns())
    assert len(checked) > 20
    unsafe = {path: lines for path in checked if (lines := _unsafe_lines(path.read_text("utf-8")))}
    assert unsafe == {}


@pytest.mark.parametrize("pattern", ["a*+", "a++", "a?+", "a{2}+", "(?>a)"])
def test_unsafe_patterns_are_found(pattern: str) -> None:
    assert _unsafe_lines(f"re.compile({pattern!r})") == [1]
    assert _unsafe_lines(f"re.compile({pattern.encode()!r})") == [1]


@pytest.mark.parametrize("pattern", ["a*", "a+b", r"\++", "(?:a)+?", "a{2}"])
def test_other_patterns_pass(pattern: str) -> None:
    assert _unsafe_lines(f"re.compile({pattern!r})") == []
