"""Messages that are already in a DataFrame: Spark's own Kafka source, a bronze table.

Nothing here asks a DataFrame for its columns or schema, which a Declarative Pipeline does
not let its functions do.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import ArrayType, BinaryType, StructType

from cdcfmt_core.errors import OptionError
from cdcfmt_core.events import Message
from cdcfmt_core.schema_scan import open_schema_scan
from cdcfmt_core.schema_store import SchemaStore
from pyspark_cdcfmt.engine import Engine
from pyspark_cdcfmt.events import events_schema
from pyspark_cdcfmt.missing_schemas import MissingSchemas, policy_of
from pyspark_cdcfmt.options import ReadOptions, parse_options
from pyspark_cdcfmt.schemas import open_store
from pyspark_cdcfmt.source import check_schema

ColumnName: TypeAlias = "str | Column"

KAFKA_COLUMNS = {
    "key": "key",
    "topic": "topic",
    "partition": "partition",
    "offset": "offset",
    "timestamp": "timestamp",
}
"""What Spark's Kafka source calls its columns: ``decode(df, **KAFKA_COLUMNS)``."""

_TYPES = {
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
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
    schema: StructType | str | None = None,
    schemas: SchemaStore | None = None,
    **options: Any,
) -> DataFrame:
    """The events or changes in the messages of a DataFrame, batch or streaming.

    ``value`` and the other columns are those of Spark's Kafka source, by name or as
    expressions; they are cast to its types.  ``key`` is needed by formats that say
    something there, ``offset`` for ``_sequence`` and for errors that tell where.  A row
    with a NULL value gives no rows.

    Options are those of ``format("cdc")`` apart from those of its input.  With ``table``
    the result has the changes of that table, and ``schema`` is required; without it, it
    has events.  ``schemas`` are table schemas from :func:`learn_schemas`; the option
    ``schemaStore`` is a folder that has them, and takes those that the messages tell.

    :raises OptionError: for wrong options, and for a schema that cannot be.
    """
    parsed = _parse(options)
    rows = _row_schema(schema, parsed)
    if schemas is not None and parsed["schemaStore"] is not None:
        raise OptionError("decode gets its schemas from schemas or from schemaStore, not from both")
    store = open_store(parsed) if schemas is None else schemas
    policy = policy_of(parsed, streaming=False)

    def cdc_decode(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        missing = MissingSchemas(policy, parsed, store)
        engine = Engine(rows, parsed, inferred=False, schemas=store, missing=missing)
        yield from engine.lists(_messages(batches))

    message = _message_column(
        value=value,
        key=key,
        headers=headers,
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp=timestamp,
    )
    run: Callable[[Column], Column] = arrow_udf(  # type: ignore[call-overload]
        cdc_decode, ArrayType(rows, containsNull=False)
    )
    return df.select(f.inline(run(message)))


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
    """The table schemas that the messages of a batch DataFrame tell, for :func:`decode`.

    For formats whose rows do not carry their types.  Runs a Spark job that looks through
    all messages and collects nothing but schemas; where no format needs them, it runs none.
    Columns and options are those of :func:`decode`.
    """
    parsed = _parse(options)
    store = open_store(parsed)
    if open_schema_scan(parsed.values, parsed.codec) is None:
        return store

    def cdc_schemas(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        scan = open_schema_scan(parsed.values, parsed.codec)
        assert scan is not None
        for batch in batches:
            found = [list(scan(message)) for message in _messages(iter([batch]))]
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
    scan_udf: Callable[[Column], Column] = arrow_udf(  # type: ignore[call-overload]
        cdc_schemas, BinaryType()
    )
    for row in df.select(scan_udf(message).alias("found")).where("found is not null").collect():
        for record in pickle.loads(row.found):
            store.add(record)
    return store


def _parse(options: dict[str, Any]) -> ReadOptions:
    given = {name: value for name, value in options.items() if value is not None}
    return parse_options(given, of_dataframe=True)


def _row_schema(given: StructType | str | None, options: ReadOptions) -> StructType:
    if given is None:
        if options.table is not None:
            raise OptionError(
                "decode with the option table needs schema=...: it cannot look at the "
                "messages before it runs"
            )
        return events_schema(options)
    schema = StructType.fromDDL(given) if isinstance(given, str) else given
    if not isinstance(schema, StructType):
        raise OptionError(f"schema is {schema!r}, and must be a struct of columns")
    check_schema(schema, options)
    return schema


def _message_column(**columns: ColumnName | None) -> Column:
    return f.struct(
        *(
            (f.col(column) if isinstance(column, str) else column).cast(_TYPES[name]).alias(name)
            for name, column in columns.items()
            if column is not None
        )
    )


def _messages(batches: Iterator[pa.StructArray]) -> Iterator[Message]:
    for batch in batches:
        arrays = dict(zip((field.name for field in batch.type), batch.flatten(), strict=True))
        if "timestamp" in arrays:
            arrays["timestamp"] = arrays["timestamp"].cast(pa.int64())
        cells = (arrays[name].to_pylist() if name in arrays else repeat(None) for name in _TYPES)
        for key, value, headers, topic, partition, offset, micros in zip(*cells, strict=False):
            yield Message(
                key,
                value,
                tuple((header["key"], header["value"]) for header in headers or ()),
                topic,
                partition,
                offset,
                None if micros is None else micros // 1000,
            )
