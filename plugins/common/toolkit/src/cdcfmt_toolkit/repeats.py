"""Limits for the bytes that the rows of one message repeat of it.

A name of 200 KB in a message with 8 000 rows is 1.6 GB in their columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from cdcfmt_core.errors import DecodeError, join_names
from cdcfmt_core.events import (
    Corrupt,
    Event,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
    TableSchemaEvent,
)
from cdcfmt_core.types import Enum, Set

REPEATED_BYTES: Final = 4096
REPEATED_SHARE: Final = 8
"""Limit for a row: REPEATED_BYTES, plus its share of REPEATED_SHARE times the message's bytes."""


class Repeats:
    """A limit for the bytes that the rows of one message repeat.

    They repeat names and types of their table, members of ENUM and SET columns, ``extra``, a
    statement, and what each row has of its message: topic, path and headers.  In total
    REPEATED_SHARE times the message's bytes, plus REPEATED_BYTES per row.

    :param shown: the attributes of the message that each row has, of those with any length.
    :param of_events: whether rows show ``extra``; ``of_columns``: and the types of columns.
    :ivar of_message: an error if topic, path and headers alone exceed the limit: each bad row would
        repeat them, too.
    """

    def __init__(
        self,
        message: Message,
        events: Sequence[Event],
        shown: Collection[str],
        *,
        of_events: bool = True,
        of_columns: bool = False,
    ) -> None:
        self.of_message: DecodeError | None = None
        self._sizes: dict[int, int] = {}
        self._most = 0
        count = len(events)
        if count < 2:
            return
        beside = beside_bytes(getattr(message, name) for name in shown)
        size = len(message.value or b"") + len(message.key or b"") + beside
        self._most = REPEATED_BYTES + REPEATED_SHARE * size // count
        if beside > self._most:
            self.of_message = DecodeError(
                f"each of the message's {count} rows repeats {beside} bytes of its "
                f"{join_names(shown)}; {self._limit}"
            )
            return
        repeated = _repeated(events, of_events=of_events, of_columns=of_columns)
        sizes = [beside + each for each in repeated]
        if sum(sizes) > self._most * count:
            self._sizes = {id(event): each for event, each in zip(events, sizes, strict=True)}

    @property
    def _limit(self) -> str:
        return (
            f"the limit is {self._most}: {REPEATED_BYTES}, plus its share of "
            f"{REPEATED_SHARE} times the message"
        )

    def excess(self, event: Event) -> str | None:
        """Why a row cannot be shown; without names from it, since they may be too long."""
        size = self._sizes.get(id(event), 0)
        if size <= self._most:
            return None
        return (
            f"each of the message's rows repeats {size} bytes of names, members, extra and "
            f"headers; {self._limit}"
        )


def limited(
    message: Message, events: Sequence[Event], shown: Collection[str], protocol: str | None
) -> Sequence[Event]:
    """The events, with those that repeat too much as bad rows; only one if all of them would."""
    repeats = Repeats(message, events, shown)
    if repeats.of_message is not None:
        return [Corrupt(repeats.of_message.at(protocol=protocol, **message.position))]
    reasons = [(event, repeats.excess(event)) for event in events]
    return [
        event
        if reason is None
        else Corrupt(DecodeError(reason).at(protocol=protocol, **message.position), event.index)
        for event, reason in reasons
    ]


def _repeated(events: Sequence[Event], *, of_events: bool, of_columns: bool) -> Iterator[int]:
    """The bytes that each event's rows may repeat from other rows."""
    table: TableSchema | None = None
    extra: Mapping[str, Any] | None = None
    of_table = of_extra = 0
    with_members: list[str] = []
    for event in events:
        if isinstance(event, SchemaChange | TableSchemaEvent):
            yield _statement_bytes(event)
            continue
        if not isinstance(event, RowChange):
            yield 0
            continue
        if event.table is not table:
            table, of_table = event.table, table_bytes(event.table, of_types=of_columns)
            with_members = [
                column.name for column in table.columns if isinstance(column.type, Enum | Set)
            ]
        if of_events and event.extra is not extra:
            extra, of_extra = event.extra, value_bytes(event.extra or {})
        members = 0
        if with_members:
            images = [image.values for image in (event.before, event.after) if image is not None]
            members = sum(value_bytes(image.get(name)) for image in images for name in with_members)
        yield of_table + of_extra + members


def _statement_bytes(event: SchemaChange | TableSchemaEvent) -> int:
    size = value_bytes(event.extra or {})
    if isinstance(event, SchemaChange):
        size += text_bytes(event.query)
    if event.table_schema is not None:
        size += table_bytes(event.table_schema, of_types=True)
    return size


def table_bytes(table: TableSchema, *, of_types: bool) -> int:
    """The bytes of names, and optionally source types, that a row of the table may repeat."""
    texts = [table.database, table.schema or "", table.table, *table.key_columns]
    texts += table.column_names
    if of_types:
        texts += [column.source_type for column in table.columns]
    return sum(map(text_bytes, texts))


def member_bytes(table: TableSchema) -> int:
    """The most bytes that the members of ENUM and SET columns take in two images of a row."""
    size = 0
    for column in table.columns:
        if isinstance(column.type, Enum | Set) and column.type.names:
            each = [text_bytes(name) + 1 for name in column.type.names]
            size += max(each) if isinstance(column.type, Enum) else sum(each)
    return 2 * size


def beside_bytes(values: Iterable[str | Sequence[Any] | None]) -> int:
    """The bytes of attributes that each row has of its message: topic, path or headers."""
    return sum(value_bytes(each) for each in values if each is not None)


def text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def value_bytes(value: Any) -> int:
    """Approximate bytes of a value: a variant's pair, a list, or a struct as a mapping."""
    if isinstance(value, str):
        return text_bytes(value)
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(value_bytes, value.values())) + sum(map(text_bytes, value))
    if isinstance(value, list | tuple):
        return sum(map(value_bytes, value)) + 8 * len(value)
    return 8
