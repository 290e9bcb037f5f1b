"""Read lines as messages: a message's value, or a whole message as a JSON object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import Literal, TypeAlias, get_args

import attrs

from cdcfmt_core.errors import BrokenPluginError, DecodeError, MissingDependencyError, OptionError
from cdcfmt_core.events import Message
from cdcfmt_core.services import service
from cdcfmt_files.sources.whole_messages import (
    FIELDS,
    as_message,
    begins_message,
    holds_message,
    load_message,
)
from cdcfmt_toolkit.inputs import BadLine

LineFormat: TypeAlias = Literal["auto", "value", "message"]

_SEARCHED_BYTES = 1 << 20
_FIRST_FIELDS = tuple(map(str.encode, FIELDS))


def _holds_any(lines: bytes, marks: Sequence[bytes], names: Sequence[bytes]) -> bool:
    """Whether lines have one of ``marks``, or (if ``names`` is not empty) a whole message."""
    if any(mark in lines for mark in marks):
        return True
    return bool(names and (begins_message(lines) or holds_message(lines)))


@cache
def search() -> Callable[[bytes, Sequence[bytes], Sequence[bytes]], bool]:
    """The compiled search, if it is installed, else the one here.

    It is ten times as fast, and planning waits for it.
    """
    try:
        return service("search-marks")
    except (MissingDependencyError, BrokenPluginError):
        return _holds_any


@attrs.define(slots=False)
class Lines:
    r"""A block of unparsed lines of a file, each with its ``\n``.

    - ``offset``: the first line's byte offset.
    - ``plain``: each line is a message's value.
    - ``parse(line, offset)``: parses one line that is not blank; ``cut()``: parses all lines.
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
        """Whether the lines are whole messages, judging by the first one."""
        return not self.plain and begins_message(self.data) is not None

    @cached_property
    def starts(self) -> list[int]:
        """The start of each line in ``data``."""
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
        """The messages of lines that are values, if there are no blank lines."""
        for start, line in zip(self.starts, self.data.split(b"\n"), strict=False):
            offset = self.offset + start
            yield Message(None, line.removesuffix(b"\r"), offset=offset, path=self.path)

    def message(self, place: int) -> Message | BadLine:
        """The message of one line, by the line's number."""
        start = self.starts[place]
        line = self.data[start : self.data.index(b"\n", start)]
        return self.parse(line.removesuffix(b"\r"), self.offset + start)


def one_by_one(
    items: Iterable[Message | BadLine | Lines | Sequence[Message]],
) -> Iterator[Message | BadLine]:
    """Single messages from messages, lists and blocks of lines, which are parsed."""
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

    :raises OptionError: for an unknown line format.
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
    """A test whether complete lines may have values with one of ``marks``; None: impossible.

    The lines have a separator after each and none before the first.
    """
    if not marks or separator != b"\n" or line_format == "message":
        return None

    # Whole messages always pass, as their values are base64.
    names = _FIRST_FIELDS if line_format == "auto" else ()
    holds_any = search()
    return lambda lines: holds_any(lines, marks, names)


def marked_messages(
    messages: Iterable[Message | BadLine], marks: Sequence[bytes]
) -> Iterator[Message | BadLine]:
    """The messages in order, at least those whose values have one of ``marks``; all without marks.

    About a megabyte of messages is searched at once, and then kept or dropped.
    """
    if not marks:
        yield from messages
        return
    held: list[Message | BadLine] = []
    size = 0
    for message in messages:
        held.append(message)
        size += len(message.value or b"")
        # Else the name would keep a large message while the next one is read.
        del message
        if size >= _SEARCHED_BYTES:
            yield from _marked(held, marks)
            held, size = [], 0
    yield from _marked(held, marks)


def _marked(messages: list[Message | BadLine], marks: Sequence[bytes]) -> list[Message | BadLine]:
    # Do not copy a large message to search it.
    if len(messages) < 2 or len(messages[-1].value or b"") > _SEARCHED_BYTES:
        return messages
    values = b"\0".join(message.value or b"" for message in messages)
    return messages if search()(values, marks, ()) else []


def parse_line(
    line: bytes, *, offset: int, path: str | None = None, line_format: LineFormat = "auto"
) -> Message | BadLine:
    """The message of a ``line`` (without terminator); never raises for its content.

    :param offset: the line's byte offset, used as the message's if the object has none.
    :param line_format: ``value``: every line is a value; ``message``: every line is a JSON object
        of a whole message; ``auto``: an object is a whole message if it has no fields of other
        names, has ``key`` or ``value`` (or at least topic, partition and offset, as a Kafka record
        in which both are null), and these are text or null.
    """
    return line_parser(line_format, path)(line, offset)
