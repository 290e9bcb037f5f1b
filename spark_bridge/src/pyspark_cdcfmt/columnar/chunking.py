"""Messages, some at a time; lines of a file in one piece, where somebody can read them so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeAlias, TypeVar

from cdcfmt_core.events import Message
from cdcfmt_core.sources import BadLine, Lines

Chunk: TypeAlias = list[Message | BadLine]
Read = TypeVar("Read")

_MOST_PASSED_OVER = 64


class Chunking(Generic[Read]):
    """``read(lines)`` is what is read of lines in one piece, None if not all of them can be.

    It is only tried while ``can_read()``, which is None where the messages so far are to tell, and
    after each failure less often: where tables are mixed in a file hardly any piece has the rows of
    one alone.  ``size()`` are the most messages of a chunk, and about the most bytes.
    """

    def __init__(
        self,
        can_read: Callable[[], bool | None],
        read: Callable[[Lines], Read | None],
        size: Callable[[], tuple[int, int]],
    ) -> None:
        self._can_read = can_read
        self._read = read
        self._size = size
        self._pass_over = 0
        self._passed_over = 0

    def chunks(self, messages: Iterable[Message | BadLine | Lines]) -> Iterator[Chunk | Read]:
        """The messages, in order.

        Everything before a chunk is used up before the chunk is made, as it may change what can be
        read.
        """
        chunk: Chunk = []
        size = 0
        most, most_bytes = self._size()
        for item in messages:
            some: Iterable[Message | BadLine] = ()
            if isinstance(item, Lines):
                if chunk and self._can_read() is None:
                    yield chunk
                    chunk, size = [], 0
                if self._is_tried():
                    if chunk:
                        yield chunk
                        chunk, size = [], 0
                    read = self._tried(item)
                    if read is not None:
                        yield read
                        continue
                some = item.cut()
            else:
                some = (item,)
            for message in some:
                chunk.append(message)
                size += len(message.value or b"")
                if len(chunk) >= most or size >= most_bytes:
                    yield chunk
                    chunk, size = [], 0
                    most, most_bytes = self._size()
        if chunk:
            yield chunk

    def _is_tried(self) -> bool:
        if not self._can_read():
            return False
        self._passed_over += 1
        return self._passed_over > self._pass_over

    def _tried(self, lines: Lines) -> Read | None:
        self._passed_over = 0
        read = self._read(lines)
        self._pass_over = 0 if read is not None else min(2 * self._pass_over + 1, _MOST_PASSED_OVER)
        return read
