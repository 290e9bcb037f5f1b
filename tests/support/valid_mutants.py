"""Messages with other digits, texts, orders, blanks and escapes, most of which stay valid."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import attrs

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Message
from cdcfmt_open_protocol.frames import HEAD, framed, split_key, split_value

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_DIGIT = re.compile(rb"[0-9]")
_LETTER = re.compile(rb"(?<!\\)[a-z]")
_TEXTS = (
    b"\\u00e9",
    b"\\n",
    b"\\/",
    "\u4e2d".encode(),
    b"\\ud83d\\ude00",
    b"\\\\",
    b"x" * 40,
    b" ",
)

_IMAGES = frozenset((b'"data"', b'"old"', b'"before"', b'"after"'))
_CELL = b'"v"'
"""Members with a row's values; a cell of Open Protocol has more than its value."""

Tokens = list[bytes]


def valid_mutant(message: Message, chance: random.Random, *, wire: str) -> Message:
    """The message with one or two of its values, members or blanks changed.

    :param wire: golden folder, which says whether it is JSON (in frames: ``open``) or Avro.
    """
    times = chance.randrange(1, 3)
    value, key = message.value, message.key
    if not value:
        return message
    if wire == "open":
        try:
            keys, values = split_key(key or b"", 1_000), split_value(value, 1_000)
        except DecodeError:
            return message  # compressed
        for _ in range(times):
            frames = values if chance.random() < 0.8 else keys
            at = chance.randrange(len(frames))
            frames[at] = _changed(frames[at], chance)
        key, value = HEAD + b"".join(map(framed, keys)), b"".join(map(framed, values))
        return attrs.evolve(message, key=key, value=value)
    is_json = value.lstrip()[:1] in (b"{", b"[")
    for _ in range(times):
        value = _changed(value, chance) if is_json else _other_digit(value, chance)
    return attrs.evolve(message, value=value)


def _changed(document: bytes, chance: random.Random) -> bytes:
    tokens = _TOKEN.findall(document)
    chance.choice(_CHANGES)(tokens, chance)
    return b"".join(tokens)


def _values(tokens: Tokens, pattern: re.Pattern[bytes]) -> list[int]:
    """The places of values in rows in which the pattern occurs."""
    found = []
    path: list[bytes] = []
    for at, token in enumerate(tokens):
        if token in (b"{", b"["):
            path.append(tokens[at - 2] if tokens[at - 1] == b":" else b"")
        elif token in (b"}", b"]"):
            del path[-1:]  # some golden keys are not JSON
        elif tokens[at - 1] == b":" and pattern.search(token):
            in_row = not _IMAGES.isdisjoint(path) and b'"schema"' not in path[1:2]
            if in_row or tokens[at - 2] == _CELL:
                found.append(at)
    return found


def _digits(tokens: Tokens, chance: random.Random) -> None:
    if places := _values(tokens, _DIGIT):
        at = chance.choice(places)
        tokens[at] = _other_digit(tokens[at], chance)


def _other_digit(data: bytes, chance: random.Random) -> bytes:
    """Another digit; the length of the data stays, as Avro needs it."""
    found = [match.start() for match in _DIGIT.finditer(data)]
    if not found:
        return data
    at = chance.choice(found)
    return data[:at] + b"%d" % chance.randrange(1, 10) + data[at + 1 :]


def _texts(tokens: Tokens, chance: random.Random) -> None:
    """Another letter of a text, which may be one of a word that the format defines."""
    places = [at for at in _values(tokens, _LETTER) if tokens[at].startswith(b'"')]
    if places:
        at = chance.choice(places)
        start = chance.choice(list(_LETTER.finditer(tokens[at]))).start()
        text = chance.choice(_TEXTS)
        tokens[at] = tokens[at][:start] + text + tokens[at][start + 1 :]


def _escapes(tokens: Tokens, chance: random.Random) -> None:
    """The same text, with a character as an escape."""
    places = [at for at in _values(tokens, _LETTER) if tokens[at].startswith(b'"')]
    if places:
        at = chance.choice(places)
        start = chance.choice(list(_LETTER.finditer(tokens[at]))).start()
        escape = b"\\u%04x" % tokens[at][start]
        tokens[at] = tokens[at][:start] + escape + tokens[at][start + 1 :]


def _blanks(tokens: Tokens, chance: random.Random) -> None:
    at = chance.randrange(len(tokens) + 1)
    tokens[at:at] = [chance.choice((b" ", b"  ", b"\t", b"\r", b" \n "))]


def _order(tokens: Tokens, chance: random.Random) -> None:
    """Two members of an object change places."""
    objects = [members for members in _objects(tokens) if len(members) > 1]
    if objects:
        members = chance.choice(objects)
        (start, end), (begin, stop) = sorted(chance.sample(members, 2))
        tokens[start:stop] = (
            tokens[begin:stop] + tokens[end:begin] + tokens[start:end]
        )  # fmt: skip


def _objects(tokens: Tokens) -> list[list[tuple[int, int]]]:
    """The members of each object, as ranges of tokens."""
    found: list[list[tuple[int, int]]] = []
    stack: list[tuple[bytes, int, list[tuple[int, int]]]] = []
    for at, token in enumerate(tokens):
        if token in (b"{", b"["):
            stack.append((token, at + 1, []))
        elif token in (b",", b"}", b"]") and stack:
            opened, start, members = stack[-1]
            if at > start:
                members.append((start, at))
            stack[-1] = (opened, at + 1, members)
            if token != b",":
                stack.pop()
                if opened == b"{":
                    found.append(members)
    return found


_CHANGES: tuple[Callable[[Tokens, random.Random], None], ...] = (
    *(_digits, _digits, _digits, _digits, _texts, _texts, _escapes, _blanks, _order),
)
