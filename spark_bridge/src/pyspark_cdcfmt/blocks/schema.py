"""The columns of blocks, and their payloads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
)

from cdcfmt_core.schemas.records import SchemaRecord
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_toolkit.schema_json import record_from_json, record_to_json
from pyspark_cdcfmt.rows.message_batch import MessageBatch
from pyspark_cdcfmt.rows.row_schemas import EVENT_COLUMNS
from pyspark_cdcfmt.rows.types import struct_of
from pyspark_cdcfmt.spark_api import arrow_schema

_POSITION = struct_of(
    epoch=IntegerType(), commit=LongType(), partition=IntegerType(), offset=LongType()
)
_LOG = struct_of(length=IntegerType(), file=StringType(), pos=LongType(), server=LongType())

MESSAGES, EVENTS = "messages", "events"
FILE = "file "
"""Prefix of the places of events from files."""

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
"""One row per block: the rows of a table with the same columns, or events of another kind.

- ``count``, ``truncates``, ``updates``, ``deletes``: numbers of events; an update of the key is a
  delete and an insert.
- ``is_read``: whether the rows are from a snapshot of the producer.
- ``first``, ``last``: lowest and highest position, in the order of ``_sequence``. ``commit`` is 0
  if only the ``offset`` orders events; the other fields are 0 if a commit_ts orders them.
- ``places``: topic partitions or files of events that no commit orders.
- ``first_log``, ``log``: the first and last position in the source's binlog, of ``logged``
  events by ``servers``.
- ``payload``: packed messages or events (see :func:`pack`), as ``form`` indicates.
"""

ARROW_BLOCKS: pa.Schema = arrow_schema(BLOCKS)

_SCHEMAS = b"schemas"
# For a small table, other threads would take six times as long.
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_ALONE = pa.ipc.IpcReadOptions(use_threads=False)


def pack(batch: pa.RecordBatch, schemas: Iterable[SchemaRecord] = ()) -> bytes:
    """Pack a batch in Arrow's stream format, with the schemas of a table."""
    if lines := "\n".join(map(record_to_json, schemas)):
        batch = batch.replace_schema_metadata({_SCHEMAS: lines})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_COMPRESSED) as writer:
        writer.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


@attrs.frozen
class Unpacked:
    """The batches (of events or messages) and the schemas (as text) of a payload."""

    batches: Sequence[pa.RecordBatch]
    schemas: bytes

    def messages(self) -> Iterable[MessageBatch]:
        """The messages, for payloads of messages."""
        return map(MessageBatch, self.batches)

    def store(self) -> SchemaStore:
        """A new store with the schemas."""
        store = SchemaStore()
        for line in self.schemas.splitlines():
            store.add(record_from_json(line))
        return store


def unpack(payload: pa.BinaryScalar) -> Unpacked:
    """Unpack a payload of :func:`pack`."""
    with pa.ipc.open_stream(payload.as_buffer(), options=_ALONE) as reader:
        metadata = reader.schema.metadata or {}
        return Unpacked([*reader], metadata.get(_SCHEMAS, b""))
