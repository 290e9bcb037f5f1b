"""ENUM and SET: convert an index or bitmap to names if the definition is known, and back.

MySQL 8.4 Reference Manual, 11.3.5 and 11.3.6: index 0 is the invalid value, printed as
an empty string; bit n means member n, and members are printed in defined order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from cdcfmt_core.expansion import take_expanded

MAX_ENUM: Final = 65_535
MAX_SET: Final = (1 << 64) - 1
_MAX_DIGITS: Final = 20
_SHORT_SET: Final = 1_000
"""Longer texts of SETs count as expanded."""


@functools.lru_cache(maxsize=128)
def enum_parser(names: tuple[str, ...] | None) -> Callable[[str], str | int]:
    """Index → name, or the index itself if the names are unknown."""
    if names is None:
        return _parser({}, MAX_ENUM, "index", lambda index: index)
    printed = ("", *names)
    known: dict[str, str | int] = {name: name for name in names}
    # An index has precedence over a name of digits.
    known |= {str(index): name for index, name in enumerate(printed)}
    return _parser(known, len(names), "index", printed.__getitem__)


@functools.lru_cache(maxsize=128)
def set_parser(names: tuple[str, ...] | None) -> Callable[[str], str | int]:
    """Bitmap → names joined by commas, or the bitmap itself if the names are unknown."""
    if names is None:
        return _parser({}, MAX_SET, "bitmap", lambda bitmap: bitmap)
    return _parser({}, (1 << len(names)) - 1, "bitmap", functools.partial(_joined, names))


def _parser(
    known: dict[str, str | int], limit: int, what: str, value_of: Callable[[int], str | int]
) -> Callable[[str], str | int]:
    def parse(text: str) -> str | int:
        if text in known:
            return known[text]
        if not (text.isdecimal() and text.isascii()):
            return text
        return value_of(_number(text, limit, what))

    return parse


def enum_index(names: tuple[str, ...] | None) -> Callable[[Any], int]:
    """Name → index, for wires with indexes; an index is unchanged."""
    # A member "" has precedence over the invalid value, which is printed equally.
    known = {"": 0} | {name: index for index, name in enumerate(names or (), 1)}
    limit = MAX_ENUM if names is None else len(names)
    return _number_reader(names, limit, "index", known.__getitem__)


def set_bitmap(names: tuple[str, ...] | None) -> Callable[[Any], int]:
    """Names joined by commas → bitmap, for wires with bitmaps; a bitmap is unchanged."""
    bits = {name: 1 << bit for bit, name in enumerate(names or ())}
    limit = MAX_SET if names is None else (1 << len(names)) - 1

    def find(value: str) -> int:
        return sum({bits[name] for name in value.split(",")}) if value else 0

    return _number_reader(names, limit, "bitmap", find)


def _number_reader(
    names: tuple[str, ...] | None, limit: int, what: str, find: Callable[[str], int]
) -> Callable[[Any], int]:
    def number_of(value: Any) -> int:
        if type(value) is int:
            if 0 <= value <= limit:
                return value
            raise ValueError(f"{what} beyond {limit}")
        try:
            return find(value)
        except KeyError:
            raise ValueError(_unknown_member(names)) from None

    return number_of


def enum_name(names: tuple[str, ...] | None) -> Callable[[Any], str]:
    """Index → name, for wires with names; a name is unchanged, if it may be one."""
    if names is None:
        return _name
    return _name_reader(enum_index(names), ("", *names).__getitem__)


def set_names(names: tuple[str, ...] | None) -> Callable[[Any], str]:
    """Turn a SET bitmap into comma-separated names.  Valid names pass through unchanged."""
    if names is None:
        return _name
    return _name_reader(set_bitmap(names), functools.partial(_joined, names))


def _name_reader(
    number_of: Callable[[Any], int], printed: Callable[[int], str]
) -> Callable[[Any], str]:
    def name_of(value: Any) -> str:
        number = number_of(value)
        return value if type(value) is str else printed(number)

    return name_of


def _joined(names: tuple[str, ...], bitmap: int) -> str:
    text = ",".join(name for bit, name in enumerate(names) if bitmap >> bit & 1)
    if len(text) > _SHORT_SET:
        take_expanded(len(text))
    return text


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


def _number(text: str, limit: int, what: str) -> int:
    # Too many digits: do not build a huge int.
    value = int(text) if len(text) <= _MAX_DIGITS else limit + 1
    if value > limit:
        raise ValueError(f"{what} beyond {limit}")
    return value
