"""What becomes of input that the user's schema or options refuse."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, tzinfo
from typing import NoReturn

import attrs

from cdcfmt_core.errors import PolicyError, show
from cdcfmt_core.types import InvalidValue
from pyspark_cdcfmt.option_groups import MODE_OPTIONS

_OTHERS = {
    option.name: [choice for choice in option.choices if choice != "fail"]
    for option in MODE_OPTIONS
}


class BadValue(ValueError):
    """A value that the declared type cannot hold."""


class BadRow(Exception):
    """A row that obeys ``mode``; ``field`` is the column."""

    def __init__(self, reason: str, field: str | None = None) -> None:
        super().__init__(reason, field)
        self.reason = reason
        self.field = field


def refuse(option: str, chosen: str, reason: str, column: str | None = None) -> NoReturn:
    """What ``fail`` and ``corrupt`` do, of every option that has them.

    :raises PolicyError: under ``fail``, whatever ``mode`` is.
    :raises BadRow: under ``corrupt``.
    """
    if chosen == "corrupt":
        raise BadRow(reason, column)
    *some, last = _OTHERS[option]
    ways = f"{', '.join(some)} or {last}" if some else last
    raise PolicyError(f"{reason} ({option}={chosen}; to read on, set {ways})", column=column)


@attrs.define
class ValuePolicy:
    """What becomes of values that types cannot hold (DESIGN: wrong input), counted by column.

    ``changed`` is a list where the columns of one row are collected whose value was changed.
    """

    invalid_values: str = "null"
    invalid_text: str = "replace"
    time_zone: tzinfo = UTC
    counts: Counter[str] = attrs.field(factory=Counter)
    changed: list[str] | None = None

    def note(self, column: str, what: str) -> None:
        """Count a value that does not reach its row as it is."""
        self.counts[f"{column}: {what}"] += 1
        if self.changed is not None:
            self.changed.append(column)

    def text(self, value: str, column: str) -> str:
        """``value`` with undecodable bytes treated as ``invalidText`` says."""
        if value.isascii():
            return value
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            pass
        else:
            return value
        try:
            raw = value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raw = value.encode("utf-8", "surrogatepass")
        if self.invalid_text in ("fail", "corrupt"):
            reason = f"text that its charset cannot decode: {show(raw)}"
            refuse("invalidText", self.invalid_text, reason, column)
        self.note(column, "undecodable text")
        how = "replace" if self.invalid_text == "replace" else "backslashreplace"
        return raw.decode("utf-8", how)

    def invalid(self, value: InvalidValue, column: str, *, as_text: bool) -> str | None:
        """What stands for a value that the type cannot hold."""
        if self.invalid_values in ("fail", "corrupt"):
            reason = f"{show(value.text)} is no possible value"
            refuse("invalidValues", self.invalid_values, reason, column)
        if self.invalid_values == "text":
            if as_text:
                return value.text
            raise BadValue(
                f"{show(value.text)} is no possible value, and invalidValues=text needs a string "
                "column"
            )
        self.note(column, "invalid value as NULL")
        return None
