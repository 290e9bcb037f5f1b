"""``cdcfmt convert`` by the compiled kernel, once a message shows the format.

Messages become Arrow columns, and these messages.  The kernel reads messages in order until it
refuses one, and writes the read rows until it refuses one.  The reference converts what the kernel
refuses before anything after it, so decoder and encoder process everything in input order.  Each
row has the number of its table schema, so it is written with the same schema that the reference
would use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from cdcfmt_core.codec import AUTO, Projection
from cdcfmt_core.errors import CdcfmtError, SourceError
from cdcfmt_core.events import Event, Message
from cdcfmt_core.texts import open_logger
from cdcfmt_files.sources import BadLine, Lines, one_by_one
from cdcfmt_toolkit.row_rules import row_rules
from pyspark_cdcfmt.kernel.batches import Buffer, Span
from pyspark_cdcfmt.kernel.feeding import KernelFeed
from pyspark_cdcfmt.kernel.formats import Format, find_format, is_installed
from pyspark_cdcfmt.kernel.learning import ObservedDecoder
from pyspark_cdcfmt.kernel.settings import NumberedTables, Shape, Unsupported
from pyspark_cdcfmt.rows.policy import ValuePolicy
from pyspark_cdcfmt.write.columnar import KernelWriter

if TYPE_CHECKING:
    from cdcfmt_cli.conversion import Conversion, LinesOfMessages
    from cdcfmt_cli.reading import Decoded, Reader

logger = open_logger("pyspark_cdcfmt")

MAX_TABLES: Final = 20_000
_BATCH_BYTES: Final = 1 << 19

Converted: TypeAlias = "Message | LinesOfMessages"


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


class Converter(KernelFeed[Converted]):
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
        self._observed = _Observed(self._reader)
        limit = self._reader.settings["maxMessageBytes"]
        decoder = ObservedDecoder(self._observed, self._reader.decoder)
        super().__init__(format_, shape, decoder, limit)
        self._tables = shape.numbered or NumberedTables()
        self._writer = writer
        self._number = number
        self._rows_by_kernel = 0

    def parts(self, blocks: Iterable[Message | BadLine | Lines]) -> Iterator[Converted]:
        """The converted messages."""
        errors: list[Exception] = []
        try:
            yield from self._feed(_until_error(blocks, errors))
        except SourceError:
            # A writer schema cannot be had: the messages before it are converted.
            yield from self._finish()
            raise
        finally:
            self._conversion.counts.update(self._writer.take_counts())
            logger.debug("read by the kernel: %d messages", self._taken)
            logger.debug("written by the kernel: %d rows", self._rows_by_kernel)
        if errors:
            raise errors[0]

    def _is_full(self) -> bool:
        # As large as a block of a file: larger batches cost a tenth of the time in page faults.
        return super()._is_full() or self._kernel.size >= _BATCH_BYTES

    def _by_reference(self, message: Message | BadLine) -> Iterator[Converted]:
        yield from self._finish()
        number, self._number = self._number, self._number + 1
        self._writer.hand_over()
        if isinstance(message, BadLine):
            yield from self._conversion.convert(number, message)
            return
        self._observed.number = number
        self._decoder.decode(message)
        yield from self._conversion.encode(self._observed.last)
        self._observed.last = None

    def _finish(self) -> Iterator[Converted]:
        spans, self._buffer = self._buffer.spans, Buffer()
        number, count = self._number, self._kernel.messages
        if not count:
            return
        self._number += count
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
                yield from self._written()
            if self._writer.can_continue(partial(self._learn, tables, at)):
                continue
            owner = owners[at].as_py()
            begin, end = _span(owners, owner)
            self._writer.hand_over()
            decoded = self._decoded(number + owner, _message_of(spans, owner))
            if len(decoded.events) != end - begin:
                raise CdcfmtError(
                    f"message {number + owner + 1}: the kernel reads {end - begin} rows, but the "
                    f"reference decoder {len(decoded.events)} events; please report this"
                )
            yield from self._conversion.encode(
                attrs.evolve(decoded, events=decoded.events[at - begin :])
            )
            at = end
        if len(self._tables.schemas) > MAX_TABLES:
            self._kernel.clear_plans()
            self._writer.clear_tables()
            self._tables.clear()

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

    def _written(self) -> Iterator[Converted]:
        taken = self._writer.take()
        if isinstance(taken, tuple):
            if taken[1]:
                yield taken
            return
        partitions = taken["partition"].to_pylist() if "partition" in taken.schema.names else None
        keys, values = taken["key"].to_pylist(), taken["value"].to_pylist()
        for place, (key, value) in enumerate(zip(keys, values, strict=True)):
            yield Message(key, value, partition=None if partitions is None else partitions[place])


def _message_of(spans: Iterable[Span], number: int) -> Message | BadLine:
    """A message of a batch, by its number."""
    for span in spans:
        if number < span.count:
            return span.message(number)
        number -= span.count
    raise IndexError(number)


def _until_error(
    blocks: Iterable[Message | BadLine | Lines], errors: list[Exception]
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


if TYPE_CHECKING:
    from cdcfmt_cli.conversion import Conversion, LinesOfMessages

_TIMES: Final = ("commit_ts", "source_time", "emit_time")
_COLUMNS: Final = ("kind", "op", *_TIMES, "before", "after", "extra")
_ROW_BYTES: Final = 100
_MAX_SAMPLED: Final = 64
"""Number of first messages that may determine the decoder."""


def convert(
    conversion: Conversion,
    blocks: Iterator[Message | BadLine | Lines],
    number: int,
    *,
    as_lines: bool,
) -> Iterator[Message | LinesOfMessages]:
    """The converted messages; ``number``: the number of the first message."""
    sampled = 0
    for block in blocks:
        for message in islice(one_by_one([block]), _MAX_SAMPLED - sampled):
            sampled += 1
            if not isinstance(message, Message):
                continue
            converter = _open(conversion, message, number, as_lines=as_lines)
            if converter is not None:
                yield from converter.parts(chain([block], blocks))
                return
        for message in one_by_one([block]):
            yield from conversion.convert(number, message)
            number += 1


def _open(
    conversion: Conversion, message: Message, number: int, *, as_lines: bool
) -> Converter | None:
    """Open a converter for messages like this one; None if the reference must convert them."""
    reader, rules = conversion.reader, row_rules(conversion.encoder)
    settings = reader.settings
    guesses = settings["protocol"].lower() == AUTO
    decoder = ObservedDecoder(reader.decoder)
    format_ = find_format(
        decoder, settings.codec, message, type_map=settings["typeMap"], guesses=guesses
    )
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
    if settings["sourceTimeZone"] is not None:
        policy.time_zone = settings["sourceTimeZone"]
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
        return Converter(conversion, format_, shape, writer, number)
    except Unsupported as error:
        logger.debug("not by the kernel: %s", error)
        return None
