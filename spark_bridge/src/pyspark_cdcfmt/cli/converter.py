"""Conversion of messages by the kernel: to Arrow columns, and from these to messages.

The kernel reads messages in order until it refuses one, and writes the read rows until it refuses
one.  The reference converts what the kernel refuses before anything after it, so decoder and
encoder process everything in input order.  Each row has the number of its table schema, so it is
written with the same schema that the reference would use.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from cdcfmt_core.errors import CdcfmtError
from cdcfmt_core.events import Event, Message
from cdcfmt_core.texts import open_logger
from cdcfmt_files.sources import BadLine, Lines
from pyspark_cdcfmt.kernel.batches import Chunk, cut_chunks
from pyspark_cdcfmt.kernel.formats import Format, open_kernel
from pyspark_cdcfmt.kernel.learning import Learner, ObservedDecoder
from pyspark_cdcfmt.kernel.settings import NumberedTables, Shape
from pyspark_cdcfmt.write.columnar import KernelWriter

if TYPE_CHECKING:
    from cdcfmt_cli.conversion import Conversion, LinesOfMessages
    from cdcfmt_cli.reading import Decoded, Reader

logger = open_logger("pyspark_cdcfmt")

ENOUGH: Final = 64
"""Number of consecutive messages that makes another call of the kernel worthwhile."""
MAX_AT_ONCE: Final = 1_024
"""Maximum number of messages for the reference at once, if the kernel refuses many in a row."""
MAX_TABLES: Final = 20_000


@attrs.define
class _Observed:
    """The reader's decoder; keeps the last decoded message."""

    reader: Reader
    number: int = 0
    last: Any = None

    @property
    def protocol(self) -> str | None:
        return self.reader.decoder.protocol

    def decode(self, message: Message) -> list[Event]:
        self.last = self.reader.decode(self.number, message)
        events: list[Event] = self.last.events
        return events


class Converter:
    """Converts the messages of one input; ``number``: the number of the next message."""

    def __init__(
        self,
        conversion: Conversion,
        format_: Format,
        shape: Shape,
        writer: KernelWriter,
        number: int,
    ) -> None:
        self._conversion = conversion
        self._reader = conversion.reader
        self._format = format_
        self._tables = shape.numbered or NumberedTables()
        self._kernel = open_kernel(format_.layouts, shape, self._reader.settings["maxMessageBytes"])
        self._decoder = _Observed(self._reader)
        self._observed = ObservedDecoder(self._decoder)
        self._learner = Learner(self._kernel, format_.layouts, shape, self._observed)
        self._writer = writer
        self._number = number
        self._step = 1
        self._last_run = 0
        self._is_example = False
        self._by_kernel = self._rows_by_kernel = 0

    def parts(
        self, blocks: Iterator[Message | BadLine | Lines]
    ) -> Iterator[Message | LinesOfMessages]:
        """The converted messages."""
        errors: list[Exception] = []
        try:
            for chunk in cut_chunks(_until_error(blocks, errors), self._format.reads):
                self._forget_old_plans()
                if isinstance(chunk, Lines):
                    yield from self._lines(chunk)
                else:
                    yield from self._messages(chunk)
        finally:
            self._conversion.counts.update(self._writer.take_counts())
            logger.debug("read by the kernel: %d messages", self._by_kernel)
            logger.debug("written by the kernel: %d rows", self._rows_by_kernel)
        if errors:
            raise errors[0]

    def _messages(self, chunk: Chunk) -> Iterator[Message | LinesOfMessages]:
        values = [self._format.value(item) for item in chunk]
        keys = [getattr(item, "key", None) for item in chunk] if self._format.keyed else []
        offsets = [item.offset for item in chunk]
        at = 0
        while at < len(chunk):
            start = at
            at = self._kernel.read(values, keys, offsets, at)
            yield from self._rows(chunk[start:at])
            if at < len(chunk) and self._is_refused(chunk[at]):
                for message in chunk[at : at + self._step]:
                    yield from self._by_reference(message)
                    at += 1

    def _lines(self, lines: Lines) -> Iterator[Message | LinesOfMessages]:
        data, at = lines.data, 0
        while at < len(data):
            start = at
            at = self._kernel.read_lines(data, lines.offset, at, lines.are_whole)
            yield from self._rows(_Run(lines, start, at))
            rest = _messages_from(lines, at)
            first = next(rest, None)
            if first is None:
                return
            if self._is_refused(first[0]):
                for message, end in chain([first], islice(rest, self._step - 1)):
                    yield from self._by_reference(message)
                    at = end

    def _is_refused(self, message: Message | BadLine) -> bool:
        """Whether the reference must read the next ``self._step`` messages.

        False if the kernel continues, or skips an unwanted message.
        """
        if self._learner.needs_finish() or self._learner.skips(message):
            return False
        self._is_example = self._learner.is_example(message)
        is_rare = self._is_example or self._last_run >= ENOUGH
        self._step = 1 if is_rare else min(2 * self._step, MAX_AT_ONCE)
        return True

    def _by_reference(self, message: Message | BadLine) -> Iterator[Message]:
        stop = self._kernel.stop
        number, self._number = self._number, self._number + 1
        self._writer.hand_over()
        if isinstance(message, BadLine):
            yield from self._conversion.convert(number, message)
            return
        self._decoder.number = number
        self._observed.decode(message)
        yield from self._conversion.encode(self._decoder.last)
        self._forget_old_plans()
        if self._is_example:
            self._learner.learn(message, self._by_kernel)
        else:
            self._learner.note_refusal(message, stop)
        self._observed.forget()
        self._decoder.last = None

    def _forget_old_plans(self) -> None:
        if len(self._tables.schemas) > MAX_TABLES:
            self._kernel.clear_plans()
            self._writer.clear_tables()
            self._tables.clear()
        self._learner.forget_old_plans()

    def _rows(self, run: Sequence[Message | BadLine]) -> Iterator[Message | LinesOfMessages]:
        """The converted messages of a run that the kernel has read."""
        number, self._last_run = self._number, self._kernel.messages
        if not self._last_run:
            return
        self._number += self._last_run
        self._by_kernel += self._last_run
        self._reader.decoder.note_format(self._format.protocol)
        rows = pa.record_batch(self._kernel.finish())
        self._reader.counts.update(dict(self._kernel.take_counts()))
        if not self._writer.begin(rows):
            raise CdcfmtError("the kernel cannot write the columns that it has read")
        tables, owners = rows.column("table_number"), rows.column("message")
        at = 0
        while at < rows.num_rows:
            start = at
            at = self._writer.write(at)
            if at > start:
                self._rows_by_kernel += at - start
                yield from self._taken()
            if self._writer.can_continue(partial(self._learn, tables, at)):
                continue
            owner = owners[at].as_py()
            begin, end = _span(owners, owner)
            self._writer.hand_over()
            decoded = self._decoded(number + owner, run[owner])
            if len(decoded.events) != end - begin:
                raise CdcfmtError(
                    f"message {number + owner + 1}: the kernel reads {end - begin} rows, but the "
                    f"reference decoder {len(decoded.events)} events; please report this"
                )
            yield from self._conversion.encode(
                attrs.evolve(decoded, events=decoded.events[at - begin :])
            )
            at = end

    def _decoded(self, number: int, message: Message | BadLine) -> Decoded:
        """Decode a message by the reference, without counts, as the kernel has counted it."""
        counts = self._reader.counts.copy()
        decoded = self._reader.decode(number, message)
        self._reader.counts.clear()
        self._reader.counts.update(counts)
        return decoded

    def _learn(self, tables: pa.Array, at: int) -> bool:
        self._writer.add(self._tables.schemas[tables[at].as_py()], at)
        return True

    def _taken(self) -> Iterator[Message | LinesOfMessages]:
        taken = self._writer.take()
        if isinstance(taken, tuple):
            if taken[1]:
                yield taken
            return
        partitions = taken["partition"].to_pylist() if "partition" in taken.schema.names else None
        keys, values = taken["key"].to_pylist(), taken["value"].to_pylist()
        for place, (key, value) in enumerate(zip(keys, values, strict=True)):
            yield Message(key, value, partition=None if partitions is None else partitions[place])


class _Run(Sequence[Message | BadLine]):
    """The messages of a range of bytes of lines in one piece."""

    def __init__(self, lines: Lines, start: int, end: int) -> None:
        self._lines = lines
        self._start = start
        self._end = end

    @cached_property
    def _numbers(self) -> list[int]:
        """The numbers of the non-blank lines."""
        starts, data = self._lines.starts, self._lines.data
        first, last = bisect_left(starts, self._start), bisect_left(starts, self._end)
        ends = [*starts[first + 1 : last], self._end]
        spans = enumerate(zip(starts[first:last], ends, strict=True), first)
        return [number for number, (start, end) in spans if data[start:end].strip()]

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, number: Any) -> Any:
        return self._lines.message(self._numbers[number])


def _messages_from(lines: Lines, at: int) -> Iterator[tuple[Message | BadLine, int]]:
    """The messages of the lines from a byte on, each with the byte where its line ends."""
    starts, data = lines.starts, lines.data
    for number in range(bisect_left(starts, at), len(starts)):
        end = data.index(b"\n", starts[number]) + 1
        if data[starts[number] : end].strip():
            yield lines.message(number), end


def _until_error(
    blocks: Iterator[Message | BadLine | Lines], errors: list[Exception]
) -> Iterator[Message | BadLine | Lines]:
    """The messages before an error; the caller raises it after converting these."""
    try:
        yield from blocks
    except Exception as error:
        errors.append(error)


def _span(owners: pa.Array, owner: int) -> tuple[int, int]:
    """The range of a message's rows."""
    begin = owners.index(owner).as_py()
    return begin, begin + pc.sum(pc.equal(owners, owner)).as_py()
