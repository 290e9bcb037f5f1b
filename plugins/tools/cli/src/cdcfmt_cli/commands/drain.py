"""``cdcfmt drain``: moves the messages of a queue into a folder."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from cdcfmt_cli.console import note
from cdcfmt_cli.inputs import transport_of_url
from cdcfmt_cli.parameters import declare, pairs_option, quiet_option, table_options
from cdcfmt_cli.printing import number
from cdcfmt_cli.progress import ProgressBar
from cdcfmt_cli.settings import parse_pairs
from cdcfmt_core.errors import OptionError
from cdcfmt_files.draining import DRAINING_OPTIONS, MESSAGES, Draining
from cdcfmt_files.sinks import FileSink
from cdcfmt_files.sources.options import parse_storage_options
from cdcfmt_toolkit.transport_opening import open_drain


@declare("drain", "Move the messages of a queue into a folder.")
@click.argument("url", metavar="URL")
@click.option("--into", "folder", required=True, metavar="DIR", help="The folder, or its URL.")
@table_options(DRAINING_OPTIONS)
@quiet_option
@pairs_option
def command(url: str, folder: str, pairs: tuple[str, ...], values: dict[str, Any]) -> None:
    """Write the messages of a queue to a folder, and remove them from the queue once committed.

    The folder is a normal input, even while it grows. The command ends when the queue is empty;
    with --follow it continues. Ctrl-C or SIGTERM ends it after one more commit.
    """
    transport = transport_of_url(url)
    if transport is None or transport.options_of_url is None:
        shown = url.partition("?")[0]
        raise OptionError(f"{shown} is not the address of a queue, such as rabbitmq://host/queue")
    given = {**transport.options_of_url(url), **dict(parse_pairs(pairs))}
    sink = FileSink(
        folder, parse_storage_options(values["storageOptions"]), compression=values["compression"]
    )
    with ProgressBar("draining", None, "messages") as bar:
        draining = Draining(
            lambda: open_drain(transport, given),
            sink,
            values,
            written=bar.count,
            trouble=lambda error: note(f"{error}; connecting again"),
        )
        with _stopping(draining):
            draining.run()
    note(f"written: {number(draining.counts[MESSAGES])} messages, {folder}")
    for text, count in sorted(draining.counts.items()):
        if text != MESSAGES:
            note(f"{text}: {number(count)}")


@contextmanager
def _stopping(draining: Draining) -> Iterator[None]:
    """The first SIGINT or SIGTERM stops the drain; a second one ends the process at once."""
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}

    def stop(*_: object) -> None:
        draining.stop()
        restore()

    def restore() -> None:
        for one, handler in before.items():
            signal.signal(one, handler)

    for one in before:
        signal.signal(one, stop)
    try:
        yield
    finally:
        restore()
