"""The columns of blocks, and their payloads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
)

from cdcfmt_core.schemas.as_json import record_from_json, record_to_json
from cdcfmt_core.schemas.store import SchemaRecord, SchemaStore
from pyspark_cdcfmt.rows.message_batch import MessageBatch
from pyspark_cdcfmt.rows.row_schemas import EVENT_COLUMNS, struct_of

_POSITION = struct_of(commit=LongType(), offset=LongType())
_LOG = struct_of(length=IntegerType(), file=StringType(), pos=LongType(), server=LongType())

MESSAGES, EVENTS = "messages", "events"

BLOCKS = struct_of(
    kind=StringType(),
    protocol=StringType(),
    database=StringType(),
    schema=StringType(),
    table=StringType(),
    is_read=BooleanType(),
    columns=EVENT_COLUMNS["columns"],
    key_columns=EVENT_COLUMNS["key_columns"],
    count=LongType(),
    truncates=LongType(),
    updates=LongType(),
    deletes=LongType(),
    first=_POSITION,
    last=_POSITION,
    latest=TimestampType(),
    places=ArrayType(StringType()),
    logged=LongType(),
    first_log=_LOG,
    log=_LOG,
    servers=ArrayType(LongType()),
    form=StringType(),
    payload=BinaryType(),
)
"""One row for the events of a table of one version of its columns, or of another kind.

- ``count``, ``truncates``, ``updates``, ``deletes``: numbers of events; an update of the key is a
  delete and an insert.
- ``is_read``: rows that a snapshot of the producer read.
- ``first``, ``last``: positions. ``commit`` is 0 where nothing but the ``offset`` orders events;
  where a commit_ts does, the offset is 0.
- ``places``: where events lie that no commit orders.
- ``first_log``, ``log``: the first and the last position in the source's binlog, of ``logged``
  events by ``servers``.
- ``payload``: what :func:`pack` made of messages or events; ``form`` says of which.
"""

ARROW_BLOCKS: pa.Schema = to_arrow_schema(BLOCKS, timezone="UTC")

_SCHEMAS = b"schemas"
# To ask other threads takes six times as long as to pack a small table alone.
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_ALONE = pa.ipc.IpcReadOptions(use_threads=False)


def pack(batch: pa.RecordBatch, schemas: Iterable[SchemaRecord] = ()) -> bytes:
    """A batch in Arrow's stream format, with the schemas of a table."""
    if lines := "\n".join(map(record_to_json, schemas)):
        batch = batch.replace_schema_metadata({_SCHEMAS: lines})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_COMPRESSED) as writer:
        writer.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


@attrs.frozen
class Unpacked:
    """The batches and the schemas (as text) of a payload: of events, or of messages."""

    batches: Sequence[pa.RecordBatch]
    schemas: bytes

    def messages(self) -> Iterable[MessageBatch]:
        """The messages."""
        return map(MessageBatch, self.batches)

    def store(self) -> SchemaStore:
        """The schemas, in a store."""
        store = SchemaStore()
        for line in self.schemas.splitlines():
            store.add(record_from_json(line))
        return store


def unpack(payload: pa.BinaryScalar) -> Unpacked:
    """The content of a payload that :func:`pack` made."""
    with pa.ipc.open_stream(payload.as_buffer(), options=_ALONE) as reader:
        metadata = reader.schema.metadata or {}
        return Unpacked([*reader], metadata.get(_SCHEMAS, b""))
