"""Columns of a table by the names that a user gives them, with case or without."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def fold(name: str, *, case_sensitive: bool) -> str:
    """What two names of one column have in common."""
    return name if case_sensitive else name.lower()


def clashes(names: Iterable[str]) -> list[list[str]]:
    """Names that differ only in case, those of one column together."""
    groups: dict[str, dict[str, None]] = {}
    for name in names:
        groups.setdefault(name.lower(), {})[name] = None
    return [list(group) for group in groups.values() if len(group) > 1]


def spelled(
    names: Iterable[str], columns: Sequence[str], *, case_sensitive: bool
) -> tuple[str, ...]:
    """The names as the table's columns spell them; one without a column stays as it is."""
    if case_sensitive:
        return tuple(names)
    folded = {column.lower(): column for column in reversed(columns)}
    return tuple(name if name in columns else folded.get(name.lower(), name) for name in names)
