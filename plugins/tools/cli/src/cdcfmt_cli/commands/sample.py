"""``cdcfmt sample``: real messages of each installed format, to try commands on."""

from __future__ import annotations

import gzip
from importlib.resources import files
from pathlib import Path

import click

from cdcfmt_cli.parameters import declare
from cdcfmt_core.errors import SinkError
from cdcfmt_core.lazy import installed

GROUP = "cdcfmt.samples"
"""Entry points: the name of a format, and its package, which has ``samples.jsonl.gz``."""


@declare("sample", "Write real messages of each installed format into a folder.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write one file per installed format into FOLDER: messages of its producers, one a line.

    The format pages say where they come from.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for entry_point in sorted(installed(GROUP)):
            packed = files(entry_point.value).joinpath("samples.jsonl.gz").read_bytes()
            path = folder / f"{entry_point.name}.jsonl"
            path.write_bytes(gzip.decompress(packed))
            click.echo(path)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise SinkError(f"the samples cannot be written: {error}") from error
