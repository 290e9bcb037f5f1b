"""Unavailable values, which are absent from their images (not NULL).

A column that the change did not touch has the value ``unavailable.value.placeholder``:

- text: unchanged, also as the only item of an array and as a key of a map
- ``hstore``: a map from it to itself, or that map as JSON text
- bytes: as they are in Avro, else in base64, or (by ``binary.handling.mode``) in URL-safe base64
  or hexadecimal
- ``int4[]``, ``int8[]``, ``date[]``: a number per byte, signed as in Java
- ``uuid[]``: the name-based UUID (version 3) of its bytes

For PostgreSQL, a placeholder ``hex:…`` means these bytes.

Sources: Debezium PostgreSQL connector, "Toasted values", and its ``UnchangedToastedPlaceholder``;
Oracle's LOBs.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import uuid
from collections.abc import Iterator
from typing import Any, Final

_HEX: Final = "hex:"
_ESCAPED_CONTROL: Final = re.compile(r"\\u00[01][a-f]")


class Unavailable:
    """Finds the placeholder in messages and removes it from images.

    ``marks``: a message with the placeholder contains at least one of these byte strings.
    """

    def __init__(self, placeholder: str) -> None:
        texts: set[str | bytes] = set()
        uuids: set[str | bytes] = set()
        marks: set[str] = set()
        self._numbers: list[list[int]] = []
        for text, data in _forms(placeholder):
            encoded = (base64.b64encode(data), base64.urlsafe_b64encode(data), data.hex().encode())
            texts |= {text, _json({text: text}), *(each.decode() for each in encoded), data}
            uuids.add(_name_uuid(data))
            # Without quotes, as in the JSON text of a map.
            marks.add(_json(text)[1:-1])
            self._numbers.append([byte - 256 if byte > 127 else byte for byte in data])
        self._texts: Final = frozenset(texts)
        self._items: Final = frozenset(texts | uuids)
        marks |= {_json(v) for v in (*self._items, *self._numbers) if type(v) is not bytes}
        self.marks: Final = _shortest(marks)

    def in_message(self, value: bytes) -> bool:
        """Whether the placeholder occurs anywhere in the message."""
        return any(mark in value for mark in self.marks)

    def take_from(self, row: dict[str, Any]) -> tuple[str, ...]:
        """Remove unavailable columns from the row, and return their names."""
        names = tuple(name for name, value in row.items() if self._is(value))
        for name in names:
            del row[name]
        return names

    def _is(self, value: Any) -> bool:
        if type(value) in (str, bytes):
            return value in self._texts
        if type(value) is list:
            if not value:
                return False
            return value in self._numbers or all(
                type(v) in (str, bytes) and v in self._items for v in value
            )
        if type(value) is dict:
            return len(value) == 1 and next(iter(value)) in self._texts
        return False


def _forms(placeholder: str) -> Iterator[tuple[str, bytes]]:
    """The option's value as text and bytes: unchanged, and as read by PostgreSQL's connector."""
    if placeholder:
        yield placeholder, _encoded(placeholder)
    if placeholder.startswith(_HEX):
        try:
            data = binascii.unhexlify(placeholder.removeprefix(_HEX))
        except ValueError:
            return
        if data:
            yield data.decode("utf-8", "replace"), data


def _name_uuid(data: bytes) -> str:
    """Java's ``UUID.nameUUIDFromBytes``, which has no namespace."""
    digest = hashlib.md5(data, usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest, version=3))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _shortest(marks: set[str]) -> tuple[bytes, ...]:
    """The marks as bytes, without marks that contain another one."""
    # Java's JSON escapes have capital letters, Python's have small ones.
    marks = marks | {
        _ESCAPED_CONTROL.sub(lambda escape: escape[0][:-1] + escape[0][-1].upper(), mark)
        for mark in marks
    }
    alone = (mark for mark in marks if not any(o in mark for o in marks if o != mark))
    return tuple(sorted(map(_encoded, alone)))
