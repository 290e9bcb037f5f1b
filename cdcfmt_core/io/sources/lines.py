"""Lines as messages: a message's value, or a whole message as a JSON object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import attrs

from cdcfmt_core.errors import DecodeError, OptionError
from cdcfmt_core.events import Message
from cdcfmt_core.io.sources.whole_messages import (
    FIELDS,
    as_message,
    begins_message,
    holds_message,
    load_message,
)

LineFormat: TypeAlias = Literal["auto", "value", "message"]

_SEARCHED_BYTES = 1 << 20
_FIRST_FIELDS = tuple(map(str.encode, FIELDS))


def _holds_any(lines: bytes, marks: Sequence[bytes], names: Sequence[bytes]) -> bool:
    """Whether lines hold one of ``marks``, or a whole message if ``names`` are its fields."""
    if any(mark in lines for mark in marks):
        return True
    return bool(names and (begins_message(lines) or holds_message(lines)))


try:
    # The kernel searches ten times as fast, and planning waits for the search.
    from cdcfmt_kernel import holds_any
except ImportError:
    holds_any = _holds_any


@attrs.frozen
class BadLine:
    """A line without a message, and the reason.

    ``offset`` is its byte offset in the uncompressed file.  ``value`` is the line itself,
    or as much of it as was there before the file broke off; None if it was too long to
    keep.  ``error`` names file and offset, too.
    """

    error: DecodeError
    path: str | None
    offset: int | None
    value: bytes | None


@attrs.define(slots=False)
class Lines:
    r"""Lines of a file in one piece, each with its ``\n``, not parsed yet.

    ``offset`` is the first one's byte offset.  ``parse(line, offset)`` parses a line that is
    not blank, ``cut()`` all of them.  ``plain``: each is a message's value.
    """

    data: bytes
    offset: int
    path: str
    plain: bool
    parse: Callable[[bytes, int], Message | BadLine]
    cut: Callable[[], Iterator[Message | BadLine]]

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def are_whole(self) -> bool:
        """Whether they are whole messages, as the first one is."""
        return not self.plain and begins_message(self.data) is not None

    @cached_property
    def starts(self) -> list[int]:
        """Where in ``data`` each line begins."""
        find, starts, at = self.data.find, [0], 0
        while at := find(b"\n", at) + 1:
            starts.append(at)
        del starts[-1]
        return starts

    @property
    def offsets(self) -> list[int]:
        """The byte offset of each line."""
        first = self.offset
        return [first + start for start in self.starts]

    def messages(self) -> Iterator[Message]:
        """Lines that are values, without blank ones."""
        for start, line in zip(self.starts, self.data.split(b"\n"), strict=False):
            offset = self.offset + start
            yield Message(None, line.removesuffix(b"\r"), offset=offset, path=self.path)

    def message(self, place: int) -> Message | BadLine:
        """The message of one line."""
        start = self.starts[place]
        line = self.data[start : self.data.index(b"\n", start)]
        return self.parse(line.removesuffix(b"\r"), self.offset + start)


def one_by_one(
    items: Iterable[Message | BadLine | Lines | Sequence[Message]],
) -> Iterator[Message | BadLine]:
    """Messages one by one; blocks of lines are parsed."""
    for item in items:
        if isinstance(item, Message | BadLine):
            yield item
        elif isinstance(item, Lines):
            yield from item.cut()
        else:
            yield from item


def line_parser(
    line_format: LineFormat, path: str | None
) -> Callable[[bytes, int], Message | BadLine]:
    """``parse(line, offset)`` for the lines of one file.

    :raises OptionError: if there is no such format.
    """
    if line_format not in get_args(LineFormat):
        raise OptionError(
            f"line format {line_format!r} is not one of {', '.join(get_args(LineFormat))}"
        )
    plain, forced = line_format == "value", line_format == "message"

    def parse(line: bytes, offset: int) -> Message | BadLine:
        if plain or not (forced or begins_message(line)):
            return Message(None, line, (), None, None, offset, None, path)
        try:
            wrapped = load_message(line, forced)
            if wrapped is not None:
                return as_message(wrapped, offset, path)
        except DecodeError as error:
            return BadLine(error.at(path=path, offset=offset), path, offset, line)
        return Message(None, line, (), None, None, offset, None, path)

    return parse


def marked_lines(
    marks: Sequence[bytes], line_format: LineFormat, separator: bytes
) -> Callable[[bytes], bool] | None:
    """Whether whole lines may hold values with one of ``marks``; None where that is unknown.

    The lines have no separator before the first one and one behind each.
    """
    if not marks or separator != b"\n" or line_format == "message":
        return None

    # Values in whole messages are base64.
    names = _FIRST_FIELDS if line_format == "auto" else ()
    return lambda lines: holds_any(lines, marks, names)


def marked_messages(
    messages: Iterable[Message | BadLine], marks: Sequence[bytes]
) -> Iterator[Message | BadLine]:
    """Messages in order, at least those whose values hold one of ``marks``; all without marks.

    Those of a megabyte are searched at once, and left out together.
    """
    if not marks:
        yield from messages
        return
    held: list[Message | BadLine] = []
    size = 0
    for message in messages:
        held.append(message)
        size += len(message.value or b"")
        # A name would hold a large message beside the next one.
        del message
        if size >= _SEARCHED_BYTES:
            yield from _marked(held, marks)
            held, size = [], 0
    yield from _marked(held, marks)


def _marked(messages: list[Message | BadLine], marks: Sequence[bytes]) -> list[Message | BadLine]:
    # A large one is not copied to be searched.
    if len(messages) < 2 or len(messages[-1].value or b"") > _SEARCHED_BYTES:
        return messages
    values = b"\0".join(message.value or b"" for message in messages)
    return messages if holds_any(values, marks, ()) else []


def parse_line(
    line: bytes, *, offset: int, path: str | None = None, line_format: LineFormat = "auto"
) -> Message | BadLine:
    """The message that ``line`` (without its terminator) holds; never raises for its content.

    ``line_format``: ``value`` takes every line for a value; ``message`` takes it for a JSON
    object of a whole message; ``auto`` does so if the object has no other fields than those,
    has ``key`` or ``value`` (or at least topic, partition and offset: a record of Kafka in
    which both are null) and these are text or null.  ``offset`` is the line's byte offset,
    which is the message's where the object has no offset.
    """
    return line_parser(line_format, path)(line, offset)
