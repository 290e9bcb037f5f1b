"""Write messages from the parts that describe them: the compiled kernel's reference.

The kernel's counterpart is ``spark_bridge/kernel/src/write/message.rs``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import tzinfo
from typing import Any, Final

import attrs

from cdcfmt_core.encoder import EncoderContext, RowNumbers
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column, Image, Op, RowChange, TableSchema
from cdcfmt_toolkit.column_writer import ColumnWriter, Row, Step, to_bytes
from cdcfmt_toolkit.images import executed_millis
from cdcfmt_toolkit.json_output import Dumps, WireText, no_json
from cdcfmt_toolkit.large_message_output import KeyValue
from cdcfmt_toolkit.plans import Plans
from cdcfmt_toolkit.row_messages import (
    ByLimit,
    ByPrecision,
    Checksum,
    Choice,
    Columns,
    ExtraValue,
    ImageTemplate,
    Number,
    Part,
    Placeholder,
    RowMessage,
    RowMessages,
    RowNumber,
    Texts,
    Wire,
)
from cdcfmt_toolkit.wire_avro import signed, write_array, write_long

COLUMN_BYTES: Final = 3_200
"""Approximate bytes per column of a :class:`RowWriter`, without its schema."""

_LARGEST: Final = (1 << 63) - 1


def _source_millis(event: Any) -> int:
    return executed_millis(event) if event.commit_ts is None else int(event.commit_ts >> 18)


_NUMBERS: Final[Mapping[str, Callable[[Any], int]]] = {
    "commit_ts": lambda event: event.commit_ts,
    "source_millis": _source_millis,
    "executed_millis": executed_millis,
    "executed_seconds": lambda event: executed_millis(event) // 1_000,
}


def _constant(text: bytes) -> Step:
    return lambda row: text


class MessageWriter(WireText):
    """Writes messages of one table, or of events other than rows.

    - ``wire``: the kind of JSON, or Avro
    - ``dumps``: the JSON writer
    - ``table``: the table of the rows
    - ``time_zone``: the zone of TIMESTAMP texts. Defaults to that of the context.
    - ``numbers``: the number of the last event, if events are numbered
    """

    def __init__(
        self,
        wire: Wire,
        context: EncoderContext,
        *,
        dumps: Dumps = no_json,
        table: TableSchema | None = None,
        time_zone: tzinfo | None = None,
        numbers: RowNumbers | None = None,
    ) -> None:
        super().__init__(wire, context, dumps)
        self._numbers = numbers
        self.counts = context.counts
        columns = () if table is None else table.columns
        self.columns: Mapping[str, Column] = {column.name: column for column in columns}
        writer = ColumnWriter(self, self.columns, context, time_zone)
        self._openers: Mapping[type, Callable[[Any], Step]] = {
            Number: self._number,
            Placeholder: lambda part: lambda row: part.default if row.mark is None else row.mark,
            Checksum: lambda part: lambda row: part.write(row.event),
            ByPrecision: lambda part: lambda row: row.by_precision(part),
            ImageTemplate: writer.image,
            Columns: self._columns,
            ByLimit: writer.by_limit,
            ExtraValue: self._of_extra,
            Texts: self._texts,
            RowNumber: self._row_number,
            Choice: self._choice,
        }

    def write(self, parts: Iterable[Part], event: Any) -> bytes:
        """The bytes of an event other than a row."""
        return self.open(parts)(Row(event))

    def open(self, parts: Iterable[Part]) -> Step:
        """A function that writes these parts of a row.

        :raises EncodeError: for a column that cannot be written; names it.
        :raises TypeError: for anything that is not a part.
        """
        steps: list[Step] = []
        texts: list[bytes] = []
        for part in parts:
            if isinstance(part, str | bytes):
                texts.append(to_bytes(part))
                continue
            if type(part) not in self._openers:
                raise TypeError(f"{part!r:.200} is not a part of a message")
            steps += [_constant(b"".join(texts)), self._openers[type(part)](part)]
            texts.clear()
        steps.append(_constant(b"".join(texts)))
        return lambda row: b"".join([step(row) for step in steps])

    def _number(self, part: Number) -> Step:
        find = _NUMBERS.get(part.name, self._context.emit_millis)
        return lambda row: self.integer(find(row.event))

    def _columns(self, part: Columns) -> Step:
        whole = self.open(part.of(part.parts))
        empty = part.empty.encode()

        def step(row: Row) -> bytes:
            if row.has_all(part.parts):
                return whole(row)
            columns = row.columns()
            return self.open(part.of(columns))(row) if columns else empty

        return step

    def _of_extra(self, part: ExtraValue) -> Step:
        head, tail, default = map(to_bytes, (part.head, part.tail, part.default))
        zero = None if part.zero is None else part.zero.encode()

        def step(row: Row) -> bytes:
            value = row.extra.get(part.name)
            if value is None and part.column is not None:
                image, name = part.column
                value = (row.images[image] or {}).get(name)
                value = signed(value) if type(value) is int else None
            if value == 0 and type(value) is int and zero is not None:
                return zero
            printed = self._value_of_extra(part.type, value)
            return default if printed is None else head + printed + tail

        return step

    def _value_of_extra(self, kind: str, value: Any) -> bytes | None:
        """The printed value; None for a value of another type."""
        if kind == "text":
            return self.text(value) if isinstance(value, str) else None
        if kind == "json":
            return None if value is None else self.escaped(self.printed(value))
        if kind == "integers":
            is_list = isinstance(value, list) and all(type(item) is int for item in value)
            return write_array(value, write_long) if is_list else None
        is_integer = type(value) is int and (not self.is_avro or ~_LARGEST <= value < 1 << 64)
        return self.integer(value) if is_integer else None

    def _texts(self, part: Texts) -> Step:
        def write_item(item: tuple[str, Any]) -> bytes:
            return self.text(item[0]) + self.text(item[1])

        def step(row: Row) -> bytes:
            found = row.extra.get(part.name)
            texts = found if isinstance(found, dict) else {}
            more = {name: text for name, text in part.more.items() if name not in texts}
            return write_array([*texts.items(), *more.items()], write_item)

        return step

    def _row_number(self, part: RowNumber) -> Step:
        if self._numbers is None:
            raise TypeError("a RowNumber needs a MessageWriter with numbers")

        def step(row: Row) -> bytes:
            assert self._numbers is not None
            number = row.extra.get(part.name)
            if type(number) is not int or not ~_LARGEST <= number <= _LARGEST:
                number = self._numbers.last + 1
                if number > _LARGEST:
                    raise EncodeError(
                        f"the event has no {part.name}, and the previous one has the maximum"
                    )
            self._numbers.last = number
            return self.integer(number)

        return step

    def _choice(self, part: Choice) -> Step:
        by_text = {text: parts for texts, parts in part.among for text in texts}
        opened: dict[int, Step] = {}

        def step(row: Row) -> bytes:
            given = row.extra.get(part.name)
            parts = by_text.get(given, part.default) if isinstance(given, str) else part.default
            if isinstance(parts, EncodeError):
                raise parts
            if id(parts) not in opened:
                opened[id(parts)] = self.open(parts)
            return opened[id(parts)](row)

        return step


class RowWriter:
    """Writes the rows of a table; one is a plan for :class:`~cdcfmt_toolkit.plans.Plans`."""

    def __init__(self, schema: TableSchema, messages: RowMessages, writer: MessageWriter) -> None:
        self.schema = schema
        self.messages = messages
        self._writer = writer
        # Open all messages now, so that rows of an unwritable column are rejected even if NULL.
        self._opened = {id(each): self._open(each) for each in messages.by_op.values()}

    def write(
        self,
        event: RowChange,
        *,
        message: RowMessage | None = None,
        mark: bytes | None = None,
        only: Collection[str] | None = None,
    ) -> KeyValue:
        """The key and value of a row.

        - ``message``: how to write it. Defaults to that of the operation.
        - ``mark``: the bytes for the part :class:`Placeholder`
        - ``only``: the columns to write, if the row is reduced

        :raises EncodeError: for a value of the wrong type, or a column that the table's schema
            lacks; names the column.
        """
        message = message or self.messages.by_op[event.op]
        image = event.before if event.op == "delete" else event.after
        if only is None and image is not None and image.complete:
            only = message.only
        both = {"before": event.before, "after": event.after}
        row = Row(event, mark, {name: self._values(image, only) for name, image in both.items()})
        write_key, write_value = self._opened.get(id(message)) or self._open(message)
        counts = dict(self._writer.counts)
        try:
            return None if write_key is None else write_key(row), write_value(row)
        except EncodeError:
            # Do not count changes to values of a row that is not written.
            self._writer.counts.clear()
            self._writer.counts.update(counts)
            raise

    def _values(self, image: Image | None, only: Collection[str] | None) -> dict[str, Any] | None:
        if image is None:
            return None
        values, columns = image.values, self._writer.columns
        if only is not None:
            values = {name: values[name] for name in only if name in values}
        if not values.keys() <= columns.keys():
            unknown = min(values.keys() - columns.keys())
            raise EncodeError("the table's schema has no such column", column=unknown)
        return values

    def _open(self, message: RowMessage) -> tuple[Step | None, Step]:
        key = None if message.key is None else self._writer.open(message.key)
        return key, self._writer.open(message.value)


@attrs.define(eq=False)
class RowMessageBuilder(ABC):
    """Describes the row messages of each table, once: the base of a format's builder.

    ``find``: the writer of a table's rows, from a cache.
    """

    context: EncoderContext
    find: Callable[[TableSchema], RowWriter] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.find = Plans(self._open, COLUMN_BYTES).find

    @abstractmethod
    def writer(self, table: TableSchema | None = None) -> MessageWriter:
        """The writer of a table's rows, or of other events."""

    @abstractmethod
    def messages(self, table: TableSchema, writer: MessageWriter) -> Mapping[Op, RowMessage]:
        """How to write the rows of a table, by operation.

        :raises EncodeError: for a column that cannot be written; names it.
        """

    def _open(self, table: TableSchema) -> RowWriter:
        writer = self.writer(table)
        return RowWriter(table, RowMessages(self.messages(table, writer)), writer)
