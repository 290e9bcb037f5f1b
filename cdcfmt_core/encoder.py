"""The base class of encoders, :class:`Encoder`, and the :class:`EncoderContext`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, tzinfo
from typing import Any, ClassVar, Literal, Protocol

import attrs

from cdcfmt_core.events import Event, Kind, Message, Op, TableSchema
from cdcfmt_core.schema_registry import SchemaRegistry
from cdcfmt_core.texts import warn_zoneless

_WRITTEN = "written as UTC; set sourceTimeZone to the zone that the reader expects"


class LargeMessages(Protocol):
    """Compression of values, and the replacement of messages that are still too large.

    A message is a pair of key and value.
    """

    max_message_bytes: int
    handle: Literal["none", "claim-check", "handle-key-only"]
    compress: Callable[[bytes], bytes] | None

    def compressed(self, value: bytes) -> bytes:
        """The value, compressed if the user wants that."""

    def require_plain(self, name: str) -> None:
        """:raises OptionError: if compression or replacement is set; the format has neither."""

    def fits(self, key: bytes | None, value: bytes, framing: int = 0) -> bool:
        """Whether a message may be sent; ``framing``: its other bytes."""

    def replace(
        self,
        message: tuple[bytes | None, bytes],
        rewrite: Callable[[str | None], tuple[bytes | None, bytes]],
        *,
        framing: int = 0,
        stored: tuple[bytes | None, bytes] | None = None,
    ) -> tuple[bytes | None, bytes]:
        """The replacement for a message that does not fit.

        :param rewrite: writes the message again with only the handle key, compressed, and with the
            location of the claim check (or None).
        :param stored: the message to store as a claim check. Defaults to ``message``.
        :raises EncodeError: if no replacement is allowed, or if it is also too large.
        """

    def message(self, value: bytes) -> Message:
        """The message of a value that cannot be reduced, such as DDL.

        :raises EncodeError: if it does not fit.
        """

    def check(self, key: bytes | None, value: bytes) -> None:
        """:raises EncodeError: if a message that cannot be reduced does not fit."""


@attrs.define
class RowNumbers:
    """The number or commit_ts of the last row, shared by all writers of a stream."""

    last: int = 0


@attrs.define
class EncoderContext:
    """Services for an encoder, the same for every format.

    - ``large_messages``: compresses values and handles those beyond ``max_message_bytes``.
    - ``source_time_zone``: the zone of TIMESTAMP texts on wires without a zone.
    - ``invalid_text``: whether text that is not UTF-8 is replaced (and counted) or an error.
    - ``now``: returns the time in microseconds, for events without an emit time.
    - ``counts``: number of changes to values that are not errors, by a description.
    - ``schema_registry``: for encoders with ``registers_schemas``.
    """

    large_messages: LargeMessages
    source_time_zone: tzinfo | None = None
    invalid_text: Literal["replace", "fail"] = "replace"
    now: Callable[[], int] = lambda: time.time_ns() // 1_000
    counts: Counter[str] = attrs.field(factory=Counter)
    schema_registry: SchemaRegistry | None = None

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
    has_schema_field: ClassVar[bool] = False
    """Whether messages have a field for the schema in ``database.schema.table``."""
    per_partition: ClassVar[bool] = False
    """Whether each partition needs its own encoder, as for batches and bootstrap messages."""
    needs_keys: ClassVar[bool] = False
    """Whether messages cannot be read without their keys."""
    registers_schemas: ClassVar[bool] = False
    """Whether messages name their schemas in a schema registry, which must then be given."""

    @abstractmethod
    def encode(self, event: Event) -> Iterable[Message]:
        """The messages that this event completes: key, value and headers.

        :raises EncodeError: names column, value and what to do.
        :raises UnsupportedEventError: if the format cannot express it.
        """

    def prepare(self, table: TableSchema, *, register: bool) -> None:  # noqa: B027
        """Plan a table's rows, and ``register`` their schemas, before any; raises as `encode`."""

    def kernel_rows(self) -> Any:
        """How a compiled writer writes rows as this encoder does, as one object; None: it cannot.

        The core passes the object on; cdcfmt-kernel takes a ``KernelRows`` of the toolkit.
        """
        return None

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
