"""PostgreSQL's texts as Python values, for the truth of golden sets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import attrs

from cdcfmt_core.types import InvalidValue
from support.golden_data import Bits

NO_LOGICAL_TYPE = frozenset(
    {"array", "uuid", "hstore", "interval", "timetz", "point", "geometry", "geography"}
)
"""Types whose values stay as they are on the wire."""

_MICROSECOND = timedelta(microseconds=1)


@attrs.frozen
class Beyond:
    """A date or time that Python's types do not have; an image has an InvalidValue."""

    text: str


def postgres_value(column: Mapping[str, Any], true: Mapping[str, Any] | None) -> Any:
    """A true value as an image holds it; texts of other types are unchanged."""
    if true is None:
        return None
    kind, text = true["t"], true["v"]
    if "hex" in true:
        return Bits(true["hex"], text)
    if kind == "int":
        return int(text)
    if kind == "decimal":
        return Decimal(text)
    if kind == "money":
        return Decimal(re.sub(r"[$,]", "", text))
    if kind == "bool":
        return text == "t"
    if kind == "bytes":
        return bytes.fromhex(text)
    if kind == "bits":
        return text == "1" if column["type"] == "bit(1)" else int(text or "0", 2)
    if kind in ("date", "timestamp", "timestamptz"):
        return _calendar(kind, text)
    if kind == "time":
        return _time(text)
    return text


def _time(text: str) -> timedelta:
    hours, minutes, seconds = text.split(":")
    whole, _, fraction = seconds.partition(".")
    return timedelta(
        hours=int(hours),
        minutes=int(minutes),
        seconds=int(whole),
        microseconds=int(fraction.ljust(6, "0")),
    )


def _calendar(kind: str, text: str) -> Any:
    try:
        if kind == "date":
            return date.fromisoformat(text)
        parsed = datetime.fromisoformat(text)
        return parsed.astimezone(UTC) if kind == "timestamptz" else parsed
    except (ValueError, OverflowError):
        return Beyond(text)


def same_or_beyond(expected: Any, actual: Any) -> bool:
    return isinstance(expected, Beyond) and isinstance(actual, InvalidValue)
