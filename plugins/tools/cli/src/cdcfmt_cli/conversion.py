"""Conversion of messages from one format to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import TypeAlias

import attrs

from cdcfmt_cli.engines import conversion_engine
from cdcfmt_cli.reading import Decoded, Reader
from cdcfmt_core.encoding import MessageEncoder
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Message, Watermark
from cdcfmt_files.sources import BadLine, one_by_one
from cdcfmt_toolkit.writable_tables import check_tables

LinesOfMessages: TypeAlias = tuple[bytes, int]
"""Lines of whole messages, each with its line end, and the number of lines."""

FIRST = 4_000
"""Number of messages whose conversion takes as long as loading an engine."""


@attrs.define
class Conversion:
    """Decodes and encodes messages one by one; ``counts`` are the encoder's."""

    reader: Reader
    encoder: MessageEncoder
    counts: Counter[str]
    _place: tuple[str | None, int] | None = None
    """Topic and partition of the watermarks."""

    def check(self, encoder: MessageEncoder) -> None:
        """Check the tables that are known before the first message is written.

        They are those of rows in the first and last messages, and those of DDL statements and
        schema messages of the whole input if rows of them are found, too.  An input that can be
        read only once is not checked.

        :param encoder: one that writes nothing.
        :raises EncodeError: for a column that the format cannot express.
        """
        check_tables(encoder, self.reader.row_tables(whole=False))
        schemas, wants = self.reader.schemas, self.reader.event_filter.wants_table
        known = chain(schemas.tables(), schemas.statements.tables())
        try:
            check_tables(encoder, (t for t in known if wants(t.database, t.table, t.schema)))
        except EncodeError:
            # Tables without rows are no obstacle.
            check_tables(encoder, self.reader.row_tables(whole=True))

    def messages(self, *, as_lines: bool) -> Iterator[Message | LinesOfMessages]:
        """The converted messages of the whole input.

        An installed engine takes over after the first :data:`FIRST` messages.

        :param as_lines: The caller also accepts messages as encoded lines.
        :raises EncodeError: for an event that cannot be written.
        """
        blocks, number = self.reader.blocks(), 0
        may_load = not self.reader.is_live
        for block in blocks:
            if may_load and number >= FIRST:
                may_load = False
                convert = conversion_engine()
                if convert is not None:
                    yield from convert(self, chain([block], blocks), number, as_lines=as_lines)
                    break
            for message in one_by_one([block]):
                yield from self.convert(number, message)
                number += 1
        yield from self.encoder.flush()

    def convert(self, number: int, message: Message | BadLine) -> Iterator[Message]:
        """The output messages that this message completes."""
        return self.encode(self.reader.decode(number, message))

    def encode(self, decoded: Decoded) -> Iterator[Message]:
        """The output messages that these events complete."""
        for event in decoded.events:
            try:
                messages = self.encoder.encode(event)
                if messages and isinstance(event, Watermark):
                    self._check_place(decoded.message)
                yield from messages
            except EncodeError as error:
                message = decoded.message
                places = (f"{n} {v}" for n in ("topic", "partition", "offset")
                          if (v := getattr(message, n)) is not None)  # fmt: skip
                where = ", ".join([f"message {decoded.number + 1}", *places])
                raise EncodeError(f"{where}: {error}") from error

    def _check_place(self, message: Message) -> None:
        """:raises EncodeError: for a watermark of another partition than those before it."""
        if message.partition is None:
            return
        place = message.topic, message.partition
        self._place = self._place or place
        if place != self._place:
            raise EncodeError(
                "watermarks of several partitions: that of a faster one could precede rows of this "
                "one; leave them out (--kind row,ddl), or convert each partition alone"
            )
