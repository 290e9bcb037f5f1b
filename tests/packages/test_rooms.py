"""A large file gives its reason; pyproject.toml has the imports that each room may have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from support.workspace import ROOT

from cdcfmt_core.known import packages

MAX_LINES = 500
REASON = "One file, as "
"""How the sentence in the docstring of a larger file begins that explains its size."""


def test_large_files_give_a_reason() -> None:
    texts = {path: path.read_text() for path in product_files()}
    large = {path: text for path, text in texts.items() if text.count("\n") > MAX_LINES}
    reasons = {str(path): ast.get_docstring(ast.parse(text)) for path, text in large.items()}
    assert [path for path, reason in reasons.items() if REASON not in (reason or "")] == []


def product_files() -> Iterator[Path]:
    """The Python files that users install."""
    for pattern in ("cdcfmt_core", "plugins/*/*/src", "spark_bridge/src"):
        yield from ROOT.glob(f"{pattern}/**/*.py")


def test_the_core_names_no_plugin_and_no_engine() -> None:
    """They stand in known.toml; ``simple`` and ``files`` are also words."""
    names = {*packages("formats"), *packages("transports"), "debezium", "pyspark", "cdcfmt_kernel"}
    name = re.compile("|".join(sorted(names - {"simple", "files"})), re.IGNORECASE)
    found = {
        f"{path.name}: {line.strip()}"
        for path in (ROOT / "cdcfmt_core").glob("**/*.py")
        for line in path.read_text("utf-8").splitlines()
        if name.search(line)
    }
    assert found == set()


def test_the_core_is_small() -> None:
    files = (ROOT / "cdcfmt_core").glob("**/*.py")
    assert sum(path.read_text("utf-8").count("\n") for path in files) <= 6_000
