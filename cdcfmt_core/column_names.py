"""Match a user's column names with a table's, case-sensitively or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def fold(name: str, *, case_sensitive: bool) -> str:
    """A key that is equal for all spellings of one column."""
    return name if case_sensitive else name.lower()


def spelled(
    names: Iterable[str], columns: Sequence[str], *, case_sensitive: bool
) -> tuple[str, ...]:
    """The names as the table spells them; a name without a column stays unchanged."""
    if case_sensitive:
        return tuple(names)
    folded = {column.lower(): column for column in reversed(columns)}
    return tuple(name if name in columns else folded.get(name.lower(), name) for name in names)
