"""Writer of names, texts and numbers: JSON as the producer writes it, or binary Avro."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from cdcfmt_core.encoder import EncoderContext
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.toolkit.avro_output import signed, write_long, write_text
from cdcfmt_core.toolkit.json_output import escape_for_go, valid_name, valid_text
from cdcfmt_core.toolkit.row_messages import Wire

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
