"""A picture in text: how much each table changed, and when."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import attrs

OPS = {"insert": "█", "update": "▓", "delete": "░"}
DDL = "◆"
BAR_WIDTH = 30
TIME_WIDTH = 48

_HEIGHTS = "▁▂▃▄▅▆▇█"


@attrs.define
class _Table:
    name: str
    ops: Counter[str] = attrs.field(factory=Counter)
    slots: Counter[int] = attrs.field(factory=Counter)
    ddl_slots: Counter[int] = attrs.field(factory=Counter)
    first: int = 0


def draw(events: Sequence[tuple[str, str | None]], *, most: int = 16) -> list[str]:
    """A head line, then the ``most`` changed tables as lines, in the order of their first event.

    ``events`` are (table, operation) in order; no operation means a DDL.  A table has a bar
    with one character per row change (per several where there are too many), and a line
    along all events that shows where its own lie.
    """
    tables: dict[str, _Table] = {}
    for place, (name, op) in enumerate(events):
        table = tables.setdefault(name, _Table(name, first=place))
        slot = place * TIME_WIDTH // len(events)
        if op is None:
            table.ddl_slots[slot] += 1
        else:
            table.ops[op] += 1
            table.slots[slot] += 1
    chosen = sorted(tables.values(), key=lambda table: table.ops.total())[-most:]
    chosen.sort(key=lambda table: table.first)
    unit = max([1.0, *(table.ops.total() / (BAR_WIDTH - len(OPS)) for table in chosen)])
    busiest = max((n for table in chosen for n in table.slots.values()), default=1)
    width = max((len(table.name) for table in chosen), default=0)
    legend = "  ".join(f"{sign} {op}" for op, sign in OPS.items())
    lines = [f"{'table':<{width}}  {legend:<{BAR_WIDTH}}  rows  in order →   {DDL} DDL"]
    for table in chosen:
        bar, total = _bar(table.ops, unit), table.ops.total()
        line = f"{table.name:<{width}}  {bar:<{BAR_WIDTH}}  {total:>4}  {_line(table, busiest)}"
        lines.append(line.rstrip())
    return lines


def _bar(ops: Counter[str], unit: float) -> str:
    # Rounded up, so that what is there is seen.
    return "".join(sign * math.ceil(ops[op] / unit) for op, sign in OPS.items())


def _line(table: _Table, busiest: int) -> str:
    return "".join(_sign(table, slot, busiest) for slot in range(TIME_WIDTH))


def _sign(table: _Table, slot: int, busiest: int) -> str:
    rows = table.slots[slot]
    if table.ddl_slots[slot] > rows:
        return DDL
    return _HEIGHTS[(rows * len(_HEIGHTS) - 1) // busiest] if rows else " "
