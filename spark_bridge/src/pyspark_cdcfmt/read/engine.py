"""From messages to record batches, under every reader and on every executor."""

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
from cdcfmt_core.io.sources import BadLine, Lines, one_by_one
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.texts import open_logger
from pyspark_cdcfmt.kernel.batches import Item, Reference, merge_small
from pyspark_cdcfmt.kernel.feeding import KernelChunks, Opening
from pyspark_cdcfmt.kernel.learning import Decoder, ObservedDecoder
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

_MOST_COUNTS = 100
"""The most counts in the log line of a task."""
_MAX_SAMPLED = 64
_MAX_SAMPLED_BYTES = 1 << 20
"""The first messages, and bytes of them, that may choose the decoder of all."""

WORKER_LOGGING = "PYSPARK_SPARK_SESSION_UUID"
"""Set where Spark keeps what Python workers log (spark.sql.pyspark.worker.logging.enabled)."""


class Engine:
    """Decodes the messages of one task into record batches of ``schema``.

    ``inferred``: the schema is ours and not the user's.  ``schemas`` are the
    table schemas that were found before decoding, and ``missing`` finds those that were not.
    Row changes before ``low_watermark``, a commit_ts, are dropped as duplicates.  ``decoder``
    stands in place of the one that the options ask for.  With one, or without ``by_kernel``, the
    reference decodes all messages.

    ``chunks`` is the kernel's side, once the first messages chose it.
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
        self._counts: Counter[str] = Counter()
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
                self._counts,
                schemas,
                # Of changes only those columns matter that are in the schema.
                on_zoneless=None if options.table is None else note_zoneless,
            )
        observed = ObservedDecoder(decoder)
        policy = ValuePolicy(options["invalidValues"], options["invalidText"], counts=self._counts)
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
            self._counts,
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
            reference = Reference(self._make, observed, builder.weigh, builder.batch)
            self._opening = Opening(options, shape, reference)

    @property
    def counts(self) -> Counter[str]:
        """Counts of changed messages and values, by a text that names the change."""
        return self._counts

    @property
    def skipped(self) -> int:
        """Messages with rows that the filters exclude."""
        return self._make.skipped + self._unwanted

    @property
    def refusal(self) -> str | None:
        """Why the kernel did not read the first message of rows that it was given."""
        if self.chunks is not None:
            return self.chunks.learner.refusal
        return None if self._opening is None else self._opening.refusal

    @property
    def _unwanted(self) -> int:
        """Skipped messages that the kernel did not decode."""
        return self.chunks.unwanted if self.chunks is not None else 0

    def batches(
        self,
        messages: Iterable[Item],
        place: Mapping[str, object] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the messages, in order.

        At the end a line of JSON is logged: ``place``, the source of the messages, then counts;
        ``skipped`` are messages with rows that the filters exclude.

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
        """Like :meth:`batches`, but arrays of lists: one list of rows for each message.

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
        """The messages, with the decoder chosen by the first ones."""
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
        # None of them is held beside the next one.
        return chain((held.pop() for _ in range(len(held))), items)

    def _by_reference(
        self, messages: Iterable[Message | BadLine], builder: BatchBuilder | ListBuilder
    ) -> Iterator[Any]:
        for message in messages:
            size = len(message.value) if message.value is not None else 0
            rows: Iterable[tuple[Any, ...]] = self._make.rows(message)
            if isinstance(builder, ListBuilder):
                rows = self._make.listed(message, builder.weigh)
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
                # A name would hold it beside the next one.
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
        # An engine may be used more than once.
        since = {name: count - self._said[name] for name, count in done.items()}
        line: dict[str, object] = {"event": "cdc task", **(place or {}), **since}
        counts = self._counts - self._said
        self._said = self._counts + Counter(done)
        if counts:
            # A message may have any number of columns with something to count.
            line["counts"] = dict(counts.most_common(_MOST_COUNTS))
        if WORKER_LOGGING in os.environ and logger.level == logging.NOTSET:
            # With worker logging on, the lines of tasks without trouble are wanted, too.
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
    """The bytes of messages."""
    if isinstance(item, MessageBatch):
        return item.size
    return len(item.data if isinstance(item, Lines) else item.value or b"")
