"""The reference path as the kernel's bridge sees it: the rows and changes of one message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeAlias

import attrs
import pyarrow as pa

from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.events import (
    Corrupt,
    Event,
    Message,
    RowChange,
    SchemaChange,
    TableSchemaEvent,
)
from cdcfmt_core.sources import BadLine

Row: TypeAlias = tuple[Any, ...]


class Decoder(Protocol):
    """What makes events of messages."""

    def decode(self, message: Message) -> list[Event]: ...

    @property
    def protocol(self) -> str | None: ...


class ObservedDecoder:
    """A message decoder that remembers what the last message held."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._events: list[Event] = []

    @property
    def protocol(self) -> str | None:
        """The format of the last message."""
        return self._decoder.protocol

    def decode(self, message: Message) -> list[Event]:
        """As the decoder does."""
        self._events = []  # those of a large message are not kept beside the next one's
        self._events = self._decoder.decode(message)
        return self._events

    def note_format(self, name: str) -> None:
        """Take note of the format of the last message, which the kernel has read."""
        if isinstance(self._decoder, MessageDecoder):
            self._decoder.note_format(name)

    def found_nothing_wrong(self) -> bool:
        """Whether the last message was neither corrupt nor in part."""
        return not any(isinstance(event, Corrupt) for event in self._events)

    def changes(self) -> list[RowChange] | None:
        """The last message's row changes; None if it was about a schema."""
        if any(isinstance(event, SchemaChange | TableSchemaEvent) for event in self._events):
            return None
        return [event for event in self._events if isinstance(event, RowChange)]


class Rows(Protocol):
    """What makes the rows of a message: one by one, or as a list that must not be split."""

    def rows(self, message: Message | BadLine) -> Iterator[Row]: ...

    def listed(self, message: Message | BadLine, weigh: Callable[[Row], int]) -> Iterable[Row]: ...


@attrs.frozen
class Reference:
    """The reference path: ``make`` raises in FAILFAST mode.

    ``weigh`` gives about the bytes of a row in a batch, ``batch`` makes one of rows.
    """

    make: Rows
    decoder: ObservedDecoder
    weigh: Callable[[Row], int]
    batch: Callable[[list[Row]], pa.RecordBatch]

    def rows(self, message: Message | BadLine, *, in_list: bool) -> Iterable[Row]:
        """The rows of a message; ``in_list`` if they stay together."""
        return self.make.listed(message, self.weigh) if in_list else self.make.rows(message)
