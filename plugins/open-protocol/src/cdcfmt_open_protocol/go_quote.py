r"""Undoing Go's ``strconv.Quote``, in which TiCDC writes BINARY and VARBINARY.

Source: https://pkg.go.dev/strconv#Quote and TiCDC Open Protocol, "Column type code".  The
quotes around are left out.  Bytes that are printable UTF-8 stand for themselves, all others
are ``\a \b \f \n \r \t \v \\ \" \xHH \uHHHH \UHHHHHHHH``.  Nothing else is accepted: other
text was not quoted, and its bytes would be guessed.
"""

from __future__ import annotations

import re
from typing import Final

_NAMED: Final = {
    rb"\a": b"\a",
    rb"\b": b"\b",
    rb"\f": b"\f",
    rb"\n": b"\n",
    rb"\r": b"\r",
    rb"\t": b"\t",
    rb"\v": b"\v",
    rb"\\": b"\\",
    rb"\"": b'"',
}
_BYTES: Final = {
    form % byte: bytes([byte]) for byte in range(256) for form in (rb"\x%02x", rb"\x%02X")
}
_KNOWN: Final = _NAMED | _BYTES

# What Quote never leaves as it is: control characters, quotes, and backslashes.
_SPECIAL = re.compile(
    rb"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[^xuU])|[\x00-\x1f\x7f\"\\]", re.DOTALL
)
_replace_special = _SPECIAL.sub


def unquote(text: object) -> bytes:
    """The bytes that were quoted.

    :raises ValueError: if ``text`` is not what Quote writes.
    """
    if type(text) is not str:
        raise ValueError("not quoted text")
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ValueError("not Go-quoted: a byte or half a character that is not escaped") from None
    return _replace_special(_unescape, data)


def _unescape(match: re.Match[bytes]) -> bytes:
    escape = match[0]
    try:
        return _KNOWN[escape]
    except KeyError:
        pass
    if escape[:2] in (rb"\u", rb"\U"):
        code = int(escape[2:], 16)
        if code < 0xD800 or 0xDFFF < code < 0x110000:
            return chr(code).encode()
    elif escape[:2] == rb"\x" and len(escape) == 4:
        return bytes([int(escape[2:], 16)])
    raise ValueError(f"not Go-quoted: {escape.decode('latin-1')!r} at byte {match.start()}")
