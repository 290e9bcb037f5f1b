"""Bytes as text: Latin-1, base64 or hexadecimal."""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Mapping
from typing import Final

from cdcfmt_core.toolkit.wire_json import parse_base64

_HEX: Final = re.compile(r"(0x)?([0-9a-f]*|[0-9A-F]*)").fullmatch


def parse_latin1(text: str) -> bytes:
    """Bytes from text with one character per byte."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError("not one character per byte") from None


def parse_hex(text: str) -> bytes:
    """Bytes from text with two hexadecimal digits per byte, with or without ``0x``."""
    try:
        return binascii.unhexlify(text.removeprefix("0x"))
    except ValueError:
        raise ValueError("not hexadecimal") from None


BYTE_READERS: Final[Mapping[str, Callable[[str], bytes]]] = {
    "latin1": parse_latin1,
    "base64": parse_base64,
    "hex": parse_hex,
}


def detecting_reader(exact: int | None, longest: int | None) -> Callable[[str], bytes]:
    """A reader of text in any of these forms, if alphabet and length allow only one value.

    :param exact: the number of bytes of a value, if known.
    :param longest: the maximum number of bytes of a value, if known.
    """

    def read(text: str) -> bytes:
        found: dict[str, bytes] = {}
        for name, reader in BYTE_READERS.items():
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
            bounds = "" if longest is None else f"at most {longest} "
            raise ValueError(f"not Latin-1, base64 or hexadecimal of {bounds}bytes")
        ways = " or ".join(f"{name} of {len(data)} bytes" for name, data in found.items())
        raise ValueError(f"ambiguous bytes: {ways}")

    return read
