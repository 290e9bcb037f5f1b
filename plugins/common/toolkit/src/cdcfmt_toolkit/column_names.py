"""Names of columns in options, and names that differ only in case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cdcfmt_core.column_names import spelled
from cdcfmt_core.errors import OptionError, show
from cdcfmt_core.texts import did_you_mean


def clashes(names: Iterable[str]) -> list[list[str]]:
    """Names that differ only in case, one list per column."""
    groups: dict[str, dict[str, None]] = {}
    for name in names:
        groups.setdefault(name.lower(), {})[name] = None
    return [list(group) for group in groups.values() if len(group) > 1]


def option_names(option: str, given: Iterable[str], columns: Sequence[str]) -> tuple[str, ...]:
    """An option's names as the table spells them; a name without a column stays unchanged.

    :raises OptionError: if a name matches several columns.
    """
    for name in given:
        alike = [column for column in columns if column.lower() == name.lower()]
        if len(alike) > 1 and name not in alike:
            raise OptionError(f"option {option}: {show(name)} is ambiguous: {' or '.join(alike)}")
    return spelled(given, columns, case_sensitive=False)


def lacking(names: Iterable[str], columns: Iterable[str]) -> str | None:
    """The error text if a table lacks one of ``keyColumns``, else None."""
    known = list(columns)
    for name in names:
        if name not in known:
            return f"keyColumns names {name}, which the table lacks{did_you_mean(name, known)}"
    return None


class UnitedNames:
    """The columns over all of a table's messages, each in its first spelling.

    Columns that differ only in case within one message stay separate.
    """

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._all: dict[str, None] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def of(self, columns: Sequence[str]) -> dict[str, str]:
        """The united name of each of a message's columns, by its name in the message."""
        apart = {name for group in clashes(columns) for name in group}
        names = {
            name: name if name in apart else self._first.setdefault(name.lower(), name)
            for name in columns
        }
        self._all.update(dict.fromkeys(names.values()))
        return names
