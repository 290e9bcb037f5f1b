"""What is around the envelope: the bytes before and behind it, and the message's key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import msgspec
import orjson

from cdcfmt_core.layout import Layout
from pyspark_cdcfmt.columnar.structs import INT64, Unlike, struct

_SCALAR = str | INT64 | float | bool | None


@attrs.frozen
class Framing:
    """``head`` and ``tail`` of every value, the envelope without them being a document.

    ``begins`` is how every document begins, ``lacks`` what none holds; ``check_key`` raises
    for the key of another kind.
    """

    head: bytes = b""
    tail: bytes = b""
    begins: bytes = b""
    lacks: tuple[bytes, ...] = ()
    check_key: Callable[[bytes | None], Any] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether values are documents, and there is nothing else to look at."""
        return not (self.head or self.tail or self.begins or self.lacks or self.check_key)

    def names(self) -> tuple[str, ...]:
        """The members of the object around the document; none if there is no such object."""
        try:
            around = orjson.loads(self.head + b"0" + self.tail)
        except orjson.JSONDecodeError:
            return ()
        return tuple(around) if type(around) is dict else ()

    def documents(self, values: Sequence[bytes], keys: Sequence[bytes | None]) -> list[bytes]:
        """The documents in the values.

        :raises ValueError: if one of them is framed otherwise; others, from a key.
        """
        head, tail = self.head + self.begins, self.tail
        start, end = len(self.head), -len(tail) or None
        shortest = len(head) + len(tail)
        for value in values:
            if not (value.startswith(head) and value.endswith(tail)) or len(value) < shortest:
                raise ValueError("another frame")
        documents = [value[start:end] for value in values]
        if self.lacks:
            together = b"\n".join(documents)
            if any(text in together for text in self.lacks):
                raise ValueError("a placeholder")
        if self.check_key is not None:
            for key in keys:
                self.check_key(key)
        return documents


def learn_framing(layout: Layout, value: bytes, key: bytes | None) -> Framing:
    """The framing of messages like this one.

    :raises Unlike: if its key is none that this path can read.
    """
    start, end = (0, len(value)) if layout.frame is None else layout.frame(value)
    if any(text in value for text in layout.lacks):
        raise Unlike("it holds what messages of its kind do not")
    check_key = _key_check(layout, key) if layout.keyed else None
    return Framing(value[:start], value[end:], lacks=layout.lacks, check_key=check_key)


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
