"""``cdcfmt convert`` by the compiled kernel: messages to Arrow columns, and these to messages.

The kernel reads messages in order until it refuses one, and writes the rows that it has read until
it refuses one.  What it refuses is converted by the reference before anything behind it, so
decoder and encoder find all in the order of the input.  Each row has the number of its table's
schema: it is written by the very schema that the reference would have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from cdcfmt_core.codec import Projection
from cdcfmt_core.errors import CdcfmtError
from cdcfmt_core.events import Event, Message
from cdcfmt_core.io.sources import BadLine
from cdcfmt_core.texts import open_logger
from pyspark_cdcfmt.kernel.batches import Chunk, cut_chunks
from pyspark_cdcfmt.kernel.formats import Format, find_format, is_installed, open_kernel
from pyspark_cdcfmt.kernel.learning import Learner, ObservedDecoder
from pyspark_cdcfmt.kernel.settings import Shape, Unlike
from pyspark_cdcfmt.kernel.tables import NumberedTables
from pyspark_cdcfmt.rows.policy import ValuePolicy
from pyspark_cdcfmt.write.kernel_writer import KernelWriter

if TYPE_CHECKING:
    from cdcfmt_core.cli.conversion import Conversion, Lines
    from cdcfmt_core.cli.reading import Decoded, Reader

logger = open_logger("pyspark_cdcfmt")

ENOUGH: Final = 64
"""So many messages in a row are worth the kernel's while."""
MOST_AT_ONCE: Final = 1_024
"""Messages that the reference is given where the kernel refuses one after the other."""
MAX_TABLES: Final = 20_000
_LOOKED_AT: Final = 64
"""So many messages may say how all are decoded."""
_ROW_BYTES: Final = 100
_COLUMNS: Final = (
    "kind",
    "op",
    "commit_ts",
    "source_time",
    "emit_time",
    "before",
    "after",
    "extra",
)


def convert(
    conversion: Conversion, messages: Iterator[Message | BadLine], number: int, *, as_lines: bool
) -> Iterator[Message | Lines]:
    """What becomes of the messages, the first of which has this number."""
    converter: _Converter | None = None
    for _ in range(_LOOKED_AT):
        message = next(messages, None)
        if message is None:
            return
        if isinstance(message, Message):
            converter = _Converter.open(conversion, message, number, as_lines=as_lines)
        if converter is not None:
            yield from converter.parts(chain([message], messages))
            return
        yield from conversion.convert(number, message)
        number += 1
    for message in messages:
        yield from conversion.convert(number, message)
        number += 1


@attrs.define
class _Observed:
    """The reader's decoder, and the last message that it decoded."""

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


class _Converter:
    """Converts the messages of one input; ``number`` is that of the next one."""

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
        self._by_kernel = self._rows_by_kernel = 0

    @classmethod
    def open(
        cls, conversion: Conversion, message: Message, number: int, *, as_lines: bool
    ) -> _Converter | None:
        """For messages like this one; None for the reference."""
        reader, rules = conversion.reader, conversion.encoder.row_rules()
        last = reader.decoder.protocol
        format_ = find_format(reader.settings.values, reader.settings.codec, message, last)
        if format_ is None or not is_installed():
            return None
        writer = KernelWriter.open(
            "numbered_events",
            rules,
            ordered=False,
            line_format="message" if as_lines else None,
            json_texts=True,
        )
        if writer is None:
            return None
        policy = ValuePolicy(counts=reader.counts)
        if reader.settings["sourceTimeZone"] is not None:
            policy.time_zone = reader.settings["sourceTimeZone"]
        shape = Shape(
            schema=pa.schema([]),
            metadata=dict(zip(_COLUMNS, _COLUMNS, strict=True)),
            fields=(),
            projection=Projection(),
            event_filter=reader.event_filter,
            schemas=reader.schemas,
            policy=policy,
            inferred=False,
            split=False,
            events="variant",
            row_bytes=_ROW_BYTES,
            numbered=NumberedTables(),
        )
        try:
            return cls(conversion, format_, shape, writer, number)
        except Unlike as error:
            logger.debug("not by the kernel: %s", error)
            return None

    def parts(self, messages: Iterator[Message | BadLine]) -> Iterator[Message | Lines]:
        """What becomes of the messages."""
        errors: list[Exception] = []
        try:
            for chunk in cut_chunks(_until_error(messages, errors), lambda _: False):
                if isinstance(chunk, list):
                    yield from self._chunk(chunk)
        finally:
            self._conversion.counts.update(self._writer.take_counts())
            logger.debug("read by the kernel: %d messages", self._by_kernel)
            logger.debug("written by it: %d rows", self._rows_by_kernel)
        if errors:
            raise errors[0]

    def _chunk(self, chunk: Chunk) -> Iterator[Message | Lines]:
        values = [self._format.value(item) for item in chunk]
        keys = [getattr(item, "key", None) for item in chunk] if self._format.keyed else []
        offsets = [item.offset for item in chunk]
        first, at = self._number, 0
        self._forget_old_plans()
        while at < len(chunk):
            start = at
            at = self._kernel.read(values, keys, offsets, at)
            if at > start:
                self._reader.decoder.note_format(self._format.protocol)
                self._by_kernel += at - start
                yield from self._rows(chunk[start:at], first + start)
            self._number = first + at
            if at == len(chunk) or self._kernel.stop[0] == "full":
                continue
            if self._learner.skips(chunk[at]):
                continue
            is_example = self._learner.is_example(chunk[at])
            is_rare = is_example or at - start >= ENOUGH
            self._step = 1 if is_rare else min(2 * self._step, MOST_AT_ONCE)
            for _ in range(min(self._step, len(chunk) - at)):
                yield from self._by_reference(chunk[at], first + at, is_example=is_example)
                at += 1
            self._number = first + at

    def _by_reference(
        self, message: Message | BadLine, number: int, *, is_example: bool
    ) -> Iterator[Message]:
        reason, place = self._kernel.stop
        self._writer.hand_over()
        if isinstance(message, BadLine):
            yield from self._conversion.convert(number, message)
            return
        self._decoder.number = number
        self._observed.decode(message)
        decoded: Decoded = self._decoder.last
        yield from self._conversion.encode(decoded)
        self._forget_old_plans()
        if is_example:
            self._learner.learn(message, self._by_kernel)
        else:
            self._learner.note_refusal(message, reason, place)
        self._observed.forget()
        self._decoder.last = None

    def _forget_old_plans(self) -> None:
        if len(self._tables.schemas) > MAX_TABLES:
            self._kernel.clear_plans()
            self._writer.clear_tables()
            self._tables.clear()
        self._learner.forget_old_plans()

    def _rows(self, run: Sequence[Message | BadLine], number: int) -> Iterator[Message | Lines]:
        """The rows of messages that the kernel has read."""
        rows = pa.record_batch(self._kernel.finish())
        self._reader.counts.update(dict(self._kernel.take_counts()))
        if not self._writer.begin(rows):
            raise CdcfmtError("the kernel does not write the columns that it reads")
        tables, owners = rows.column("table_number"), rows.column("message")
        at = 0
        while at < rows.num_rows:
            start = at
            at = self._writer.write(at)
            if at > start:
                self._rows_by_kernel += at - start
                yield from self._taken()
            if self._writer.goes_on(partial(self._learn, tables, at)):
                continue
            owner = owners[at].as_py()
            begin, end = _span(owners, owner)
            self._writer.hand_over()
            decoded = self._decoded(number + owner, run[owner])
            if len(decoded.events) != end - begin:
                raise CdcfmtError(
                    f"message {number + owner + 1}: the kernel reads {end - begin} rows, and the "
                    f"reference decoder {len(decoded.events)} events; please report this"
                )
            yield from self._conversion.encode(
                attrs.evolve(decoded, events=decoded.events[at - begin :])
            )
            at = end

    def _decoded(self, number: int, message: Message | BadLine) -> Decoded:
        """What the reference decodes of a message that the kernel has read, and counted."""
        counts = self._reader.counts.copy()
        decoded = self._reader.decode(number, message)
        self._reader.counts.clear()
        self._reader.counts.update(counts)
        return decoded

    def _learn(self, tables: pa.Array, at: int) -> bool:
        self._writer.add(self._tables.schemas[tables[at].as_py()], at)
        return True

    def _taken(self) -> Iterator[Message | Lines]:
        taken = self._writer.take()
        if isinstance(taken, tuple):
            if taken[1]:
                yield taken
            return
        partitions = taken["partition"].to_pylist() if "partition" in taken.schema.names else None
        keys, values = taken["key"].to_pylist(), taken["value"].to_pylist()
        for place, (key, value) in enumerate(zip(keys, values, strict=True)):
            yield Message(key, value, partition=None if partitions is None else partitions[place])


def _until_error(
    messages: Iterator[Message | BadLine], errors: list[Exception]
) -> Iterator[Message | BadLine]:
    """The messages before an error, which is raised when these are converted."""
    try:
        yield from messages
    except Exception as error:
        errors.append(error)


def _span(owners: pa.Array, owner: int) -> tuple[int, int]:
    """Where the rows of a message begin and end."""
    begin = owners.index(owner).as_py()
    return begin, begin + pc.sum(pc.equal(owners, owner)).as_py()
