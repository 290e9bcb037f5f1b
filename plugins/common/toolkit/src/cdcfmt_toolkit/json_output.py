"""Write names, texts and numbers as JSON, as the producer does, or as binary Avro.

The core has no JSON writer: an encoder passes its library's output, which is adapted to Go's and
Java's JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from cdcfmt_core.encoder import EncoderContext
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column
from cdcfmt_toolkit.row_messages import Wire
from cdcfmt_toolkit.wire_avro import signed, write_long, write_text

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
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_LONG: Final = {b"\\b": b"\\u0008", b"\\f": b"\\u000c", b"\\\\": b"\\\\"}


def is_lossless_text(value: str) -> bool:
    """Whether a text has no surrogates, which stand for undecodable bytes."""
    # Encoding it would make a copy.
    return value.isascii() or _SURROGATE.search(value) is None


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


Dumps: TypeAlias = Callable[[Any], bytes]
"""A JSON writer; for text that is not UTF-8 it may raise TypeError or UnicodeEncodeError."""


class JsonNumber(bytes):
    """A number in JSON form."""


def no_json(value: Any) -> bytes:
    """The JSON writer of wires without JSON."""
    raise TypeError("the wire has no JSON")


class WireText:
    """Writes names, texts and numbers."""

    def __init__(self, wire: Wire, context: EncoderContext, dumps: Dumps) -> None:
        self.is_avro = wire == "avro"
        self._is_go, self._html = wire in ("json", "jsoniter"), wire == "json"
        self._context = context
        self._dumps = dumps
        if not self.is_avro and (dumps is no_json or type(dumps("")) is not bytes):
            raise TypeError("JSON needs dumps, a function that returns bytes, such as orjson.dumps")

    def name(self, name: str) -> str:
        """A name as JSON.

        :raises EncodeError: if it is not UTF-8.
        """
        return self.json(valid_name(name))

    def names(self, **names: str) -> str:
        """Members of a JSON object whose values are names, each followed by a comma.

        Empty names are left out, as in Go.
        """
        return "".join(f'"{field}":{self.name(name)},' for field, name in names.items() if name)

    def json(self, value: Any) -> str:
        """A value as JSON.

        :raises EncodeError: for a text that is not UTF-8, under ``invalidText=fail``.
        """
        return self.escaped(self.printed(value)).decode()

    def printed(self, value: Any, column: str | None = None) -> bytes:
        """A value as JSON without Go's escapes; ``column``: its column, for errors."""
        if type(value) is JsonNumber:
            return value
        try:
            return self._dumps(value)
        except (TypeError, UnicodeEncodeError) as error:
            if not isinstance(value, str):
                reason = f"cannot be written as JSON ({error})"
                raise EncodeError(reason, column=column, sample=value) from None
            return self._dumps(valid_text(value, self._context, column=column))

    def escaped(self, data: bytes) -> bytes:
        """JSON with Go's escapes, if the producer is written in Go."""
        return escape_for_go(data, html=self._html) if self._is_go else data

    def integer(self, value: int) -> bytes:
        """An integer; in Avro, one beyond 63 bits becomes the signed one with the same bits."""
        return write_long(signed(value)) if self.is_avro else b"%d" % value

    def text(self, value: Any) -> bytes:
        """A text without Go's escapes; empty for a value of another type."""
        text = valid_text(value if isinstance(value, str) else "", self._context)
        return write_text(text) if self.is_avro else self._dumps(text)
