"""Writing a format: the :class:`Encoder` and its :class:`EncoderContext`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs

from cdcfmt_core.events import Event, Kind, Message, Op, TableSchema
from cdcfmt_core.zoneless import warn_zoneless

if TYPE_CHECKING:
    from cdcfmt_core.toolkit.large_message_output import LargeMessageOutput
    from cdcfmt_core.toolkit.row_messages import RowMessages
    from cdcfmt_core.toolkit.row_rules import Allowance, Held, RowBatches, RowNumbers

_WRITTEN = "written as UTC; set sourceTimeZone to the zone that the reader expects"


@attrs.define
class EncoderContext:
    """The services of an encoder besides its own options; the same for every format.

    ``source_time_zone`` is the zone of TIMESTAMP texts on wires without a zone.
    ``large_messages`` compresses values and deals with those beyond ``max_message_bytes``.
    ``now`` gives the time in microseconds, for events without an emit time.  ``counts``
    collects what was done to values without being an error, by a text that names it;
    ``invalid_text`` says whether text that is not UTF-8 is replaced (and counted) or fails.
    """

    large_messages: LargeMessageOutput
    source_time_zone: tzinfo | None = None
    invalid_text: Literal["replace", "fail"] = "replace"
    now: Callable[[], int] = lambda: time.time_ns() // 1_000
    counts: Counter[str] = attrs.field(factory=Counter)

    @property
    def time_zone(self) -> tzinfo:
        """The zone of zoneless texts. Defaults to UTC."""
        return self.source_time_zone or UTC

    def note_zoneless_timestamps(self, table: TableSchema) -> None:
        """Warn once of a table's Timestamp columns, for wires whose timestamps have no zone."""
        if self.source_time_zone is None and table.has_timestamps:
            warn_zoneless(table.database, table.table, _WRITTEN)

    def emit_millis(self, event: Any) -> int:
        """When the event was sent, in milliseconds; now where it does not say."""
        emitted = event.emit_time
        return int((self.now() if emitted is None else emitted) // 1_000)


class Encoder(ABC):
    """Writes events as messages of one format; all state lives in it.

    ``kinds`` and ``ops`` are the events that it takes; others never reach it.  Where
    ``needs_commit_ts`` every row, DDL and watermark has one.  It knows nothing of
    partitions: one that batches gets the events of one partition only, and :meth:`flush`
    is called before whatever must not be overtaken.
    """

    kinds: frozenset[Kind] = frozenset({"row"})
    ops: frozenset[Op] = frozenset({"insert", "update", "delete"})
    needs_commit_ts: bool = False
    hints: ClassVar[dict[Kind, str]] = {}
    """What to set so that a kind is taken, for the text of the error that refuses it."""
    names_schemas: ClassVar[bool] = False
    """Whether messages have the schema of a name ``database.schema.table``."""
    per_partition: ClassVar[bool] = False
    """Whether each partition needs an encoder of its own, as batches and bootstraps do."""
    row_numbers: RowNumbers | None = None
    """The number of the last row, where rows are numbered, over all partitions."""

    @abstractmethod
    def encode(self, event: Event) -> Iterable[Message]:
        """The messages that are complete with this event: key, value and headers.

        :raises EncodeError: naming column, value and what to do.
        :raises UnsupportedEventError: if the format has no words for it.
        """

    def row_messages(self, table: TableSchema) -> RowMessages | None:
        """How the rows of a table with columns are written, as data for the compiled kernel.

        None: by :meth:`encode` alone.

        :raises EncodeError: if they cannot be written.
        """
        return None

    def row_time_zone(self) -> tzinfo | None:
        """The zone of TIMESTAMP texts of :meth:`row_messages`; None: that of the context."""
        return None

    def allow_rows(self, table: TableSchema, version: int) -> Allowance | None:
        """Whether rows of this ``version`` of a table's schema may be written without this.

        None: the next one has to come here, as other messages may stand before it.
        """
        return None

    @property
    def row_batches(self) -> RowBatches | None:
        """How the kernel puts rows together in messages; None: each row is one."""
        return None

    def take_held(self) -> Held | None:
        """The message that was begun, if there is one, for the kernel to go on with it."""
        return None

    def hold(self, held: Held) -> None:
        """Continue a message that the kernel has begun."""
        raise NotImplementedError

    def flush(self) -> Iterable[Message]:
        """The messages that are still held back."""
        return ()
