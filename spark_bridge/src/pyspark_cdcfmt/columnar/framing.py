"""What is around the envelope: the bytes before and behind it, and the message's key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import attrs
import msgspec
import orjson
from msgspec import Struct

from cdcfmt_core.layout import Layout
from pyspark_cdcfmt.columnar.structs import INT64, Unlike, struct

Check: TypeAlias = Callable[[Sequence[bytes], Sequence[bytes | None]], bool]

_SCALAR = str | INT64 | float | bool | None


@attrs.frozen
class Framing:
    """``head`` and ``tail`` of every value; ``check_key`` raises for the key of another kind."""

    head: bytes = b""
    tail: bytes = b""
    check_key: Callable[[bytes | None], Any] | None = None

    def decoding(self, decode: Callable[[bytes], Struct]) -> Callable[[bytes], Struct]:
        """``decode`` for whole values that pass the check."""
        if not self.head and not self.tail:
            return decode
        start, end = len(self.head), -len(self.tail) or None
        return lambda value: decode(value[start:end])

    def checking(self, begins: bytes, lacks: tuple[bytes, ...]) -> Check | None:
        """Whether values and keys are framed so; None where there is nothing to check."""
        head, tail, check_key = self.head or begins, self.tail, self.check_key
        if not (head or tail or lacks or check_key):
            return None
        shortest = len(self.head) + len(tail)

        def check(values: Sequence[bytes], keys: Sequence[bytes | None]) -> bool:
            for value in values:
                if not (value.startswith(head) and value.endswith(tail) and len(value) >= shortest):
                    return False
                for text in lacks:
                    if text in value:
                        return False
            if check_key is not None:
                try:
                    for key in keys:
                        check_key(key)
                except Exception:
                    return False
            return True

        return check


def learn_framing(layout: Layout, value: bytes, key: bytes | None) -> Framing:
    """The framing of messages like this one.

    :raises Unlike: if its key is none that this path can read.
    """
    start, end = (0, len(value)) if layout.frame is None else layout.frame(value)
    check_key = _key_check(layout, key) if layout.keyed else None
    return Framing(value[:start], value[end:], check_key)


def _key_check(layout: Layout, key: bytes | None) -> Callable[[bytes | None], Any]:
    if key is None:
        return _no_key
    start, end = (0, len(key)) if layout.frame is None else layout.frame(key)
    try:
        columns = orjson.loads(key[start:end])
    except orjson.JSONDecodeError:
        columns = None
    if type(columns) is not dict or "payload" in columns:
        raise Unlike("its key is no object of columns")
    decode = msgspec.json.Decoder(struct([(name, _SCALAR) for name in columns])).decode
    head, tail = key[:start], key[end:]
    stop = -len(tail) or None

    def check(key: bytes | None) -> None:
        if key is None or not (key.startswith(head) and key.endswith(tail)):
            raise ValueError("another key")
        decode(key[start:stop])

    return check


def _no_key(key: bytes | None) -> None:
    if key is not None:
        raise ValueError("a key")
