"""Bytes in JSON, by the connectors' ``binary.handling.mode``."""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Any, Final

from cdcfmt_core.wire_json import parse_base64

_URL_SAFE: Final = str.maketrans("-_", "+/")


def bytes_of(value: Any) -> bytes:
    """Base64, padded and without anything else, as Go and Java write it."""
    if type(value) is not str:
        raise ValueError("not base64 text")
    return parse_base64(value)


def _url_safe(value: Any) -> bytes:
    return bytes_of(value.translate(_URL_SAFE) if type(value) is str else value)


def _hex(value: Any) -> bytes:
    if type(value) is not str:
        raise ValueError("not hexadecimal text")
    try:
        return binascii.unhexlify(value)
    except ValueError:
        raise ValueError("not hexadecimal") from None


_PARSERS: Final[dict[str, Callable[[Any], bytes]]] = {
    "base64": bytes_of,
    "base64-url-safe": _url_safe,
    "hex": _hex,
}

BINARY_MODES: Final = tuple(_PARSERS)


def binary_parser(mode: str) -> Callable[[Any], bytes]:
    """The parser for one of :data:`BINARY_MODES`."""
    return _PARSERS[mode]
