"""Cheap damage to messages of any format: microseconds a mutant."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

import attrs
from support.avro_damage import mutated_avro
from support.damaged_messages import mutated_message

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Message
from cdcfmt_open_protocol.frames import HEAD, framed, split_key, split_value
from cdcfmt_testing.damage import LIES

_NUMBERS = (
    b"0", b"-1", b"-0", b"007", b"+5", b"1.5", b"1e3", b"1e400", b"-1E-400", b"1e999999999",
    b"2147483648", b"9223372036854775808", b"18446744073709551616", b"9" * 40, b"9" * 1_100,
    b"9" * 5_000, b"0x10", b"NaN", b"Infinity", b"1_000", "\u0663".encode(), b"253402300800000",
    b"-62135596800001", b"99999999999999999",
)  # fmt: skip
_VALUES = (
    b"null", b"true", b'""', b'" "', b"[]", b"{}", b"[null]", b'{"a":null}', b'"\\ud800"',
    b'"\\u0000"', b'"0000-00-00 00:00:00"', b'"2024-02-30"', b'"24:00:00"', b'"-838:59:59"',
    b'"9999-12-31 23:59:59.9999999"', b'"1e999999999"', b'"NaN"', b'"\\u202e"', b'"\x1b[2J"',
    b'"' + b"x" * 70_000 + b'"', b'"' + b"9" * 400 + b'"', b"[" + b"1," * 3_000 + b"1]",
)  # fmt: skip
_BYTES = (
    b"\x00", b"\xff", b"\xed\xa0\x80", b"\xc2\x9b", b"\xe2\x80\xae", b"\\", b'"', b"{", b"}", b"[",
    b"]", b",", b":", b"\n", b"\r\n", b"\\u", b"\\ud83d", b"\x80\x80\x80\x80\x80\x80\x80\x80\x80",
)  # fmt: skip
_DEPTHS = (3, 30, 130, 600, 3_000, 30_000)

_NUMBER = re.compile(rb"[0-9]+")
_MEMBER = re.compile(rb'"[^"\\]{0,60}":("[^"\\]{0,200}"|[0-9.eE+-]+|null|true|false)')
_VALUE = re.compile(rb':("[^"\\]{0,200}"|[0-9.eE+-]+|null|true|false|\[|\{)')

Mutator = Callable[[bytes, bytes, random.Random], bytes]


def _flip(value: bytes, _other: bytes, dice: random.Random) -> bytes:
    data = bytearray(value)
    for _ in range(1 + dice.getrandbits(2)):
        data[dice.randrange(len(data))] ^= 1 << dice.getrandbits(3)
    return bytes(data)


def _replace(value: bytes, _other: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(value))
    return value[:at] + bytes((dice.getrandbits(8),)) + value[at + 1 :]


def _cut(value: bytes, _other: bytes, dice: random.Random) -> bytes:
    return value[: dice.randrange(len(value))]


def _lose(value: bytes, _other: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(value))
    return value[:at] + value[at + 1 + dice.getrandbits(dice.getrandbits(3)) :]


def _repeat(value: bytes, _other: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(value))
    part = value[at : at + 1 + dice.getrandbits(6)]
    return value[:at] + part * (1 << dice.getrandbits(3)) + value[at:]


def _insert(value: bytes, _other: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(value) + 1)
    return value[:at] + dice.choice(_BYTES) + value[at:]


def _splice(value: bytes, other: bytes, dice: random.Random) -> bytes:
    return value[: dice.randrange(len(value) + 1)] + other[dice.randrange(len(other) + 1) :]


def _lie(value: bytes, _other: bytes, dice: random.Random) -> bytes:
    at, lie = dice.randrange(len(value)), dice.choice(LIES)
    return value[:at] + lie + value[at + (len(lie) if len(lie) in (4, 8) else 1) :]


def _somewhere(pattern: re.Pattern[bytes], value: bytes, dice: random.Random) -> re.Match[bytes]:
    at = dice.randrange(len(value))
    found = pattern.search(value, at) or pattern.search(value)
    if found is None:
        raise LookupError
    return found


def _number(value: bytes, _other: bytes, dice: random.Random) -> bytes:
    found = _somewhere(_NUMBER, value, dice)
    return value[: found.start()] + dice.choice(_NUMBERS) + value[found.end() :]


def _member_twice(value: bytes, other: bytes, dice: random.Random) -> bytes:
    """A member once more, beside itself or from another message, in front or behind."""
    place = _somewhere(_MEMBER, value, dice)
    origin = other if other and dice.getrandbits(1) else value
    member = _somewhere(_MEMBER, origin, dice).group()
    return value[: place.start()] + member + b"," + value[place.start() :]


def _member_lost(value: bytes, _other: bytes, dice: random.Random) -> bytes:
    found = _somewhere(_MEMBER, value, dice)
    end = found.end() + (value[found.end() : found.end() + 1] == b",")
    return value[: found.start()] + value[end:]


def _other_value(value: bytes, _other: bytes, dice: random.Random) -> bytes:
    found = _somewhere(_VALUE, value, dice)
    return value[: found.start(1)] + dice.choice(_VALUES) + value[found.end() :]


def _deep(value: bytes, _other: bytes, dice: random.Random) -> bytes:
    found = _somewhere(_VALUE, value, dice)
    depth = dice.choice(_DEPTHS)
    begin, end = dice.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"[", b"")))
    return value[: found.start(1)] + begin * depth + b"0" + end * depth + value[found.end() :]


_ANY: tuple[Mutator, ...] = (_flip, _replace, _cut, _lose, _repeat, _insert, _splice, _lie)
_OF_TEXT: tuple[Mutator, ...] = (
    *(_number, _number, _member_twice, _member_twice, _member_lost, _other_value, _other_value),
    _deep,
)


def _damaged(value: bytes, other: bytes, dice: random.Random) -> bytes:
    if not value:
        return other
    if dice.random() < 0.4:
        return dice.choice(_ANY)(value, other, dice)
    try:
        return dice.choice(_OF_TEXT)(value, other, dice)
    except LookupError:
        return _flip(value, other, dice)


def _in_a_frame(good: Message, other: Message, dice: random.Random) -> Message:
    """An Open Protocol message with one of its documents damaged, and lengths that fit."""
    keys, values = split_key(good.key or b"", 1_000), split_value(good.value or b"", 1_000)
    others = split_value(other.value or b"", 1_000)
    frames = keys if dice.random() < 0.3 else values
    at = dice.randrange(len(frames))
    frames[at] = _damaged(frames[at], dice.choice(others), dice)
    return attrs.evolve(
        good, key=HEAD + b"".join(map(framed, keys)), value=b"".join(map(framed, values))
    )


def mutant(messages: Sequence[Message], wire: str, dice: random.Random) -> Message:
    """One of the messages with one to three things about it changed."""
    good, other = dice.choice(messages), dice.choice(messages)
    if good.value is None:
        return attrs.evolve(other, key=good.key)
    choice = dice.getrandbits(5)
    if choice == 0:
        # Well-formed apart from what a member or cell holds.
        if wire == "simple-avro":
            return attrs.evolve(good, value=mutated_avro(good.value, dice))
        if good.value:
            return mutated_message(good, dice, in_frames=wire == "open")
    if wire == "open" and choice < 24:
        try:
            return _in_a_frame(good, other, dice)
        except (DecodeError, IndexError):
            pass  # compressed
    value = _damaged(good.value, other.value or b"", dice) if choice < 29 else good.value
    if choice < 4:
        value = _damaged(value, other.value or b"", dice)
    key = good.key
    if choice >= 28:
        key = _damaged(key or b"", other.key or b"", dice)
    return attrs.evolve(good, key=key, value=value)
