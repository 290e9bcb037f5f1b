"""From messages to record batches, under every reader and on every executor."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from cdcfmt_core.codec import Projection
from cdcfmt_core.decoding import MessageDecoder, open_message_decoder
from cdcfmt_core.events import Message
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.schema_store import SchemaStore
from cdcfmt_core.sources import BadLine, Lines, one_by_one, open_claim_check_store
from cdcfmt_core.texts import open_logger
from pyspark_cdcfmt.batches import BatchBuilder, ListBuilder
from pyspark_cdcfmt.change_rows import ChangeRows
from pyspark_cdcfmt.columnar.chunks import Chunks
from pyspark_cdcfmt.columnar.made import sized
from pyspark_cdcfmt.columnar.opening import AutoChunks, Decoder, ObservedDecoder, open_chunks
from pyspark_cdcfmt.event_schema import corrupt_column
from pyspark_cdcfmt.events import EventRows
from pyspark_cdcfmt.missing_schemas import MissingSchemas
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.policy import ValuePolicy
from pyspark_cdcfmt.row_maker import RowMaker

logger = open_logger("pyspark_cdcfmt")

_MOST_COUNTS = 100
"""In the log line of a task."""

WORKER_LOGGING = "PYSPARK_SPARK_SESSION_UUID"
"""Set where Spark keeps what Python workers log (spark.sql.pyspark.worker.logging.enabled)."""


def open_decoder(
    options: ReadOptions,
    event_filter: EventFilter,
    projection: Projection = Projection(),  # noqa: B008 (frozen)
    counts: Counter[str] | None = None,
    schemas: SchemaStore | None = None,
    on_zoneless: Callable[[str, str], None] | None = None,
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
        on_zoneless=on_zoneless,
    )


class Engine:
    """Decodes the messages of one task into record batches of ``schema``.

    ``inferred`` tells that the schema is ours and not the user's.  ``schemas`` are the
    table schemas that were found before decoding, and ``missing`` finds those that were not.
    Row changes before ``fence``, a commit_ts, are dropped as duplicates.  ``decoder`` stands
    in place of the one that the options ask for.  Without ``by_columns`` every message goes
    the reference path.
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
        fence: int = 0,
        decoder: Decoder | None = None,
        by_columns: bool = True,
    ) -> None:
        self._schema = schema
        self._options = options
        self._inferred = inferred
        self._counts: Counter[str] = Counter()
        event_filter = options.event_filter() if event_filter is None else event_filter
        schemas = SchemaStore() if schemas is None else schemas
        # What stands apart, and duplicates, are found event by event.
        by_columns = by_columns and decoder is None and not fence
        if decoder is None:
            decoder = open_decoder(options, event_filter, self._projection(), self._counts, schemas)
        observed = ObservedDecoder(decoder)
        policy = ValuePolicy(options["invalidValues"], options["invalidText"], counts=self._counts)
        if options["sourceTimeZone"] is not None:
            policy.time_zone = options["sourceTimeZone"]
        rows: EventRows | ChangeRows
        if options.table is None:
            rows = EventRows(schema, options, policy)
        else:
            rows = ChangeRows(schema, options, policy, inferred=inferred)
        for_bad = corrupt_column(options)
        self._make = RowMaker(
            rows,
            observed,
            options["mode"],
            self._counts,
            event_filter,
            missing,
            fence,
            None if for_bad in schema.names else for_bad,
        )
        self.chunks = None
        if by_columns:
            self.chunks = open_chunks(
                schema,
                options,
                observed,
                self._make,
                projection=self._projection(),
                event_filter=event_filter,
                schemas=schemas,
                policy=policy,
                inferred=inferred,
            )

    @property
    def counts(self) -> Counter[str]:
        """What was done to messages and values, by a text that names it."""
        return self._counts

    @property
    def skipped(self) -> int:
        """Messages with rows that the filters do not want."""
        return self._make.skipped + self._unwanted

    @property
    def _unwanted(self) -> int:
        """Those of them that were not even decoded."""
        return self.chunks.unwanted if self.chunks is not None else 0

    def batches(
        self,
        messages: Iterable[Message | BadLine | Lines],
        place: Mapping[str, object] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the messages, in order; what was done to them is logged at the end.

        That is one line of JSON, which begins with ``place``: where the messages come from.
        ``skipped`` are messages with rows that the filters do not want.

        :raises DecodeError: in FAILFAST mode.
        :raises PolicyError: for what an option refuses by ``fail``.
        """
        if self.chunks is None:
            yield from self._run(one_by_one(messages), BatchBuilder(self._schema), place)
            return
        batches = (each.batch for each in sized(self.chunks.batches(messages)))
        yield from self._by_columns(self.chunks, batches, place)

    def lists(self, messages: Iterable[Message | BadLine]) -> Iterator[pa.ListArray]:
        """As :meth:`batches`, but arrays of lists: one list of rows for each message.

        :raises DecodeError: in FAILFAST mode.
        :raises PolicyError: for what an option refuses by ``fail``.
        """
        builder = ListBuilder(self._schema)
        if self.chunks is None:
            return self._run(messages, builder)
        made = sized(self.chunks.batches(messages, count_rows=True))
        lists = (builder.of_batch(each.batch, each.counts) for each in made)
        return self._by_columns(self.chunks, lists)

    def _by_columns(
        self,
        chunks: Chunks | AutoChunks,
        arrays: Iterable[Any],
        place: Mapping[str, object] | None = None,
    ) -> Iterator[Any]:
        made = 0
        try:
            for array in arrays:
                made += _rows_in(array)
                yield array
        finally:
            self._log(place, made, chunks.by_columns)

    def _run(
        self,
        messages: Iterable[Message | BadLine],
        builder: BatchBuilder | ListBuilder,
        place: Mapping[str, object] | None = None,
    ) -> Iterator[Any]:
        made = 0
        try:
            for message in messages:
                size = len(message.value) if message.value is not None else 0
                rows: Iterable[tuple[Any, ...]] = self._make.rows(message)
                if isinstance(builder, ListBuilder):
                    rows = self._make.listed(message, builder.weigh)
                for array in builder.add(rows, size):
                    made += _rows_in(array)
                    yield array
            for array in builder.flush():
                made += _rows_in(array)
                yield array
        finally:
            self._log(place, made)

    def _log(
        self,
        place: Mapping[str, object] | None,
        rows: int,
        by_columns: int = 0,
    ) -> None:
        by_reference = self._make.messages
        line: dict[str, object] = {
            "event": "cdc task",
            **(place or {}),
            "messages": by_columns + by_reference + self._unwanted,
            "rows": rows,
            "skipped": self.skipped,
            "by columns": by_columns,
            "by reference": by_reference,
        }
        if self._counts:
            # A message may have any number of columns with something to count.
            line["counts"] = dict(self._counts.most_common(_MOST_COUNTS))
        if WORKER_LOGGING in os.environ and logger.level == logging.NOTSET:
            # Who turned it on wants to see the lines of tasks without trouble, too.
            logger.setLevel(logging.INFO)
        logger.log(logging.WARNING if self._counts else logging.INFO, json.dumps(line))

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


def _rows_in(array: pa.RecordBatch | pa.ListArray) -> int:
    return array.num_rows if isinstance(array, pa.RecordBatch) else len(array.values)
