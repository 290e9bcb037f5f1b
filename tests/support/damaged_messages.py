"""Malformed or unusual messages, for reads by the kernel."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import attrs

from cdcfmt_core.events import Message
from cdcfmt_open_protocol.frames import HEAD, framed, split_key, split_value

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 7, 1.5, 1e300, 2**63, 2**64, 10**30, "", " ", "0", "1", "-0", "+5",
    "007", "0x10", "1e3", "1.50", ".5", "5.", "nan", "Infinity", "1e400", "12345678901234567890",
    "2024-01-01", "2024-01-01 10:00:00", "2024-01-01T10:00:00.123456", "0000-00-00",
    "0000-00-00 00:00:00", "2024-02-30", "9999-12-31 23:59:59.999999", "24:00:00", "-838:59:59",
    "\u00e9\u00ff", "\u4e2d", "\x00", "\U0001f600", "\ud800", "a,b", "[1,2]", '{"a": 1}', "{",
    [], {}, ["x"], {"a": None}, "1_000", "\u0663", "1" * 70, "x" * 300,
)  # fmt: skip


_OTHER_NAMES = ("unknown", "id", "a", "_tidb", "gtid", "old", "data", "handleKeyOnly", "schema")

IMMENSE = re.compile(rb"[0-9][eE][+]?[0-9]{4}|[0-9]{1000}")


def mutated_message(message: Message, chance: random.Random, *, in_frames: bool) -> Message:
    """The message with one thing about it changed; ``in_frames`` are those of Open Protocol."""
    assert message.value is not None
    if in_frames and message.key is not None and chance.random() < 0.9:
        return _mutated_event(message, chance)
    return attrs.evolve(message, value=mutated(message.value, chance))


def _mutated_event(message: Message, chance: random.Random) -> Message:
    assert message.key is not None
    assert message.value is not None
    if chance.random() < 0.05:
        return attrs.evolve(message, key=with_other_bytes(message.key, chance))
    keys, values = split_key(message.key, 1_000), split_value(message.value, 1_000)
    frames = keys if chance.random() < 0.2 else values
    if not frames:
        return message
    place = chance.randrange(len(frames))
    what = chance.randrange(20)
    if what == 0:
        del frames[place]
    elif what == 1:
        frames.insert(place, chance.choice(frames))
    elif what == 2 and len(keys) == len(values):
        order = chance.choice([keys, values])
        chance.shuffle(order)
    elif frames[place]:
        frames[place] = mutated(frames[place], chance)
    return attrs.evolve(
        message, key=HEAD + b"".join(map(framed, keys)), value=b"".join(map(framed, values))
    )


def mutated(value: bytes, chance: random.Random) -> bytes:
    """The message with one thing about it changed."""
    result = _mutated(value, chance)
    # The kernel skips such numbers in unread columns
    # (docs/decisions/076-filters-in-the-kernel.md).
    return value if IMMENSE.search(result) else result


def _mutated(value: bytes, chance: random.Random) -> bytes:
    if chance.random() < 0.3:
        return with_other_bytes(value, chance)
    try:
        wire = json.loads(value)
    except ValueError:
        return with_other_bytes(value, chance)
    path: list[Any] = []
    inner: Any = wire
    while isinstance(inner, dict | list) and inner:
        places = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        path.append(chance.choice(places))
        if chance.random() < 0.2:
            break
        inner = inner[path[-1]]
    parent: Any = wire
    if not path:
        return value
    for place in path[:-1]:
        parent = parent[place]
    what = chance.randrange(6)
    if what == 0:
        del parent[path[-1]]
    elif what == 1 and isinstance(parent, dict):
        parent[chance.choice(_OTHER_NAMES)] = chance.choice(ODD)
    elif what == 2 and isinstance(parent, dict):
        shuffled = list(parent.items())
        chance.shuffle(shuffled)
        parent.clear()
        parent.update(shuffled)
    elif what == 3 and isinstance(parent, list):
        parent.append(parent[path[-1]])
    else:
        parent[path[-1]] = chance.choice(ODD)
    text = json.dumps(wire, ensure_ascii=chance.random() < 0.5, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def with_other_bytes(value: bytes, chance: random.Random) -> bytes:
    """The message with a byte or some of them lost, changed or come in."""
    data = bytearray(value or b"\0")
    place = chance.randrange(len(data))
    what = chance.randrange(5)
    if what == 0:
        data[place] = chance.randrange(256)
    elif what == 1:
        del data[place]
    elif what == 2:
        del data[place:]
    elif what == 3:
        data.insert(place, chance.choice(b' ",{}[]:\\0eE.-\n\x00\xff'))
    else:
        end = min(place + chance.randrange(1, 60), len(data))
        data[end:end] = data[place:end]
    return bytes(data)
