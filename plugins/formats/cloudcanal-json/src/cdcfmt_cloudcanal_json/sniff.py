"""Recognition of CloudCanal Json by its bytes."""

from __future__ import annotations

from cdcfmt_core.events import Message

_ENVELOPE = (b'"action"', b'"db"', b'"table"')
_STRONG = (b'"dbValType"', b'"jdbcType"', b'"entryType"', b'"execTs"', b'"sendTs"', b'"pks"')
_ENOUGH = 2


def sniff(message: Message) -> float:
    """1.0 for all names of the envelope, less with fewer, 0.0 with too few."""
    value = message.value
    if value is None or value[:1] != b"{":
        return 0.0
    if not all(name in value for name in _ENVELOPE):
        return 0.0
    found = sum(name in value for name in _STRONG)
    return 0.4 + 0.1 * found if found >= _ENOUGH else 0.0
