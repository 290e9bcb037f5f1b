"""Recognition of the Open Protocol by its bytes."""

from __future__ import annotations

from cdcfmt_core.events import Message

_VERSION_1 = b"\0\0\0\0\0\0\0\1"
_SHORT = b"\0\0\0\0"
"""The first half of a length."""


def sniff(message: Message) -> float:
    """1.0 for a key that begins with version 1 of the protocol, otherwise 0.0."""
    key = message.key
    if key is None or key[:8] != _VERSION_1:
        return 0.0
    if not _SHORT.startswith(key[8:12]) or key[16:17] not in (b"", b"{"):
        # No length and JSON: the framing of a schema registry with an id of 8 bytes can begin so.
        return 0.0
    # A key with only the version: a message without events, or the number 1 of another format.
    return 1.0 if len(key) > 8 or not message.value else 0.0
