"""The writers of ``df.write`` and ``writeStream``.

Files: tasks stage them, the driver commits.  Spark pickles the writer for the tasks, creates a new
stream writer for each write, commit and abort, and may let a task continue after an abort.  So the
writer has no state, and only a task's message lists its staged files.

Topics, at least once: tasks send their rows and wait for the acknowledgements; the driver then
sends the lowest watermark of all tasks.
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

from cdcfmt_core.encoding_options import check_unpartitioned
from cdcfmt_core.errors import OptionError, SinkError
from cdcfmt_core.events import Message, Watermark
from cdcfmt_core.texts import open_logger
from cdcfmt_core.transport import Sink
from cdcfmt_files.sinks import CommitId, FileSink, line_writer
from cdcfmt_files.sources.commits import is_ours
from pyspark_cdcfmt.write.encoding import (
    EventWriter,
    check_rows,
    check_statements,
    open_encoder,
    with_schema_ids,
)
from pyspark_cdcfmt.write.watermarks import KeptWatermarks, Watermarks, lowest_watermark
from pyspark_cdcfmt.write_options import WriteOptions

logger = open_logger("pyspark_cdcfmt")

SWEEP_EVERY = 100
"""Number of batches between two removals of leftover files by a stream."""


@attrs.frozen
class FilesMessage(WriterCommitMessage):
    """The message of a task to the driver: its staged files, by name."""

    commit_id: CommitId
    files: Sequence[str] = ()
    watermarks: Watermarks = attrs.field(factory=dict)
    statements: int = 0


@attrs.frozen
class FileWriter:
    """Base of the batch and the stream writer, on driver and executors."""

    schema: StructType
    options: WriteOptions
    sink: FileSink

    def _write(self, batches: Iterator[pa.RecordBatch], commit_id: CommitId) -> FilesMessage:
        """Write the rows of one attempt of a task."""
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        files = self.sink.open_task(commit_id, task)
        line_format = self.options["lineFormat"]
        line_of = line_writer(line_format)
        writer = EventWriter(self.schema, self.options)
        try:
            for part in writer.parts(batches, line_format=line_format):
                if isinstance(part, Message):
                    files.write(line_of(part))
                else:
                    files.write_lines(*part)
            names = files.close()
        except BaseException:
            files.discard()
            raise
        writer.log_counts()
        return FilesMessage(commit_id, names, writer.watermarks, writer.statements)

    def _commit(
        self, messages: Sequence[FilesMessage], watermark: int | None, *, overwrite: bool = False
    ) -> None:
        """Commit the staged files of the tasks, and the watermark that they allow."""
        commit_id = messages[0].commit_id
        names = [name for message in messages for name in message.files]
        check_statements([message.statements for message in messages])
        if watermark is not None and not self.sink.is_committed(commit_id):
            names += self._watermark(commit_id, watermark)
        if not self.sink.commit(commit_id, names, overwrite=overwrite):
            logger.warning(
                "cdc: batch %d is already committed, and is not written again", commit_id.batch
            )
        if commit_id.batch % SWEEP_EVERY == 0:
            self.sink.sweep()

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int = 0) -> None:
        """Remove staged files; a later sweep removes those of tasks that are still writing."""
        for message in _written(messages):
            self.sink.abort(message.commit_id, message.files)

    def _watermark(self, commit_id: CommitId, commit_ts: int) -> list[str]:
        files = self.sink.open_task(commit_id, "driver")
        line_of = line_writer(self.options["lineFormat"])
        encoder = open_encoder(self.options, None)
        for message in [*encoder.encode(Watermark(commit_ts=commit_ts)), *encoder.flush()]:
            files.write(line_of(message))
        return files.close()


def _open_sink(schema: StructType, options: WriteOptions) -> FileSink:
    """Open the folder on the driver, before anything is written.

    :raises OptionError, EncodeError: for invalid options and columns.
    :raises SinkError: if the folder cannot be written.
    """
    if options["path"] is None:
        raise OptionError("writing cdc needs a path: use save(path), or start(path) for a stream")
    check_rows(schema, options)
    check_unpartitioned(options.values, "files have no partitions")
    return FileSink(
        options["path"],
        options.storage_options,
        options["compression"],
        options["maxRecordsPerFile"],
    )


def _check_others(sink: FileSink) -> None:
    """:raises SinkError: for files that an overwrite keeps: readers would see them as well."""
    others = [path for path in sink.visible_files() if not is_ours(path.rpartition("/")[2])]
    if others:
        raise SinkError(
            f"path {sink.path} has files that cdcfmt did not write, such as {others[0]}: mode "
            "overwrite would keep them, and readers would find old and new rows; remove them, or "
            "write to another folder"
        )


@attrs.frozen
class CdcBatchWriter(FileWriter, DataSourceArrowWriter):
    """``df.write.format("cdc")`` to files."""

    commit_id: CommitId
    overwrite: bool
    skips: bool

    @classmethod
    def open(cls, schema: StructType, options: WriteOptions, *, overwrite: bool) -> Self:
        sink = _open_sink(schema, options)
        commit_id = CommitId.new()
        if options["txnAppId"] is not None:
            commit_id = CommitId.of(options["txnAppId"], options["txnVersion"])
        if overwrite and options["ifExists"] is not None:
            raise OptionError("option ifExists goes with mode append; overwrite replaces files")
        if overwrite:
            _check_others(sink)
        skips = options["ifExists"] is not None and bool(sink.visible_files())
        if skips and options["ifExists"] == "error":
            raise OptionError(f"path {options['path']} has files (ifExists=error)")
        if not skips:
            sink.prepare()
            options = with_schema_ids(schema, options)
        return cls(schema, options, sink, commit_id, overwrite, skips)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        if self.skips:
            return FilesMessage(self.commit_id)
        return self._write(iterator, self.commit_id)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        written = _written(messages)
        if written and not self.skips:
            watermark = lowest_watermark(message.watermarks for message in written)
            self._commit(written, watermark, overwrite=self.overwrite)


class CdcStreamWriter(FileWriter, DataSourceStreamArrowWriter):
    """``writeStream.format("cdc")`` to files."""

    @classmethod
    def open(cls, schema: StructType, options: WriteOptions, *, overwrite: bool) -> Self:
        sink = _open_sink(schema, options)
        if overwrite:
            raise OptionError(
                "output mode complete would write all events again in every batch; use append"
            )
        for name in ("ifExists", "txnAppId"):
            if options[name] is not None:
                raise OptionError(f"option {name} is for batch writes; leave it out of streams")
        sink.prepare()
        return cls(schema, options, sink)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        assert query is not None
        assert batch is not None
        return self._write(iterator, CommitId.of(query, int(batch)))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        if written := _written(messages):
            kept = KeptWatermarks(self.options.checkpoint, written[0].commit_id.batch)
            self._commit(written, kept.lowest(message.watermarks for message in written))
            kept.save()


def _written(messages: list[WriterCommitMessage | None]) -> list[FilesMessage]:
    # Spark commits only if every task returned a message.
    return [message for message in messages if isinstance(message, FilesMessage)]


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

        :raises OptionError, EncodeError: for invalid options and columns.
        :raises SinkError: if the topic cannot be written.
        """
        if overwrite:
            raise OptionError("a topic cannot be overwritten: use mode append")
        check_rows(schema, options)
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
