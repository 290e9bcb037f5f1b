r"""Go's ``strconv.Quote`` and its inverse, for TiCDC's BINARY and VARBINARY values.

Source: https://pkg.go.dev/strconv#Quote and TiCDC Open Protocol, "Column type code".  The
surrounding quotes are left out.  Printable UTF-8 is unchanged, all other bytes are
``\a \b \f \n \r \t \v \\ \" \xHH \uHHHH \UHHHHHHHH``.  Other text is rejected: it was not quoted,
and its bytes would be a guess.
"""

from __future__ import annotations

import codecs
import functools
import re
import sys
from typing import Final

_BYTE: Final = rb'\\(?:x[0-9A-Fa-f][0-9A-Fa-f]|[abfnrtv\\"])'
_RUNE: Final = rb"\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})"
_UNQUOTED: Final = rb'[\\"\x00-\x1f\x7f]'

# A pattern for the whole text would store a backtracking position per escape: many times the
# text's length in memory.
_drop_bytes = re.compile(_BYTE).sub
_has_unquoted = re.compile(_UNQUOTED).search
_each_special = re.compile(rb"(?:%s|%s)|(%s)" % (_BYTE, _RUNE, _UNQUOTED)).finditer
_replace_runes = re.compile(_RUNE).sub


def unquote(text: str) -> bytes:
    """The bytes that were quoted.

    :raises ValueError: if ``text`` is not what Quote writes.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ValueError("not Go-quoted: a byte or half a character that is not escaped") from None
    # An apparent rune may be an escaped backslash followed by a letter.
    if b"\\u" in data or b"\\U" in data or _has_unquoted(_drop_bytes(b"", data)):
        data = _without_runes(data)
    # Python's bytes literals have Go's escapes and some more, which are excluded above.
    return codecs.escape_decode(data)[0]


def _without_runes(data: bytes) -> bytes:
    r"""``data`` with ``\u`` and ``\U`` replaced; validates all escapes."""
    for special in _each_special(data):
        if special[1]:
            found = data[special.start() :][:10].decode("latin-1")
            raise ValueError(f"not Go-quoted: {found!r} at byte {special.start()}")

    def replace(match: re.Match[bytes]) -> bytes:
        code = int(match[0][2:], 16)
        if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
            raise ValueError(f"not Go-quoted: {match[0].decode()} is not a character")
        if code > 0x7F:
            return chr(code).encode()
        # Escaped, as it may be a backslash.
        return b"\\x%02x" % code

    # The second half of an escaped backslash does not start a rune.
    return _replace_runes(replace, data.replace(rb"\\", rb"\x5c"))


_SHORT: Final = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


@functools.lru_cache(maxsize=4_096)
def _quoted(character: str) -> str:
    code = ord(character)
    if code in _SHORT:
        return "\\" + _SHORT[code]
    # Python's surrogate for a byte that is not UTF-8.
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if character.isprintable():
        return character
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def quote(data: bytes) -> str:
    """``data`` as Quote writes it, without the surrounding quotes."""
    text = data.decode("utf-8", "surrogateescape")
    if text.isprintable() and '"' not in text and "\\" not in text:
        return text
    return "".join(map(_quoted, text))


@functools.cache
def printable_spans() -> list[tuple[int, int]]:
    """The printable characters, including quotes and backslashes, for the kernel.

    Ascending spans of code points; ends are exclusive.
    """
    flags = bytes(map(str.isprintable, map(chr, range(sys.maxunicode + 1))))
    return [span.span() for span in re.finditer(b"\1+", flags)]
