"""Recognition of the Simple Protocol by its bytes."""

from __future__ import annotations

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Message
from cdcfmt_toolkit.wire_avro import read_bytes, read_choice, read_long

_FIRST = b'{"version":'
_NAMES = (b'"version"', b'"type"', b'"commitTs"', b'"buildTs"')
_VERSION = 1
EARLIEST, LATEST = 1_000_000_000_000, 100_000_000_000_000
"""2001 and 5138, in milliseconds: the plausible range of an Avro message's build time."""


def sniff(message: Message) -> float:
    """1.0 for TiCDC's own bytes; less for JSON that was rewritten."""
    value = message.value
    if not value:
        return 0.0
    if value[0] == 0x7B:
        if all(name in value for name in _NAMES):
            return 1.0 if value.startswith(_FIRST) else 0.6
        return 0.0
    if value[0] not in (0x10, 0x12, 0x16):
        return 0.0
    try:
        return 1.0 if _is_plausible(value) else 0.0
    except (DecodeError, IndexError):
        return 0.0


def _is_plausible(data: bytes) -> bool:
    """Whether the fields of an Avro message are plausible, up to its build time."""
    typed = data[0] == 0x16
    payload, at = read_choice(data, 1, 4, "payload")
    if typed:
        again, at = read_choice(data, at, 4, "payload")
        if again != payload:
            return False
    version, at = read_long(data, at)
    if version != _VERSION:
        return False
    if payload == 3:
        for _ in range(2):
            _, at = read_bytes(data, at)
        _, at = read_long(data, at)
        _, at = read_choice(data, at, 3, "DML type")
    elif payload == 2:
        _, at = read_choice(data, at, 8, "DDL type")
        _, at = read_bytes(data, at)
    elif not typed:
        _, at = read_bytes(data, at)
    if payload != 1:
        commit_ts, at = read_long(data, at)
        if commit_ts < 0:
            return False
    build_ts, at = read_long(data, at)
    return EARLIEST <= build_ts < LATEST
