"""Tables and texts that several commands print."""

from __future__ import annotations

import attrs
from rich.box import Box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cdcfmt_cli.json_text import clean
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Message
from cdcfmt_core.types import LogicalType

# A header line, a rule, and spaces between columns: easy to read, grep and copy.
_BOX = Box(
    "    \n"
    "    \n"
    " ── \n"
    "    \n"
    "    \n"
    "    \n"
    "    \n"
    "    \n"
)  # fmt: skip
_GAP = 3
_LONG_WORD = 40
"""Longer words may be broken at any character."""
_NOTHING = ("", "–")


def plain_table(*heads: str, right: tuple[str, ...] = ()) -> Table:
    """A table without frame; the columns of ``right`` are right-aligned."""
    table = Table(
        box=_BOX,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1),
        header_style="faint",
        border_style="faint",
    )
    for head in heads:
        table.add_column(head, justify="right" if head in right else "left", overflow="fold")
    return table


def facts_grid(gap: int = 2) -> Table:
    """A grid of names and values, ``gap`` columns apart."""
    grid = Table.grid(padding=(0, gap))
    grid.add_column(style="faint", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def share_width(table: Table, width: int, *, fixed: int, least: int = 12) -> None:
    """Give the first ``fixed`` columns their full width; the others share the rest.

    Every cell stays on one line; cells that do not fit end with an ellipsis.
    """
    needs = [
        max(cell_len(str(cell)) for cell in [column.header, *column.cells])
        for column in table.columns
    ]
    left = width - sum(needs[:fixed]) - _GAP * (len(needs) - 1)
    for index, (column, need) in enumerate(zip(table.columns, needs, strict=True)):
        column.no_wrap, column.overflow = True, "ellipsis"
        others = len(needs) - index
        column.width = need if index < fixed else min(need, max(left // others, least))
        if index >= fixed:
            left -= column.width


def print_table(table: Table, out: Console) -> None:
    """Print a table without breaking words; if too wide, the cells of each row as a list."""
    cells = [[column.header, *column.cells] for column in table.columns]
    needs = [max(cell_len(str(cell)) for cell in each) for each in cells]
    words = [
        need if column.no_wrap else min(need, max(map(_longest_word, each)))
        for need, column, each in zip(needs, table.columns, cells, strict=True)
    ]
    left = out.width - sum(words) - _GAP * (len(words) - 1)
    if left < 0:
        _print_stacked(table, out)
        return
    # rich's own reduction, with minimum widths, cuts text off at the right edge.
    order = sorted(range(len(words)), key=lambda index: needs[index] - words[index])
    for place, index in enumerate(order):
        more = min(needs[index] - words[index], left // (len(order) - place))
        table.columns[index].width = words[index] + more
        left -= more
    out.print(table)


def _longest_word(cell: object) -> int:
    return min(max(map(cell_len, str(cell).split()), default=0), _LONG_WORD)


def _print_stacked(table: Table, out: Console) -> None:
    heads = [str(column.header) for column in table.columns]
    for first, *rest in zip(*(column.cells for column in table.columns), strict=True):
        out.print(first)
        grid = facts_grid(1)
        line = Text()
        for head, cell in zip(heads[1:], rest, strict=True):
            if str(cell) in _NOTHING:
                continue
            pair = Text.assemble(("  " + head, "faint"), " ", cell)
            if pair.cell_len > out.width // 2:
                grid.add_row(f"  {head}", cell)
                continue
            if line.cell_len + pair.cell_len > out.width:
                out.print(line)
                line = Text()
            line.append_text(pair)
        if line:
            out.print(line)
        if grid.row_count:
            out.print(grid)


def number(value: int) -> str:
    return f"{value:,}"


def size(count: int) -> str:
    """Bytes in the largest unit that gives at least 1."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def span_text(microseconds: int) -> str:
    """A duration in a suitable unit: ``250 ms``, ``3.5 s``, ``2.0 h``."""
    seconds = microseconds / 1_000_000
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if abs(seconds) >= length:
            amount = seconds / length
            return f"{amount:.0f} {unit}" if amount >= 100 else f"{amount:.1f} {unit}"
    return f"{seconds * 1000:.0f} ms"


def position_text(message: Message) -> str:
    """Topic or file, partition and offset: ``orders[3] @ 42``."""
    name = message.topic or (message.path or "").rpartition("/")[2]
    place = "" if message.partition is None else f"[{message.partition}]"
    return f"{printable(name)}{place} @ {message.offset}"


def kind_text(kind: str, op: str | None = None) -> Text:
    """The kind of an event, or a row's operation, in its colour."""
    return Text(op, f"op.{op}") if op else Text(kind, f"kind.{kind}")


def reason_of(error: DecodeError) -> str:
    """Field and reason on one line, without position and sample."""
    return printable(f"{error.field}: {error.reason}" if error.field else error.reason, 0)


_LONGEST_NAME = 300


def printable(text: str, limit: int = _LONGEST_NAME) -> str:
    """One line of ``text`` without control characters, cut to ``limit`` characters; 0: whole."""
    if limit:
        text = text[: limit + 1]
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in clean(text))
    return shown if not limit or len(shown) <= limit else shown[: limit - 1] + "…"


def type_name(type_: LogicalType) -> str:
    """A type as docs/events.md writes it: ``Int(64) unsigned``, ``Decimal(10, 2)``, ``Text``."""
    values = attrs.asdict(type_, recurse=False)
    unsigned = "" if values.pop("signed", True) else " unsigned"
    known = [
        f"{len(value)} names" if isinstance(value, tuple) else str(value)
        for value in values.values()
        if value not in (None, "")
    ]
    return type(type_).__name__ + (f"({', '.join(known)})" if known else "") + unsigned
