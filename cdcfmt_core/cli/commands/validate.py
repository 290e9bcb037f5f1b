"""``cdcfmt validate``: does every message decode, and where and why not."""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.text import Text

from cdcfmt_core.cli.console import console, next_command, note
from cdcfmt_core.cli.inputs import open_input, public
from cdcfmt_core.cli.json_text import to_json
from cdcfmt_core.cli.layout import number, plain_table, printable, reason_of, share_width
from cdcfmt_core.cli.parameters import command as cli_command
from cdcfmt_core.cli.parameters import reads
from cdcfmt_core.cli.progress import no_bars
from cdcfmt_core.cli.reading import Decoded, Reader
from cdcfmt_core.cli.settings import Settings
from cdcfmt_core.events import Corrupt


@cli_command("validate", "What cannot be decoded, where and why.")
@reads()
@click.option(
    "-n",
    "--problems",
    "most",
    type=click.IntRange(min=0),
    default=20,
    metavar="N",
    show_default=True,
    help="List so many problems; all are counted.",
)
@click.option("--json", "as_json", is_flag=True, help="A line of JSON for each problem.")
@click.pass_context
def command(
    ctx: click.Context, paths: tuple[str, ...], settings: Settings, most: int, as_json: bool
) -> None:
    """Decode every message of INPUT and list those that cannot be, with position and reason.

    Exit code 0 if all can be decoded, 1 if not.
    """
    no_bars(streams=as_json)
    reader = Reader(open_input(paths, settings), settings)
    messages = events = problems = 0
    found: list[tuple[Decoded, Corrupt]] = []
    for decoded in reader:
        messages += 1
        for event in decoded.events:
            if not isinstance(event, Corrupt):
                events += 1
                continue
            problems += 1
            if as_json:
                click.echo(to_json(_json(decoded, event)))
            elif len(found) < most:
                found.append((decoded, event))
    if not as_json:
        _show(found, paths, messages, events, problems)
        for text, count in reader.counts.items():
            note(f"{text}: {number(count)}")
    if problems:
        ctx.exit(1)


def _show(
    found: list[tuple[Decoded, Corrupt]],
    paths: Sequence[str],
    messages: int,
    events: int,
    problems: int,
) -> None:
    out = console()
    if found:
        table = plain_table("message", "position", "index", "format", "reason")
        for decoded, event in found:
            table.add_row(
                Text(number(decoded.number + 1), justify="right"),
                Text(_position(decoded), "name"),
                Text(str(event.index), "faint", justify="right"),
                event.error.protocol or "–",
                reason_of(event.error),
            )
        # The reason is what matters: it is never cut, but folded.
        share_width(table, 10**6, fixed=5)
        table.columns[-1].width, table.columns[-1].no_wrap = None, False
        table.columns[-1].overflow = "fold"
        out.print(table)
        if problems > len(found):
            out.print(f"… {number(problems)} problems in all; -n lists more", style="faint")
        out.print()
        next_command(["inspect", "--nth", str(found[0][0].number + 1), "--raw"], public(paths))
    verdict = Text(f"{number(problems)} corrupt", "bad") if problems else Text("all good", "ok")
    out.print(
        Text.assemble(verdict, f": {number(messages)} messages, {number(events)} good events")
    )


def _position(decoded: Decoded) -> str:
    message = decoded.message
    name = message.topic or (message.path or "").rpartition("/")[2]
    place = "" if message.partition is None else f"[{message.partition}]"
    return f"{printable(name)}{place} @ {message.offset}"


def _json(decoded: Decoded, event: Corrupt) -> dict[str, object]:
    message, error = decoded.message, event.error
    return {
        "message": decoded.number + 1,
        "path": message.path,
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "index": event.index,
        "protocol": error.protocol,
        "field": error.field,
        "reason": error.reason,
        "sample": error.sample,
    }
