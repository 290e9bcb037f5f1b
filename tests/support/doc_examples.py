"""The examples of docs/cli.md: commands that are run, and what they print.

An example is a ``console`` block under ``<!-- run -->``; its first line is the command, which
may end in ``| head -N``, and the rest is the output.  ``make tables`` writes the outputs.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.schemas.records import SchemaRecord
from cdcfmt_core.types import Int
from cdcfmt_toolkit.schema_directory import SchemaDirectory
from support.cli_tools import run
from support.workspace import ROOT

DOC = ROOT / "docs/cli.md"
WIDTH = 100
_EXAMPLE = re.compile(r"(<!-- run -->\n```console\n)\$ (cdcfmt [^\n]*)\n(.*?)(^```$)", re.M | re.S)


def filled_in(text: str) -> str:
    """``text`` with the output of each example as it is today."""
    with _examples_data():
        return _EXAMPLE.sub(
            lambda match: f"{match[1]}$ {match[2]}\n{output(match[2])}{match[4]}", text
        )


def output(line: str) -> str:
    """What the command prints, notes included, as a terminal without colours shows it."""
    command, _, head = line.partition(" | head -")
    result = run(*shlex.split(command)[1:], width=WIDTH)
    assert result.exit_code in (0, 1), result.output
    lines = [part.rstrip() for part in result.stdout.replace(os.getcwd(), "/data").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return "".join(f"{part}\n" for part in (lines[: int(head)] if head else lines))


@contextmanager
def _examples_data() -> Iterator[None]:
    """A folder with the data of the examples, as the current one."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(os.path.realpath(folder))
        try:
            run("sample", "samples/")
            whole = Path("samples/canal-json.jsonl").read_bytes()
            Path("damaged.jsonl").write_bytes(whole[:60_000])
            store = SchemaDirectory("store")
            for version, count in ((1, 2), (2, 3)):
                columns = tuple(Column(f"c{n}", "int", Int(32)) for n in range(count))
                store.save(SchemaRecord(TableSchema("shop", "orders", columns), (version,)))
            Path("store/shop.orders.json").write_text("{", encoding="utf-8")
            yield
        finally:
            os.chdir(before)


def main() -> None:
    DOC.write_text(filled_in(DOC.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
