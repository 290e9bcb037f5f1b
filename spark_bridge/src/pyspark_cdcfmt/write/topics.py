"""The topic writers of ``df.write`` and ``writeStream``: at least once.

Tasks send their rows and wait for the acknowledgements; the driver then sends the lowest
watermark of all tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

import attrs
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from cdcfmt_core.errors import OptionError, SinkError
from cdcfmt_core.events import Message, Watermark
from cdcfmt_core.transport import Sink
from pyspark_cdcfmt.write.encoding import EventWriter, check_rows, open_encoder, with_schema_ids
from pyspark_cdcfmt.write.watermarks import KeptWatermarks, Watermarks, lowest_watermark
from pyspark_cdcfmt.write_options import WriteOptions

_SENT = ("key", "value", "partition")


@attrs.frozen
class TopicMessage(WriterCommitMessage):
    """The report of a task to the driver, after the acknowledgement of all its messages."""

    watermarks: Watermarks = attrs.field(factory=dict)


@attrs.frozen
class TopicWriter:
    """Base of the batch and the stream writer, on driver and executors."""

    schema: StructType
    options: WriteOptions
    sink: Sink
    partitions: int

    @classmethod
    def open(
        cls, schema: StructType, options: WriteOptions, sink: Sink, *, overwrite: bool
    ) -> Self:
        """Open the writer on the driver, before any message is sent.

        :raises OptionError: for invalid options and columns.
        :raises SinkError: if the topic cannot be written.
        """
        if overwrite:
            raise OptionError("a topic cannot be overwritten: use mode append")
        check_rows(schema, options)
        # Raises the format's errors about its options.
        open_encoder(options, None)
        return cls(schema, options, sink, sink.partitions())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one attempt of a task."""
        context = TaskContext.get()
        single = self.options["singleTask"]
        if single and context is not None and context.partitionId() > 0:
            iterator = _refused(iterator)
        writer = EventWriter(
            self.schema,
            self.options,
            self.partitions,
            refused={} if single else {"ddl": _DDL_ADVICE},
        )
        with self.sink.open() as producer:
            writer.wait = producer.flush
            for part in writer.parts(iterator):
                if isinstance(part, Message):
                    producer.send(part)
                else:
                    producer.send_all(*(part[name].to_pylist() for name in _SENT))
        writer.log_counts()
        return TopicMessage(writer.watermarks)

    def _send(self, commit_ts: int | None) -> None:
        if commit_ts is None:
            return
        encoder = open_encoder(self.options, self.partitions)
        with self.sink.open() as producer:
            for message in [*encoder.encode(Watermark(commit_ts=commit_ts)), *encoder.flush()]:
                producer.send(message)


def _reports(messages: Sequence[WriterCommitMessage | None]) -> list[Watermarks]:
    return [message.watermarks for message in messages if isinstance(message, TopicMessage)]


_DDL_ADVICE = (
    "DDL must stay in order among the rows, but several tasks may write rows: coalesce(1) before "
    "the write and set singleTask=true, or leave DDL out by kind <> 'ddl'"
)


def _refused(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            raise SinkError("singleTask=true, but several tasks have rows: use coalesce(1)")
        yield batch


class CdcTopicWriter(TopicWriter, DataSourceArrowWriter):
    """``df.write.format("cdc")`` to a topic."""

    @classmethod
    def open(
        cls, schema: StructType, options: WriteOptions, sink: Sink, *, overwrite: bool
    ) -> Self:
        opened = super().open(schema, options, sink, overwrite=overwrite)
        return attrs.evolve(opened, options=with_schema_ids(schema, options))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        # The watermark must not overtake a row.
        self._send(lowest_watermark(_reports(messages)))


class CdcTopicStreamWriter(TopicWriter, DataSourceStreamArrowWriter):
    """``writeStream.format("cdc")`` to a topic."""

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        kept = KeptWatermarks(self.options.checkpoint, batchId)
        self._send(kept.lowest(_reports(messages)))
        kept.save()
