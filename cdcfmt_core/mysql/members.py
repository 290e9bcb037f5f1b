"""ENUM and SET: convert an index or bitmap to names if the definition is known, and back.

MySQL 8.4 Reference Manual, 11.3.5 and 11.3.6: index 0 is the invalid value, printed as
an empty string; bit n means member n, and members are printed in defined order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

MAX_ENUM: Final = 65_535
MAX_SET: Final = (1 << 64) - 1
_MAX_DIGITS: Final = 20
_MAX_REMEMBERED: Final = 1_024


@functools.lru_cache(maxsize=128)
def enum_parser(names: tuple[str, ...] | None) -> Callable[[str], str | int]:
    """Index → name, or the index itself if the names are unknown."""
    limit = MAX_ENUM if names is None else len(names)
    known: dict[str, str | int] = {}
    if names is not None:
        known = {name: name for name in names}
        # An index has precedence over a name of digits.
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


@functools.lru_cache(maxsize=128)
def set_parser(names: tuple[str, ...] | None) -> Callable[[str], str | int]:
    """Bitmap → names joined by commas, or the bitmap itself if the names are unknown."""
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


def enum_index(names: tuple[str, ...] | None) -> Callable[[Any], int]:
    """Name → index, for wires with indexes; an index is unchanged."""
    # A member "" has precedence over the invalid value, which is printed equally.
    known = {"": 0} | {name: index for index, name in enumerate(names or (), 1)}
    limit = MAX_ENUM if names is None else len(names)

    def index_of(value: Any) -> int:
        if type(value) is int:
            if 0 <= value <= limit:
                return value
            raise ValueError(f"index beyond {limit}")
        try:
            return known[value]
        except KeyError:
            raise ValueError(_unknown_member(names)) from None

    return index_of


def set_bitmap(names: tuple[str, ...] | None) -> Callable[[Any], int]:
    """Names joined by commas → bitmap, for wires with bitmaps; a bitmap is unchanged."""
    bits = {name: 1 << bit for bit, name in enumerate(names or ())}
    limit = MAX_SET if names is None else (1 << len(names)) - 1

    def bitmap_of(value: Any) -> int:
        if type(value) is int:
            if 0 <= value <= limit:
                return value
            raise ValueError(f"bitmap beyond {limit}")
        try:
            return sum({bits[name] for name in value.split(",")}) if value else 0
        except KeyError:
            raise ValueError(_unknown_member(names)) from None

    return bitmap_of


def enum_name(names: tuple[str, ...] | None) -> Callable[[Any], str]:
    """Index → name, for wires with names; a name is unchanged, if it may be one."""
    index_of = enum_index(names)
    known = ("", *(names or ()))

    def name_of(value: Any) -> str:
        if names is not None:
            index = index_of(value)
            return value if type(value) is str else known[index]
        return _name(value)

    return name_of


def set_names(names: tuple[str, ...] | None) -> Callable[[Any], str]:
    """Bitmap → names joined by commas, for wires with names; names are unchanged, likewise."""
    bitmap_of = set_bitmap(names)

    def names_of(value: Any) -> str:
        if names is not None:
            bitmap = bitmap_of(value)
            if type(value) is str:
                return value
            return ",".join(name for bit, name in enumerate(names) if bitmap >> bit & 1)
        return _name(value)

    return names_of


def _name(value: Any) -> str:
    """A value of a column whose members are unknown."""
    if type(value) is not str:
        raise ValueError(_unknown_member(None))
    return value


def _unknown_member(names: tuple[str, ...] | None) -> str:
    if names is None:
        return (
            "the format needs the column's members, but its type does not list them; "
            "declare the type, such as enum('a','b')"
        )
    return (
        "not a member of the column's type; correct the value, or declare the type with that member"
    )


def _is_number(text: str) -> bool:
    return text.isdecimal() and text.isascii()


def _number(text: str, limit: int, what: str) -> int:
    # Too many digits: do not build a huge int.
    value = int(text) if len(text) <= _MAX_DIGITS else limit + 1
    if value > limit:
        raise ValueError(f"{what} beyond {limit}")
    return value
