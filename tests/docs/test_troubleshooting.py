"""docs/troubleshooting.md: its error texts exist in the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from support.workspace import ROOT

from cdcfmt_core import errors

TEXT = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
OF_SPARK = {
    '"str" is null',
    "INTERNAL_ERROR",
    "NullPointerException",
    "The provided partitioning or clustering columns do not match …",
    "cdc does not support Update mode",
    "plan_data_source_read",
    "DATA_SOURCE_NOT_FOUND",
    "PYTHON_VERSION_MISMATCH",
    "UNSUPPORTED_DATA_SOURCE_SAVE_MODE",
    "NoSuchMethodError",
    "ArrowInvalid: … nulls in input cannot be viewed as non-nullable",
    "Timed out while waiting for the Python worker to connect back",
    "ModuleNotFoundError: No module named 'pyspark_cdcfmt'",
}
QUOTED = [
    text
    for heading in re.findall(r"^### (.+)$", TEXT, re.MULTILINE)
    for text in re.findall(r"`([^`]+)`", heading)
    if text not in OF_SPARK and not hasattr(errors, text)
]
PACKAGES = ("cdcfmt_core", "spark_bridge/src", "plugins/*/*/src")


def _texts() -> Iterator[str]:
    """Every string of the code; ``…`` stands where a value is formatted in."""
    for pattern in PACKAGES:
        for folder in ROOT.glob(pattern):
            for file in folder.rglob("*.py"):
                for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                    if isinstance(node, ast.JoinedStr):
                        parts = (getattr(part, "value", None) for part in node.values)
                        yield "".join(p if isinstance(p, str) else "…" for p in parts)
                    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                        yield node.value


@pytest.fixture(scope="module")
def code() -> str:
    return "\n".join(_texts())


@pytest.mark.parametrize("quoted", QUOTED)
def test_quoted_errors_are_in_the_code(quoted: str, code: str) -> None:
    parts = [re.escape(part) for part in quoted.split("…")]
    assert re.search("[^\n]*?".join(parts), code), "the error has another text now"


def test_every_class_is_explained() -> None:
    own = [
        name
        for name, item in vars(errors).items()
        if isinstance(item, type) and issubclass(item, errors.CdcfmtError)
    ]
    assert {f"`{name}`" for name in own} <= set(re.findall(r"`\w+`", TEXT)) | {"`CdcfmtError`"}
