"""Messages that transports must carry, all in partition 0."""

from __future__ import annotations

from typing import Final

from cdcfmt_core.events import Message

_HEADERS: Final = (("first", b"1"), ("second", b"\x00\xff"))

SAMPLES: Final = {
    "usual": Message(b'{"id":1}', b'{"id":1,"name":"a"}', _HEADERS, partition=0),
    "any bytes": Message(b"k", bytes(range(256)) * 8, partition=0),
    "binary key": Message(bytes(range(256)), b"v", partition=0),
    "no key": Message(None, b"v", partition=0),
    "empty key": Message(b"", b"v", partition=0),
    "empty value": Message(b"k", b"", partition=0),
    "no value": Message(b"k", None, partition=0),
    "empty header": Message(b"k", b"v", (("empty", b""),), partition=0),
    "header without value": Message(b"k", b"v", (("none", None),), partition=0),
    "headers of one name": Message(b"k", b"v", (("h", b"1"), ("h", b"2")), partition=0),
    "header in Unicode": Message(b"k", b"v", (("größe 数", b"1"),), partition=0),
    "large value": Message(b"k", bytes(range(251)) * 3_000, partition=0),
}
"""The samples by name.  Without its ability, keys or headers are removed."""
