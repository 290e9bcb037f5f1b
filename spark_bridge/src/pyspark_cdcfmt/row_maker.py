"""From a message to its rows: the reference path, whatever a row does."""

from __future__ import annotations

from collections import Counter
from typing import Any

from cdcfmt_core.errors import CdcfmtError, DecodeError, MissingSchemaError
from cdcfmt_core.events import Corrupt, Event, Message, RowChange
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.sources import BadLine
from pyspark_cdcfmt.change_rows import BadRow, ChangeRows
from pyspark_cdcfmt.columnar.opening import Decoder
from pyspark_cdcfmt.events import EventRows
from pyspark_cdcfmt.missing_schemas import MissingSchemas
from pyspark_cdcfmt.policy import BadValue


class RowMaker:
    """Turns a message into rows under a mode: PERMISSIVE, DROPMALFORMED or FAILFAST.

    ``messages`` counts those that it was given, ``skipped`` those with rows that
    ``event_filter`` does not want.
    """

    def __init__(
        self,
        shape: EventRows | ChangeRows,
        decoder: Decoder,
        mode: str,
        counts: Counter[str],
        event_filter: EventFilter,
        missing: MissingSchemas | None = None,
        fence: int = 0,
    ) -> None:
        self._shape = shape
        self._decoder = decoder
        self._mode = mode
        self._counts = counts
        self._filter = event_filter
        self._missing = missing
        self._fence = fence
        self.messages = 0
        self.skipped = 0

    def rows(self, message: Message | BadLine) -> list[tuple[Any, ...]]:
        """All rows of a message; DecodeError in FAILFAST."""
        self.messages += 1
        if isinstance(message, BadLine):
            held = Message(None, message.value, path=message.path, offset=message.offset)
            return self._corrupt(held, Corrupt(message.error))
        rows: list[tuple[Any, ...]] = []
        refused = self._filter.rows_refused
        events = self._decoder.decode(message)
        if self._missing is not None:
            events = self._with_schemas(message, events, self._missing)
        self.skipped += self._filter.rows_refused > refused
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
