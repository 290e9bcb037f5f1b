"""The compiled kernel, opened for a read and fed with messages.

The kernel reads messages in order until it refuses one.  The reference decodes that message, and
the bridge adds the plan of its table schema, so that the kernel can read the next one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import attrgetter
from typing import Generic, TypeVar

import attrs
import pyarrow as pa

from cdcfmt_core.codec import AUTO
from cdcfmt_core.events import Message
from cdcfmt_core.texts import open_logger
from cdcfmt_files.sources import BadLine, Lines
from cdcfmt_toolkit.repeats import beside_bytes, text_bytes, value_bytes
from pyspark_cdcfmt.kernel.batches import (
    Buffer,
    Chunk,
    Item,
    Origins,
    Reference,
    SizedBatch,
    Span,
    WholeMessages,
    cut_chunks,
    in_order,
    message_bytes,
    rows_of_each,
)
from pyspark_cdcfmt.kernel.formats import (
    Format,
    find_format,
    is_installed,
    open_kernel,
    warn_without_kernel,
)
from pyspark_cdcfmt.kernel.learning import Learner, ObservedDecoder, Refusal
from pyspark_cdcfmt.kernel.settings import Shape, Unsupported
from pyspark_cdcfmt.kernel.writers import Writers
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.rows.message_batch import MessageBatch, attributes
from pyspark_cdcfmt.rows.record_batches import MAX_BATCH_BYTES

logger = open_logger("pyspark_cdcfmt")

Out = TypeVar("Out")

_VALUE, _KEY, _OFFSET = attrgetter("value"), attrgetter("key"), attrgetter("offset")


class KernelFeed(ABC, Generic[Out]):
    """Feeds messages of one format to the kernel, and those that it refuses to the reference.

    What becomes of the read messages is a subclass's: ``_finish`` takes the kernel's rows, and
    ``_by_reference`` what it refuses.

    :ivar by_kernel: number of messages that the kernel has decoded.
    :ivar by_reference: number of messages that the reference has decoded.
    :ivar learner: adds plans; remembers the first refusal.
    """

    def __init__(
        self, format_: Format, shape: Shape, decoder: ObservedDecoder, max_message_bytes: int
    ) -> None:
        self._format = format_
        self._protocol = format_.protocol
        self._shape = shape
        self._decoder = decoder
        self._recognises = format_.recognises
        self._kernel = open_kernel(format_, shape, max_message_bytes)
        writers = None
        if format_.writers is not None:
            writers = Writers(
                self._kernel, format_.protocol, format_.writers, decoder, format_.headers
            )
        self.learner = Learner(self._kernel, format_.layouts, shape, decoder, writers)
        self._buffer = Buffer()
        self._keyed = format_.keyed
        self._taken = self.by_reference = 0

    @property
    def by_kernel(self) -> int:
        """Number of messages that the kernel has read."""
        return self._taken - self.unwanted

    @property
    def unwanted(self) -> int:
        """Number of messages that the filters exclude."""
        return self._kernel.skipped

    @abstractmethod
    def _finish(self) -> Iterator[Out]:
        """The result of the messages in the kernel and the buffer, which it empties."""

    @abstractmethod
    def _by_reference(self, message: Message | BadLine) -> Iterator[Out]:
        """Decode a refused message."""

    def _feed(self, messages: Iterable[Item]) -> Iterator[Out]:
        """The results of all messages, in their order."""
        for chunk in cut_chunks(messages, self._format.reads):
            self.learner.forget_old_plans()
            if isinstance(chunk, Lines):
                yield from self._read_lines(chunk)
            else:
                yield from self._read_messages(chunk)
            # Release the messages before reading more, and do not delay a full batch.
            del chunk
            if self._is_full():
                yield from self._finish()
        yield from self._finish()

    def _read_messages(self, chunk: Chunk) -> Iterator[Out]:
        read = self._open_chunk(chunk)
        at = 0
        while at < len(chunk):
            first, start = self._kernel.messages, at
            at = read(at)
            if at > start:
                self._add_span(chunk[start:at], first)
            if at < len(chunk):
                if self._is_full():
                    yield from self._finish()
                elif not self._is_open(message := chunk[at]):
                    yield from self._pass_over(message)
                    at += 1

    def _is_open(self, message: Message | BadLine) -> bool:
        """Whether the kernel can read the refused message now, or skips it."""
        return self.learner.opens(message, self.by_kernel) or self.learner.skips(message)

    def _open_chunk(self, chunk: Chunk) -> Callable[[int], int]:
        """A function: reads from a message on, and returns the number of the first unread one."""
        if isinstance(chunk, MessageBatch):
            return partial(self._kernel.read_batch, chunk.columns)
        offsets = list(map(_OFFSET, chunk))
        places = [(getattr(item, "partition", None), getattr(item, "epoch", 0)) for item in chunk]
        if self._recognises is None and set(map(type, chunk)) == {Message}:
            values, keys = list(map(_VALUE, chunk)), list(map(_KEY, chunk)) if self._keyed else []
        else:
            values = [self._format.value(item) for item in chunk]
            keys = [getattr(item, "key", None) for item in chunk] if self._keyed else []
        beside = self._beside(chunk)
        named = None
        if self._format.headers is not None:
            topics, headers = attributes(chunk, "topic"), attributes(chunk, "headers")
            named = [(topic, each or ()) for topic, each in zip(topics, headers, strict=True)]
        return lambda start: self._kernel.read(values, keys, offsets, start, beside, places, named)

    def _beside(self, chunk: Chunk) -> list[int]:
        """The bytes that each row has of its message besides its content; one if all are equal."""
        values = list(zip(*(attributes(chunk, name) for name in self._shape.shown), strict=True))
        if not values or values.count(values[0]) == len(values):
            values = values[:1]
        return list(map(beside_bytes, values))

    def _read_lines(self, lines: Lines) -> Iterator[Out]:
        data, at, are_whole = lines.data, 0, lines.are_whole
        path = text_bytes(lines.path) if "path" in self._shape.shown else 0
        while at < len(data):
            first, start = self._kernel.messages, at
            at = self._kernel.read_lines(data, lines.offset, at, are_whole, path)
            origins: Origins = lines
            if are_whole and self._shape.shows_origins:
                origins = WholeMessages(lines.path, *self._kernel.take_origins())
            self._add_span(origins, first, start)
            if at < len(data):
                if self._is_full():
                    yield from self._finish()
                    continue
                end = data.index(b"\n", at)
                line = data[at:end].removesuffix(b"\r")
                if not line.isspace():
                    message = lines.parse(line, lines.offset + at)
                    del line  # line and rows may be large
                    if self._is_open(message):
                        continue
                    yield from self._pass_over(message)
                at = end + 1

    def _is_full(self) -> bool:
        return self.learner.needs_finish() or self._buffer.is_full(self._kernel.size)

    def _add_span(self, origins: Origins, first: int, start: int = 0) -> None:
        """Record the messages that the kernel has read from ``first`` on.

        :param start: where they begin in a block of lines.
        """
        count = self._kernel.messages - first
        if count:
            self._taken += count
            self._decoder.note_format(self._protocol)
            self._buffer.spans.append(Span(origins, count, start))

    def _pass_over(self, message: Message | BadLine) -> Iterator[Out]:
        """Leave a refused message to the reference, and learn from it."""
        is_example, stop = self.learner.is_example(message), self._kernel.stop
        yield from self._by_reference(message)
        self.by_reference += 1
        self.learner.forget_old_plans()
        if is_example:
            self.learner.learn(message, self.by_kernel)
        else:
            self.learner.note_refusal(message, stop)
        self._decoder.forget()


class KernelChunks(KernelFeed[SizedBatch]):
    """Decodes the messages of one format to record batches."""

    def __init__(
        self,
        format_: Format,
        shape: Shape,
        reference: Reference,
        max_message_bytes: int,
    ) -> None:
        super().__init__(format_, shape, reference.decoder, max_message_bytes)
        self._reference = reference
        self._count_rows = False

    def batches(
        self, messages: Iterable[Item], *, count_rows: bool = False
    ) -> Iterator[SizedBatch]:
        """Record batches in the order of the messages.

        A batch has at least one row, unless ``count_rows`` requests the number of rows of every
        message.

        :raises DecodeError: in FAILFAST mode.
        :raises PolicyError: for what an option refuses by ``fail``.
        """
        self._count_rows = count_rows
        return self._feed(messages)

    def _by_reference(self, message: Message | BadLine) -> Iterator[SizedBatch]:
        number = self._number(message)
        for row in self._reference.rows(message, in_list=self._count_rows):
            if self._buffer.row_bytes >= MAX_BATCH_BYTES and not self._count_rows:
                yield from self._finish()
                number = self._number(message)
            self._buffer.rows.append(row)
            self._buffer.owners.append(number)
            self._buffer.row_bytes += value_bytes(row)
        self._buffer.size += message_bytes(message)

    def _number(self, message: Message | BadLine) -> int:
        number = self._kernel.pass_over()
        self._buffer.spans.append(Span([message], 1))
        return number

    def _finish(self) -> Iterator[SizedBatch]:
        buffer, self._buffer = self._buffer, Buffer()
        count, size = self._kernel.messages, buffer.size + self._kernel.size
        if not count:
            return
        rows = pa.record_batch(self._kernel.finish())
        for note, noted in self._kernel.take_counts():
            self._shape.policy.counts[note] += noted
        pieces = [buffer.batch_of(rows, self._shape, self._protocol)] if rows.num_rows else []
        owners = rows.column("message").to_pylist() if buffer.rows or self._count_rows else []
        if buffer.rows or (self._count_rows and not pieces):
            pieces.append(self._reference.batch(buffer.rows))
            owners += buffer.owners
        counts = rows_of_each(owners, count) if self._count_rows else []
        if pieces:
            yield SizedBatch(in_order(pieces, owners), max(size, buffer.row_bytes), counts)


@attrs.define
class Opening:
    """Opens the kernel for a read.

    :ivar refusal: the reason if it cannot be opened.
    :ivar refusals: a list that gets all refused messages of rows; None to keep none.
    """

    options: ReadOptions
    shape: Shape
    reference: Reference
    refusal: str | None = attrs.field(init=False, default=None)
    refusals: list[Refusal] | None = attrs.field(init=False, default=None)

    def open(self, message: Message) -> KernelChunks | None:
        """The kernel for messages like this one; None for the reference."""
        guesses = self.options["protocol"].lower() == AUTO
        format_ = find_format(
            self.reference.decoder,
            self.options.codec,
            message,
            type_map=self.options["typeMap"],
            guesses=guesses,
        )
        if format_ is None:
            return None
        if not is_installed():
            warn_without_kernel()
            return None
        try:
            chunks = KernelChunks(
                format_, self.shape, self.reference, self.options["maxMessageBytes"]
            )
            chunks.learner.refusals = self.refusals
            return chunks
        except Unsupported as error:
            self.refusal = str(error)
            logger.debug("not by the kernel: %s", error)
            return None
