"""Whether a read goes by columns, and everything that it then needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from cdcfmt_core.codec import Projection
from cdcfmt_core.decoding import AUTO
from cdcfmt_core.events import (
    Corrupt,
    Event,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
    TableSchemaEvent,
)
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.registry import default_registry
from cdcfmt_core.schema_store import SchemaStore
from cdcfmt_core.sources import BadLine
from pyspark_cdcfmt.batches import MAX_MESSAGE_BYTES, MAX_ROWS, BatchBuilder
from pyspark_cdcfmt.change_rows import metadata_fields
from pyspark_cdcfmt.columnar.chunks import Chunks, Reference, Row
from pyspark_cdcfmt.columnar.looks import Look
from pyspark_cdcfmt.columnar.plans import Learner, Shape
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.policy import ValuePolicy


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
        self._events = self._decoder.decode(message)
        return self._events

    def found_nothing_wrong(self) -> bool:
        """Whether the last message was neither corrupt nor in part."""
        return not any(isinstance(event, Corrupt) for event in self._events)

    def tables(self) -> list[TableSchema] | None:
        """Schemas of the last message's row changes; None if it was about a schema."""
        if any(isinstance(event, SchemaChange | TableSchemaEvent) for event in self._events):
            return None
        return [event.table for event in self._events if isinstance(event, RowChange)]


def open_chunks(
    schema: StructType,
    options: ReadOptions,
    decoder: ObservedDecoder,
    rows: Callable[[Message | BadLine], list[Row]],
    *,
    projection: Projection,
    event_filter: EventFilter,
    schemas: SchemaStore,
    policy: ValuePolicy,
    inferred: bool,
) -> Chunks | None:
    """What decodes by columns, for the changes of a table in a format that has layouts."""
    protocol = str(options["protocol"])
    if options.table is None or protocol.lower() == AUTO or event_filter.ops is not None:
        return None
    codec = default_registry().get_codec(protocol)
    if codec.open_layouts is None:
        return None
    layouts = codec.open_layouts(
        {option.name: options.codec[option.name] for option in codec.options}
    )
    if not layouts:
        return None
    arrow: pa.Schema = to_arrow_schema(schema, timezone="UTC")
    prefix = options["metadataPrefix"]
    added = {field.name for field in metadata_fields(options)}
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
    )

    builder = BatchBuilder(schema)
    return Chunks(
        arrow,
        metadata,
        Look(layouts[0], event_filter),
        Learner(layouts, shape).learn,
        Reference(rows, decoder.tables, decoder.found_nothing_wrong, builder.batch),
        options["maxMessageBytes"],
        policy.counts,
        forget=any(layout.limits is not None for layout in layouts),
    )


def sized(batches: Iterable[tuple[pa.RecordBatch, int]]) -> Iterator[pa.RecordBatch]:
    """Small batches as fewer ones; the integers are the bytes of the messages in them."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch, message_bytes in batches:
        held.append(batch)
        rows += batch.num_rows
        size += message_bytes
        if rows >= MAX_ROWS or size >= MAX_MESSAGE_BYTES:
            yield pa.concat_batches(held)
            held.clear()
            rows = size = 0
    if held:
        yield pa.concat_batches(held)
