"""Decode messages in a DataFrame, such as Spark's Kafka source or a bronze table.

No function reads the columns or schema of a DataFrame: Declarative Pipelines do not allow it.
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
from cdcfmt_core.schemas.scan import open_input_scan
from cdcfmt_core.schemas.store import SchemaStore
from pyspark_cdcfmt.options import ReadOptions, parse_options
from pyspark_cdcfmt.read.engine import Engine
from pyspark_cdcfmt.read.schemas import MissingSchemas, open_store, policy_of
from pyspark_cdcfmt.rows.message_batch import MessageBatch
from pyspark_cdcfmt.rows.row_schemas import check_schema, events_schema
from pyspark_cdcfmt.rows.stored_events import (
    STORED_COLUMNS,
    StoredEvents,
    is_of_table,
    stored_messages,
)

ColumnName: TypeAlias = "str | Column"
Run: TypeAlias = Callable[[Iterator[pa.Array]], Iterator[pa.Array]]

KAFKA_COLUMNS = {name: name for name in ("key", "topic", "partition", "offset", "timestamp")}
"""The columns of Spark's Kafka source: ``decode(df, **KAFKA_COLUMNS)``."""

_NO_OFFSET = (
    "cdc: decode is given no offset, so {0} does not order messages without a commit_ts, nor rows "
    "without a key ({0}.offset is NULL): name offset or source, or leave {0} out of the schema"
)

_TYPES = {
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "path": "string",
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
    """The events or changes in the messages of a DataFrame, batch or streaming.

    ``value`` and the other columns are those of Spark's Kafka source, by name or as
    expressions; they are cast to its types.  ``key`` is needed by formats with
    data in it, ``offset`` for ``_sequence`` and for the places in errors.  A row
    with a NULL value gives no rows.  ``source``, in place of ``topic`` to ``timestamp``, is a
    struct like ``_source``: a dead letter with the ``source`` of its ``_corrupt_record`` comes
    back in its old place.

    Options are those of ``format("cdc")`` apart from those of its input.  With ``table``
    the result has the changes of that table, and ``schema`` is required; without it, it
    has events.  ``schemas`` are table schemas from :func:`learn_schemas`; the option
    ``schemaStore`` is a folder that has them, and takes those in the messages.

    :raises OptionError: for wrong options, and for a schema that cannot be.
    """
    parsed = _parse(options)
    given, rows = _row_schemas(schema, parsed)
    sequence = parsed["metadataPrefix"] + "sequence"
    if parsed.table is not None and source is None and offset is None and sequence in rows.names:
        warnings.warn(_NO_OFFSET.format(sequence), UserWarning, stacklevel=2)
    if schemas is not None and parsed["schemaStore"] is not None:
        raise OptionError("decode gets its schemas from schemas or from schemaStore, not from both")
    store = open_store(parsed) if schemas is None else schemas
    policy = policy_of(parsed, streaming=False)

    def cdc_decode(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        missing = MissingSchemas(policy, parsed, store)
        engine = Engine(rows, parsed, inferred=False, schemas=store, missing=missing)
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
    events: DataFrame, table: str, *, schema: StructType | str, **options: Any
) -> DataFrame:
    """The typed changes of one table out of events, batch or streaming.

    ``events`` are all columns of the events shape as read with ``includeColumns=true``,
    which has the source types that variants lack, and with ``images`` as variants.
    The rows are those that the option ``table`` with this schema gives for the messages,
    apart from three things: a row that goes bad here has no key and value in its
    ``_corrupt_record``; the null of JSON is NULL; and JSON columns cannot be text, as events
    hold them parsed.

    Options of ``format("cdc")`` that apply: ``typeMap``, ``sourceTimeZone``, ``images``,
    ``keyColumns``, ``caseSensitive``, ``splitKeyUpdates``, ``metadataPrefix``, ``mode``,
    ``incompleteRows``, ``onSchemaChange``, ``onTruncate``, ``invalidValues``.

    :raises OptionError: for wrong options, and for a schema that cannot be.
    """
    for name in options:
        if name.lower() not in map(str.lower, _OPTIONS_OF_CHANGES):
            raise unknown_option(name, _OPTIONS_OF_CHANGES, owner="changes")
    parsed = _parse(options | {"table": table})
    given, rows = _row_schemas(schema, parsed)

    def cdc_changes(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        decoder = StoredEvents(parsed["typeMap"])
        engine = Engine(rows, parsed, inferred=False, decoder=decoder)
        yield from engine.lists(stored_messages(batches))

    assert parsed.table is not None
    # A statement may be about other tables than the one that its message names.
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
    """The table schemas in the messages of a batch DataFrame, for :func:`decode`.

    For formats whose rows do not carry their types.  Runs a Spark job that looks through
    all messages and collects nothing but schemas; where no format needs them, it runs none.
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
    found = df.select(_udf(cdc_schemas, BinaryType())(message).alias("found"))
    for row in found.where("found is not null").collect():
        for record in pickle.loads(row.found):
            store.add(record)
    return store


def inlined(
    df: DataFrame, function: Run, column: Column, rows: StructType, given: StructType
) -> DataFrame:
    """The rows in the lists that a function makes of a column, under the names ``given``.

    The function returns one list for each cell.
    """
    lists = _udf(function, ArrayType(rows, containsNull=False))
    found = df.select(f.inline(lists(column)))
    return found if rows.names == given.names else found.toDF(*given.names)


def _udf(function: Run, result: DataType) -> Callable[[Column], Column]:
    # Spark takes the form of the function from its type hints.
    made: Callable[[Column], Column] = arrow_udf(function, result)  # type: ignore[call-overload]
    return made


def _parse(options: dict[str, Any]) -> ReadOptions:
    given = {name: value for name, value in options.items() if value is not None}
    return parse_options(given, of_dataframe=True)


def _row_schemas(
    given: StructType | str | None, options: ReadOptions
) -> tuple[StructType, StructType]:
    """The schema with the names that the user wrote, and with ours."""
    if given is None:
        if options.table is not None:
            raise OptionError(
                "the option table needs schema=...: decode cannot look at the "
                "messages before it runs"
            )
        return (events_schema(options),) * 2
    schema = _parse_ddl(given) if isinstance(given, str) else given
    if not isinstance(schema, StructType):
        raise OptionError(f"schema is {schema!r}, and must be a struct of columns")
    return schema, check_schema(schema, options)


def _parse_ddl(text: str) -> DataType:
    try:
        return StructType.fromDDL(text)
    except AnalysisException as error:
        if "IN_PIPELINE_QUERY_FUNCTION" not in str(error):
            raise
        raise OptionError(
            "Spark does not parse a schema's text inside the query function of a pipeline: call "
            "StructType.fromDDL(...) outside of it, and give the result as schema"
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
    """The columns with the place of a message: those of ``source`` where it is given."""
    if source is None:
        return columns
    given = [name for name, column in columns.items() if column is not None]
    if given:
        raise OptionError(
            f"decode takes {join_names(given)} from source, too: leave one of the two out"
        )
    struct = f.col(source) if isinstance(source, str) else source
    return {name: struct[name] for name in (*columns, "path")}
