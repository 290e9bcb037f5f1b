"""Messages and the events in them (docs/events.md).

Times are integers, microseconds since the epoch in UTC.  ``commit_ts`` is TiDB's TSO;
``commit_ts >> 18`` are the physical milliseconds.  The classes are not frozen because
millions are made; treat them as values and do not change them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

import attrs

from cdcfmt_core.errors import DecodeError, Place
from cdcfmt_core.types import Array, Extension, LogicalType, Map, Struct, Timestamp, storage_of

Op: TypeAlias = Literal["insert", "update", "delete", "upsert", "read", "truncate"]
"""``upsert``: an update or insert, which the wire does not mark.  ``read``: a snapshot row."""

Kind: TypeAlias = Literal[
    "row", "ddl", "schema", "watermark", "transaction", "heartbeat", "message", "corrupt"
]

_LOGICAL: Final = frozenset(get_args(LogicalType))
_WITH_OTHERS: Final = (Array, Extension, Map, Struct)

DdlType: TypeAlias = Literal[
    "CREATE", "ALTER", "ERASE", "TRUNCATE", "RENAME", "CINDEX", "DINDEX", "QUERY"
]


@attrs.define
class Message:
    """One record of a topic, or line of a file.

    - ``offset``: its offset in the topic partition, or its byte offset in the file.
    - ``timestamp``: the record's own, in milliseconds since the epoch.
    - ``path``: the file that held it, if any.
    - ``epoch``: number of times that the offsets of its topic began anew before it (a topic that
      was deleted and created again).
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None
    path: str | None = None
    epoch: int = 0

    @property
    def position(self) -> Place:
        """Its position, by the names that errors use."""
        return {
            "topic": self.topic,
            "path": self.path,
            "partition": self.partition,
            "offset": self.offset,
        }


@attrs.frozen
class Column:
    """A column of a table schema; ``nullable`` is None if unknown.

    - ``flags``: other attributes of the column, in the message's own words.
    - ``extension``: the name of the Extension that was given as ``type``, which is its storage.
    """

    name: str
    source_type: str
    type: LogicalType
    nullable: bool | None = None
    key: bool = False
    flags: tuple[str, ...] = ()
    extension: str | None = None

    def __attrs_post_init__(self) -> None:
        """:raises TypeError: for a type that is not a logical one."""
        if isinstance(self.type, Extension):
            object.__setattr__(self, "extension", self.type.name)
        if type(self.type) in _WITH_OTHERS:
            object.__setattr__(self, "type", storage_of(self.type))
        if type(self.type) not in _LOGICAL:
            raise TypeError(
                f"column {self.name!r}: {self.type!r} is not a logical type, such as Int(32)"
            )


@attrs.frozen(eq=False)
class TableSchema:
    """A table's columns, in order, as one message describes them.

    Decoders intern it per table, so that a million rows share one object and ``is`` detects a
    change; hence it compares by identity.  ``key_columns``: the handle key in the message's
    order; empty if the message names none.
    """

    database: str
    table: str
    columns: tuple[Column, ...]
    key_columns: tuple[str, ...] = ()
    schema: str | None = None

    def __attrs_post_init__(self) -> None:
        """:raises TypeError: for a name that is not text."""
        if type(self.database) is not str or type(self.table) is not str:
            raise TypeError(
                f"the table {self.database!r}.{self.table!r}: both names are text, "
                '"" if there is none'
            )

    @property
    def name(self) -> tuple[str, ...]:
        """Database and schema where the source has them, and table."""
        return full_name(self.database, self.schema, self.table)

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def has_timestamps(self) -> bool:
        """Whether a column is of the type Timestamp."""
        return any(isinstance(column.type, Timestamp) for column in self.columns)


def full_name(database: str, schema: str | None, table: str) -> tuple[str, ...]:
    """Database and schema where there are any, and table."""
    return (*filter(None, (database, schema)), table)


@attrs.define
class Image:
    """A row before or after its change.

    - ``values``: the known columns.  A column that was not sent is absent; None is SQL NULL.
    - ``complete``: whether the protocol guarantees the whole row.
    - ``completed``: columns copied from the other image, because in this protocol absent means
      unchanged.
    """

    values: dict[str, Any]
    complete: bool = True
    completed: tuple[str, ...] = ()


@attrs.define(kw_only=True)
class _Occurrence:
    """Fields of every event.

    - ``source_time``, ``emit_time``: when the source database executed the change, and when the
      producer wrote the message (microseconds).
    - ``index``: the event's position in the message.
    - ``extra``: parts of the message that have no field here.
    """

    commit_ts: int | None = None
    source_time: int | None = None
    emit_time: int | None = None
    index: int = 0
    extra: dict[str, Any] | None = None


@attrs.define
class RowChange(_Occurrence):
    """A change of one row.

    ``sequence_commit`` orders changes like a commit_ts, for wires that have only its physical
    part, in milliseconds (``ms << 18``).
    """

    op: Op
    table: TableSchema
    before: Image | None
    after: Image | None
    sequence_commit: int | None = None


@attrs.define
class SchemaChange(_Occurrence):
    """A DDL event.  ``database`` and ``table`` are empty if the statement has none.

    ``sequence_commit``: as in :class:`RowChange`.
    """

    query: str
    ddl_type: DdlType
    database: str = ""
    table: str = ""
    schema: str | None = None
    table_schema: TableSchema | None = None
    previous_table_schema: TableSchema | None = None
    sequence_commit: int | None = None


@attrs.define
class TableSchemaEvent(_Occurrence):
    """A table's schema without a statement (Simple's BOOTSTRAP)."""

    table_schema: TableSchema


@attrs.define
class Watermark(_Occurrence):
    """Every event with a smaller commit_ts has been sent."""

    commit_ts: int


@attrs.define
class Transaction(_Occurrence):
    """The begin, commit or rollback of a transaction."""

    status: Literal["begin", "commit", "rollback"]
    transaction_id: str | None = None


@attrs.define
class Heartbeat(_Occurrence):
    """A sign of life from the producer."""


@attrs.define
class LogicalMessage(_Occurrence):
    """A message that an application wrote into the source's log (``pg_logical_emit_message``)."""

    prefix: str
    content: bytes | None = None


@attrs.define
class Corrupt:
    """A message, or one row of a good message, that cannot be decoded; ``error`` says why."""

    error: DecodeError
    index: int = 0

    def __attrs_post_init__(self) -> None:
        # Stack frames would take most of the memory of a message with many bad rows.
        self.error.__traceback__ = self.error.__cause__ = self.error.__context__ = None


Event: TypeAlias = (
    RowChange
    | SchemaChange
    | TableSchemaEvent
    | Watermark
    | Transaction
    | Heartbeat
    | LogicalMessage
    | Corrupt
)

KIND_OF: dict[type, Kind] = {
    RowChange: "row",
    SchemaChange: "ddl",
    TableSchemaEvent: "schema",
    Watermark: "watermark",
    Transaction: "transaction",
    Heartbeat: "heartbeat",
    LogicalMessage: "message",
    Corrupt: "corrupt",
}


def named_by(event: object) -> TableSchema | SchemaChange | None:
    """The part of an event that names its table; None if it has no table."""
    if isinstance(event, RowChange):
        return event.table
    if isinstance(event, TableSchemaEvent):
        return event.table_schema
    return event if isinstance(event, SchemaChange) else None


def split_key_update(event: RowChange, key_columns: Sequence[str]) -> list[RowChange]:
    """Split an update that changes the key into a delete and an insert.

    Any other change is returned unchanged.  Columns missing from one image count as unchanged.
    """
    if event.op != "update" or event.before is None or event.after is None:
        return [event]
    old, new = event.before.values, event.after.values
    if all(old.get(name) == new.get(name) for name in key_columns if name in old and name in new):
        return [event]
    return [
        attrs.evolve(event, op="delete", after=None),
        attrs.evolve(event, op="insert", before=None),
    ]
