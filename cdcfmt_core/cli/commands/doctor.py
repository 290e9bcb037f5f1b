"""``cdcfmt doctor``: checks that reading and Spark have everything they need."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import groupby

import click
from rich.table import Table
from rich.text import Text

from cdcfmt_core.cli.checks import check_packages, check_plugins, check_python
from cdcfmt_core.cli.console import console
from cdcfmt_core.cli.engines import check_engines
from cdcfmt_core.cli.parameters import Command
from cdcfmt_core.cli.parameters import command as cli_command
from cdcfmt_core.cli.writers import print_json
from cdcfmt_core.registry import KNOWN_TRANSPORTS, default_registry
from cdcfmt_core.transport import Check

_SIGNS = {"ok": "✓", "warn": "!", "bad": "✗"}


class _Doctor(Command):
    """Adds an option for addresses of each transport; known transports even if not installed."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*self._of_transports, *super().get_params(ctx)]

    @cached_property
    def _of_transports(self) -> list[click.Parameter]:
        there = default_registry().transports()
        names = {name for name, spec in there.items() if spec.explain} | KNOWN_TRANSPORTS
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


@cli_command("doctor", "Check the installation, and whether Spark finds it.", cls=_Doctor)
@click.option(
    "--packages",
    multiple=True,
    metavar="GROUP:NAME:VERSION,…",
    help="Also check these packages, which your sessions set as spark.jars.packages.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
@click.pass_context
def command(
    ctx: click.Context, /, packages: tuple[str, ...], as_json: bool, **addresses: tuple[str, ...]
) -> None:
    """Check this installation: Python, packages, formats, Java, Delta; whether Spark finds cdc.

    Each line is ok, a warning or bad, and says what to do. Exit code 1 if a line is bad.
    """
    checks: list[Check] = []
    for check in (check_python, check_packages, check_plugins):
        checks += check()
    checks += check_engines(packages)
    for name, of_transport in addresses.items():
        for address in of_transport:
            checks += explain(name.replace("_", "-"), address)
    if as_json:
        print_json([check.as_json() for check in checks])
    else:
        _show(checks)
    if any(check.state == "bad" for check in checks):
        ctx.exit(1)


def explain(name: str, address: str) -> Iterable[Check]:
    """The checks of a transport's address."""
    spec = default_registry().get_transport(name)
    assert spec.explain is not None
    return spec.explain(address)


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
