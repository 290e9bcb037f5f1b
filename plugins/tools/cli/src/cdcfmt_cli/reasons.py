"""Corrupt messages and rows by reason."""

from __future__ import annotations

import re

import attrs
from rich.console import Console
from rich.text import Text

from cdcfmt_cli.printing import number, plain_table, position_text, print_table, reason_of
from cdcfmt_cli.reading import Decoded
from cdcfmt_core.events import Corrupt, Message

OTHERS = "(others)"
_MAX_REASONS = 100_000
_NUMBERS = re.compile(r"(?<!\w)\d+(?!\w)")


@attrs.define
class Reason:
    """Corrupt messages and rows of one format with the same reason.

    - ``text``: field and reason; ``#`` stands for numbers, which vary with the message
    - ``number``, ``first``, ``error``: of the first one the number of its message, counted from
      0, the message without its bytes, and the error with its position
    """

    protocol: str | None
    text: str
    number: int
    first: Message
    error: str
    count: int = 0


class Reasons:
    """Counts by reason, in bounded memory."""

    def __init__(self) -> None:
        self._found: dict[tuple[str | None, str], Reason] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(self, decoded: Decoded, event: Corrupt) -> None:
        error = event.error
        key = error.protocol, _NUMBERS.sub("#", reason_of(error))
        if key not in self._found and len(self._found) >= _MAX_REASONS:
            key = None, OTHERS
        found = self._found.get(key)
        if found is None:
            first = attrs.evolve(decoded.message, key=None, value=None, headers=())
            found = self._found[key] = Reason(*key, decoded.number, first, str(error))
        found.count += 1

    def most_frequent(self) -> list[Reason]:
        """All reasons, the most frequent first."""
        return sorted(self._found.values(), key=lambda found: (-found.count, found.text))


def write_reasons(reasons: Reasons, out: Console, most: int, hint: str) -> None:
    """Print the ``most`` most frequent reasons; ``hint``: how to see the others."""
    table = plain_table("corrupt", "format", "reason", "first", right=("corrupt",))
    for reason in reasons.most_frequent()[:most]:
        table.add_row(
            Text(number(reason.count), "bad"),
            reason.protocol or "–",
            reason.text,
            Text(position_text(reason.first), "name"),
        )
    print_table(table, out)
    if len(reasons) > most:
        out.print(f"… {number(len(reasons))} reasons in all; {hint}", style="faint")
