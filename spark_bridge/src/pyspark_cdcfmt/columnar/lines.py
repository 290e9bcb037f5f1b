"""Typed reading of lines in one piece: nobody cuts them, and no message is made of them."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Struct

from cdcfmt_core.sources import Lines
from cdcfmt_core.sources.lines import FIELDS
from pyspark_cdcfmt.columnar.framing import Framing
from pyspark_cdcfmt.columnar.structs import struct

_get_document = attrgetter("f0")


class LinesReader:
    """Decodes the documents in lines, if all of them are like the plan's messages.

    ``names`` are the members of every document.
    """

    def __init__(self, envelope: type[Struct], framing: Framing, names: tuple[str, ...]) -> None:
        self._framing = framing
        self._decode = msgspec.json.Decoder(envelope).decode
        self._decode_all: Callable[[bytes], list[Any]] | None = None
        self._wrapped = bool(framing.head)
        if not self._wrapped:
            self._decode_all = msgspec.json.Decoder(envelope).decode_lines
        else:
            names = framing.names()
            if len(names) == 1:
                wrapper = struct([(names[0], envelope)])
                self._decode_all = msgspec.json.Decoder(wrapper).decode_lines
        self._no_messages = not set(names) <= set(FIELDS)

    def read(self, lines: Lines, limit: int) -> list[Any]:
        """The documents of all lines, as structs.

        :raises Exception: if there is a line, of at most ``limit`` bytes, that is none of them.
        """
        framing, data, starts = self._framing, lines.data, lines.starts
        if len(data) > limit and _longest(lines) > limit:
            raise ValueError("a long line")
        if not (lines.plain or self._no_messages):
            raise ValueError("a line may be a whole message")
        if framing.check_key is not None:
            framing.check_key(None)
        if self._decode_all is None:
            return list(map(self._decode, framing.documents(data.split(b"\n")[:-1], ())))
        if any(text in data for text in framing.lacks):
            raise ValueError("a placeholder")
        begins = framing.head + framing.begins
        if framing.begins and not all(data.startswith(begins, start) for start in starts):
            raise ValueError("another beginning")
        documents = self._decode_all(data)
        # A document could go on behind the end of its line, and there could be empty lines.
        if len(documents) != len(starts):
            raise ValueError("lines that are no documents")
        return list(map(_get_document, documents)) if self._wrapped else documents


def _longest(lines: Lines) -> int:
    ends = [*lines.starts[1:], len(lines.data)]
    return max(end - start for start, end in zip(lines.starts, ends, strict=True))
