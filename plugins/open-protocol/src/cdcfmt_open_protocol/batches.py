"""Batches of rows in one message, limited by number and bytes, as in TiCDC."""

from __future__ import annotations

from cdcfmt_core.events import Message
from cdcfmt_core.toolkit.large_message_output import RECORD_OVERHEAD
from cdcfmt_core.toolkit.row_rules import PartialMessage, RowBatches
from cdcfmt_open_protocol.frames import FRAMING, HEAD, framed


class Batch:
    """An unfinished message; ``limits`` apply to each message."""

    def __init__(self, max_rows: int, max_bytes: int) -> None:
        self.limits = RowBatches(max_rows, max(max_bytes - RECORD_OVERHEAD, 0), HEAD, FRAMING)
        self._rows = 0
        self._key = bytearray()
        self._value = bytearray()

    def add(self, key: bytes, value: bytes) -> list[Message]:
        """Add an event, and return the messages that are now complete."""
        key, value = framed(key), framed(value)
        complete: list[Message] = []
        size = len(self._key) + len(self._value) + len(key) + len(value)
        if self._rows and size > self.limits.max_bytes:
            complete = self.take()
        if not self._rows:
            self._key += HEAD
        self._key += key
        self._value += value
        self._rows += 1
        if self._rows >= self.limits.max_rows:
            complete += self.take()
        return complete

    def take(self) -> list[Message]:
        """Finish the message, if there is one; the next event begins a new one."""
        partial = self.take_partial()
        return [] if partial is None else [Message(partial.key, partial.value)]

    def take_partial(self) -> PartialMessage | None:
        """Hand over the unfinished message, which the kernel continues."""
        if not self._rows:
            return None
        partial = PartialMessage(self._rows, bytes(self._key), bytes(self._value))
        self._rows, self._key, self._value = 0, bytearray(), bytearray()
        return partial

    def restore_partial(self, partial: PartialMessage) -> None:
        """Continue the unfinished message of the kernel."""
        self._rows = partial.rows
        self._key, self._value = bytearray(partial.key), bytearray(partial.value)
