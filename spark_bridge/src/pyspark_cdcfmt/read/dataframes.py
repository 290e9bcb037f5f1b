"""Decode messages in a DataFrame, such as Spark's Kafka source or a bronze table.

Functions here never read a DataFrame's columns or schema: Declarative Pipelines do not allow it.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import ArrayType, BinaryType, DataType, StructType

from cdcfmt_core.errors import OptionError, join_names
from cdcfmt_core.options import unknown_option
from cdcfmt_core.registry import default_registry
from cdcfmt_core.schema_scan import open_input_scan
from cdcfmt_core.schemas.store import SchemaStore
from pyspark_cdcfmt.options import ReadOptions, parse_options
from pyspark_cdcfmt.read.engine import Engine
from pyspark_cdcfmt.read.rules import unmarked_rows
from pyspark_cdcfmt.read.schemas import MissingSchemas, open_store, policy_of
from pyspark_cdcfmt.rows.message_batch import MessageBatch
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.row_schemas import check_schema, events_schema
from pyspark_cdcfmt.rows.stored_events import (
    STORED_COLUMNS,
    StoredEvents,
    is_of_table,
    stored_messages,
)
from pyspark_cdcfmt.spark_api import with_offsets

ColumnName: TypeAlias = "str | Column"
Run: TypeAlias = Callable[[Iterator[pa.Array]], Iterator[pa.Array]]

KAFKA_COLUMNS = {name: name for name in ("key", "topic", "partition", "offset", "timestamp")}
"""The columns of Spark's Kafka source: ``decode(df, **KAFKA_COLUMNS)``."""

_NO_OFFSET = (
    "cdc: decode has no offset column, so {0} orders neither messages without a commit_ts nor rows "
    "without a key ({0}.offset is NULL): set offset or source, or leave {0} out of the schema"
)

_TYPES = {
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    # The text timestamp depends on spark.sql.timestampType.
    "timestamp": "timestamp_ltz",
    "path": "string",
    "epoch": "int",
}


def decode(
    df: DataFrame,
    *,
    value: ColumnName = "value",
    key: ColumnName | None = None,
    headers: ColumnName | None = None,
    topic: ColumnName | None = None,
    partition: ColumnName | None = None,
    offset: ColumnName | None = None,
    timestamp: ColumnName | None = None,
    source: ColumnName | None = None,
    schema: StructType | str | None = None,
    schemas: SchemaStore | None = None,
    **options: Any,
) -> DataFrame:
    """Decode the messages of a batch or streaming DataFrame to events or changes.

    Columns are names or expressions, and are cast to the types of Spark's Kafka source.  A row
    with a NULL value is skipped.

    :param key: needed by formats with data in the key.
    :param offset: needed for ``_sequence``, and for positions in errors.
    :param source: a struct like ``_source``, instead of ``topic`` to ``timestamp``: the ``source``
        of a dead letter's ``_corrupt_record`` gives it its original position.
    :param schema: the schema of the changes; required with the option ``table``.
    :param schemas: table schemas from :func:`learn_schemas`; the option ``schemaStore`` names a
        folder with them instead, to which schemas in the messages are added.
    :param options: options of ``format("cdc")``, except those of its input.  With ``table`` the
        result has the changes of that table, else events.
    :raises OptionError: for wrong options, and for an invalid schema.
    """
    parsed = _parse(options)
    # A function of a pipeline may not ask for isStreaming.
    if parsed.relative and df.isStreaming:
        parsed.check_restarts()
    default_registry().warn(parsed["protocol"])
    given, rows = _row_schemas(schema, parsed)
    sequence = parsed["metadataPrefix"] + "sequence"
    if parsed.table is not None and source is None and offset is None and sequence in rows.names:
        warnings.warn(_NO_OFFSET.format(sequence), UserWarning, stacklevel=2)
    if schemas is not None and parsed["schemaStore"] is not None:
        raise OptionError("decode takes either schemas or the option schemaStore, not both")
    store = open_store(parsed) if schemas is None else schemas
    policy_of(parsed)
    task = ReadTask(rows, parsed, schemas=store)
    if text := unmarked_rows(task):
        warnings.warn(text, UserWarning, stacklevel=2)

    def cdc_decode(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        engine = Engine(task, MissingSchemas(task))
        yield from engine.lists(map(MessageBatch.of_structs, batches))

    message = _message_column(
        value=value,
        key=key,
        headers=headers,
        **_place(source, topic=topic, partition=partition, offset=offset, timestamp=timestamp),
    )
    return inlined(df, cdc_decode, message, rows, given)


_OPTIONS_OF_CHANGES = (
    *("typeMap", "sourceTimeZone", "images", "keyColumns", "caseSensitive", "splitKeyUpdates"),
    "metadataPrefix",
    *("mode", "incompleteRows", "onSchemaChange", "onTruncate", "invalidValues"),
)


def changes(
    events: DataFrame,
    table: str,
    *,
    schema: StructType | str,
    schemas: SchemaStore | None = None,
    **options: Any,
) -> DataFrame:
    """The typed changes of one table, from a batch or streaming DataFrame of events.

    The result equals a read of the messages with the options ``table`` and this schema, except
    that a row which becomes bad here has no key and value in its ``_corrupt_record``; a JSON null
    is NULL; and JSON columns cannot be text, as events hold them parsed.

    :param events: all columns of the events shape, read with ``includeColumns=true`` (for the
        source types, which variants lack), and with images as variants.
    :param schemas: from :func:`learn_schemas`; the statements in it give exact types to events that
        were decoded without them: names to ENUM and SET columns.
    :param options: these of ``format("cdc")``: ``typeMap``, ``sourceTimeZone``, ``images``,
        ``keyColumns``, ``caseSensitive``, ``splitKeyUpdates``, ``metadataPrefix``, ``mode``,
        ``incompleteRows``, ``onSchemaChange``, ``onTruncate``, ``invalidValues``.
    :raises OptionError: for wrong options, and for an invalid schema.
    """
    for name in options:
        if name.lower() not in map(str.lower, _OPTIONS_OF_CHANGES):
            raise unknown_option(name, _OPTIONS_OF_CHANGES, owner="changes")
    parsed = _parse(options | {"table": table})
    given, rows = _row_schemas(schema, parsed)
    statements = None if schemas is None else schemas.statements
    task = ReadTask(rows, parsed)
    if text := unmarked_rows(task):
        warnings.warn(text, UserWarning, stacklevel=2)

    def cdc_changes(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        decoder = StoredEvents(parsed["typeMap"], statements)
        engine = Engine(task, decoder=decoder)
        yield from engine.lists(stored_messages(batches))

    assert parsed.table is not None
    # A statement may affect other tables than the one that its message names.
    is_row = (f.col("kind") == "row") & is_of_table(parsed.table)
    wanted = is_row | f.col("kind").isin("ddl", "corrupt")
    event = f.struct(*(f.col(name) for name in STORED_COLUMNS))
    return inlined(events.where(wanted), cdc_changes, event, rows, given)


def learn_schemas(
    df: DataFrame,
    *,
    value: ColumnName = "value",
    key: ColumnName | None = None,
    headers: ColumnName | None = None,
    topic: ColumnName | None = None,
    partition: ColumnName | None = None,
    offset: ColumnName | None = None,
    timestamp: ColumnName | None = None,
    **options: Any,
) -> SchemaStore:
    """Collect the table schemas in the messages of a batch DataFrame, for :func:`decode`.

    For formats whose rows do not carry their types.  Runs a Spark job over all messages that
    collects only schemas; runs none if no format needs them.
    Columns and options are those of :func:`decode`.
    """
    parsed = _parse(options)
    store = open_store(parsed)
    if open_input_scan(parsed.values, parsed.codec) is None:
        return store

    def cdc_schemas(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        scan = open_input_scan(parsed.values, parsed.codec)
        assert scan is not None
        for batch in batches:
            found = [list(scan(message)) for message in MessageBatch.of_structs(batch)]
            cells = [pickle.dumps(records) if records else None for records in found]
            yield pa.array(cells, type=pa.binary())

    message = _message_column(
        value=value,
        key=key,
        headers=headers,
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp=timestamp,
    )
    found = df.select(to_udf(cdc_schemas, BinaryType())(message).alias("found"))
    for row in found.where("found is not null").collect():
        for record in pickle.loads(row.found):
            store.add(record)
    return store


def inlined(
    df: DataFrame, function: Run, column: Column, rows: StructType, given: StructType
) -> DataFrame:
    """Apply a function that returns a list of rows per cell, and flatten the lists.

    :param rows: the schema of the function's rows.
    :param given: the schema with the names of the result.
    """
    lists = to_udf(function, ArrayType(rows, containsNull=False))
    found = df.select(f.inline(lists(column)))
    return found if rows.names == given.names else found.toDF(*given.names)


def to_udf(function: Run, result: DataType) -> Callable[[Column], Column]:
    """A function of Spark's from one over batches of a column."""

    # Spark derives the kind of the function from its type hints, and shows its name in plans.
    def run(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        return function(with_offsets(batches))

    run.__name__ = function.__name__
    made: Callable[[Column], Column] = arrow_udf(run, result)  # type: ignore[call-overload]
    return made


def _parse(options: dict[str, Any]) -> ReadOptions:
    given = {name: value for name, value in options.items() if value is not None}
    return parse_options(given, of_dataframe=True)


def _row_schemas(
    given: StructType | str | None, options: ReadOptions
) -> tuple[StructType, StructType]:
    """The schema with the user's spelling of names, and with ours."""
    if given is None:
        if options.table is not None:
            raise OptionError(
                "the option table needs schema=...: decode cannot read the messages before it runs"
            )
        return (events_schema(options),) * 2
    schema = _parse_ddl(given) if isinstance(given, str) else given
    if not isinstance(schema, StructType):
        raise OptionError(f"schema is {schema!r}; it must be a struct of columns")
    return schema, check_schema(schema, options)


def _parse_ddl(text: str) -> DataType:
    try:
        return StructType.fromDDL(text)
    except AnalysisException as error:
        if "IN_PIPELINE_QUERY_FUNCTION" not in str(error):
            raise
        raise OptionError(
            "Spark does not parse a schema's text inside the query function of a pipeline: call "
            "StructType.fromDDL(...) outside of it, and pass the result as schema"
        ) from error


def _message_column(**columns: ColumnName | None) -> Column:
    return f.struct(
        *(
            (f.col(column) if isinstance(column, str) else column).cast(_TYPES[name]).alias(name)
            for name, column in columns.items()
            if column is not None
        )
    )


def _place(source: ColumnName | None, **columns: ColumnName | None) -> dict[str, ColumnName | None]:
    """The columns with the position of a message: fields of ``source``, or separate columns."""
    if source is None:
        return columns
    given = [name for name, column in columns.items() if column is not None]
    if given:
        raise OptionError(f"decode takes {join_names(given)} from source: leave them or source out")
    struct = f.col(source) if isinstance(source, str) else source
    return {name: struct[name] for name in (*columns, "path", "epoch")}
