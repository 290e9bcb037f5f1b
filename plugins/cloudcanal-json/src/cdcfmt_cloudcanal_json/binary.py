"""Bytes in JSON, whose encoding CloudCanal does not document (``binaryEncoding``).

A text may be a character per byte (Latin-1, as Canal writes), hexadecimal or base64.  Under
``auto`` its alphabet and the column's declared length decide; what they leave open is refused.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from typing import Any, Final

from cdcfmt_core.mysql.column_type import binary_lengths
from cdcfmt_core.wire_json import parse_base64

_HINT: Final = "set binaryEncoding to how the messages have bytes"
_HEX: Final = re.compile(r"(0x)?([0-9a-f]*|[0-9A-F]*)").fullmatch


def binary_parser(encoding: str, source_type: str) -> Callable[[Any], bytes]:
    """The parser of one column; ``source_type`` is its type in the database, as text."""
    read = _READERS.get(encoding) or _detector(source_type)

    def parse(value: Any) -> bytes:
        if type(value) is not str:
            raise ValueError("binary is not text")
        try:
            return read(value)
        except ValueError as error:
            raise ValueError(f"{error}; {_HINT}") from None

    return parse


def _latin1(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError("not one character per byte") from None


def _hex(text: str) -> bytes:
    try:
        return binascii.unhexlify(text.removeprefix("0x"))
    except ValueError:
        raise ValueError("not hexadecimal") from None


_READERS: Final[dict[str, Callable[[str], bytes]]] = {
    "latin1": _latin1,
    "base64": parse_base64,
    "hex": _hex,
}

BINARY_ENCODINGS: Final = tuple(_READERS)


def _detector(source_type: str) -> Callable[[str], bytes]:
    exact, longest = binary_lengths(source_type)

    def read(text: str) -> bytes:
        found: dict[str, bytes] = {}
        for name, reader in _READERS.items():
            if name == "hex" and not _HEX(text):
                continue
            try:
                data = reader(text)
            except ValueError:
                continue
            if longest is None or len(data) <= longest:
                found[name] = data
        full = {name: data for name, data in found.items() if len(data) == exact}
        chosen = full if len(full) == 1 else found
        values = set(chosen.values())
        if len(values) == 1:
            return values.pop()
        if not values:
            raise ValueError("no encoding of bytes" + (f" of {source_type}" if longest else ""))
        ways = " or ".join(f"{name} of {len(data)} bytes" for name, data in found.items())
        raise ValueError(f"bytes that may be {ways}")

    return read
