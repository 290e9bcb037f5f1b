"""Write messages as lines of a file: the inverse of :mod:`cdcfmt_files.sources.lines`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Message
from cdcfmt_files.sources.whole_messages import begins_message, wrap_line
from cdcfmt_toolkit.column_writer import to_bytes
from cdcfmt_toolkit.row_messages import ColumnTemplate, ImageTemplate, RowMessage

_FIRST_FIELD: Final = re.compile(rb'\{\s*"(?:[^"\\]|\\.)*"\s*:').match


def line_writer(line_format: str) -> Callable[[Message], bytes]:
    """A function that returns a message's line, without line end.

    - ``message``: the whole message as :func:`~cdcfmt_files.sources.wrap_line` writes it.
    - ``value``: only the value; the key is left out.
    - ``auto``: only the value if readers can restore the whole message from it (a JSON object
      without key), else ``message``.
    """
    return {"message": wrap_line, "value": _value, "auto": _auto}[line_format]


def _value(message: Message) -> bytes:
    value = message.value
    if value is None:
        raise EncodeError("a message without value is not a line; set lineFormat=message")
    if b"\n" in value or value.endswith(b"\r"):
        raise EncodeError("the value has more than one line; set lineFormat=message", sample=value)
    return value


def _auto(message: Message) -> bytes:
    value = message.value
    if (
        value is None
        or message.key is not None
        or message.headers
        or value[:1] != b"{"
        or value[-1:] != b"}"
        or b"\n" in value
        or begins_message(value)
    ):
        return wrap_line(message)
    return value


LineOfRows: TypeAlias = Literal["value", "message"] | None


def line_of_rows(message: RowMessage, line_format: str, *, compresses: bool) -> LineOfRows:
    """The part of each row that :func:`line_writer` writes; None: it differs between rows."""
    if line_format != "auto":
        return "message" if line_format == "message" else "value"
    begins = b""
    columns: Mapping[str, ColumnTemplate] = {}
    for part in message.value:
        if isinstance(part, str | bytes):
            begins += to_bytes(part)
            continue
        if isinstance(part, ImageTemplate) and part.missing is None:
            begins, columns = begins + to_bytes(part.head), part.columns
        break
    has_bytes = message.key is not None or compresses or message.wire == "avro"
    if has_bytes or begins[:1] not in (b"", b"{"):
        return "message"
    if _FIRST_FIELD(begins):
        return "message" if begins_message(begins) else "value"
    fields = [begins + to_bytes(template.label) for template in columns.values()]
    is_plain = fields and all(_FIRST_FIELD(each) and not begins_message(each) for each in fields)
    return "value" if is_plain else None
