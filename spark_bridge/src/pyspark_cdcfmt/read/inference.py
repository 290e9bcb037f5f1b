"""The schema of a table's changes, from the schema store or the messages themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

import attrs
from pyspark.sql.types import StructField, StructType

from cdcfmt_core.column_names import fold
from cdcfmt_core.errors import OptionError, SourceError, show
from cdcfmt_core.events import Column, Event, Message, RowChange, TableSchema
from cdcfmt_core.filters import split_name, table_names
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.texts import open_logger
from cdcfmt_core.types import LogicalType, Unknown
from cdcfmt_files.sources import BadLine
from cdcfmt_toolkit.column_names import clashes
from cdcfmt_toolkit.decimal_digits import DecimalDigits, has_open_decimals
from cdcfmt_toolkit.inputs import Slice
from cdcfmt_toolkit.table_texts import nearest_tables
from pyspark_cdcfmt.options import SPARKS_SWITCH, ReadOptions
from pyspark_cdcfmt.read.decoding import open_decoder
from pyspark_cdcfmt.read.inputs import divide, with_progress
from pyspark_cdcfmt.read.schemas import find_schemas, open_store
from pyspark_cdcfmt.read.survey import SECONDS, Decodes, Survey
from pyspark_cdcfmt.rows.row_schemas import changes_schema
from pyspark_cdcfmt.rows.types import EXTENSION, TypeOptions, merge, spark_type

logger = open_logger("pyspark_cdcfmt")

_MAX_SAMPLED = 10_000


def infer_columns(
    read: Callable[[], Iterable[Message | BadLine]],
    decoder: Decodes,
    table: tuple[str, ...],
    sample: int,
    options: TypeOptions,
    *,
    ends: Callable[[], Iterable[Message | BadLine]] = tuple,
    schemas: Iterable[TableSchema] = (),
    on_guessed: Callable[[list[str]], None] | None = None,
) -> list[StructField]:
    """Infer the table's columns from its first ``sample`` row messages, and the input's ends.

    Empty without a row or schema of the table; :func:`describe_missing` describes the reason.
    Columns keep the order of their first appearance; changed types are widened.
    An unknown type of a NULL counts only if the column has no value: some formats (DTS)
    type each value.  A DECIMAL without digits in the messages has those of its values.

    :param ends: returns the first and last messages of every file or topic partition, for
        columns that were added after the sample.
    :param schemas: all found schemas of the table, for columns that no sampled row has.
    :param on_guessed: called with the DECIMAL columns whose digits only values show, if any.
    """
    columns = UnitedColumns(options)
    rows = 0

    def on_progress(count: int) -> None:
        logger.warning(
            "cdc: inferring the schema of %s, %d messages read so far; .schema(...) avoids this",
            table_names([table]),
            count,
        )

    for message in with_progress(read(), on_progress):
        rows += columns.see(message, decoder)
        if rows >= sample:
            for message in ends():
                columns.see(message, decoder)
            break
    columns.add_missing(schemas)
    if on_guessed is not None and columns.guessed:
        on_guessed(columns.guessed)
    return columns.fields()


class UnitedColumns:
    """The union of a table's columns over its messages."""

    def __init__(self, options: TypeOptions) -> None:
        self._options = options
        self._names = ColumnNames(options)
        self._types: dict[str, LogicalType | None] = {}
        self._of_nulls: dict[str, LogicalType] = {}
        self._metadata: dict[str, dict[str, str]] = {}
        """Of the fields of columns with an extension."""
        self._merged: set[tuple[TableSchema, frozenset[str]]] = set()
        self.digits = DecimalDigits(self._names.name)

    def __bool__(self) -> bool:
        return bool(self._types)

    def see(self, message: Message | BadLine, decoder: Decodes) -> bool:
        """Add a message; True if it has rows of the table."""
        return not isinstance(message, BadLine) and self.see_events(decoder.decode(message))

    def see_events(self, events: Sequence[Event]) -> bool:
        """Add the table's events of a message; True if any is a row."""
        for schema, nulls in _schemas_and_nulls(events):
            if (schema, nulls) not in self._merged:
                self._merged.add((schema, nulls))
                self.add(schema, nulls)
        changes = [event for event in events if isinstance(event, RowChange)]
        for change in changes:
            self.digits.see(change)
        return bool(changes)

    def add_missing(self, schemas: Iterable[TableSchema]) -> None:
        """Add columns that only these schemas have, in their order; types from rows take priority.

        A column of the first schema that no row has is a virtual column, which the producer leaves
        out, unless that schema is partial.
        """
        same = partial(fold, case_sensitive=self._options.case_sensitive)
        known = set(map(same, self._types))
        # A dropped table has no columns.
        for number, schema in enumerate(schema for schema in schemas if schema.columns):
            names = set(map(same, schema.column_names))
            if number == 0 and known and names >= known:
                known = names
            columns = tuple(column for column in schema.columns if same(column.name) not in known)
            self.add(attrs.evolve(schema, columns=columns), ())

    @property
    def guessed(self) -> list[str]:
        """DECIMAL columns whose digits are known only from values."""
        types = self._types.items()
        return [name for name, type_ in types if type_ and has_open_decimals(type_)]

    def fields(self) -> list[StructField]:
        types = {
            name: self.digits.known(name, type_ or self._of_nulls[name])
            for name, type_ in self._types.items()
        }
        return [
            StructField(
                name, spark_type(types[name], self._options), metadata=self._metadata.get(name)
            )
            for name in types
        ]

    def add(self, schema: TableSchema, nulls: Collection[str]) -> None:
        """Add a schema; ``nulls``: columns whose type is unknown because they are NULL."""
        for name, column in self._names.of(schema).items():
            known = self._types.setdefault(name, None)
            if column.extension is not None:
                self._metadata[name] = {EXTENSION: column.extension}
            if column.name in nulls:
                self._of_nulls[name] = column.type
            else:
                self._types[name] = merge(known, column.type) if known else column.type


def merge_columns(schemas: Iterable[TableSchema], options: TypeOptions) -> list[StructField]:
    """The columns of all versions of a table; changed types are widened."""
    united = UnitedColumns(options)
    for schema in schemas:
        united.add(schema, ())
    return united.fields()


class ColumnNames:
    """Names of columns across a table's schemas; the first spelling of a name wins."""

    def __init__(self, options: TypeOptions) -> None:
        self._case_sensitive = options.case_sensitive
        self._first: dict[str, str] = {}

    def of(self, schema: TableSchema) -> dict[str, Column]:
        """The columns by their names in the inferred schema.

        :raises OptionError: if two of them differ only in case.
        """
        for names in () if self._case_sensitive else clashes(schema.column_names):
            raise OptionError(
                f"{schema.database}.{schema.table} has columns {' and '.join(map(show, names))}, "
                f"which differ only in case: set caseSensitive=true, and {SPARKS_SWITCH}=true in "
                "the session"
            )
        return {self.name(column.name): column for column in schema.columns}

    def name(self, column: str) -> str:
        """The spelling of a column in the inferred schema."""
        return self._first.setdefault(fold(column, case_sensitive=self._case_sensitive), column)


def _schemas_and_nulls(events: Iterable[Event]) -> Iterator[tuple[TableSchema, frozenset[str]]]:
    """Schemas, each with its columns of unknown type whose value is NULL."""
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
        elif (schema := getattr(event, "table_schema", None)) is not None:
            yield schema, frozenset()


def describe_missing(
    messages: Iterable[Message | BadLine], decoder: Decodes, table: tuple[str, ...]
) -> str:
    """An error text for a table without rows, with the existing tables.

    :param decoder: decodes all tables.
    """
    survey = Survey(decoder)
    for message in islice(messages, _MAX_SAMPLED):
        survey.add(message)
    text = f"no row of table {table_names([table])} is in the input"
    if not survey.messages:
        text += ", which has no messages at all"
    elif table in survey.tables:
        text += ", only other events of it"
    elif survey.tables:
        text += f"; {nearest_tables(table_names([table]), survey.tables)}"
    if survey.bad:
        text = text if text.endswith("?") else f"{text}."
        text += f" A message is corrupt: {survey.bad}"
    return text


@attrs.frozen
class InferredSchema:
    """A schema and the table schemas read by its inference, which the reader reuses.

    :ivar of_store: whether it is from the schema store; a stream may use only such a schema.
    :ivar schemas: the table schemas found in ``slices``.
    """

    schema: StructType
    of_store: bool = False
    slices: Sequence[Slice] = ()
    schemas: SchemaStore | None = None

    def schemas_in(self, slices: Sequence[Slice]) -> SchemaStore | None:
        """The table schemas in these slices; None if the input has changed since."""
        return self.schemas if list(self.slices) == list(slices) else None


def schema_of_store(options: ReadOptions) -> InferredSchema | None:
    """The table's columns from ``schemaStore``, else from schema events in the messages."""
    store = open_store(options)
    if store.persistence is None:
        return None
    assert options.table is not None
    database, schema, table = split_name(options.table)
    name = (database, table, schema)
    records = store.reload(*name)
    if not records:
        source = options.require_input()
        slices = divide(source, source.plan(), options)
        find_schemas(options, lambda scan: source.scanned(slices, scan), statements=False)
        records = store.reload(*name)
    if not records:
        return None
    records.sort(key=lambda record: (record.stream, record.position))
    columns = merge_columns((record.table for record in records), TypeOptions.of(options.values))
    return InferredSchema(changes_schema(columns, options), of_store=True)


def infer_schema(options: ReadOptions) -> InferredSchema:
    """Infer the schema from the input's messages.

    :raises SourceError: if no message of the table is found.
    """
    source = options.require_input()
    slices = divide(source, source.plan(), options)
    event_filter = attrs.evolve(options.event_filter(), kinds=None)
    table = options.table
    assert table is not None
    schemas = find_schemas(options, lambda scan: source.scanned(slices, scan))
    columns = infer_columns(
        lambda: source.read_all(slices),
        open_decoder(options, event_filter, schemas=schemas),
        table,
        options["inferSampleMessages"],
        TypeOptions.of(options.values),
        ends=lambda: source.ends(slices, seconds=SECONDS, thorough=True),
        schemas=schemas.versions_of(table),
    )
    if not columns:
        every = open_decoder(options, attrs.evolve(event_filter, table=None), schemas=schemas)
        raise SourceError(describe_missing(source.read_all(slices), every, table))
    return InferredSchema(changes_schema(columns, options), slices=slices, schemas=schemas)
