"""About how many bytes a row takes in a record batch, and what of it a message may repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DecimalType,
    StringType,
    StructType,
    VariantType,
)

from cdcfmt_core.events import Event, Message, RowChange, TableSchema
from pyspark_cdcfmt.rows.policy import BadRow

_OFFSETS: Final = 4

REPEATED_BYTES: Final = 4096
REPEATED_SHARE: Final = 8
"""A row of a message may repeat so many bytes, plus its part of so many times the message."""


class Repeats:
    """The bound of what the rows of one message repeat: names, headers and ``extra``.

    All of them together repeat at most REPEATED_SHARE times the message, and REPEATED_BYTES each.
    """

    def __init__(
        self, message: Message, events: Sequence[Event], *, of_events: bool, of_columns: bool
    ) -> None:
        self._sizes: dict[int, int] = {}
        self._most = 0
        if len(events) < 2:
            return
        sizes = list(_repeated(message, events, of_events=of_events, of_columns=of_columns))
        size = len(message.value or b"") + len(message.key or b"")
        if sum(sizes) > REPEATED_SHARE * size + REPEATED_BYTES * len(events):
            self._most = REPEATED_BYTES + REPEATED_SHARE * size // len(events)
            self._sizes = {id(event): each for event, each in zip(events, sizes, strict=True)}

    def check(self, event: Event) -> None:
        """Refuse a row that repeats more than its part.

        :raises BadRow: without a name of the row, as these may be what is too long.
        """
        size = self._sizes.get(id(event), 0)
        if size > self._most:
            raise BadRow(
                f"each of the message's rows repeats {size} bytes of names, headers and extra, "
                f"and may repeat {self._most}: {REPEATED_BYTES}, and its part of "
                f"{REPEATED_SHARE} times the message"
            )


def _repeated(
    message: Message, events: Sequence[Event], *, of_events: bool, of_columns: bool
) -> Iterator[int]:
    """The bytes that each event's rows may have in common with others."""
    headers = value_bytes(message.headers) if of_events else 0
    table: TableSchema | None = None
    extra: Mapping[str, Any] | None = None
    of_table = of_extra = 0
    for event in events:
        if not isinstance(event, RowChange):
            yield 0
            continue
        if event.table is not table:
            table, of_table = event.table, table_bytes(event.table)
            if of_columns:
                of_table += sum(len(column.source_type) for column in table.columns)
        if of_events and event.extra is not extra:
            extra, of_extra = event.extra, value_bytes(event.extra or {})
        yield of_table + of_extra + headers


def table_bytes(table: TableSchema) -> int:
    """The bytes of the names that a row of the table may repeat."""
    names = (table.database, table.schema or "", table.table, *table.key_columns)
    return sum(map(len, names)) + sum(map(len, table.column_names))


def fixed_bytes(type_: DataType) -> int:
    """What a value takes where it is NULL or empty."""
    if isinstance(type_, StructType):
        return 1 + sum(fixed_bytes(field.dataType) for field in type_.fields)
    if isinstance(type_, VariantType):
        return 1 + 2 * _OFFSETS
    if isinstance(type_, DecimalType):
        return 16
    return 1 + (_OFFSETS if isinstance(type_, StringType | BinaryType | ArrayType) else 8)


def row_weigher(schema: StructType) -> Callable[[tuple[Any, ...]], int]:
    """A function that weighs rows: tuples in the schema's order.

    A character of text counts as one byte; in UTF-8 it has four at most.
    """
    fixed = fixed_bytes(schema)
    weighers = [_weigher(field.dataType) for field in schema.fields]
    varying = [(place, weigh) for place, weigh in enumerate(weighers) if weigh is not None]

    def weigh(row: tuple[Any, ...]) -> int:
        size = fixed
        for place, of_value in varying:
            value = row[place]
            if value is not None:
                size += of_value(value)
        return size

    return weigh


def _weigher(type_: DataType) -> Callable[[Any], int] | None:
    """What weighs a value besides its fixed bytes; None where it has no others."""
    if isinstance(type_, StringType | BinaryType):
        return len
    if isinstance(type_, VariantType):
        return _variant_bytes
    if not isinstance(type_, StructType):
        return value_bytes if isinstance(type_, ArrayType) else None
    found = [(field.name, _weigher(field.dataType)) for field in type_.fields]
    varying = [(name, weigh) for name, weigh in found if weigh is not None]
    if not varying:
        return None

    def of_struct(value: Any) -> int:
        if type(value) is not dict:
            return value_bytes(value)
        size = 0
        for name, weigh in varying:
            item = value.get(name)
            if item is not None:
                size += weigh(item)
        return size

    return of_struct


def _variant_bytes(pair: tuple[bytes, bytes]) -> int:
    return len(pair[0]) + len(pair[1])


def value_bytes(value: Any) -> int:
    """About the bytes of a value: of a variant's pair, a list, or a struct as a mapping."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(value_bytes, value.values())) + sum(map(len, value))
    if isinstance(value, list | tuple):
        return sum(map(value_bytes, value)) + 8 * len(value)
    return 8
