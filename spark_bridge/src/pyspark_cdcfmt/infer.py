"""The schema of a table's changes, from the messages themselves."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from pyspark.sql.types import StructField

from cdcfmt_core.decimal_digits import DecimalDigits
from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.errors import SourceError
from cdcfmt_core.events import Corrupt, Event, Message, RowChange, TableSchema
from cdcfmt_core.filters import table_names
from cdcfmt_core.sources import BadLine
from cdcfmt_core.types import LogicalType, Unknown
from pyspark_cdcfmt.types import TypeOptions, merge, spark_type

logger = logging.getLogger("pyspark_cdcfmt")

_LOOKED_AT_FOR_NAMES = 10_000
_SECONDS_BETWEEN_NEWS = 10


def infer_columns(
    read: Callable[[], Iterable[Message | BadLine]],
    decoder: MessageDecoder,
    table: tuple[str, ...],
    sample: int,
    options: TypeOptions,
    any_table: MessageDecoder,
) -> list[StructField]:
    """The table's columns as seen in the first ``sample`` of its row messages.

    Columns keep the order in which they first came; a type that changes on the way widens.
    A type that is unknown for a NULL counts only while there is no value: some wires (DTS)
    type each value.  A DECIMAL whose digits the wire does not send has those of its values.
    ``any_table`` decodes every table, for the error that names those that are there.

    :raises SourceError: if no message of the table is found.
    """
    types: dict[str, LogicalType | None] = {}
    of_nulls: dict[str, LogicalType] = {}
    merged: set[tuple[TableSchema, frozenset[str]]] = set()
    digits = DecimalDigits()
    rows = 0
    for message in _with_progress(read(), table):
        if isinstance(message, BadLine):
            continue
        events = decoder.decode(message)
        for schema, nulls in _schemas_and_nulls(events):
            if (schema, nulls) not in merged:
                merged.add((schema, nulls))
                for column in schema.columns:
                    known = types.setdefault(column.name, None)
                    if column.name in nulls:
                        of_nulls[column.name] = column.type
                    else:
                        types[column.name] = merge(known, column.type) if known else column.type
        changes = [event for event in events if isinstance(event, RowChange)]
        for change in changes:
            digits.see(change)
        rows += bool(changes)
        if rows >= sample:
            break
    if not types:
        raise SourceError(_nothing_found(read(), any_table, table))
    return [
        StructField(name, spark_type(digits.known(name, type_ or of_nulls[name]), options))
        for name, type_ in types.items()
    ]


def merge_columns(schemas: Iterable[TableSchema], options: TypeOptions) -> list[StructField]:
    """The columns of all versions of a table; a type that changed on the way widens."""
    types: dict[str, LogicalType] = {}
    for schema in schemas:
        for column in schema.columns:
            known = types.get(column.name)
            types[column.name] = merge(known, column.type) if known else column.type
    return [StructField(name, spark_type(type_, options)) for name, type_ in types.items()]


def _with_progress(
    messages: Iterable[Message | BadLine], table: tuple[str, ...]
) -> Iterator[Message | BadLine]:
    said = time.monotonic()
    for count, message in enumerate(messages):
        if count % 1000 == 0 and time.monotonic() - said > _SECONDS_BETWEEN_NEWS:
            said = time.monotonic()
            logger.warning(
                "cdc: inferring the schema of %s, %d messages read so far; .schema(...) spares it",
                table_names([table]),
                count,
            )
        yield message


def _schemas_and_nulls(events: Iterable[Event]) -> Iterator[tuple[TableSchema, frozenset[str]]]:
    """Schemas, each with the columns of unknown type of which its row has no value."""
    for event in events:
        if isinstance(event, RowChange):
            images = [image.values for image in (event.before, event.after) if image is not None]
            yield (
                event.table,
                frozenset(
                    column.name
                    for column in event.table.columns
                    if isinstance(column.type, Unknown)
                    and all(values.get(column.name) is None for values in images)
                ),
            )
        else:
            yield from ((schema, frozenset()) for schema in _schemas([event]))


def _schemas(events: Iterable[Event]) -> Iterator[TableSchema]:
    for event in events:
        if isinstance(event, RowChange):
            yield event.table
        elif getattr(event, "table_schema", None) is not None:
            yield event.table_schema  # type: ignore[union-attr, misc]


def _nothing_found(
    messages: Iterable[Message | BadLine], decoder: MessageDecoder, table: tuple[str, ...]
) -> str:
    found: set[tuple[str, ...]] = set()
    total, bad = 0, ""
    for message in islice(messages, _LOOKED_AT_FOR_NAMES):
        total += 1
        if isinstance(message, BadLine):
            bad = bad or str(message.error)
            continue
        events = decoder.decode(message)
        bad = bad or next((str(e.error) for e in events if isinstance(e, Corrupt)), "")
        found.update(
            tuple(part for part in (s.database, s.schema, s.table) if part is not None)
            for s in _schemas(events)
        )
    text = f"no row of table {table_names([table])} is in the input"
    if not total:
        text += ", which has no messages at all"
    elif found:
        text += f"; it has {table_names(found)} (names are exact in case)"
    if bad:
        text += f". A message is corrupt: {bad}"
    return text + ". To read without inferring, give a schema: .schema(...)"
