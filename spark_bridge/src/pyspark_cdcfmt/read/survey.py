"""A survey of an input on the driver, before any task runs: its tables and their columns.

It samples the ends of every file and topic partition, and reads the schema store.  Inference and
the checks of names and types use the result.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Protocol, TypeAlias

import attrs

from cdcfmt_core.errors import MissingSchemaError, Place, show
from cdcfmt_core.events import (
    Corrupt,
    Event,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
    TableSchemaEvent,
    full_name,
)
from cdcfmt_core.filters import EventFilter, split_name
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import Unknown
from cdcfmt_files.sources import BadLine
from cdcfmt_toolkit.inputs import Input, Slice
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.decoding import open_decoder

TableName: TypeAlias = tuple[str, ...]
"""Database, schema (if the source has schemas), and table."""

SECONDS = 10.0
_MAX_MESSAGES = 100_000
_LONGEST = 100
"""Maximum characters of an example."""


class Decodes(Protocol):
    """The part of a message decoder that is used here."""

    def decode(self, message: Message) -> Sequence[Event]: ...


Question: TypeAlias = "Callable[[Survey], bool]"
"""Whether a survey is sufficient."""


@attrs.define
class Survey:
    """What samples of an input show.

    :param decoder: decodes the messages; None if there are none.
    :ivar messages: number of sampled messages.
    :ivar rows: number of row changes by table.
    :ivar bad: reason of the first message that cannot be decoded.
    :ivar examples: by schema, the first row's values of columns of unknown type, shortened.
    :ivar first_positions: by schema, the position of that row's message.
    :ivar zoneless: tables (without their schema) with TIMESTAMP columns of an unknown time zone.
    :ivar negative: columns by table with negative numbers that may be BIGINT UNSIGNED.
    :ivar by_file_offset: tables with rows that only file offsets order.
    :ivar changes: a number that grows with every new table and schema.
    """

    _decoder: Decodes | None = None
    messages: int = attrs.field(default=0, init=False)
    rows: Counter[TableName] = attrs.field(factory=Counter)
    bad: str = ""
    changes: int = 0
    examples: dict[TableSchema, dict[str, object]] = attrs.field(factory=dict)
    first_positions: dict[TableSchema, Place] = attrs.field(factory=dict)
    zoneless: set[TableName] = attrs.field(factory=set)
    negative: dict[TableName, set[str]] = attrs.field(factory=dict)
    by_file_offset: set[TableName] = attrs.field(factory=set)
    _tables: dict[TableName, dict[TableSchema, bool]] = attrs.field(factory=dict)
    _seen: set[tuple[object, ...]] = attrs.field(factory=set)

    @classmethod
    def of(cls, options: ReadOptions, schemas: SchemaStore) -> Survey:
        """A survey of all tables; ``schemas``: those that are known, which are not changed."""
        survey = cls()
        for table in _stored(schemas, options):
            survey.add_schema(table)
        for table in schemas.statements.tables():
            survey.add_schema(table, complete=False)
        survey._decoder = open_decoder(
            options,
            EventFilter(),
            schemas=schemas.copy(),
            on_zoneless=lambda database, table: survey.zoneless.add((database, table)),
        )
        return survey

    @property
    def tables(self) -> list[TableName]:
        """Every table seen, with or without a known schema."""
        return list(self._tables)

    def schemas_of(self, table: TableName) -> list[TableSchema]:
        """The table's schemas, in the order of their appearance.

        Schemas of partial rows (``onlyOutputUpdatedColumns``, key-only deletes) may lack columns;
        :meth:`complete_schemas_of` leaves them out.
        """
        return list(self._tables.get(table, ()))

    def complete_schemas_of(self, table: TableName) -> list[TableSchema]:
        """The table's schemas from complete rows, DDL and schema messages."""
        return [schema for schema, whole in self._tables.get(table, {}).items() if whole]

    def add_schema(self, table: TableSchema, *, complete: bool = True) -> None:
        known = self._known(table.name)
        if table not in known or (complete and not known[table]):
            self.changes += 1
            known[table] = complete

    def sample_ends(
        self,
        source: Input,
        slices: Sequence[Slice],
        until: Question,
        *,
        seconds: float = SECONDS,
        thorough: bool = True,
        most: int | None = None,
    ) -> None:
        """Add the first and last messages of every slice, until ``until`` is true.

        Starts with the beginning of the first slice and the end of the last one.

        :param seconds: approximate maximum time.
        :param most: maximum number of messages.
        :raises SourceError: if a file cannot be read.
        """
        if not until(self):
            ends = source.ends(slices, seconds=seconds, thorough=thorough)
            self._sample(islice(ends, most), until)

    def read_on(self, source: Input, slices: Sequence[Slice], until: Question) -> None:
        """Read from the input's beginning, at most 100 000 messages.

        :raises SourceError: if it cannot be read.
        """
        deadline = time.monotonic() + SECONDS
        self._sample(islice(source.read_all(slices), _MAX_MESSAGES), until, deadline)

    def _sample(
        self, messages: Iterable[Message | BadLine], until: Question, deadline: float = math.inf
    ) -> None:
        for message in messages:
            # Beginning and end of a short file overlap, and reading on meets both again.
            if isinstance(message, Message):
                place = message.path, message.topic, message.partition, message.offset
                if place in self._seen:
                    continue
                self._seen.add(place)
            changes = self.changes
            self.add(message)
            # Most messages add nothing, and names may be many.
            if self.changes > changes and until(self):
                return
            if time.monotonic() > deadline:
                return
            # Release a large message before the next one is read.
            del message

    def add(self, message: Message | BadLine) -> None:
        """Decode a message, and add its events."""
        assert self._decoder is not None
        self.messages += 1
        if isinstance(message, BadLine):
            self.bad = self.bad or str(message.error)
            return
        for event in self._decoder.decode(message):
            if isinstance(event, RowChange) and event.table not in self.examples:
                self.first_positions[event.table] = message.position
                self.examples[event.table] = _examples(event)
                if not event.commit_ts and not event.sequence_commit and message.topic is None:
                    self.by_file_offset.add(event.table.name)
            self._add_event(event)

    def _add_event(self, event: Event) -> None:
        if isinstance(event, RowChange):
            images = [image for image in (event.before, event.after) if image is not None]
            self.rows[event.table.name] += 1
            for column in (event.extra or {}).get("ambiguous_unsigned", ()):
                self.negative.setdefault(event.table.name, set()).add(column)
            self.add_schema(event.table, complete=any(image.complete for image in images))
        elif isinstance(event, TableSchemaEvent):
            self.add_schema(event.table_schema)
        elif isinstance(event, SchemaChange):
            for schema in (event.previous_table_schema, event.table_schema):
                if schema is not None:
                    self.add_schema(schema)
            if event.table:
                self._known(full_name(event.database, event.schema, event.table))
        elif isinstance(event, Corrupt):
            error = event.error
            self.bad = self.bad or str(error)
            if isinstance(error, MissingSchemaError):
                self._known(full_name(error.database, error.schema, error.table))

    def _known(self, table: TableName) -> dict[TableSchema, bool]:
        if table not in self._tables:
            self.changes += 1
        return self._tables.setdefault(table, {})


def _examples(row: RowChange) -> dict[str, object]:
    images = [image.values for image in (row.after, row.before) if image is not None]
    found = {}
    for column in row.table.columns:
        if isinstance(column.type, Unknown) or not getattr(column.type, "names", True):
            values = (values.get(column.name) for values in images)
            value = next((value for value in values if value is not None), None)
            found[column.name] = _cut(value)
    return found


def _cut(value: object) -> object:
    if isinstance(value, str | bytes):
        return value[:_LONGEST]
    # An ENUM is never one; for an untyped column any value counts.
    return show(value) if isinstance(value, list | dict) else value


def _stored(schemas: SchemaStore, options: ReadOptions) -> Iterable[TableSchema]:
    if options.table is not None:
        database, schema, table = split_name(options.table)
        # A kept store loads a table when it is first requested.
        schemas.find(database, table, None, schema=schema)
    return schemas.tables()
