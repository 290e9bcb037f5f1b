"""Rows put together in one message, by their number and its size, as TiCDC does."""

from __future__ import annotations

from cdcfmt_core.events import Message
from cdcfmt_core.large_message_output import RECORD_OVERHEAD
from cdcfmt_open_protocol.frames import HEAD, framed


class Batch:
    """A message in the making."""

    def __init__(self, max_rows: int, max_bytes: int) -> None:
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._keys: list[bytes] = []
        self._values: list[bytes] = []
        self._size = 0

    def add(self, key: bytes, value: bytes) -> list[Message]:
        """Adds an event; the message that is complete now, or none."""
        size = 8 + len(key) + 8 + len(value)
        complete: list[Message] = []
        if self._keys and self._size + size > self._max_bytes:
            complete = self.take()
        if not self._keys:
            self._size = RECORD_OVERHEAD + len(HEAD)
        self._keys.append(framed(key))
        self._values.append(framed(value))
        self._size += size
        if len(self._keys) >= self._max_rows:
            complete += self.take()
        return complete

    def take(self) -> list[Message]:
        """The message so far, or none; the next event begins another one."""
        if not self._keys:
            return []
        message = Message(HEAD + b"".join(self._keys), b"".join(self._values))
        self._keys, self._values = [], []
        return [message]
