"""``cdcfmt validate``: lists messages that cannot be decoded, with position and reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import click
from rich.text import Text

from cdcfmt_cli.changed import IN_SPARK, Change, Changes
from cdcfmt_cli.console import console, next_command, note
from cdcfmt_cli.inputs import open_input, public
from cdcfmt_cli.interruption import until_interrupted
from cdcfmt_cli.parameters import declare, reads
from cdcfmt_cli.printing import (
    number,
    plain_table,
    position_text,
    print_table,
    printable,
    reason_of,
)
from cdcfmt_cli.progress import no_bars
from cdcfmt_cli.reading import Decoded, Reader
from cdcfmt_cli.reasons import Reason, Reasons, write_reasons
from cdcfmt_cli.settings import TABLE_OPTION, Settings
from cdcfmt_cli.writers import print_json
from cdcfmt_core.errors import LONGEST_NAME
from cdcfmt_core.events import Corrupt, Message
from cdcfmt_core.texts import one_line

_SAMPLE = 60
_PROBLEMS = 20


@declare("validate", "List messages that cannot be decoded.")
@reads([TABLE_OPTION])
@click.option(
    "-n",
    "--problems",
    "most",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Maximum number of problems to list [{_PROBLEMS}; with --json all]; the others are "
    "counted by reason.",
)
@click.option("--json", "as_json", is_flag=True, help="A line of JSON for each problem and reason.")
@click.option(
    "--strict", is_flag=True, help="Exit code 1 also for values that are changed in Spark."
)
def command(
    paths: tuple[str, ...], settings: Settings, most: int | None, as_json: bool, strict: bool
) -> bool:
    """Decode every message of INPUT, and list corrupt messages with position and reason.

    Also lists valid values that Spark changes unless an option says otherwise: impossible dates,
    text that is not UTF-8, columns without a type, names that occur twice. Exit code 0 if all
    messages can be decoded; 1 if not, or if INPUT has none of the requested tables.
    """
    no_bars(streams=as_json)
    reader = Reader(open_input(paths, settings), settings)
    changes, reasons = Changes(settings.codec), Reasons()
    messages = events = problems = 0
    found: dict[Any, Problem] = {}
    shown = _PROBLEMS if most is None else most
    with until_interrupted() as interruption:
        for decoded in reader:
            messages += 1
            changes.add(decoded)
            for event in decoded.events:
                if not isinstance(event, Corrupt):
                    events += 1
                    continue
                problems += 1
                reasons.add(decoded, event)
                if as_json:
                    if most is None or problems <= most:
                        print_json(_json(decoded, event))
                elif (same := found.get(kind_of(decoded, event))) is not None:
                    same.more += 1
                elif len(found) < shown:
                    found[kind_of(decoded, event)] = Problem(decoded, event)
    changed = changes.found(reader.counts)
    if as_json:
        for reason in reasons.most_frequent():
            print_json(_reason_json(reason))
        for change in changed:
            print_json(_change_json(change))
    else:
        if problems:
            _show_corrupt([*found.values()], problems, paths)
            if problems > sum(1 + problem.more for problem in found.values()):
                write_reasons(reasons, console(), max(shown, _PROBLEMS), "-n lists more")
                console().print()
        if changed:
            _show_changed(changed, shown)
    if not interruption.happened:
        reader.check_names()
    if not as_json:
        verdict = _verdict(messages, problems, changed, so_far=interruption.happened)
        console().print(verdict.append(f", {number(events)} good events" if messages else ""))
        for text, count in reader.counts.items():
            note(f"{text}: {number(count)}")
    interruption.end(f"{number(messages)} messages were checked")
    return bool(problems or (strict and changed))


@attrs.define
class Problem:
    """A corrupt message or row, and the number of others of its kind."""

    decoded: Decoded
    event: Corrupt
    more: int = 0


def kind_of(decoded: Decoded, event: Corrupt) -> Any:
    """The key of problems of one kind: no format, one reason, one file."""
    message, error = decoded.message, event.error
    if error.protocol is None:
        return message.path, message.topic, message.partition, error.reason
    return decoded.number, event.index, id(event)


def _show_corrupt(found: Sequence[Problem], problems: int, paths: Sequence[str]) -> None:
    out = console()
    if not found:
        return
    table = plain_table("message", "position", "index", "format", "reason")
    for problem in found:
        decoded, event = problem.decoded, problem.event
        more = f", and {number(problem.more)} more" if problem.more else ""
        table.add_row(
            Text(number(decoded.number + 1), justify="right"),
            Text(position_text(decoded.message) + more, "name"),
            Text(str(event.index), "faint", justify="right"),
            event.error.protocol or "–",
            reason_of(event.error),
        )
    print_table(table, out)
    if problems > sum(1 + problem.more for problem in found):
        out.print(f"… {number(problems)} problems in all, by reason below", style="faint")
    out.print()
    next_command(["inspect", "--nth", str(found[0].decoded.number + 1), "--raw"], public(paths))
    out.print()


def _show_changed(changed: list[Change], most: int) -> None:
    out = console()
    table = plain_table("changed", "column", "what", "first", "value", right=("changed",))
    for change in changed[:most]:
        names = (change.table, change.column)
        table.add_row(
            Text(number(change.count), "warn"),
            Text(printable(".".join(filter(None, names))), "name"),
            change.what,
            Text(position_text(change.places[0].message) if change.places else "", "faint"),
            printable(change.sample or "", _SAMPLE),
        )
    table.columns[0].no_wrap = True
    print_table(table, out)
    if len(changed) > most:
        out.print(f"… {number(len(changed))} lines in all; -n lists more", style="faint")
    out.print()
    for what in dict.fromkeys(change.what for change in changed):
        if what in IN_SPARK:
            out.print(Text.assemble((what, "head"), f" in Spark: {IN_SPARK[what]}"))
    out.print()


def _verdict(messages: int, problems: int, changed: list[Change], *, so_far: bool) -> Text:
    if not messages:
        return Text("no messages: nothing was checked", "warn")
    if problems:
        verdict = Text(f"{number(problems)} corrupt", "bad")
    else:
        verdict = Text("none corrupt") if changed or so_far else Text("all good", "ok")
    if changed:
        count = f"{number(sum(change.count for change in changed))} changed"
        verdict = Text.assemble(verdict, ", ", (count, "warn"))
    return verdict.append(f"{' so far' if so_far else ''}: {number(messages)} messages")


def _json(decoded: Decoded, event: Corrupt) -> dict[str, object]:
    error = event.error
    return {
        "found": "corrupt",
        **_place_json(decoded.number, decoded.message),
        "index": event.index,
        "protocol": error.protocol,
        "field": error.field,
        "reason": error.reason,
        "sample": error.sample,
    }


def _reason_json(reason: Reason) -> dict[str, object]:
    return {
        "found": "reason",
        "protocol": reason.protocol,
        "reason": reason.text,
        "count": reason.count,
        "first": _place_json(reason.number, reason.first),
    }


def _change_json(change: Change) -> dict[str, object]:
    return {
        "found": "changed",
        "what": change.what,
        "table": _cut(change.table),
        "column": _cut(change.column),
        "count": change.count,
        "sample": change.sample,
        "first": [_place_json(decoded.number, decoded.message) for decoded in change.places],
    }


def _place_json(number: int, message: Message) -> dict[str, object]:
    names = {name: _cut(getattr(message, name)) for name in ("topic", "path")}
    return {"message": number + 1, **message.position, **names}


def _cut(name: str | None) -> str | None:
    """A name of bounded length, as in errors."""
    return None if name is None else one_line(name, LONGEST_NAME)
