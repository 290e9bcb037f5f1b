"""AMQP 1.0 messages, the form in which streams store messages.

Source: OASIS AMQP 1.0, part 1 (types) and part 3 (sections of a message).  Messages are untrusted:
this decoder never allocates by a claimed length, and never recurses.  The library's decoder does
both, and keeps only the last of several data sections.
"""

from __future__ import annotations

import struct
import uuid
from typing import Final

import attrs

from cdcfmt_core.events import Message

_APPLICATION, _DATA, _SEQUENCE, _VALUE = 0x74, 0x75, 0x76, 0x77
_NULL, _TEXTS, _BINARIES = 0x40, (0xA1, 0xB1, 0xA3, 0xB3), (0xA0, 0xB0)
_FIXED = {4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16}
"""Length of a value in bytes, by the upper half of its constructor byte."""

_NUMBERS: Final = {
    0x50: ">B", 0x51: ">b", 0x52: ">B", 0x53: ">B", 0x54: ">b", 0x55: ">b", 0x60: ">H",
    0x61: ">h", 0x70: ">I", 0x71: ">i", 0x72: ">f", 0x80: ">Q", 0x81: ">q", 0x82: ">d",
    0x83: ">q",
}  # fmt: skip
_WORDS: Final = {0x41: b"true", 0x42: b"false", 0x43: b"0", 0x44: b"0"}

Headers = tuple[tuple[str, bytes | None], ...]


class NotAmqpError(ValueError):
    """The bytes are not an AMQP 1.0 message."""


@attrs.frozen
class Content:
    """Content of a message: its body, and its application properties as headers."""

    body: bytes | None
    headers: Headers


def decode(data: bytes) -> Content:
    """The content of a message.

    Application properties become bytes: text and binary unchanged, numbers and booleans as text,
    null as None, and types that AMQP forbids there (lists, maps) in their encoded form.  A missing
    body counts as empty: clients write empty messages without one.

    :raises NotAmqpError: for bytes that are not an AMQP message.
    """
    body: list[bytes] = []
    is_null = False
    headers: Headers = ()
    at = 0
    try:
        while at < len(data):
            section, at = _descriptor(data, at)
            kind, start, end = _value(data, at)
            if section == _DATA:
                if kind not in _BINARIES:
                    raise NotAmqpError("a data section is not binary")
                body.append(data[start:end])
            elif section == _VALUE:
                if kind == _NULL:
                    is_null = True
                elif kind in _TEXTS or kind in _BINARIES:
                    body.append(data[start:end])
                else:
                    raise NotAmqpError("the value is neither text nor binary")
            elif section == _APPLICATION:
                headers = tuple(_entries(data, kind, start, end))
            elif section == _SEQUENCE or not 0x70 <= section <= 0x78:
                raise NotAmqpError(f"the section {section:#x} holds no bytes")
            at = end
    except (IndexError, KeyError, struct.error, UnicodeDecodeError) as error:
        raise NotAmqpError(str(error)) from None
    return Content(None if is_null else b"".join(body), headers)


def _descriptor(data: bytes, at: int) -> tuple[int, int]:
    """The code of the section that begins here, and the position of its value."""
    if data[at] != 0:
        raise NotAmqpError("a section does not begin with a descriptor")
    kind, start, end = _value(data, at + 1)
    if kind not in (0x53, 0x80):
        raise NotAmqpError("the descriptor of a section is not a number")
    return int.from_bytes(data[start:end], "big"), end


def _value(data: bytes, at: int) -> tuple[int, int, int]:
    """The constructor of a value, and the start and end of its bytes."""
    kind = data[at]
    width = kind >> 4
    start = at + 1
    if width in _FIXED:
        end = start + _FIXED[width]
    elif width in (0xA, 0xC, 0xE):
        end = start + 1 + data[start]
        start += 1
    elif width in (0xB, 0xD, 0xF):
        end = start + 4 + int.from_bytes(data[start : start + 4], "big")
        start += 4
    else:
        raise NotAmqpError(f"unknown type {kind:#x}")
    if end > len(data):
        raise NotAmqpError("a value is longer than the message")
    return kind, start, end


def _entries(data: bytes, kind: int, at: int, end: int) -> list[tuple[str, bytes | None]]:
    if kind == _NULL:
        return []
    if kind not in (0xC1, 0xD1):
        raise NotAmqpError("the application properties are not a map")
    # Skips the number of entries: the length is enough.
    at += 1 if kind == 0xC1 else 4
    found: list[tuple[str, bytes | None]] = []
    while at < end:
        name_kind, start, at = _value(data, at)
        if name_kind not in _TEXTS:
            raise NotAmqpError("the name of a property is not text")
        name = data[start:at].decode()
        begin = at
        value_kind, start, at = _value(data, begin)
        found.append((name, _scalar(value_kind, data[start:at], data[begin:at])))
    if at != end:
        raise NotAmqpError("the application properties end within an entry")
    return found


def _scalar(kind: int, data: bytes, whole: bytes) -> bytes | None:
    if kind == _NULL:
        return None
    if kind in _TEXTS or kind in _BINARIES:
        return data
    if kind in _WORDS:
        return _WORDS[kind]
    if kind == 0x56:
        return b"true" if data == b"\x01" else b"false"
    if kind == 0x98:
        return str(uuid.UUID(bytes=data)).encode()
    if kind in _NUMBERS:
        return str(struct.unpack(_NUMBERS[kind], data)[0]).encode()
    return whole


def encode(message: Message, headers: Headers) -> bytes:
    """A message with this value and these headers, which any client can read.

    UTF-8 headers are written as text, which readers of other protocols expect; others as binary.
    """
    parts = []
    if headers:
        entries = b"".join(_text(name) + _header(value) for name, value in headers)
        count = (2 * len(headers)).to_bytes(4, "big")
        parts.append(b"\x00\x53\x74\xd1" + _sized(count + entries))
    if message.value is None:
        parts.append(b"\x00\x53\x77\x40")
    else:
        parts.append(b"\x00\x53\x75\xb0" + _sized(message.value))
    return b"".join(parts)


def _text(text: str) -> bytes:
    return b"\xb1" + _sized(text.encode())


def _header(value: bytes | None) -> bytes:
    if value is None:
        return b"\x40"
    try:
        value.decode()
    except UnicodeDecodeError:
        return b"\xb0" + _sized(value)
    return b"\xb1" + _sized(value)


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data
