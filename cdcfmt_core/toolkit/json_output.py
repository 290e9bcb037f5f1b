"""Adapt a fast JSON writer's output to Go's and Java's JSON.

The core has no JSON writer; an encoder passes its library's output.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from cdcfmt_core.encoder import EncoderContext
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column

_HTML: Final = {
    b"<": b"\\u003c",
    b">": b"\\u003e",
    b"&": b"\\u0026",
    b"\xe2\x80\xa8": b"\\u2028",
    b"\xe2\x80\xa9": b"\\u2029",
}
_SHORT: Final = re.compile(rb"\\[\\bf]")
NO_BYTES: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that do not represent a byte; JSON can write one, as ``"\\ud800"``."""
_LONG: Final = {b"\\b": b"\\u0008", b"\\f": b"\\u000c", b"\\\\": b"\\\\"}


def escape_for_go(data: bytes, *, html: bool = True) -> bytes:
    r"""JSON text with ``<``, ``>``, ``&``, U+2028 and U+2029 escaped, as ``encoding/json``,
    ``goccy/go-json`` and ``easyjson`` do (``html``; ``jsoniter`` does not), and ``\b`` and
    ``\f`` in their long form."""
    # Outside of strings JSON has none of these, so the bytes may be replaced anywhere.
    for character, escape in _HTML.items() if html else ():
        data = data.replace(character, escape)
    # Escaped backslashes match too, so that the next character is not taken for an escape.
    return _SHORT.sub(lambda match: _LONG[match[0]], data) if b"\\" in data else data


def go_order(columns: Iterable[Column]) -> list[Column]:
    """Columns sorted by the bytes of their names, as Go sorts the members of a map.

    :raises EncodeError: for a name that is not UTF-8.
    """
    return sorted(columns, key=lambda column: valid_name(column.name).encode())


def valid_text(text: str, context: EncoderContext, *, column: str | None = None) -> str:
    """The text as valid UTF-8; other bytes become U+FFFD and are counted.

    :raises EncodeError: under ``invalidText=fail``.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        pass
    else:
        return text
    if context.invalid_text == "fail":
        raise EncodeError(
            "the text is not UTF-8, and this format cannot carry its bytes; set "
            "invalidText=replace to write U+FFFD instead",
            column=column,
            sample=text,
        )
    context.counts["texts that are not UTF-8, written with U+FFFD"] += 1
    escaped = NO_BYTES.sub("\ufffd", text).encode("utf-8", "surrogateescape")
    return escaped.decode("utf-8", "replace")


def valid_name(name: str) -> str:
    """:raises EncodeError: for a name that is not UTF-8; replacing bytes would change the name."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise EncodeError("a name is not UTF-8", sample=name) from None
    return name
