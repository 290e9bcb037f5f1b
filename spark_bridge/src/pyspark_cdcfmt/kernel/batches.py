"""The kernel's input in chunks, and its output in batches, in the order of the input."""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import attrs
import pyarrow as pa

from cdcfmt_core.events import Message
from cdcfmt_files.sources import BadLine, Lines, one_by_one
from cdcfmt_toolkit.repeats import value_bytes
from pyspark_cdcfmt.kernel.learning import ObservedDecoder
from pyspark_cdcfmt.kernel.settings import Shape
from pyspark_cdcfmt.rows.event_rows import microseconds
from pyspark_cdcfmt.rows.message_batch import MessageBatch, attributes, named
from pyspark_cdcfmt.rows.record_batches import (
    MAX_BATCH_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_ROWS,
    to_array,
)

Chunk: TypeAlias = Sequence[Message | BadLine]
Row: TypeAlias = tuple[Any, ...]


class MakesRows(Protocol):
    """Rows of messages, by the reference."""

    def rows(self, message: Message | BadLine) -> Iterator[Row]:
        """The rows of a message, made lazily."""

    def listed(self, message: Message | BadLine) -> list[Row]:
        """All rows of a message; a single bad row if they are too large for one list."""


_SINGLE = (Message, BadLine)
_CHUNK_BYTES = 4 << 20
_MESSAGE_BYTES = 4 << 10
"""Bytes that a message adds to the size of a chunk besides its own; limits a chunk to 1024."""


@attrs.frozen
class WholeMessages:
    """Positions of messages in lines; timestamps are in milliseconds."""

    path: str
    topic: list[str | None]
    partition: list[int | None]
    timestamp: list[int | None]
    headers: list[list[tuple[str, bytes | None]]]


Item: TypeAlias = Message | BadLine | Lines | MessageBatch
Origins: TypeAlias = Chunk | Lines | WholeMessages


def message_bytes(message: Message | BadLine) -> int:
    """The bytes of a message that a batch holds until it is finished."""
    size = len(message.value or b"")
    if isinstance(message, Message):
        size += len(message.key or b"") + len(message.topic or "")
        size += value_bytes(message.headers) if message.headers else 0
    return size


def cut_chunks(
    messages: Iterable[Item], are_readable: Callable[[Lines | MessageBatch], bool]
) -> Iterator[Chunk | Lines]:
    """Group messages into chunks; lines in one piece stay together if readable."""
    chunk: list[Message | BadLine] = []
    size = 0
    for item in messages:
        if not isinstance(item, _SINGLE):
            if chunk:
                yield chunk
                chunk, size = [], 0
            if are_readable(item):
                yield item
            else:
                yield from cut_chunks(one_by_one([item]), are_readable)
            continue
        chunk.append(item)
        size += message_bytes(item) + _MESSAGE_BYTES
        # Release it before the next one is read.
        del item
        if size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


@attrs.frozen
class Reference:
    """The reference path.

    :ivar make: rows of a message; raises in FAILFAST mode.
    :ivar batch: makes a batch of rows.
    """

    make: MakesRows
    decoder: ObservedDecoder
    batch: Callable[[list[Row]], pa.RecordBatch]

    def rows(self, message: Message | BadLine, *, in_list: bool) -> Iterable[Row]:
        """The rows of a message; ``in_list``: as a list that is never split."""
        return self.make.listed(message) if in_list else self.make.rows(message)


@attrs.frozen
class Span:
    """Consecutive messages: a list, or several in one piece.

    :ivar start: where they begin in a block of lines.
    """

    origins: Origins
    count: int
    start: int = 0

    def message(self, number: int) -> Message | BadLine:
        """One of the messages of a list or of a block of lines."""
        if isinstance(self.origins, Lines):
            return self.origins.message(self._lines[number])
        assert isinstance(self.origins, Sequence)
        return self.origins[number]

    @functools.cached_property
    def _lines(self) -> list[int]:
        """The numbers of the lines that are not blank, from ``start`` on."""
        lines = self.origins
        assert isinstance(lines, Lines)
        first = bisect_left(lines.starts, self.start)
        ends = [*lines.starts[1:], len(lines.data)]
        places = zip(lines.starts[first:], ends[first:], strict=True)
        return [n for n, (at, end) in enumerate(places, first) if lines.data[at:end].strip()]

    def values(self, name: str, type_: pa.DataType) -> list[Any] | pa.Array:
        """An attribute of each message, or one value for all; lines have only a path."""
        origins = self.origins
        if isinstance(origins, MessageBatch):
            return origins.times(type_) if name == "timestamp" else origins.columns.column(name)
        if isinstance(origins, Lines):
            return [0 if name == "epoch" else origins.path if name == "path" else None]
        if isinstance(origins, WholeMessages):
            alone: dict[str, list[Any]] = {"path": [origins.path], "epoch": [0]}
            values = alone.get(name) or getattr(origins, name)
        else:
            values = attributes(origins, name)
        if values.count(values[0]) == len(values):
            # Most messages belong to one file or topic.
            values = values[:1]
        return list(map(microseconds, values)) if pa.types.is_timestamp(type_) else values

    def headers(self) -> list[list[dict[str, Any]]]:
        """The headers of each message; lines have none."""
        if isinstance(self.origins, Lines):
            return [[]] * self.count
        if isinstance(self.origins, MessageBatch):
            return self.origins.headers()
        if isinstance(self.origins, WholeMessages):
            found: Iterable[Any] = self.origins.headers
        else:
            found = attributes(self.origins, "headers")
        return [named(each) if each else [] for each in found]


@attrs.define
class Buffer:
    """The reference's rows of a batch, and the positions of the batch's messages.

    :ivar owners: the number of each row's message in the batch.
    :ivar spans: all messages of the batch.
    :ivar size: bytes of the reference's messages.
    :ivar row_bytes: bytes of the reference's rows.
    """

    rows: list[Row] = attrs.field(factory=list)
    owners: list[int] = attrs.field(factory=list)
    spans: list[Span] = attrs.field(factory=list)
    size: int = 0
    row_bytes: int = 0

    def is_full(self, size: int) -> bool:
        """Whether the batch is full; ``size``: bytes of the kernel's messages."""
        return (
            self.size + size >= MAX_MESSAGE_BYTES
            or self.row_bytes >= MAX_BATCH_BYTES
            or len(self.rows) >= MAX_ROWS
        )

    def batch_of(self, rows: pa.RecordBatch, shape: Shape, protocol: str) -> pa.RecordBatch:
        """The kernel's rows with all wanted columns."""
        arrays = []
        given = dict(zip(rows.schema.names, rows.columns, strict=True))
        for field in shape.schema:
            what = shape.metadata.get(field.name)
            if (column := given.get(field.name)) is not None:
                arrays.append(column if column.type == field.type else column.cast(field.type))
            elif what in ("source", "_source"):
                arrays.append(self._sources(rows, protocol, field.type))
            elif what == "headers":
                headers = [each for span in self.spans for each in span.headers()]
                arrays.append(to_array(headers, field.type).take(rows.column("message")))
            elif what == "invalid":
                # The reference makes all rows with changed values.
                arrays.append(_constant((), rows.num_rows, field.type))
            else:
                # Unlike pa.nulls: a NULL variant has no NULL in fields that are not nullable.
                arrays.append(_constant(None, rows.num_rows, field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=shape.schema)

    def _sources(self, rows: pa.RecordBatch, protocol: str, type_: pa.DataType) -> pa.Array:
        """``_source`` of rows that have ``message``, ``index`` and ``offset``."""
        arrays = []
        for field in type_:
            if field.name in ("index", "offset"):
                array = rows.column(field.name)
            elif field.name == "protocol":
                array = _constant(protocol, rows.num_rows, field.type)
            else:
                array = self._of_messages(field, rows.column("message"))
            arrays.append(array)
        return pa.StructArray.from_arrays(arrays, fields=list(type_))

    def _of_messages(self, field: pa.Field, owners: pa.Array) -> pa.Array:
        """An attribute of the message of each row."""
        first, *others = values = [span.values(field.name, field.type) for span in self.spans]
        if isinstance(first, list) and len(first) == 1 and all(each == first for each in others):
            return _repeated(to_array(first, field.type), len(owners))
        columns = []
        for some, span in zip(values, self.spans, strict=True):
            column = to_array(some, field.type) if isinstance(some, list) else some
            columns.append(_repeated(column, span.count) if len(some) == 1 else column)
        return pa.concat_arrays(columns).take(owners)


def _repeated(value: pa.Array, count: int) -> pa.Array:
    return value.take(pa.repeat(pa.scalar(0, pa.int32()), count))


def _constant(value: Any, count: int, type_: pa.DataType) -> pa.Array:
    """``count`` times a short value; each batch of events has the same columns of NULLs."""
    if count > 2 * MAX_ROWS:
        return _repeated(to_array([value], type_), count)
    return _kept_constant(value, type_, 1 << count.bit_length()).slice(0, count)


@functools.lru_cache(maxsize=64)
def _kept_constant(value: Any, type_: pa.DataType, count: int) -> pa.Array:
    return _repeated(to_array([value], type_), count)


@attrs.frozen
class SizedBatch:
    """The rows of the next messages of the input.

    :ivar size: bytes of the messages or of the rows, the larger one.
    :ivar counts: number of rows of each message, if requested.
    """

    batch: pa.RecordBatch
    size: int
    counts: Sequence[int] = ()


def in_order(pieces: Sequence[pa.RecordBatch], owners: Sequence[int]) -> pa.RecordBatch:
    """The rows of all pieces (one or two) in the order of their messages.

    :param owners: the message of each row, ascending in each piece.
    """
    if len(pieces) == 1:
        return pieces[0]
    if owners[-1] < owners[0]:
        # The usual case: the kernel learns a table from its first message.
        return pa.concat_batches(pieces[::-1])
    order = sorted(range(len(owners)), key=owners.__getitem__)
    return pa.concat_batches(pieces).take(pa.array(order, pa.int32()))


def rows_of_each(owners: Iterable[int], count: int) -> list[int]:
    """The number of rows of each of ``count`` messages."""
    counts = [0] * count
    for owner in owners:
        counts[owner] += 1
    return counts


def merge_small(batches: Iterable[SizedBatch]) -> Iterator[SizedBatch]:
    """Merge consecutive small batches, up to MAX_ROWS and MAX_MESSAGE_BYTES."""
    held: list[SizedBatch] = []
    rows = size = 0
    for each in batches:
        more = max(each.batch.num_rows, len(each.counts))
        is_large = more >= MAX_ROWS // 2 or each.size >= MAX_MESSAGE_BYTES
        alone = is_large and not held
        held.append(each)
        rows += more
        size += max(each.size, each.batch.nbytes)
        # Release the batch before the next one is made.
        del each
        if alone:
            yield held.pop()
            rows = size = 0
        elif rows >= MAX_ROWS or size >= MAX_MESSAGE_BYTES:
            yield _together(held)
            held.clear()
            rows = size = 0
    if held:
        yield _together(held)


def _together(batches: Sequence[SizedBatch]) -> SizedBatch:
    if len(batches) == 1:
        # Avoids a copy by Arrow.
        return batches[0]
    return SizedBatch(
        pa.concat_batches([each.batch for each in batches]),
        sum(each.size for each in batches),
        [count for each in batches for count in each.counts],
    )
