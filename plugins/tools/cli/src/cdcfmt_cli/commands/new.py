"""``cdcfmt new``: creates a plugin to start from."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from cdcfmt_cli.parameters import declare
from cdcfmt_cli.template import create_plugin
from cdcfmt_core.errors import SourceError


@declare("new", "Create a plugin to start from.")
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("."),
    help="Parent of the new folder.",
)
def command(name: str, folder: Path) -> None:
    """Write a working plugin for the format NAME, which installs and passes the conformance kit.

    docs/write-a-format.md explains how to fill it in.
    """
    try:
        made = create_plugin(name, folder)
    except OSError as error:
        raise SourceError(f"the plugin cannot be written: {error}") from error
    click.echo(f"{made}: next")
    # Environments of uv have no pip: the shell would find that of another Python.
    pip = "pip" if find_spec("pip") else "uv pip"
    click.echo(f"  {pip} install -e '{made}[test]'")
    click.echo("  cdcfmt formats")
    click.echo(f"  pytest {made}")
