"""The batch reader: splits on the driver, record batches on the executors."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, cast

import attrs
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter, In, InputPartition
from pyspark.sql.types import StructType

from cdcfmt_core.codec import Projection
from cdcfmt_core.decoding import MessageDecoder, open_message_decoder
from cdcfmt_core.errors import CdcfmtError, DecodeError
from cdcfmt_core.events import Corrupt, Event, Message
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.schema_store import SchemaStore
from cdcfmt_core.sources import (
    BadLine,
    FileSplit,
    list_files,
    open_claim_check_store,
    plan_partitions,
    read_split,
)
from pyspark_cdcfmt.batches import BatchBuilder
from pyspark_cdcfmt.changes import BadRow, ChangeRows
from pyspark_cdcfmt.events import EventRows
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.policy import BadValue, ValuePolicy
from pyspark_cdcfmt.schemas import find_schemas

logger = logging.getLogger("pyspark_cdcfmt")


@attrs.frozen
class FilesPartition(InputPartition):
    """Splits of files that one task reads, in order, and the schemas of the whole input."""

    splits: Sequence[FileSplit]
    schemas: SchemaStore = attrs.field(factory=SchemaStore)


def plan_files(options: ReadOptions) -> list[list[FileSplit]]:
    """The partitions of the input; SourceError for a path that does not exist."""
    files = list_files(
        options.paths,
        storage_options=options.storage_options,
        path_glob_filter=options["pathGlobFilter"],
    )
    return plan_partitions(
        files,
        max_partition_bytes=options["maxPartitionBytes"],
        min_partitions=options["minPartitions"] or os.cpu_count() or 1,
    )


def read_messages(splits: Sequence[FileSplit], options: ReadOptions) -> Iterator[Message | BadLine]:
    """The messages of some splits, in order, streamed."""
    separator = options["lineSep"]
    for split in splits:
        yield from read_split(
            split,
            storage_options=options.storage_options,
            line_separator=None if separator is None else separator.encode(),
            max_message_bytes=options["maxMessageBytes"],
            line_format=options["lineFormat"],
        )


def read_all(
    planned: Iterable[Sequence[FileSplit]], options: ReadOptions
) -> Iterator[Message | BadLine]:
    """The messages of all partitions."""
    return chain.from_iterable(read_messages(splits, options) for splits in planned)


def open_decoder(
    options: ReadOptions,
    event_filter: EventFilter,
    projection: Projection = Projection(),  # noqa: B008 (frozen)
    counts: Counter[str] | None = None,
    schemas: SchemaStore | None = None,
) -> MessageDecoder:
    """The message decoder that the options ask for."""
    uri = options["claimCheckStorageUri"]
    return open_message_decoder(
        options.values,
        options.codec,
        event_filter,
        projection=projection,
        claim_checks=None if uri is None else open_claim_check_store(uri, options.storage_options),
        schemas=schemas,
        counts=counts,
    )


class CdcBatchReader(DataSourceReader):
    """Reads files; the order within a partition is that of the files."""

    def __init__(self, schema: StructType, options: ReadOptions, *, inferred: bool) -> None:
        self._schema = schema
        self._options = options
        self._inferred = inferred
        self._filter = options.event_filter()
        options.require_paths()

    def partitions(self) -> Sequence[InputPartition]:
        planned = plan_files(self._options)
        schemas = find_schemas(self._options, read_all(planned, self._options))
        return [FilesPartition(splits, schemas) for splits in planned]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        # Spark turns an empty list of partitions into one without a value.
        if not isinstance(partition, FilesPartition):
            return
        # Spark takes record batches where its type hints say tuples.
        yield from cast(Iterator[tuple[Any, ...]], self._batches(partition))

    def _projection(self) -> Projection:
        options = self._options
        columns = None
        if options["images"] == "none":
            columns = frozenset[str]()
        elif options.table is not None and not self._inferred:
            columns = frozenset(self._schema.names)
        return Projection(columns, options["images"] == "both", options["keyColumns"])

    def _batches(self, partition: FilesPartition) -> Iterator[pa.RecordBatch]:
        options = self._options
        counts: Counter[str] = Counter()
        decoder = open_decoder(options, self._filter, self._projection(), counts, partition.schemas)
        policy = ValuePolicy(options["invalidValues"], options["invalidText"], counts=counts)
        if options["sourceTimeZone"] is not None:
            policy.time_zone = options["sourceTimeZone"]
        rows: EventRows | ChangeRows
        if options.table is None:
            rows = EventRows(self._schema, options, policy)
        else:
            rows = ChangeRows(self._schema, options, policy, inferred=self._inferred)
        make = RowMaker(rows, decoder, options["mode"], counts)
        batches = BatchBuilder(self._schema)
        try:
            for message in read_messages(partition.splits, options):
                size = len(message.value) if message.value is not None else 0
                yield from batches.add(make.rows(message), size)
            yield from batches.flush()
        finally:
            if counts:
                logger.warning("cdc: %s", ", ".join(f"{k}: {n}" for k, n in counts.items()))


class PushdownReader(CdcBatchReader):
    """The reader where the user turned on ``spark.sql.python.filterPushdown.enabled``.

    Filters on kind and op only spare decoding; all of them go back to
    Spark, which applies them once more.  (With pushdown off, Spark fails every read of a
    reader that has ``pushFilters``; hence a class of its own.)
    """

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        if self._options.table is None:
            for pushed in filters:
                column, values = _wanted_values(pushed)
                if column == "kind":
                    kinds = _narrowed(self._filter.kinds, values)
                    self._filter = attrs.evolve(self._filter, kinds=kinds)
                elif column == "op":
                    ops = _narrowed(self._filter.ops, values)
                    self._filter = attrs.evolve(self._filter, ops=ops)
        yield from filters


def _wanted_values(pushed: Filter) -> tuple[str | None, frozenset[str]]:
    if isinstance(pushed, EqualTo) and len(pushed.attribute) == 1:
        return pushed.attribute[0], frozenset([pushed.value])
    if isinstance(pushed, In) and len(pushed.attribute) == 1:
        return pushed.attribute[0], frozenset(pushed.value)
    return None, frozenset()


def _narrowed(known: frozenset[str] | None, values: frozenset[str]) -> frozenset[str]:
    return values if known is None else known & values


class RowMaker:
    """Turns a message into rows under a mode: PERMISSIVE, DROPMALFORMED or FAILFAST."""

    def __init__(
        self,
        shape: EventRows | ChangeRows,
        decoder: MessageDecoder,
        mode: str,
        counts: Counter[str],
    ) -> None:
        self._shape = shape
        self._decoder = decoder
        self._mode = mode
        self._counts = counts

    def rows(self, message: Message | BadLine) -> list[tuple[Any, ...]]:
        """All rows of a message; DecodeError in FAILFAST."""
        if isinstance(message, BadLine):
            held = Message(None, message.value, path=message.path, offset=message.offset)
            return self._corrupt(held, Corrupt(message.error))
        rows: list[tuple[Any, ...]] = []
        events = self._decoder.decode(message)
        protocol = self._decoder.protocol
        for event in events:
            if isinstance(event, Corrupt):
                rows += self._corrupt(message, event)
                continue
            try:
                rows += list(self._shape.rows(message, event, protocol))
            except Exception as error:
                # Whatever a row does to us, in PERMISSIVE the job goes on.
                rows += self._corrupt(message, self._bad_row(message, event, error))
        return rows

    def _corrupt(self, message: Message, event: Corrupt) -> list[tuple[Any, ...]]:
        if self._mode == "FAILFAST":
            raise event.error
        self._counts["corrupt messages and rows"] += 1
        if self._mode == "DROPMALFORMED":
            return []
        return list(self._shape.rows(message, event, self._decoder.protocol))

    def _bad_row(self, message: Message, event: Event, error: Exception) -> Corrupt:
        table = getattr(event, "table", None)
        name = table if isinstance(table, str) else getattr(table, "table", None)
        field = getattr(error, "field", None)
        reason = str(getattr(error, "reason", error))
        if not isinstance(error, BadRow | BadValue | CdcfmtError):
            reason = f"the row cannot be shown: {type(error).__name__}: {reason}"
        return Corrupt(
            DecodeError(
                reason,
                field=".".join(filter(None, [name, field])) or None,
                protocol=self._decoder.protocol,
                topic=message.topic,
                path=message.path,
                partition=message.partition,
                offset=message.offset,
            ),
            event.index,
        )
