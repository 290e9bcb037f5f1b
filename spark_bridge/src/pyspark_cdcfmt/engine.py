"""From messages to record batches, under every reader and on every executor."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from cdcfmt_core.codec import Projection
from cdcfmt_core.decoding import MessageDecoder, open_message_decoder
from cdcfmt_core.errors import CdcfmtError, DecodeError
from cdcfmt_core.events import Corrupt, Event, Message
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.schema_store import SchemaStore
from cdcfmt_core.sources import BadLine, open_claim_check_store
from pyspark_cdcfmt.batches import BatchBuilder
from pyspark_cdcfmt.changes import BadRow, ChangeRows
from pyspark_cdcfmt.columnar.opening import ObservedDecoder, open_chunks, sized
from pyspark_cdcfmt.events import EventRows
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
    table schemas that were found before decoding.  Without ``by_columns`` every message
    goes the reference path.
    """

    def __init__(
        self,
        schema: StructType,
        options: ReadOptions,
        *,
        inferred: bool,
        event_filter: EventFilter | None = None,
        schemas: SchemaStore | None = None,
        by_columns: bool = True,
    ) -> None:
        self._schema = schema
        self._options = options
        self._inferred = inferred
        self.counts: Counter[str] = Counter()
        event_filter = options.event_filter() if event_filter is None else event_filter
        schemas = SchemaStore() if schemas is None else schemas
        decoder = ObservedDecoder(
            open_decoder(options, event_filter, self._projection(), self.counts, schemas)
        )
        policy = ValuePolicy(options["invalidValues"], options["invalidText"], counts=self.counts)
        if options["sourceTimeZone"] is not None:
            policy.time_zone = options["sourceTimeZone"]
        rows: EventRows | ChangeRows
        if options.table is None:
            rows = EventRows(schema, options, policy)
        else:
            rows = ChangeRows(schema, options, policy, inferred=inferred)
        self._make = RowMaker(rows, decoder, options["mode"], self.counts)
        self.chunks = None
        if by_columns:
            self.chunks = open_chunks(
                schema,
                options,
                decoder,
                self._make.rows,
                projection=self._projection(),
                event_filter=event_filter,
                schemas=schemas,
                policy=policy,
                inferred=inferred,
            )

    def batches(self, messages: Iterable[Message | BadLine]) -> Iterator[pa.RecordBatch]:
        """The rows of the messages, in order; what was done to them is logged at the end.

        :raises DecodeError: in FAILFAST mode.
        """
        try:
            if self.chunks is not None:
                yield from sized(self.chunks.batches(messages))
            else:
                yield from self._by_rows(messages)
        finally:
            if self.chunks is not None:
                logger.info(
                    "cdc: %d messages decoded by columns, %d by the reference path",
                    self.chunks.by_columns,
                    self.chunks.by_reference,
                )
            if self.counts:
                counts = ", ".join(f"{name}: {count}" for name, count in self.counts.items())
                logger.warning("cdc: %s", counts)

    def _by_rows(self, messages: Iterable[Message | BadLine]) -> Iterator[pa.RecordBatch]:
        batches = BatchBuilder(self._schema)
        for message in messages:
            size = len(message.value) if message.value is not None else 0
            yield from batches.add(self._make.rows(message), size)
        yield from batches.flush()

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
        decoder: ObservedDecoder,
        mode: str,
        counts: Counter[str],
    ) -> None:
        self._shape = shape
        self._decoder = decoder
        self._mode = mode
        self.counts = counts

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
        self.counts["corrupt messages and rows"] += 1
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
