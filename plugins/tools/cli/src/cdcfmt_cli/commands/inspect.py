"""``cdcfmt inspect``: one message explained."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import click

from cdcfmt_cli.console import console, note
from cdcfmt_cli.explain import Explanation, explain_message
from cdcfmt_cli.inputs import open_input, public
from cdcfmt_cli.parameters import declare, numbers_option, reads
from cdcfmt_cli.progress import no_bars
from cdcfmt_cli.reading import Reader
from cdcfmt_cli.settings import Settings
from cdcfmt_cli.show_message import show_explanation, show_raw
from cdcfmt_cli.writers import print_json


@declare("inspect", "One message explained.")
@reads()
@click.option("--nth", type=click.IntRange(min=1), metavar="N", help="The Nth message of INPUT.")
@click.option(
    "--offset",
    type=int,
    metavar="N",
    help="The message with this offset: a topic's offset, or the byte at which a line begins.",
)
@click.option("--partition", type=int, metavar="N", help="With --offset: of this partition.")
@click.option(
    "--count",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Number of messages from there on.",
)
@numbers_option
@click.option("--raw", is_flag=True, help="Also print the raw key and value.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON Lines.")
def command(
    paths: tuple[str, ...],
    settings: Settings,
    nth: int | None,
    offset: int | None,
    partition: int | None,
    count: int,
    raw: bool,
    as_json: bool,
    numbers: str,
) -> bool:
    """Explain one message: position, frame, envelope, events, columns and types.

    The default is the first message. Exit code 1 if there is no such message.
    """
    if nth is not None and offset is not None:
        raise click.UsageError("--nth and --offset both select the message; give only one of them")
    source = open_input(paths, settings)
    if offset is not None and partition is not None:
        source.begin_at(partition, offset)
    reader = Reader(source, settings)
    no_bars(streams=True)
    shown = 0
    for explanation in islice(_chosen(reader, settings, nth, offset, partition), count):
        shown += 1
        if as_json:
            print_json(explanation.as_json(), numbers)
            continue
        out = console()
        if shown > 1:
            out.print()
        show_explanation(explanation, out)
        if raw:
            show_raw(explanation.decoded.message, out)
    if not shown:
        which = f"message {nth}" if nth else f"offset {offset}" if offset is not None else "message"
        where = ", ".join(public(paths))
        note(f"no {which} in {where}; cdcfmt stats counts the messages")
    return not shown


def _chosen(
    reader: Reader,
    settings: Settings,
    nth: int | None,
    offset: int | None,
    partition: int | None,
) -> Iterator[Explanation]:
    found = False
    for number, message in enumerate(reader.messages()):
        if not found:
            found = (
                number + 1 == nth
                if nth is not None
                else (offset is None or message.offset == offset)
                and (partition is None or getattr(message, "partition", None) == partition)
            )
        if found:
            yield explain_message(reader.decode(number, message), reader)
