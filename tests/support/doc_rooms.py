"""The rooms and their allowed imports, and a message's path, for CONTRIBUTING."""

from __future__ import annotations

import importlib
import inspect
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from pyspark_cdcfmt.source import CdcDataSource
from support.canal_messages import INSERT, write_lines
from support.workspace import ROOT

STATIONS = {
    "pyspark_cdcfmt.read.engine.Engine.batches": "a task: the kernel is given whole blocks, and "
    "what it refuses goes on below",
    "cdcfmt_files.sources.reader.read_lines": "a file becomes lines and messages",
    "cdcfmt_core.decoding.MessageDecoder.decode": "a codec is chosen; errors get their place",
    "cdcfmt_canal_json.decode._Decoder.decode": "a message becomes events",
    "cdcfmt_canal_json.decode.RowDecoder.decode": "its rows become images",
    "cdcfmt_toolkit.plans.Plans.find": "the table schema, and what reads each column",
    "cdcfmt_toolkit.images.read_value": "a value",
    "pyspark_cdcfmt.rows.event_rows.EventRows.rows": "an event becomes a row",
    "pyspark_cdcfmt.rows.record_batches.BatchBuilder.batch": "rows become a record batch",
}
"""The functions on a message's path without the kernel, in order."""


def layers() -> Iterator[tuple[str, list[list[str]]]]:
    """Each package with its layers as import-linter holds them, the highest first.

    The first are those of the packages themselves, as ``packages``.
    """
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in config["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers":
            (package,) = contract.get("containers", ["packages"])
            yield package, [line.replace("|", ":").split(" : ") for line in contract["layers"]]


def picture() -> str:
    """The layers as a diagram: each may import those below it."""
    lines = ["```mermaid", "flowchart TD"]
    for package, rows in layers():
        lines.append(f"  subgraph {package}")
        for number, names in enumerate(rows):
            shown = "<br>".join(" ".join(names[at : at + 6]) for at in range(0, len(names), 6))
            lines.append(f'    {package}{number}["{shown}"]')
        lines += [f"    {package}{n} --> {package}{n + 1}" for n in range(len(rows) - 1)]
        lines.append("  end")
    return "\n".join([*lines, "```"])


_ROOMS = (
    "cdcfmt_core/*",
    "plugins/dialects/*/src/*",
    "plugins/common/*/src/*",
    "plugins/transports/files/src/*",
    "plugins/tools/*/src/*",
    "spark_bridge/src/pyspark_cdcfmt/*",
)
"""Packages that formats and brokers share, and rooms of the core and the bridge."""


def rooms() -> Iterator[tuple[str, str]]:
    """Each room and its package's docstring."""
    for pattern in _ROOMS:
        for path in sorted(ROOT.glob(f"{pattern}/__init__.py")):
            parent = path.parent.parent.name
            name = path.parent.name if parent == "src" else f"{parent}.{path.parent.name}"
            doc = inspect.getdoc(importlib.import_module(name)) or ""
            yield f"`{name}`", doc.split("\n\n")[0].replace("\n", " ").replace("``", "`")


def way() -> list[tuple[str, str]]:
    """The stations as a table.

    :raises ValueError: if a message comes to them in another order, or to others.
    """
    seen: dict[str, None] = {}

    def enter(frame: FrameType, event: str, _: Any) -> None:
        name = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}"
        if event == "call" and name in STATIONS:
            seen[name] = None

    with tempfile.TemporaryDirectory() as folder:
        write_lines(Path(folder) / "rows.json", INSERT)
        source = CdcDataSource({"path": folder, "protocol": "canal-json"})
        reader = source.reader(source.schema())
        (task,) = reader.partitions()
        sys.setprofile(enter)
        try:
            list(reader.read(task))
        finally:
            sys.setprofile(None)
    if list(seen) != list(STATIONS):
        raise ValueError(f"a message comes to {list(seen)}")
    return [(f"`{name.replace('.<locals>', '')}`", words) for name, words in STATIONS.items()]
