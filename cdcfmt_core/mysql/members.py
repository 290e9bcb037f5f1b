"""ENUM and SET text: an index or a bitmap becomes names where the definition is known.

MySQL 8.4 Reference Manual, 11.3.5 and 11.3.6: index 0 is the invalid value, printed as
an empty string; bit n stands for member n, and members are printed in defined order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

MAX_ENUM: Final = 65_535
MAX_SET: Final = (1 << 64) - 1
_MAX_DIGITS: Final = 20
_MAX_REMEMBERED: Final = 4_096


def enum_parser(names: tuple[str, ...] | None) -> Callable[[str], str | int]:
    """Index → name, or the index itself where the names are unknown."""
    limit = MAX_ENUM if names is None else len(names)
    known: dict[str, str | int] = {}
    if names is not None:
        known = {name: name for name in names}
        # An index wins over a name that is made of digits.
        known |= {str(index): name for index, name in enumerate(("", *names))}

    def parse(text: str) -> str | int:
        try:
            return known[text]
        except KeyError:
            pass
        if not _is_number(text):
            return text
        index = _number(text, limit, "index")
        value = index if names is None else ("", *names)[index]
        if len(known) < _MAX_REMEMBERED:
            known[text] = value
        return value

    return parse


def set_parser(names: tuple[str, ...] | None) -> Callable[[str], str | int]:
    """Bitmap → names joined by commas, or the bitmap where the names are unknown."""
    limit = MAX_SET if names is None else (1 << len(names)) - 1
    known: dict[str, str | int] = {}

    def parse(text: str) -> str | int:
        try:
            return known[text]
        except KeyError:
            pass
        if not _is_number(text):
            return text
        bitmap = _number(text, limit, "bitmap")
        value: str | int = bitmap
        if names is not None:
            value = ",".join(name for bit, name in enumerate(names) if bitmap >> bit & 1)
        if len(known) < _MAX_REMEMBERED:
            known[text] = value
        return value

    return parse


def _is_number(text: str) -> bool:
    return text.isdecimal() and text.isascii()


def _number(text: str, limit: int, what: str) -> int:
    # Digits beyond the longest possible are not worth an int of their length.
    value = int(text) if len(text) <= _MAX_DIGITS else limit + 1
    if value > limit:
        raise ValueError(f"{what} beyond {limit}")
    return value
