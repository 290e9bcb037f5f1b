"""Encodings of bytes in JSON, which CloudCanal does not document (option ``binaryEncoding``).

A text may be one character per byte (Latin-1, as in Canal), hexadecimal or base64.  ``auto``
detects it by the text's alphabet and the column's length, and rejects ambiguous values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC
from typing import Any, Final

from cdcfmt_core.types import Binary
from cdcfmt_mysql.column_type import binary_lengths
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.scalar_readers import BYTE_READERS
from cdcfmt_toolkit.value_readers import value_reader

_HINT: Final = "set binaryEncoding to how the messages have bytes"

BINARY_ENCODINGS: Final = tuple(BYTE_READERS)


def binary_encoding(option: str, source_type: str) -> Encoding:
    """The value encoding of a binary column; ``source_type`` is its type in the database."""
    exact, longest = binary_lengths(source_type)
    if option == "auto":
        return Encoding("detected-bytes", exact=exact, longest=longest)
    if option == "latin1":
        return Encoding("mysql-text", longest=longest)
    return Encoding("hex" if option == "hex" else "base64", longest=longest)


def binary_parser(option: str, source_type: str) -> Callable[[Any], object]:
    encoding = binary_encoding(option, source_type)
    read = value_reader(encoding, Binary(), time_zone=UTC, counts=Counter())

    def parse(value: Any) -> object:
        if type(value) is not str:
            raise ValueError("binary is not text")
        try:
            return read(value)
        except ValueError as error:
            raise ValueError(f"{error}; {_HINT}") from None

    return parse
