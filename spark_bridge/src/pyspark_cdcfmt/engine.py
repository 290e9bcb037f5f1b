"""From messages to record batches, under every reader and on every executor."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from cdcfmt_core.codec import Projection
from cdcfmt_core.decoding import MessageDecoder, open_message_decoder
from cdcfmt_core.errors import CdcfmtError, DecodeError, MissingSchemaError
from cdcfmt_core.events import Corrupt, Event, Message, RowChange
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.schema_store import SchemaStore
from cdcfmt_core.sources import BadLine, open_claim_check_store
from pyspark_cdcfmt.batches import BatchBuilder, ListBuilder
from pyspark_cdcfmt.change_rows import BadRow, ChangeRows
from pyspark_cdcfmt.columnar.chunks import Chunks
from pyspark_cdcfmt.columnar.made import sized
from pyspark_cdcfmt.columnar.opening import Decoder, ObservedDecoder, open_chunks
from pyspark_cdcfmt.events import EventRows
from pyspark_cdcfmt.missing_schemas import MissingSchemas
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.policy import BadValue, ValuePolicy

logger = logging.getLogger("pyspark_cdcfmt")


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
        self._make = RowMaker(rows, observed, options["mode"], self._counts, missing, fence)
        self.chunks = None
        if by_columns:
            self.chunks = open_chunks(
                schema,
                options,
                observed,
                self._make.rows,
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

    def batches(
        self, messages: Iterable[Message | BadLine], place: Mapping[str, object] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the messages, in order; what was done to them is logged at the end.

        That is one line of JSON, which begins with ``place``: where the messages come from.

        :raises DecodeError: in FAILFAST mode.
        """
        if self.chunks is None:
            yield from self._run(messages, BatchBuilder(self._schema), place)
            return
        batches = (each.batch for each in sized(self.chunks.batches(messages)))
        yield from self._by_columns(self.chunks, batches, place)

    def lists(self, messages: Iterable[Message | BadLine]) -> Iterator[pa.ListArray]:
        """As :meth:`batches`, but arrays of lists: one list of rows for each message.

        :raises DecodeError: in FAILFAST mode.
        """
        builder = ListBuilder(self._schema)
        if self.chunks is None:
            return self._run(messages, builder)
        made = sized(self.chunks.batches(messages, count_rows=True))
        lists = (builder.of_batch(each.batch, each.counts) for each in made)
        return self._by_columns(self.chunks, lists)

    def _by_columns(
        self,
        chunks: Chunks,
        arrays: Iterable[Any],
        place: Mapping[str, object] | None = None,
    ) -> Iterator[Any]:
        made = 0
        try:
            for array in arrays:
                made += array.num_rows if isinstance(array, pa.RecordBatch) else len(array.values)
                yield array
        finally:
            read = chunks.by_columns + chunks.by_reference
            line = {"messages": read, "rows": made, "by columns": chunks.by_columns}
            self._log({**(place or {}), **line})

    def _run(
        self,
        messages: Iterable[Message | BadLine],
        builder: BatchBuilder | ListBuilder,
        place: Mapping[str, object] | None = None,
    ) -> Iterator[Any]:
        read = made = 0
        try:
            for message in messages:
                size = len(message.value) if message.value is not None else 0
                rows = self._make.rows(message)
                read += 1
                made += len(rows)
                yield from builder.add(rows, size)
            yield from builder.flush()
        finally:
            self._log({**(place or {}), "messages": read, "rows": made})

    def _log(self, line: dict[str, object]) -> None:
        line = {"event": "cdc task", **line}
        if self._counts:
            line["counts"] = self._counts
        logger.log(logging.WARNING if self._counts else logging.INFO, json.dumps(line))

    def _projection(self) -> Projection:
        options = self._options
        columns = None
        if options["images"] == "none":
            columns = frozenset[str]()
        elif options.table is not None and not self._inferred:
            columns = frozenset(self._schema.names)
        return Projection(columns, options["images"] == "both", options["keyColumns"])


class RowMaker:
    """Turns a message into rows under a mode: PERMISSIVE, DROPMALFORMED or FAILFAST."""

    def __init__(
        self,
        shape: EventRows | ChangeRows,
        decoder: Decoder,
        mode: str,
        counts: Counter[str],
        missing: MissingSchemas | None = None,
        fence: int = 0,
    ) -> None:
        self._shape = shape
        self._decoder = decoder
        self._mode = mode
        self._counts = counts
        self._missing = missing
        self._fence = fence

    def rows(self, message: Message | BadLine) -> list[tuple[Any, ...]]:
        """All rows of a message; DecodeError in FAILFAST."""
        if isinstance(message, BadLine):
            held = Message(None, message.value, path=message.path, offset=message.offset)
            return self._corrupt(held, Corrupt(message.error))
        rows: list[tuple[Any, ...]] = []
        events = self._decoder.decode(message)
        if self._missing is not None:
            events = self._with_schemas(message, events, self._missing)
        if self._fence:
            events = self._without_duplicates(events)
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

    def _with_schemas(
        self, message: Message, events: list[Event], missing: MissingSchemas
    ) -> list[Event]:
        looked_for = set()
        while True:
            for event in events:
                if type(event) is Corrupt and isinstance(event.error, MissingSchemaError):
                    error = event.error
                    name = (error.database, error.schema, error.table, error.position)
                    if name not in looked_for:
                        looked_for.add(name)
                        if missing.find(error, message):
                            break
            else:
                return events
            events = self._decoder.decode(message)

    def _without_duplicates(self, events: list[Event]) -> list[Event]:
        fence = self._fence
        new = [
            event
            for event in events
            if type(event) is not RowChange or event.commit_ts is None or event.commit_ts >= fence
        ]
        if len(new) < len(events):
            self._counts["duplicates dropped"] += len(events) - len(new)
        return new

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
