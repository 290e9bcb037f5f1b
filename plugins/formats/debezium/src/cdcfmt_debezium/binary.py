"""Parsing of bytes in JSON, by the connectors' ``binary.handling.mode``.

Sources: Debezium MySQL connector, ``binary.handling.mode``: ``bytes`` is Kafka Connect's type
``bytes`` (base64 in JSON), all other modes are text: Java's ``Base64.getEncoder()``,
``getUrlEncoder()``, and hexadecimal.  BINARY(n) is padded to n bytes.

Text that consists of hexadecimal digits may also be base64 if its length is a multiple of four.
If the column's declared length excludes neither, the value is rejected.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from typing import Any, Final

from cdcfmt_mysql.column_type import binary_lengths
from cdcfmt_toolkit.scalar_readers import bytes_of
from cdcfmt_toolkit.value_readers import limited
from cdcfmt_toolkit.wire_json import parse_base64

OPTION: Final = "binaryHandlingMode"
_HINT: Final = f"set {OPTION} to the connector's binary.handling.mode"

_URL_SAFE: Final = str.maketrans("-_", "+/")
_HEX: Final = re.compile(r"[0-9a-f]*|[0-9A-F]*").fullmatch


def binary_parser(mode: str, source_type: str) -> Callable[[Any], object]:
    """The parser of a binary column.

    ``mode`` is one of :data:`BINARY_MODES`, ``certain`` (base64 according to the message's schema)
    or ``contradicted``.  ``source_type`` is the column's type in the database, as text.
    """
    exact, longest = binary_lengths(source_type)
    if mode == "certain":
        return bytes_of if longest is None else limited(bytes_of, longest)
    read = _PARSERS.get(mode) or _detector(exact, longest)

    def parse(value: Any) -> bytes:
        if type(value) is not str:
            raise ValueError("bytes that are not text")
        try:
            data = read(value)
        except ValueError as error:
            raise ValueError(f"{error}; {_HINT}") from None
        if longest is not None and len(data) > longest:
            raise ValueError(f"{len(data)} bytes in a column of {source_type}; {_HINT}")
        if read is _hex and exact is not None and len(data) != exact == _base64_length(value):
            raise ValueError(f"hexadecimal of {len(data)} bytes or base64 of {exact}; {_HINT}")
        return data

    return parse


def _url_safe(text: str) -> bytes:
    if "+" in text or "/" in text:
        raise ValueError("not URL-safe base64")
    return parse_base64(text.translate(_URL_SAFE))


def _hex(text: str) -> bytes:
    try:
        return binascii.unhexlify(text)
    except ValueError:
        raise ValueError("not hexadecimal") from None


def _not_bytes(text: str) -> bytes:
    raise ValueError(f"text according to the message's schema, which contradicts {OPTION}=bytes")


def _base64_length(text: str) -> int | None:
    """The number of bytes if hexadecimal digits are read as base64; None if they cannot be."""
    return len(text) // 4 * 3 if text and len(text) % 4 == 0 else None


def _detector(exact: int | None, longest: int | None) -> Callable[[str], bytes]:
    def read(text: str) -> bytes:
        if len(text) % 2 or not _HEX(text):
            return _url_safe(text) if "-" in text or "_" in text else parse_base64(text)
        length, other = len(text) // 2, _base64_length(text)
        if other is None or (longest is not None and other > longest):
            return _hex(text)
        if exact == other:
            return parse_base64(text)
        raise ValueError(f"hexadecimal of {length} bytes or base64 of {other}")

    return read


_PARSERS: Final[dict[str, Callable[[str], bytes]]] = {
    "bytes": parse_base64,
    "base64": parse_base64,
    "base64-url-safe": _url_safe,
    "hex": _hex,
    "contradicted": _not_bytes,
}

BINARY_MODES: Final = ("auto", "bytes", "base64", "base64-url-safe", "hex")
