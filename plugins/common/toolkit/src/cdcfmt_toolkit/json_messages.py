"""JSON messages: decompress them, bound their size, and parse again if numbers must be exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from cdcfmt_core.codec import DecoderContext
from cdcfmt_mysql.json_values import InexactNumber
from cdcfmt_toolkit.json_size import check_values
from cdcfmt_toolkit.large_messages import open_decompressor
from cdcfmt_toolkit.wire_json import loads_exact, loads_fast, loads_refused

T = TypeVar("T")
Loads = Callable[[bytes], Any]
"""A fast JSON parser, such as ``orjson.loads``; it raises ValueError."""


class JsonMessages:
    """Parses the values of messages.

    - ``loads``: the fast parser; :func:`loads_exact` reads what it rejects
    - ``compression``: ``none``, ``lz4`` or ``snappy``; None for a format without compression
    """

    def __init__(
        self, loads: Loads, context: DecoderContext, *, compression: str | None = None
    ) -> None:
        self._loads = loads
        self._limit = context.max_message_bytes
        self._may_be_compressed = compression is not None
        self._decompress = open_decompressor(compression or "none", self._limit)

    def decompressed(self, value: bytes) -> bytes:
        """:raises DecodeError: if it cannot be decompressed."""
        return value if self._decompress is None else self._decompress(value)

    def parse(self, text: bytes) -> Any:
        """The JSON of a decompressed value.

        :raises DecodeError: for invalid JSON, and for more values than the memory limit allows.
        """
        check_values(text, self._limit)
        try:
            return loads_fast(self._loads, text)
        except ValueError:
            return loads_refused(text, hints=self._may_be_compressed)

    def read(self, value: bytes, read: Callable[[Any], T]) -> T:
        """The result of ``read`` for a value's JSON.

        If it raises :class:`InexactNumber`, it is called again with exact numbers.
        """
        return self.read_text(self.decompressed(value), read)

    def read_text(self, text: bytes, read: Callable[[Any], T]) -> T:
        """Like :meth:`read`, for a decompressed value."""
        try:
            return read(self.parse(text))
        except InexactNumber:
            return read(loads_exact(text))
