"""``cdcfmt sniff``: recognises the formats of the messages."""

from __future__ import annotations

from collections import Counter

import attrs
import click
from rich.text import Text

from cdcfmt_cli.console import console, next_command
from cdcfmt_cli.inputs import open_input, public
from cdcfmt_cli.parameters import declare, reads
from cdcfmt_cli.printing import number, plain_table, print_table, printable
from cdcfmt_cli.reading import Decoded, Reader
from cdcfmt_cli.records import table_name
from cdcfmt_cli.settings import Settings
from cdcfmt_cli.writers import print_json
from cdcfmt_core.events import KIND_OF, Corrupt
from cdcfmt_core.recognition import confidence
from cdcfmt_core.registry import default_registry

UNKNOWN = "not recognised"
TOMBSTONE = "no value (tombstone)"
_TABLES_SHOWN = 4


@attrs.define
class Found:
    """The counts of one format."""

    messages: int = 0
    corrupt: int = 0
    sure: float = 0.0
    tables: Counter[str] = attrs.field(factory=Counter)
    kinds: Counter[str] = attrs.field(factory=Counter)
    sample: str = ""

    def add(self, decoded: Decoded) -> None:
        self.messages += 1
        for event in decoded.events:
            if isinstance(event, Corrupt):
                self.corrupt += 1
                self.sample = self.sample or str(event.error)
            else:
                self.kinds[KIND_OF[type(event)]] += 1
                if name := table_name(event):
                    self.tables[name] += 1


@declare("sniff", "Recognise the formats of the messages.")
@reads()
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    default=1000,
    metavar="N",
    show_default=True,
    help="Number of messages to read of each file or partition.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def command(paths: tuple[str, ...], settings: Settings, sample: int, as_json: bool) -> bool:
    """Recognise the formats of the messages of INPUT.

    Exit code 1 if no message is of a known format.
    """
    found = _sample(Reader(open_input(paths, settings), settings), sample)
    if as_json:
        print_json({name: _json(item) for name, item in found.items()})
    else:
        _show(found, paths)
    return not found.keys() - {UNKNOWN, TOMBSTONE}


def _sample(reader: Reader, sample: int) -> dict[str, Found]:
    codecs = default_registry().codecs()
    found: dict[str, Found] = {}
    for decoded in reader.heads(sample):
        name = decoded.protocol
        if decoded.message.value is None and not decoded.events:
            name = TOMBSTONE
        item = found.setdefault(name or UNKNOWN, Found())
        item.add(decoded)
        if name in codecs:
            item.sure = max(item.sure, confidence(codecs[name], decoded.message))
    return dict(sorted(found.items(), key=lambda pair: (-pair[1].messages, pair[0])))


def _show(found: dict[str, Found], paths: tuple[str, ...]) -> None:
    out = console()
    total = sum(item.messages for item in found.values())
    if not total:
        out.print("There are no messages.")
        return
    table = plain_table(
        "format", "messages", "sure", "events", "tables", right=("messages", "sure")
    )
    table.columns[0].no_wrap = True
    for name, item in found.items():
        known = name not in (UNKNOWN, TOMBSTONE)
        tables = [printable(table) for table, _ in item.tables.most_common(_TABLES_SHOWN)]
        if len(item.tables) > _TABLES_SHOWN:
            tables.append(f"… {len(item.tables)} in all")
        kinds = [f"{count:,} {kind}" for kind, count in item.kinds.most_common()]
        kinds += [f"{item.corrupt:,} corrupt"] if item.corrupt and known else []
        table.add_row(
            Text(name, "name" if known else "warn"),
            number(item.messages),
            f"{item.sure:.0%}" if known else "",
            ", ".join(kinds),
            ", ".join(tables),
        )
    print_table(table, out)
    out.print()
    for name, item in found.items():
        if item.sample:
            out.print(Text.assemble((f"{name}: ", "warn"), printable(item.sample, 600)))
    names = [name for name in found if name not in (UNKNOWN, TOMBSTONE)]
    if len(names) == 1:
        next_command(["cat", "--protocol", names[0]], public(paths))
    elif names:
        next_command(["stats"], public(paths))
    else:
        next_command(["formats"], ())


def _json(item: Found) -> dict[str, object]:
    return {
        "messages": item.messages,
        "corrupt": item.corrupt,
        "confidence": item.sure,
        "kinds": dict(item.kinds),
        "tables": dict(item.tables),
        "first_problem": item.sample or None,
    }
