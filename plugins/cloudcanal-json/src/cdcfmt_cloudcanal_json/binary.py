"""Bytes in JSON, whose encoding CloudCanal does not document (``binaryEncoding``).

A text may be a character per byte (Latin-1, as Canal writes), hexadecimal or base64.  Under
``auto`` its alphabet and the column's declared length decide; what they leave open is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC
from typing import Any, Final

from cdcfmt_core.mysql.column_type import binary_lengths
from cdcfmt_core.toolkit.byte_texts import BYTE_READERS
from cdcfmt_core.toolkit.encodings import Encoding
from cdcfmt_core.toolkit.value_readers import value_reader
from cdcfmt_core.types import Binary

_HINT: Final = "set binaryEncoding to how the messages have bytes"

BINARY_ENCODINGS: Final = tuple(BYTE_READERS)


def binary_encoding(option: str, source_type: str) -> Encoding:
    """That of one column; ``source_type`` is its type in the database, as text."""
    if option == "auto":
        exact, longest = binary_lengths(source_type)
        return Encoding("detected-bytes", exact=exact, longest=longest)
    if option == "latin1":
        return Encoding("mysql-text")
    return Encoding("hex" if option == "hex" else "base64")


def binary_parser(option: str, source_type: str) -> Callable[[Any], object]:
    """The parser of one column."""
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
