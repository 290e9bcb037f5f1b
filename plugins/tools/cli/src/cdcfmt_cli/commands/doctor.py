"""``cdcfmt doctor``: checks that reading and Spark have everything they need."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib.util import find_spec
from itertools import groupby

import attrs
import click
from rich.table import Table
from rich.text import Text

from cdcfmt_cli.console import console
from cdcfmt_cli.engines import check_engines, version_of
from cdcfmt_cli.parameters import Command, declare
from cdcfmt_cli.writers import print_json
from cdcfmt_core.errors import PluginError
from cdcfmt_core.known import packages
from cdcfmt_core.listing import NOTHING, list_installed
from cdcfmt_core.registry import default_registry
from cdcfmt_core.transport import Check

_OLDEST_PYTHON = (3, 11)

_EXTRAS = (
    ("fsspec", "fsspec", "cdcfmt-files", "reading files"),
    ("zstandard", "zstandard", "cdcfmt-files", "reading .zst files"),
    ("cramjam", "cramjam", "'cdcfmt-toolkit[compression]'", "messages compressed with snappy"),
    ("lz4", "lz4", "'cdcfmt-toolkit[compression]'", "messages compressed with lz4"),
)
"""Module, distribution, package of cdcfmt that installs it, and purpose."""


def check_python() -> Iterator[Check]:
    text = f"Python {sys.version.split()[0]} at {sys.executable}"
    if sys.version_info >= _OLDEST_PYTHON:
        yield Check("Python", "ok", text)
    else:
        yield Check("Python", "bad", text, "cdcfmt needs Python 3.11 or newer")


def check_packages() -> Iterator[Check]:
    yield Check("Packages", "ok", f"cdcfmt-core {version_of('cdcfmt-core')}")
    for module, dist, package, purpose in _EXTRAS:
        if find_spec(module) is not None:
            yield Check("Packages", "ok", f"{dist} {version_of(dist)}: {purpose}")
        else:
            yield Check(
                "Packages",
                "warn",
                f"{dist} is missing: {purpose}",
                f"pip install {package}",
            )


def check_plugins() -> Iterator[Check]:
    listing = list_installed(default_registry())
    if not listing.formats:
        yield Check("Formats", "bad", "no format is installed", NOTHING.rpartition(": ")[2])
    for item in listing.formats:
        yield Check("Formats", "ok", f"{item.spec.name} ({item.package} {item.version})")
    for transport in listing.transports:
        yield Check("Formats", "ok", f"transport {transport}")
    for note in listing.notes:
        yield Check("Formats", "warn", note)
    for error in listing.problems:
        problem = error.problem if isinstance(error, PluginError) else str(error)
        yield Check("Formats", "bad", problem, getattr(error, "remedy", ""))


_SIGNS = {"ok": "✓", "warn": "!", "bad": "✗"}


class _Doctor(Command):
    """Adds an option for addresses of each transport; known transports even if not installed."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*self._of_transports, *super().get_params(ctx)]

    @cached_property
    def _of_transports(self) -> list[click.Parameter]:
        there = default_registry().transports()
        known = there.keys() | packages("transports").keys()
        names = {name for name in known if name not in there or there[name].diagnose}
        # An option of the command itself keeps its meaning.
        names -= {opt.lstrip("-") for param in self.params for opt in param.opts} | {"help"}
        return [
            click.Option(
                [f"--{name}", name.replace("-", "_")],
                multiple=True,
                metavar="ADDRESS",
                help=f"Also check whether {there[name].title if name in there else name} answers "
                "there, and which addresses it gives to its clients.",
            )
            for name in sorted(names)
        ]


@declare("doctor", "Check the installation, and whether Spark finds it.", cls=_Doctor)
@click.option(
    "--packages",
    multiple=True,
    metavar="GROUP:NAME:VERSION,…",
    help="Also check these packages, which your sessions set as spark.jars.packages.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def command(packages: tuple[str, ...], as_json: bool, **addresses: tuple[str, ...]) -> bool:
    """Check this installation: Python, packages, formats, Java, Delta; whether Spark finds cdc.

    Each line is ok, a warning or bad, and says what to do. Exit code 1 if a line is bad.
    """
    checks: list[Check] = []
    for check in (check_python, check_packages, check_plugins):
        checks += check()
    checks += check_engines(packages)
    for name, of_transport in addresses.items():
        for address in of_transport:
            checks += diagnose(name.replace("_", "-"), address)
    if as_json:
        print_json([attrs.asdict(check) for check in checks])
    else:
        _show(checks)
    return any(check.state == "bad" for check in checks)


def diagnose(name: str, address: str) -> Iterable[Check]:
    """The checks of a transport's address."""
    spec = default_registry().get_transport(name)
    assert spec.diagnose is not None
    return spec.diagnose(address)


def _show(checks: list[Check]) -> None:
    out = console()
    for subject, of_subject in groupby(checks, lambda check: check.subject):
        out.print(Text(subject, "head"))
        grid = Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True, width=3)
        grid.add_column(overflow="fold")
        for check in of_subject:
            text = Text(check.text)
            if check.remedy:
                text.append("\n→ ", "faint").append(check.remedy, "name")
            grid.add_row(Text(f"  {_SIGNS[check.state]}", check.state), text)
        out.print(grid)
    counts = {state: sum(check.state == state for check in checks) for state in _SIGNS}
    out.print()
    out.print(
        Text.assemble(
            (f"{counts['ok']} ok", "ok"),
            ", ",
            (f"{counts['warn']} to mind", "warn" if counts["warn"] else ""),
            ", ",
            (f"{counts['bad']} bad", "bad" if counts["bad"] else ""),
        )
    )
