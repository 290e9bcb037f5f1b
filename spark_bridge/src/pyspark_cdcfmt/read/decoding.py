"""The reference path: the decoder for the options, and the rows of each message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from cdcfmt_core.codec import Projection
from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.errors import (
    CdcfmtError,
    DecodeError,
    MissingSchemaError,
    PolicyError,
)
from cdcfmt_core.events import (
    Corrupt,
    Event,
    Message,
    RowChange,
)
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.opening import claim_check_reader
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_files.sources import BadLine
from cdcfmt_toolkit.large_messages import without_values
from cdcfmt_toolkit.repeats import Repeats, value_bytes
from pyspark_cdcfmt.kernel.learning import Decoder
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.rows.change_rows import ChangeRows
from pyspark_cdcfmt.rows.event_rows import EventRows
from pyspark_cdcfmt.rows.policy import BadRow, BadValue
from pyspark_cdcfmt.rows.read_task import ReadTask, TaskState
from pyspark_cdcfmt.rows.row_schemas import corrupt_column


def open_decoder(
    options: ReadOptions,
    event_filter: EventFilter,
    projection: Projection = Projection(),  # noqa: B008 (frozen)
    counts: Counter[str] | None = None,
    schemas: SchemaStore | None = None,
    on_zoneless: Callable[[str, str], None] | None = None,
) -> MessageDecoder:
    return MessageDecoder(
        options.values,
        options.codec,
        event_filter,
        projection=projection,
        claim_checks=claim_check_reader(options.values, options.storage_options),
        schemas=schemas,
        counts=counts,
        on_zoneless=on_zoneless,
    )


DUPLICATES, CORRUPT = "duplicates dropped", "corrupt messages and rows"
"""Names of counts."""

MAX_LIST_BYTES = 32 << 20
MAX_LIST_SHARE = 2
"""Maximum bytes of a list of a message's rows: a constant, plus a multiple of the message's."""


class RowMaker:
    """Turns a message into rows under a mode: PERMISSIVE, DROPMALFORMED or FAILFAST.

    :ivar messages: number of messages.
    :ivar skipped: number of messages with rows that the filter excludes.
    """

    def __init__(
        self, shape: EventRows | ChangeRows, decoder: Decoder, task: ReadTask, state: TaskState
    ) -> None:
        self._shape = shape
        self._decoder = decoder
        self._mode = task.options["mode"]
        for_bad = corrupt_column(task.options)
        # PERMISSIVE fails for a bad row without this column.
        self._no_place_in = None if for_bad in task.schema.names else for_bad
        self._counts = state.counts
        self._filter = state.event_filter
        self._find_schema = state.find_schema
        self._low_watermark = task.low_watermark
        self.messages = 0
        self.skipped = 0

    def rows(self, message: Message | BadLine) -> Iterator[tuple[Any, ...]]:
        """The rows of a message, made lazily.

        :raises DecodeError: for a bad row in FAILFAST.
        :raises PolicyError: for a row that an option refuses by ``fail``, in every mode.
        """
        self.messages += 1
        if isinstance(message, BadLine):
            held = Message(None, message.value, path=message.path, offset=message.offset)
            yield from self._corrupt(held, Corrupt(message.error))
            return
        refused = self._filter.rows_refused
        events = self._decoder.decode(message)
        if self._find_schema is not None:
            events = self._with_schemas(message, events, self._find_schema)
        self.skipped += self._filter.rows_refused > refused
        if self._low_watermark:
            events = self._without_duplicates(events)
        protocol = self._decoder.protocol
        held = message
        repeats = Repeats(
            message,
            events,
            self._shape.shown,
            of_events=isinstance(self._shape, EventRows),
            of_columns=self._shape.wants_columns,
        )
        if repeats.of_message is not None:
            error = repeats.of_message.at(protocol=protocol, **message.position)
            yield from self._corrupt(message, Corrupt(error))
            return
        for event in events:
            if not isinstance(event, Corrupt):
                try:
                    if reason := repeats.excess(event):
                        raise BadRow(reason)
                    rows = list(self._shape.rows(message, event, protocol))
                    yield from rows
                    continue
                except PolicyError as error:
                    names = _names(event)
                    raise error.at(
                        reason=without_values(error.reason) if _is_claimed(event) else None,
                        table=".".join(names),
                        column=_column(error.column, names),
                        protocol=protocol,
                        **message.position,
                    ) from None
                except Exception as error:
                    # In PERMISSIVE a bad row must not end the job.
                    event = self._bad_row(message, event, error)
            yield from self._corrupt(held, event)
            # Only the first bad row of a message has its bytes.
            held = attrs.evolve(message, key=None, value=None)

    def listed(self, message: Message | BadLine) -> list[tuple[Any, ...]]:
        """All rows of a message; a single bad row if they are too large for one list."""
        rows: list[tuple[Any, ...]] = []
        most = MAX_LIST_BYTES + MAX_LIST_SHARE * len(message.value or b"")
        size = 0
        for row in self.rows(message):
            rows.append(row)
            size += value_bytes(row)
            if size > most and len(rows) > 1 and isinstance(message, Message):
                error = DecodeError(
                    f"the message's rows have more than {most} bytes, too many for one list: "
                    'read it with format("cdc"), which splits them into several batches'
                ).at(protocol=self._decoder.protocol, **message.position)
                return self._corrupt(message, Corrupt(error))
        return rows

    def _with_schemas(
        self,
        message: Message,
        events: list[Event],
        find: Callable[[MissingSchemaError, Message], bool],
    ) -> list[Event]:
        looked_for = set()
        while True:
            for event in events:
                if type(event) is Corrupt and isinstance(event.error, MissingSchemaError):
                    error = event.error
                    name = (error.database, error.schema, error.table, error.position)
                    if name not in looked_for:
                        looked_for.add(name)
                        if find(error, message):
                            break
            else:
                return events
            events = self._decoder.decode(message)

    def _without_duplicates(self, events: list[Event]) -> list[Event]:
        low_watermark = self._low_watermark
        new = [
            event
            for event in events
            if type(event) is not RowChange
            or event.commit_ts is None
            or event.commit_ts >= low_watermark
        ]
        if len(new) < len(events):
            self._counts[DUPLICATES] += len(events) - len(new)
        return new

    def _corrupt(self, message: Message, event: Corrupt) -> list[tuple[Any, ...]]:
        if self._mode == "FAILFAST":
            raise event.error
        if self._mode == "PERMISSIVE" and self._no_place_in is not None:
            raise DecodeError(
                f"{event.error}; the schema has no column for bad rows: add {self._no_place_in} "
                "to it, or set mode to DROPMALFORMED or FAILFAST"
            ) from None
        self._counts[CORRUPT] += 1
        if self._mode == "DROPMALFORMED":
            return []
        return list(self._shape.rows(message, event, self._decoder.protocol))

    def _bad_row(self, message: Message, event: Event, error: Exception) -> Corrupt:
        names = _names(event)
        field = _column(getattr(error, "field", None), names)
        reason = str(getattr(error, "reason", error))
        if not isinstance(error, BadRow | BadValue | CdcfmtError):
            reason = f"the row cannot be converted: {type(error).__name__}: {reason}"
        if _is_claimed(event):
            reason = without_values(reason)
        bad = DecodeError(reason, field=".".join(filter(None, [*names, field])) or None)
        return Corrupt(bad.at(protocol=self._decoder.protocol, **message.position), event.index)


def _is_claimed(event: Event) -> bool:
    """Whether an event was read from a claim-check file, which no error quotes."""
    return "claim_check" in (getattr(event, "extra", None) or {})


def _names(event: Any) -> list[str]:
    """The non-empty ones of an event's database, schema and table."""
    named = event.table if isinstance(event, RowChange) else event
    names = (getattr(named, part, None) for part in ("database", "schema", "table"))
    return [name for name in names if isinstance(name, str) and name]


def _column(name: str | None, names: list[str]) -> str | None:
    """A column's name, without the database and table that the events shape prefixes."""
    return None if name is None else name.removeprefix(".".join([*names[:1], *names[-1:], ""]))
