"""Shapes that several commands print."""

from __future__ import annotations

from rich.box import Box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from cdcfmt_core.cli.json_text import clean

# A head line, a rule, and blanks between columns: easy on the eye, on grep and on copying.
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


def plain_table(*heads: str, right: tuple[str, ...] = ()) -> Table:
    """A table without frame; columns named in ``right`` are aligned there."""
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


def last_column_takes_rest(table: Table, width: int, *, least: int = 24) -> None:
    """All columns but the last as wide as they need; the last is cut to what is left."""
    used = 0
    for column in table.columns[:-1]:
        needed = max(cell_len(str(cell)) for cell in [column.header, *column.cells])
        column.width, column.no_wrap = needed, True
        used += needed + 3
    table.columns[-1].width = max(width - used, least)
    table.columns[-1].no_wrap, table.columns[-1].overflow = True, "ellipsis"


def number(value: int) -> str:
    return f"{value:,}"


def size(count: int) -> str:
    """Bytes in the largest unit that keeps a digit before the point."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def kind_text(kind: str, op: str | None = None) -> Text:
    """The kind of an event, or a row's operation, in its colour."""
    return Text(op, f"op.{op}") if op else Text(kind, f"kind.{kind}")


def printable(text: str, limit: int = 0) -> str:
    """One line of ``text`` without control characters, cut to ``limit`` characters if given."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in clean(text))
    return shown if not limit or len(shown) <= limit else shown[: limit - 1] + "…"
