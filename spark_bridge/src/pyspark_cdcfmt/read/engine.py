"""Messages to record batches: the core of every reader, on the executors."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from operator import attrgetter
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from cdcfmt_core.codec import Projection
from cdcfmt_core.events import Message
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.texts import open_logger
from cdcfmt_files.sources import BadLine, Lines, one_by_one
from pyspark_cdcfmt.kernel.batches import Item, Reference, merge_small
from pyspark_cdcfmt.kernel.feeding import KernelChunks, Opening
from pyspark_cdcfmt.kernel.learning import Decoder, ObservedDecoder, Refusal
from pyspark_cdcfmt.kernel.settings import make_shape
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.decoding import RowMaker, open_decoder
from pyspark_cdcfmt.read.schemas import MissingSchemas
from pyspark_cdcfmt.rows.change_rows import ChangeRows
from pyspark_cdcfmt.rows.event_rows import EventRows
from pyspark_cdcfmt.rows.message_batch import MessageBatch
from pyspark_cdcfmt.rows.policy import ValuePolicy
from pyspark_cdcfmt.rows.record_batches import BatchBuilder, ListBuilder
from pyspark_cdcfmt.rows.row_schemas import corrupt_column

logger = open_logger("pyspark_cdcfmt")

_MAX_COUNTS = 100
"""Maximum number of counts in the log line of a task."""
_MAX_SAMPLED = 64
_MAX_SAMPLED_BYTES = 1 << 20
"""Limits of the first messages that determine the decoder: number, and total bytes."""

WORKER_LOGGING = "PYSPARK_SPARK_SESSION_UUID"
"""Set if Spark captures logs of Python workers (spark.sql.pyspark.worker.logging.enabled)."""


class Engine:
    """Decodes the messages of one task into record batches of ``schema``.

    :param inferred: whether ``schema`` was inferred, not given by the user.
    :param schemas: table schemas found before decoding.
    :param missing: finds other table schemas.
    :param low_watermark: row changes with a smaller commit_ts are dropped as duplicates.
    :param decoder: replaces the decoder of the options, and disables the kernel.
    :param by_kernel: whether the kernel may decode messages.
    :ivar chunks: the kernel's side; None until the first messages select it.
    :ivar counts: counts of changed messages and values, by description of the change.
    """

    def __init__(
        self,
        schema: StructType,
        options: ReadOptions,
        *,
        inferred: bool,
        event_filter: EventFilter | None = None,
        schemas: SchemaStore | None = None,
        missing: MissingSchemas | None = None,
        low_watermark: int = 0,
        decoder: Decoder | None = None,
        by_kernel: bool = True,
    ) -> None:
        self._schema = schema
        self._options = options
        self._inferred = inferred
        self.counts: Counter[str] = Counter()
        self._said: Counter[str] = Counter()
        event_filter = options.event_filter() if event_filter is None else event_filter
        event_filter.every_statement |= options.table is not None
        schemas = SchemaStore() if schemas is None else schemas
        self.schemas = schemas
        by_kernel = by_kernel and decoder is None
        zoneless: set[tuple[str, str]] = set()

        def note_zoneless(database: str, table: str) -> None:
            zoneless.add((database, table))

        if decoder is None:
            decoder = open_decoder(
                options,
                event_filter,
                self._projection(),
                self.counts,
                schemas,
                # For changes only the columns in the schema matter.
                on_zoneless=None if options.table is None else note_zoneless,
            )
        observed = ObservedDecoder(decoder)
        policy = ValuePolicy(options["invalidValues"], options["invalidText"], counts=self.counts)
        if options["sourceTimeZone"] is not None:
            policy.time_zone = options["sourceTimeZone"]
        rows: EventRows | ChangeRows
        if options.table is None:
            rows = EventRows(schema, options, policy)
        else:
            rows = ChangeRows(schema, options, policy, inferred=inferred, zoneless=zoneless)
        for_bad = corrupt_column(options)
        self._make = RowMaker(
            rows,
            observed,
            options["mode"],
            self.counts,
            event_filter,
            missing,
            low_watermark,
            None if for_bad in schema.names else for_bad,
        )
        self.chunks: KernelChunks | None = None
        self._opening: Opening | None = None
        if by_kernel:
            builder = BatchBuilder(schema)
            shape = make_shape(
                schema,
                options,
                projection=self._projection(),
                event_filter=event_filter,
                schemas=schemas,
                policy=policy,
                inferred=inferred,
                low_watermark=low_watermark,
            )
            reference = Reference(self._make, observed, builder.batch)
            self._opening = Opening(options, shape, reference)

    @property
    def skipped(self) -> int:
        """Number of messages with rows that the filters exclude."""
        return self._make.skipped + self._unwanted

    @property
    def refusal(self) -> str | None:
        """The reason why the kernel refused a row message for the first time."""
        if self.chunks is not None:
            return self.chunks.learner.refusal
        return None if self._opening is None else self._opening.refusal

    def watch_refusals(self) -> list[Refusal]:
        """A list that gets the messages of rows that the kernel refuses from now on."""
        refusals: list[Refusal] = []
        if self._opening is not None:
            self._opening.refusals = refusals
        return refusals

    @property
    def _unwanted(self) -> int:
        """Number of messages that the kernel skipped without decoding."""
        return self.chunks.unwanted if self.chunks is not None else 0

    def batches(
        self,
        messages: Iterable[Item],
        place: Mapping[str, object] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the messages, in order.

        Logs a JSON line at the end: ``place`` (the source of the messages), then counts;
        ``skipped`` counts messages with rows that the filters exclude.

        :raises DecodeError: in FAILFAST mode.
        :raises PolicyError: for what an option refuses by ``fail``.
        """
        items = self._open(messages)
        if self.chunks is None:
            arrays = self._by_reference(one_by_one(items), BatchBuilder(self._schema))
        else:
            arrays = map(attrgetter("batch"), merge_small(self.chunks.batches(items)))
        yield from self._logged(arrays, place)

    def lists(self, messages: Iterable[Item]) -> Iterator[pa.ListArray]:
        """Like :meth:`batches`, but yields arrays of lists: one list of rows per message.

        :raises DecodeError: in FAILFAST mode.
        :raises PolicyError: for what an option refuses by ``fail``.
        """
        builder = ListBuilder(self._schema)
        items = self._open(messages)
        if self.chunks is None:
            arrays = self._by_reference(one_by_one(items), builder)
        else:
            batches = merge_small(self.chunks.batches(items, count_rows=True))
            arrays = (builder.of_batch(each.batch, each.counts) for each in batches)
        yield from self._logged(arrays)

    def _open(self, messages: Iterable[Item]) -> Iterable[Item]:
        """All messages, after choosing the decoder by the first ones."""
        items = iter(messages)
        held: list[Item] = []
        size = 0
        if self._opening is None or self.chunks is not None:
            return items
        for item in islice(items, _MAX_SAMPLED):
            held.append(item)
            for message in islice(one_by_one([item]), _MAX_SAMPLED):
                if isinstance(message, Message):
                    self.chunks = self._opening.open(message)
                if self.chunks is not None:
                    break
            size += _size_of(item)
            if self.chunks is not None or size > _MAX_SAMPLED_BYTES:
                break
        held.reverse()
        # Releases each message before the next one is read.
        return chain((held.pop() for _ in range(len(held))), items)

    def _by_reference(
        self, messages: Iterable[Message | BadLine], builder: BatchBuilder | ListBuilder
    ) -> Iterator[Any]:
        for message in messages:
            size = len(message.value) if message.value is not None else 0
            rows: Iterable[tuple[Any, ...]] = self._make.rows(message)
            if isinstance(builder, ListBuilder):
                rows = self._make.listed(message)
            yield from builder.add(rows, size)
            del message, rows
        yield from builder.flush()

    def _logged(
        self, arrays: Iterable[Any], place: Mapping[str, object] | None = None
    ) -> Iterator[Any]:
        rows = 0
        try:
            for array in arrays:
                rows += array.num_rows if isinstance(array, pa.RecordBatch) else len(array.values)
                held = [array]
                # A variable would keep it alive while the next one is made.
                del array
                yield held.pop()
        finally:
            self._log(place, rows)

    def _log(self, place: Mapping[str, object] | None, rows: int) -> None:
        by_kernel = 0 if self.chunks is None else self.chunks.by_kernel
        by_reference = self._make.messages
        done = {
            "messages": by_kernel + by_reference + self._unwanted,
            "rows": rows + self._said["rows"],
            "skipped": self.skipped,
            "by kernel": by_kernel,
            "by reference": by_reference,
        }
        # An engine may run several times; log only the difference.
        since = {name: count - self._said[name] for name, count in done.items()}
        line: dict[str, object] = {"event": "cdc task", **(place or {}), **since}
        counts = self.counts - self._said
        self._said = self.counts + Counter(done)
        if counts:
            # The number of counted columns has no limit.
            line["counts"] = dict(counts.most_common(_MAX_COUNTS))
        if WORKER_LOGGING in os.environ and logger.level == logging.NOTSET:
            # With worker logging on, tasks without problems log their line, too.
            logger.setLevel(logging.INFO)
        logger.log(logging.WARNING if counts else logging.INFO, json.dumps(line))

    def _projection(self) -> Projection:
        options = self._options
        columns = None
        if options["images"] == "none":
            columns = frozenset[str]()
        elif options.table is not None and not self._inferred:
            columns = frozenset(self._schema.names)
        return Projection(
            columns,
            options["images"] == "both",
            tuple(options["keyColumns"]),
            options.case_sensitive,
        )


def _size_of(item: Item) -> int:
    """The bytes of the messages' values."""
    if isinstance(item, MessageBatch):
        return item.size
    return len(item.data if isinstance(item, Lines) else item.value or b"")
