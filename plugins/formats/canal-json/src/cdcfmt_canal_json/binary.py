"""Bytes in text: one character per byte, or hexadecimal (option ``binaryEncoding``).

TiCDC and Canal write one character per byte (Latin-1), Tencent DTS writes hexadecimal, and a
message does not name its producer.  Text of hexadecimal digits may be either.  ``auto`` reads it if

- its message has bytes that have only one form, as a producer writes all in the same form,
- or the column's type excludes one: the text is longer than the column, or exactly as long as a
  BINARY.

Otherwise, it is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from cdcfmt_mysql.column_type import binary_lengths
from cdcfmt_toolkit.scalar_readers import BYTE_READERS, parse_hex

OPTION: Final = "binaryEncoding"
BINARY_ENCODINGS: Final = ("auto", *BYTE_READERS)
HINT: Final = f"; set {OPTION} to how the messages have bytes"

Form: TypeAlias = Literal["auto", "latin1", "hex", "base64"]

_DIGITS: Final = re.compile(r"(?:0x)?(?:(?:[0-9a-f]{2})+|(?:[0-9A-F]{2})+)").fullmatch


def form_of(rows: Iterable[Any], columns: Mapping[str, str]) -> Form:
    """The only form in which the rows of a message have bytes; ``auto`` if that is open.

    :param columns: the source types of binary columns.
    """
    found: set[Form] = set()
    for row in rows:
        for name, source_type in columns.items():
            text = row.get(name) if type(row) is dict else None
            if type(text) is not str or not text:
                continue
            if not _DIGITS(text):
                found.add("latin1")
            elif _exceeds(text, source_type):
                found.add("hex")
    return found.pop() if len(found) == 1 else "auto"


def _exceeds(text: str, source_type: str) -> bool:
    longest = binary_lengths(source_type)[1]
    return longest is not None and len(text) > longest


def detecting(source_type: str, read: Callable[[Any], object]) -> Callable[[Any], object]:
    """A reader of hexadecimal, and of what ``read`` reads; the type of a column excludes one."""
    exact = binary_lengths(source_type)[0]

    def detect(value: Any) -> object:
        if type(value) is not str or not _DIGITS(value):
            return read(value)
        if _exceeds(value, source_type):
            return parse_hex(value).ljust(exact or 0, b"\0")
        if len(value) == exact:
            return read(value)
        raise ValueError(
            f"text of {len(value)} bytes, or hexadecimal of {len(parse_hex(value))}{HINT}"
        )

    return detect
