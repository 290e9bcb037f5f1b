"""Ways to damage messages: bytes cut, flipped and replaced, JSON values replaced."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias

import attrs
from hypothesis import strategies as st

from cdcfmt_core.events import Message

# Bytes

Part: TypeAlias = Literal["key", "value"]
PARTS: Final[tuple[Part, ...]] = ("value", "key")


def with_part(message: Message, part: Part, data: bytes | None) -> Message:
    """The message with another key or value."""
    if part == "key":
        return attrs.evolve(message, key=data)
    return attrs.evolve(message, value=data)


def cuts(data: bytes, most: int) -> Iterator[bytes]:
    """``data`` cut off at every byte, or at ``most`` places if it has more."""
    for end in _spread(len(data), most):
        yield data[:end]


def flips(data: bytes, most: int) -> Iterator[bytes]:
    """``data`` with every single bit flipped, or ``most`` of them if it has more."""
    for place in _spread(len(data) * 8, most):
        damaged = bytearray(data)
        damaged[place // 8] ^= 1 << place % 8
        yield bytes(damaged)


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


_NUMBERS: Final = (-1, 100_000, (1 << 31) - 1, 1 << 40, 1 << 62, -(1 << 63))
LIES: Final = tuple(
    dict.fromkeys(
        [struct.pack(f, n) for f in (">q", "<q") for n in _NUMBERS]
        + [struct.pack(f, n) for f in (">i", "<i") for n in _NUMBERS if abs(n) < 1 << 31]
        # As Protocol Buffers and Avro (zigzag) write them.
        + [_varint(n & (1 << 64) - 1) for n in _NUMBERS]
        + [_varint(((n << 1) ^ (n >> 63)) & (1 << 64) - 1) for n in _NUMBERS]
    )
)


def length_lies(data: bytes, most: int) -> Iterator[bytes]:
    """``data`` with a huge or negative binary number at every position, in the usual encodings."""
    for place in _spread(len(data), max(1, most // len(LIES))):
        for lie in LIES:
            # A fixed-width number replaces as many bytes, a varint one byte.
            yield data[:place] + lie + data[place + (len(lie) if len(lie) in (4, 8) else 1) :]


def patches(data: bytes, count: int) -> Iterator[bytes]:
    """``data`` with bytes removed or inserted at random; the same on each call."""
    dice = random.Random(0)
    for _ in range(count):
        start = dice.randint(0, len(data))
        end = min(len(data), start + dice.choice((0, 0, 1, 2, 8, 40)))
        yield data[:start] + dice.randbytes(dice.choice((0, 0, 1, 4, 10))) + data[end:]


def _spread(length: int, most: int) -> range:
    return range(0, length, max(1, -(-length // most)))


# JSON

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["1", "-1", "1.10", "2024-01-02", "int", "INSERT", 1 << 63, -(1 << 63), 1e300]
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["id", "name", "commitTs", "columns", "table"]) | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
"""Any JSON, with names and values that wires use."""

OTHER_VALUES: Final[tuple[Any, ...]] = (
    None, True, 0, -1, 1.5, 1 << 62, 10**30, -(10**400), "", "x", "\ud800", "1e999999999",
    [], [1], [[]], {}, {"a": 1}, float("nan"),
)  # fmt: skip
"""Bad values that replace a good one."""


def paths_of(wire: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a JSON value, including itself."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(wire, dict):
        inner = list(wire.items())
    elif isinstance(wire, list):
        inner = list(enumerate(wire))
    return [path, *(found for name, part in inner for found in paths_of(part, (*path, name)))]


def part_at(wire: Any, path: tuple[Any, ...]) -> Any:
    """The part at a path."""
    for name in path:
        wire = wire[name]
    return wire


def dotted(path: tuple[Any, ...]) -> str:
    """A path for errors: ``data[0].price``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).strip(".")


def changed(wire: Any, path: tuple[Any, ...], value: Any) -> Any:
    """``wire`` with another value at ``path``; ``...`` drops it."""
    if not path:
        return value
    name, *rest = path
    if not rest and value is ...:
        if isinstance(wire, dict):
            return {other: part for other, part in wire.items() if other != name}
        return [*wire[:name], *wire[name + 1 :]]
    part = changed(wire[name], tuple(rest), value)
    if isinstance(wire, dict):
        return {**wire, name: part}
    return [*wire[:name], part, *wire[name + 1 :]]


def damaged_messages(messages: Sequence[Message]) -> list[Message]:
    """Every message unchanged, and several times with a value replaced or bytes removed."""
    chance = random.Random(0)
    found: list[Message] = []
    for message in messages:
        found.append(message)
        if message.value is None:
            continue
        for _ in range(max(1, _LEAST_DAMAGED // len(messages))):
            try:
                wire = json.loads(message.value)
                path = chance.choice(paths_of(wire)[1:])
                text = json.dumps(changed(wire, path, chance.choice(_SHORT_VALUES)))
                value = text.encode("utf-8", "surrogatepass")
            except (ValueError, IndexError):
                (value,) = patches(message.value, 1)
            found.append(attrs.evolve(message, value=value))
    return found


_LEAST_DAMAGED: Final = 200
# The kernel does not detect numbers of over a thousand digits in skipped values
# (docs/decisions/076-filters-in-the-kernel.md).
_SHORT_VALUES: Final = [value for value in OTHER_VALUES if len(repr(value)) < 100]
