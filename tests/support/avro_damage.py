"""Malformed or unusual Avro messages of Simple, for reads by the kernel."""

from __future__ import annotations

import random
import struct

import attrs

from cdcfmt_toolkit.wire_avro import read_bytes, read_long, write_bytes, write_long
from support.damaged_messages import with_other_bytes

_ROW = b"\x16\x06\x06"
_NULL, _LONG, _FLOAT, _DOUBLE, _STRING, _BYTES, _TIMESTAMP, _UNSIGNED = range(8)

TEXTS = (
    b"", b" ", b"0", b"-1", b"1.50", b"1e3", b"0x10", b"007", b"nan", b"2024-01-01",
    b"2024-01-01 10:00:00", b"2024-03-31 02:30:00", b"0000-00-00", b"0000-00-00 00:00:00",
    b"2024-02-30", b"9999-12-31 23:59:59.999999", b"-838:59:59", b'{"a": 1}', b"{", b"a,b",
    "\u4e2d\u00e9\U0001f600".encode(), b"\xff\xfe", b"\xed\xa0\x80", b"\x00", b"x" * 300,
    b"9" * 70, b"UTC", b"Asia/Shanghai", b"Europe/Berlin", b"Nowhere/Else", b"Local",
)  # fmt: skip
LONGS = (
    0, 1, -1, 2, 127, 128, 255, -128, 1970, 65536, 2**31, -(2**31), 2**40, 2**63 - 1, -(2**63),
)  # fmt: skip
ODD_VARINTS = (
    b"\x80\x00", b"\x82\x80\x00", b"\x84" + b"\x80" * 8 + b"\x00", b"\xff" * 9 + b"\x01",
    b"\xff" * 9 + b"\x02", b"\xff" * 10,
)  # fmt: skip
# No NaN: tables that hold one are not equal.
FLOATS = (0, 1, 0x3F800000, 0x7F800000)
DOUBLES = (0, 1, 0x3FF0 << 48, 0x7FF0 << 48, 1 << 63)


@attrs.define
class Cell:
    name: bytes
    branch: int
    value: bytes


def mutated_avro(value: bytes, chance: random.Random) -> bytes:
    """The message with one or two things about it changed."""
    if not value.startswith(_ROW) or chance.random() < 0.25:
        return with_other_bytes(value, chance)
    try:
        head, images = taken_apart(value)
    except (IndexError, AssertionError):
        return with_other_bytes(value, chance)
    tail = b""
    blocks: dict[int, int] = {}
    for _ in range(chance.randrange(1, 3)):
        place = chance.randrange(2)
        cells = images[place]
        what = chance.randrange(12)
        if what == 0:
            images[place] = None if cells is not None else images[1 - place]
        elif what == 1:
            tail = chance.choice([b"\0", b"\x02", b"more"])
        elif what == 2:
            head = with_other_bytes(head, chance)
        elif what == 3:
            blocks[place] = chance.choice([-1, 1, 2])
        elif cells:
            _change(cells, what, chance)
    return head + b"".join(_image(images[at], blocks.get(at, 0)) for at in range(2)) + tail


def in_another_order(value: bytes, chance: random.Random) -> bytes:
    """A row whose columns stand in any order, as Go's maps have them."""
    if not value.startswith(_ROW):
        return value
    head, images = taken_apart(value)
    for cells in images:
        chance.shuffle(cells or [])
    return head + b"".join(_image(cells, 0) for cells in images)


def _change(cells: list[Cell], what: int, chance: random.Random) -> None:
    cell = chance.choice(cells)
    if what == 4:
        chance.shuffle(cells)
    elif what == 5:
        cells.remove(cell)
    elif what == 6:
        cells[chance.randrange(len(cells))] = attrs.evolve(cell)
    elif what == 7:
        cells.append(attrs.evolve(cell, name=chance.choice([b"", b"unknown", cell.name + b"x"])))
    elif what == 8:
        cell.branch = chance.randrange(-1, 9)
    elif what == 9:
        cell.value = chance.choice(ODD_VARINTS)
    else:
        # Mostly as the column has it.
        branch = cell.branch if chance.random() < 0.7 else chance.randrange(8)
        cell.branch, cell.value = branch, _value(branch, chance)


def _value(branch: int, chance: random.Random) -> bytes:
    if branch in (_LONG, _UNSIGNED):
        return write_long(chance.choice(LONGS))
    if branch == _FLOAT:
        return struct.pack("<I", chance.choice([*FLOATS, chance.getrandbits(30)]))
    if branch == _DOUBLE:
        return struct.pack("<Q", chance.choice([*DOUBLES, chance.getrandbits(62)]))
    text = write_bytes(chance.choice(TEXTS))
    if branch == _TIMESTAMP:
        return write_bytes(chance.choice([b"Asia/Shanghai", *TEXTS])) + text
    return text if branch in (_STRING, _BYTES) else b""


def taken_apart(value: bytes) -> tuple[bytes, list[list[Cell] | None]]:
    """The bytes before the images, and the cells of both."""
    at = len(_ROW)
    _, at = read_long(value, at)
    for _ in range(2):
        _, at = read_bytes(value, at)
    for _ in range(5):
        _, at = read_long(value, at)
    assert value[at : at + 2] == b"\0\0"
    at += 2
    if value[at]:
        # A checksum: a number, a flag, two numbers.
        _, at = read_long(value, at + 1)
        at += 1
        for _ in range(2):
            _, at = read_long(value, at)
    else:
        at += 1
    head = value[:at]
    images: list[list[Cell] | None] = []
    for _ in range(2):
        branch, at = read_long(value, at)
        cells: list[Cell] | None = None
        if branch:
            cells = []
            count, at = read_long(value, at)
            for _ in range(count):
                name, at = read_bytes(value, at)
                branch, at = read_long(value, at)
                end = _end(value, at, branch)
                cells.append(Cell(name, branch, value[at:end]))
                at = end
            assert value[at] == 0
            at += 1
        images.append(cells)
    assert at == len(value)
    return head, images


def _end(value: bytes, at: int, branch: int) -> int:
    if branch == _NULL:
        return at
    if branch in (_LONG, _UNSIGNED):
        return read_long(value, at)[1]
    if branch in (_FLOAT, _DOUBLE):
        return at + (4 if branch == _FLOAT else 8)
    if branch == _TIMESTAMP:
        _, at = read_bytes(value, at)
    return read_bytes(value, at)[1]


def _image(cells: list[Cell] | None, blocks: int) -> bytes:
    """``blocks``: in two of them, or in one whose size stands there."""
    if cells is None:
        return b"\0"
    encoded = [write_bytes(c.name) + write_long(c.branch) + c.value for c in cells]
    if blocks < 0:
        size = sum(map(len, encoded))
        begin = write_long(-len(cells)) + write_long(size)
        return b"\x02" + begin + b"".join(encoded) + b"\0"
    if blocks:
        half = len(cells) // 2
        return (
            b"\x02"
            + (write_long(half) if half else b"")
            + b"".join(encoded[:half])
            + write_long(len(cells) - half)
            + b"".join(encoded[half:])
            + b"\0"
        )
    return b"\x02" + (write_long(len(cells)) if cells else b"") + b"".join(encoded) + b"\0"
