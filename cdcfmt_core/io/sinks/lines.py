"""Messages as lines of a file: the way back of :mod:`cdcfmt_core.io.sources.lines`."""

from __future__ import annotations

from collections.abc import Callable

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Message
from cdcfmt_core.io.sources.whole_messages import begins_message, wrap_line


def line_writer(line_format: str) -> Callable[[Message], bytes]:
    """A function that gives a message's line, without its end.

    ``message``: the whole message as :func:`~cdcfmt_core.io.sources.wrap_line` writes it.
    ``value``: the value alone; its key is left out.  ``auto``: the value alone where a
    reader gets the whole message back from it, as it is a JSON object without key.
    """
    return {"message": wrap_line, "value": _value, "auto": _auto}[line_format]


def _value(message: Message) -> bytes:
    value = message.value
    if value is None:
        raise EncodeError("a message without value is not a line; set lineFormat=message")
    if b"\n" in value or value.endswith(b"\r"):
        raise EncodeError("the value is more than one line; set lineFormat=message", sample=value)
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
