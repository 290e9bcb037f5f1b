"""Unusual messages in Avro with a schema registry: odd values, and damaged bytes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

import attrs

from cdcfmt_core.events import Message
from cdcfmt_core.schema_registry import MessageSchemas, Part
from cdcfmt_toolkit.avro_schemas import AvroNode, parse_avro
from cdcfmt_toolkit.wire_avro import read_long, read_span, write_bytes, write_long
from support.avro_damage import LONGS, ODD_VARINTS, TEXTS
from support.damaged_messages import with_other_bytes

T = TypeVar("T")

_FLOATS = {"float": (4, (0, 1, 0x3F800000, 0x7F800000)), "double": (8, (0, 1, 0x3FF0 << 48))}


def odd_message(message: Message, schemas: MessageSchemas, chance: random.Random) -> Message:
    """The message with some leaf of its value or key replaced, or with other bytes."""
    part: Part = "key" if message.key is not None and chance.random() < 0.1 else "value"
    data = message.key if part == "key" else message.value
    if data is None:
        return message
    what = chance.randrange(8)
    if what == 0:
        changed = with_other_bytes(data, chance)
    elif what == 1:
        changed = data[: chance.randrange(len(data))] if chance.random() < 0.5 else data + b"\0"
    else:
        framed = schemas.split(data, message.headers, part)
        if framed is None:
            return attrs.evolve(message, **{part: with_other_bytes(data, chance)})
        payload = bytes(framed.payload)
        head = data[: len(data) - len(payload)]
        changed = head + _Rewriting(payload, chance).of(parse_avro(framed.schema))
    return attrs.evolve(message, **{part: changed})


class _Rewriting:
    """Copies a datum; one of its leaves, or none, becomes another value of its type."""

    def __init__(self, data: bytes, chance: random.Random) -> None:
        self._data = data
        self._at = 0
        self._chance = chance
        self._odd = 0.1

    def of(self, node: AvroNode) -> bytes:
        start = self._at
        replaces = self._chance.random() < self._odd
        if node.kind == "record":
            return b"".join([self.of(field.type) for field in node.fields])
        if node.kind == "union":
            branch, self._at = read_long(self._data, start)
            inner = self.of(node.branches[branch])
            nulls = [at for at, each in enumerate(node.branches) if each.kind == "null"]
            if replaces and nulls:
                return write_long(nulls[0])
            return write_long(branch) + inner
        if node.items is not None:
            return self._items(node)
        if node.kind in ("int", "long", "enum"):
            _, self._at = read_long(self._data, start)
            if replaces and node.kind != "enum":
                odd = self._chance.random() < 0.2
                return self._pick(ODD_VARINTS) if odd else write_long(self._pick(LONGS))
        elif node.kind in ("string", "bytes"):
            _, self._at = read_span(self._data, start)
            if replaces:
                return write_bytes(self._pick(TEXTS))
        elif node.kind in _FLOATS:
            length, odd_ones = _FLOATS[node.kind]
            self._at += length
            if replaces:
                return self._pick(odd_ones).to_bytes(length, "little")
        elif node.kind == "boolean":
            self._at += 1
            if replaces:
                return self._pick((b"\0", b"\1", b"\2"))
        elif node.kind == "fixed":
            self._at += node.size
        return self._data[start : self._at]

    def _items(self, node: AvroNode) -> bytes:
        assert node.items is not None
        written = b""
        while True:
            count, self._at = read_long(self._data, self._at)
            if not count:
                return written + b"\0"
            block = b""
            for _ in range(count):
                if node.kind == "map":
                    start, end = read_span(self._data, self._at)
                    block += write_bytes(self._data[start:end])
                    self._at = end
                block += self.of(node.items)
            if self._chance.random() < 0.1:
                # A negative count is followed by the number of bytes.
                written += write_long(-count) + write_long(len(block)) + block
            else:
                written += write_long(count) + block

    def _pick(self, some: Sequence[T]) -> T:
        # One leaf is enough for most messages.
        self._odd /= 4
        return self._chance.choice(some)
