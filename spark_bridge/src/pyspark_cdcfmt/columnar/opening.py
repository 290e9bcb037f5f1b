"""Whether a read goes by columns, and everything that it then needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Protocol

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from cdcfmt_core.avro_layout import AvroLayout
from cdcfmt_core.codec import CodecSpec, Projection
from cdcfmt_core.decoding import AUTO
from cdcfmt_core.events import (
    Corrupt,
    Event,
    Message,
    RowChange,
    SchemaChange,
    TableSchemaEvent,
)
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.layout import Layout
from cdcfmt_core.recognition import CERTAIN_ENOUGH, confidence, recognise
from cdcfmt_core.registry import default_registry
from cdcfmt_core.schema_store import SchemaStore
from cdcfmt_core.sources import BadLine, Lines, one_by_one
from cdcfmt_core.texts import open_logger
from pyspark_cdcfmt.batches import BatchBuilder
from pyspark_cdcfmt.change_schema import metadata_fields
from pyspark_cdcfmt.columnar.avro_look import AvroLook, LookByBeginning
from pyspark_cdcfmt.columnar.chunks import Chunks
from pyspark_cdcfmt.columnar.formats import Format, Reference, Rows
from pyspark_cdcfmt.columnar.looks import EventsLook, Look
from pyspark_cdcfmt.columnar.made import Made
from pyspark_cdcfmt.columnar.plans import Learner
from pyspark_cdcfmt.columnar.structs import Unlike
from pyspark_cdcfmt.columnar.wanted import Shape
from pyspark_cdcfmt.kernel import KernelChunks, is_installed
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.policy import ValuePolicy
from pyspark_cdcfmt.row_bytes import fixed_bytes

logger = open_logger("pyspark_cdcfmt")


class Decoder(Protocol):
    """What makes events of messages."""

    def decode(self, message: Message) -> list[Event]: ...

    @property
    def protocol(self) -> str | None: ...


class ObservedDecoder:
    """A message decoder that tells what the last message held."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._events: list[Event] = []

    @property
    def protocol(self) -> str | None:
        """The format of the last message."""
        return self._decoder.protocol

    def decode(self, message: Message) -> list[Event]:
        """As the decoder does."""
        self._events = []  # those of a large message are not kept beside the next one's
        self._events = self._decoder.decode(message)
        return self._events

    def found_nothing_wrong(self) -> bool:
        """Whether the last message was neither corrupt nor in part."""
        return not any(isinstance(event, Corrupt) for event in self._events)

    def changes(self) -> list[RowChange] | None:
        """The last message's row changes; None if it was about a schema."""
        if any(isinstance(event, SchemaChange | TableSchemaEvent) for event in self._events):
            return None
        return [event for event in self._events if isinstance(event, RowChange)]


class AutoChunks:
    """Decodes messages: by the kernel if it reads such as the first one.

    ``open_kernel`` gives what reads messages like that, None where the kernel cannot; ``columns``
    decodes them then.
    """

    def __init__(
        self, open_kernel: Callable[[Message], KernelChunks | None], columns: Chunks
    ) -> None:
        self._open_kernel = open_kernel
        self._columns = columns
        self._kernel: KernelChunks | None = None

    @property
    def by_columns(self) -> int:
        """Messages that went by columns."""
        return sum(each.by_columns for each in self._both)

    @property
    def by_reference(self) -> int:
        """Messages that the reference decoded."""
        return sum(each.by_reference for each in self._both)

    @property
    def unwanted(self) -> int:
        """Messages that the filters do not want."""
        return sum(each.unwanted for each in self._both)

    @property
    def _both(self) -> list[Chunks | KernelChunks]:
        return [self._columns, *([] if self._kernel is None else [self._kernel])]

    def batches(
        self, messages: Iterable[Message | BadLine | Lines], *, count_rows: bool = False
    ) -> Iterator[Made]:
        """As :meth:`KernelChunks.batches`."""
        items = iter(messages)
        start = list(islice(items, 1))
        if self._kernel is None:
            first = next(one_by_one(start), None)
            if isinstance(first, Message):
                self._kernel = self._open_kernel(first)
        chunks = self._columns if self._kernel is None else self._kernel
        return chunks.batches(chain(start, items), count_rows=count_rows)


def open_chunks(
    schema: StructType,
    options: ReadOptions,
    decoder: ObservedDecoder,
    make: Rows,
    *,
    projection: Projection,
    event_filter: EventFilter,
    schemas: SchemaStore,
    policy: ValuePolicy,
    inferred: bool,
) -> Chunks | AutoChunks | None:
    """What decodes by columns, in a format that has layouts.

    That is for the changes of a table, and for events with images.
    """
    events = options.table is None
    if event_filter.ops is not None or (events and not _can_make_events(schema, options)):
        return None
    arrow: pa.Schema = to_arrow_schema(schema, timezone="UTC")
    prefix = "" if events else options["metadataPrefix"]
    added = {field.name for field in (schema.fields if events else metadata_fields(options))}
    metadata = {name: name.removeprefix(prefix) for name in schema.names if name in added}
    shape = Shape(
        fields=[field for field in schema.fields if field.name not in metadata],
        arrow={field.name: field.type for field in arrow},
        projection=projection,
        event_filter=event_filter,
        schemas=schemas,
        policy=policy,
        inferred=inferred,
        split=options["splitKeyUpdates"] or options["images"] == "after",
        events=options["imageFormat"] if events else None,
        source=not events and "source" in metadata.values(),
        row_bytes=fixed_bytes(schema),
    )

    guesses = str(options["protocol"]).lower() == AUTO
    builder = BatchBuilder(schema)
    reference = Reference(
        make, builder.weigh, decoder.changes, decoder.found_nothing_wrong, builder.batch
    )

    formats: dict[str, Format | None] = {}

    def find_format() -> Format | None:
        name = decoder.protocol
        if name is None:
            return None
        if name not in formats:
            codec = default_registry().get_codec(name)
            formats[name] = _open_format(codec, options, shape, guesses=guesses)
        return formats[name]

    if not guesses and find_format() is None:
        name = decoder.protocol
        layouts = () if name is None else _layouts_of(default_registry().get_codec(name), options)
        if not is_installed() or not _read_by_kernel(layouts, shape):
            return None
    chunks = Chunks(
        arrow,
        metadata,
        find_format,
        reference,
        options["maxMessageBytes"],
        policy.counts,
        schemas,
    )
    if not is_installed():
        return chunks

    def open_kernel(first: Message) -> KernelChunks | None:
        codec = _codec_of(first, decoder.protocol, guesses=guesses)
        layouts = () if codec is None else _kernel_layouts(codec, options, shape, first)
        if codec is None or not layouts:
            return None
        try:
            return KernelChunks(
                codec.name,
                layouts,
                shape,
                arrow,
                metadata,
                reference,
                options["maxMessageBytes"],
                _recogniser(codec) if guesses else None,
            )
        except Unlike as error:
            logger.debug("not by the kernel: %s", error)
            return None

    return AutoChunks(open_kernel, chunks)


def _can_make_events(schema: StructType, options: ReadOptions) -> bool:
    return bool({"before", "after"} & set(schema.names)) and not {"columns", "headers"} & set(
        schema.names
    )


def _codec_of(message: Message, protocol: str | None, *, guesses: bool) -> CodecSpec | None:
    if guesses:
        return recognise(default_registry().codecs().values(), message)
    return None if protocol is None else default_registry().get_codec(protocol)


def _recogniser(codec: CodecSpec) -> Callable[[Message], bool]:
    return lambda message: confidence(codec, message) >= CERTAIN_ENOUGH


def _layouts_of(codec: CodecSpec, options: ReadOptions) -> Sequence[Layout | AvroLayout]:
    """Those of a format under these options; none if it has no layouts."""
    if codec.open_layouts is None:
        return ()
    return codec.open_layouts({each.name: options.codec[each.name] for each in codec.options})


def _kernel_layouts(
    codec: CodecSpec, options: ReadOptions, shape: Shape, first: Message
) -> Sequence[Layout]:
    """The layouts of messages like the first one, if the kernel can read all of them."""
    layouts = _layouts_of(codec, options)
    records = [each for each in layouts if isinstance(each, Layout) and each.avro is not None]
    if records and first.value is not None and first.value[:1] != b"{":
        layouts = records
    else:
        layouts = [each for each in layouts if each not in records]
    known = _read_by_kernel(layouts, shape)
    return known if len(known) == len(layouts) else ()


def _read_by_kernel(layouts: Sequence[Layout | AvroLayout], shape: Shape) -> list[Layout]:
    return [
        each
        for each in layouts
        if isinstance(each, Layout)
        and each.encodings is not None
        and not (shape.events and each.extra is None)
    ]


def _open_format(
    codec: CodecSpec, options: ReadOptions, shape: Shape, *, guesses: bool
) -> Format | None:
    layouts = _layouts_of(codec, options)
    layouts = [each for each in layouts if isinstance(each, AvroLayout) or each.parsers is not None]
    if shape.events:
        layouts = [each for each in layouts if isinstance(each, AvroLayout) or each.tells_extra]
    if not layouts:
        return None
    return Format(
        _look(layouts, shape.event_filter),
        Learner(codec.name, layouts, shape).learn,
        by_schemas=any(isinstance(each, Layout) and each.limits is not None for each in layouts),
        recognises=_recogniser(codec) if guesses else None,
    )


def _look(
    layouts: Sequence[Layout | AvroLayout], event_filter: EventFilter
) -> Look | EventsLook | LookByBeginning:
    if isinstance(layouts[0], Layout) and layouts[0].tables is not None:
        return EventsLook(layouts[0], event_filter)
    avro = [AvroLook(each, event_filter) for each in layouts if isinstance(each, AvroLayout)]
    json = [Look(each, event_filter) for each in layouts if isinstance(each, Layout)]
    return LookByBeginning(avro, json[0] if json else None) if avro else json[0]
