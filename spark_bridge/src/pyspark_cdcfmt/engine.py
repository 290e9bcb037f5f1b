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
from cdcfmt_core.errors import CdcfmtError, DecodeError
from cdcfmt_core.events import Corrupt, Event, Message
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.schema_store import SchemaStore
from cdcfmt_core.sources import BadLine, open_claim_check_store
from pyspark_cdcfmt.batches import BatchBuilder
from pyspark_cdcfmt.changes import BadRow, ChangeRows
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
    table schemas that were found before decoding.
    """

    def __init__(
        self,
        schema: StructType,
        options: ReadOptions,
        *,
        inferred: bool,
        event_filter: EventFilter | None = None,
        schemas: SchemaStore | None = None,
    ) -> None:
        self._schema = schema
        self._options = options
        self._inferred = inferred
        self._counts: Counter[str] = Counter()
        decoder = open_decoder(
            options,
            options.event_filter() if event_filter is None else event_filter,
            self._projection(),
            self._counts,
            schemas,
        )
        policy = ValuePolicy(options["invalidValues"], options["invalidText"], counts=self._counts)
        if options["sourceTimeZone"] is not None:
            policy.time_zone = options["sourceTimeZone"]
        rows: EventRows | ChangeRows
        if options.table is None:
            rows = EventRows(schema, options, policy)
        else:
            rows = ChangeRows(schema, options, policy, inferred=inferred)
        self._make = RowMaker(rows, decoder, options["mode"], self._counts)

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
        batches = BatchBuilder(self._schema)
        read = made = 0
        try:
            for message in messages:
                size = len(message.value) if message.value is not None else 0
                rows = self._make.rows(message)
                read += 1
                made += len(rows)
                yield from batches.add(rows, size)
            yield from batches.flush()
        finally:
            line = {"event": "cdc task", **(place or {}), "messages": read, "rows": made}
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
