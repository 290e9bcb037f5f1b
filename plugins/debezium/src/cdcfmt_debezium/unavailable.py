"""Unavailable values: absent from their images, which is not NULL.

A column that the change did not touch holds ``unavailable.value.placeholder``:

- text: as it is, also as the only item of an array and as a key of a map
- ``hstore``: a map of it to itself, or that map as JSON text
- bytes: in base64, or as ``binary.handling.mode`` says in URL-safe base64 or hexadecimal
- ``int4[]``, ``int8[]``, ``date[]``: one number for each of its bytes, with a sign as Java's have
- ``uuid[]``: the UUID by name (version 3) of its bytes

With PostgreSQL a placeholder that begins with ``hex:`` is the bytes behind it.

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
    """Finds the placeholder in messages and takes it out of images.

    ``marks``: a message that holds it has some of these bytes.
    """

    def __init__(self, placeholder: str) -> None:
        texts: set[str] = set()
        uuids: set[str] = set()
        marks: set[str] = set()
        self._numbers: list[list[int]] = []
        for text, data in _forms(placeholder):
            encoded = (base64.b64encode(data), base64.urlsafe_b64encode(data), data.hex().encode())
            texts |= {text, _json({text: text}), *(each.decode() for each in encoded)}
            uuids.add(_name_uuid(data))
            # Without its quotes, as the JSON text of a map has it.
            marks.add(_json(text)[1:-1])
            self._numbers.append([byte - 256 if byte > 127 else byte for byte in data])
        self._texts: Final = frozenset(texts)
        self._items: Final = frozenset(texts | uuids)
        marks |= {_json(value) for value in (*self._items, *self._numbers)}
        self.marks: Final = _shortest(marks)

    def in_message(self, value: bytes) -> bool:
        """Whether the placeholder stands anywhere in the message."""
        return any(mark in value for mark in self.marks)

    def take_from(self, row: dict[str, Any]) -> tuple[str, ...]:
        """Remove columns that are unavailable from the row; their names."""
        names = tuple(name for name, value in row.items() if self._is(value))
        for name in names:
            del row[name]
        return names

    def _is(self, value: Any) -> bool:
        if type(value) is str:
            return value in self._texts
        if type(value) is list:
            if not value:
                return False
            return value in self._numbers or all(type(v) is str and v in self._items for v in value)
        if type(value) is dict:
            return len(value) == 1 and next(iter(value)) in self._texts
        return False


def _forms(placeholder: str) -> Iterator[tuple[str, bytes]]:
    """The option's value as text and bytes: as it is, and as PostgreSQL's connector reads it."""
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
    """The marks as a message's bytes, without those that hold another one."""
    # Java's JSON has capitals in escapes, Python's has not.
    marks = marks | {_ESCAPED_CONTROL.sub(_with_capital, mark) for mark in marks}
    alone = (mark for mark in marks if not any(o in mark for o in marks if o != mark))
    return tuple(sorted(map(_encoded, alone)))


def _with_capital(escape: re.Match[str]) -> str:
    return escape[0][:-1] + escape[0][-1].upper()
