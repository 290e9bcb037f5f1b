"""The base class of encoders, :class:`Encoder`, and the :class:`EncoderContext`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs

from cdcfmt_core.events import Event, Kind, Message, Op, TableSchema
from cdcfmt_core.texts import warn_zoneless

if TYPE_CHECKING:
    from cdcfmt_core.toolkit.large_message_output import LargeMessageOutput
    from cdcfmt_core.toolkit.row_messages import RowMessages
    from cdcfmt_core.toolkit.row_rules import Allowance, PartialMessage, RowBatches, RowNumbers

_WRITTEN = "written as UTC; set sourceTimeZone to the zone that the reader expects"


@attrs.define
class EncoderContext:
    """Services for an encoder, the same for every format.

    - ``large_messages``: compresses values and handles those beyond ``max_message_bytes``.
    - ``source_time_zone``: the zone of TIMESTAMP texts on wires without a zone.
    - ``invalid_text``: whether text that is not UTF-8 is replaced (and counted) or an error.
    - ``now``: returns the time in microseconds, for events without an emit time.
    - ``counts``: number of changes to values that are not errors, by a description.
    """

    large_messages: LargeMessageOutput
    source_time_zone: tzinfo | None = None
    invalid_text: Literal["replace", "fail"] = "replace"
    now: Callable[[], int] = lambda: time.time_ns() // 1_000
    counts: Counter[str] = attrs.field(factory=Counter)

    @property
    def time_zone(self) -> tzinfo:
        """The zone of texts without a zone. Defaults to UTC."""
        return self.source_time_zone or UTC

    def note_zoneless_timestamps(self, table: TableSchema) -> None:
        """Warn once per table with Timestamp columns, for wires whose timestamps have no zone."""
        if self.source_time_zone is None and table.has_timestamps:
            warn_zoneless(table.database, table.table, _WRITTEN)

    def emit_millis(self, event: Any) -> int:
        """The event's emit time in milliseconds; the current time if it has none."""
        emitted = event.emit_time
        return int((self.now() if emitted is None else emitted) // 1_000)


class Encoder(ABC):
    """Base class: writes events as messages of one format, and holds all their state.

    It only receives events of ``kinds`` and ``ops``.  With ``needs_commit_ts`` every row, DDL and
    watermark has one.  Partitions are not its concern: a batching encoder gets the events of one
    partition only, and :meth:`flush` is called before events that rows must not follow.
    """

    kinds: frozenset[Kind] = frozenset({"row"})
    ops: frozenset[Op] = frozenset({"insert", "update", "delete"})
    needs_commit_ts: bool = False
    hints: ClassVar[dict[Kind, str]] = {}
    """By kind, the option that enables it, for the error that rejects it."""
    names_schemas: ClassVar[bool] = False
    """Whether messages have a field for the schema in ``database.schema.table``."""
    per_partition: ClassVar[bool] = False
    """Whether each partition needs its own encoder, as for batches and bootstrap messages."""
    row_numbers: RowNumbers | None = None
    """The number of the last row over all partitions, if the format numbers rows."""

    @abstractmethod
    def encode(self, event: Event) -> Iterable[Message]:
        """The messages that this event completes: key, value and headers.

        :raises EncodeError: names column, value and what to do.
        :raises UnsupportedEventError: if the format cannot express it.
        """

    def row_messages(self, table: TableSchema) -> RowMessages | None:
        """How to write the rows of a table, as data for the compiled kernel; it has columns.

        None: only :meth:`encode` can write them.

        :raises EncodeError: if they cannot be written.
        """
        return None

    def row_time_zone(self) -> tzinfo | None:
        """The zone of TIMESTAMP texts of :meth:`row_messages`; None: the context's zone."""
        return None

    def allow_rows(self, table: TableSchema, version: int) -> Allowance | None:
        """Permission for the kernel to write rows of this ``version`` of a table's schema.

        None: :meth:`encode` must write the next row, as other messages may precede it.
        """
        return None

    @property
    def row_batches(self) -> RowBatches | None:
        """How the kernel batches rows into messages; None: one message per row."""
        return None

    def take_partial(self) -> PartialMessage | None:
        """Hand the unfinished message, if any, to the kernel, which continues it."""
        return None

    def restore_partial(self, partial: PartialMessage) -> None:
        """Take back the kernel's unfinished message, and continue it."""
        raise NotImplementedError

    def flush(self) -> Iterable[Message]:
        """The messages that are still buffered."""
        return ()


def messages_of(returned: Any) -> list[Message]:
    """The messages that an encoder returned.

    :raises TypeError: if they are something else.
    """
    if not isinstance(returned, Iterable):
        raise TypeError(f"it returned {returned!r:.200}, not a list of Message")
    messages = list(returned)
    for message in messages:
        if not isinstance(message, Message):
            raise TypeError(f"it returned {message!r:.200} where a Message belongs")
        for part in (message.key, message.value):
            if not (part is None or isinstance(part, bytes)):
                raise TypeError(f"it returned a Message with {part!r:.200}, not bytes")
    return messages
