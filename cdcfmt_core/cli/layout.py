"""Shapes that several commands print."""

from __future__ import annotations

from rich.box import Box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from cdcfmt_core.cli.json_text import clean
from cdcfmt_core.errors import DecodeError

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


def share_width(table: Table, width: int, *, fixed: int, least: int = 12) -> None:
    """The first ``fixed`` columns as wide as they need, the others share what is left.

    Every cell stays on one line; what does not fit ends with an ellipsis.
    """
    needs = [
        max(cell_len(str(cell)) for cell in [column.header, *column.cells])
        for column in table.columns
    ]
    gap = 3
    left = width - sum(needs[:fixed]) - gap * (len(needs) - 1)
    for index, (column, need) in enumerate(zip(table.columns, needs, strict=True)):
        column.no_wrap, column.overflow = True, "ellipsis"
        others = len(needs) - index
        column.width = need if index < fixed else min(need, max(left // others, least))
        if index >= fixed:
            left -= column.width


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


def reason_of(error: DecodeError) -> str:
    """Field and reason on one line, without position and sample."""
    return printable(f"{error.field}: {error.reason}" if error.field else error.reason)


def printable(text: str, limit: int = 0) -> str:
    """One line of ``text`` without control characters, cut to ``limit`` characters if given."""
    if limit:
        text = text[: limit + 1]
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in clean(text))
    return shown if not limit or len(shown) <= limit else shown[: limit - 1] + "…"
