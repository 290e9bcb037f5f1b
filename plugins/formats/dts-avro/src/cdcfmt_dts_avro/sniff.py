"""Recognition of a DTS record by its envelope."""

from __future__ import annotations

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Message
from cdcfmt_dts_avro.message import OPERATIONS, SOURCE_TYPES
from cdcfmt_toolkit.wire_avro import read_bytes, read_choice, read_long

_MAX_VERSION = 15
_EARLIEST, _LATEST = 100_000_000, 100_000_000_000_000
"""1973 in seconds, 5138 in milliseconds."""
_MAX_TEXT = 1_000


def sniff(message: Message) -> float:
    """0.9 for a plausible envelope: plain Avro has no magic number that would make it certain."""
    value = message.value
    # The version is a small number; JSON never begins with such a byte.
    if not value or value[0] > _MAX_VERSION * 2 or value[0] & 1:
        return 0.0
    try:
        return 0.9 if _is_plausible(value) else 0.0
    except (DecodeError, IndexError):
        return 0.0


def _is_plausible(data: bytes) -> bool:
    id_, at = read_long(data, 1)
    time, at = read_long(data, at)
    if id_ < 0 or not _EARLIEST <= time < _LATEST:
        return False
    for _ in range(3):
        text, at = read_bytes(data, at)
        if len(text) > _MAX_TEXT or not text.isascii():
            return False
    _, at = read_choice(data, at, len(SOURCE_TYPES), "source type")
    version, at = read_bytes(data, at)
    _, at = read_choice(data, at, len(OPERATIONS), "operation")
    return len(version) <= _MAX_TEXT and version.isascii() and data[at] in (0, 2)
