"""Encode events and changes to messages in a DataFrame, for Spark's Kafka sink and others.

Functions here never read a DataFrame's columns or schema: Declarative Pipelines do not allow it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type
from pyspark.sql.types import ArrayType, BinaryType, StringType

from cdcfmt_core.encoding_options import check_unpartitioned
from cdcfmt_core.events import Kind, Message
from cdcfmt_core.schema_registry import PREFIX, TOPIC
from pyspark_cdcfmt.rows.types import struct_of
from pyspark_cdcfmt.write.columnar import Taken
from pyspark_cdcfmt.write.encoding import EventWriter, check_rows, open_encoder
from pyspark_cdcfmt.write_options import WriteOptions, parse_write_options

MESSAGE = struct_of(
    key=BinaryType(),
    value=BinaryType(),
    headers=ArrayType(struct_of(key=StringType(), value=BinaryType())),
    topic=StringType(),
)
"""The columns of :func:`encode`, as Spark's Kafka sink needs them."""

ROWS_AT_ONCE = 500
"""Number of rows whose messages pass through Spark in one cell."""

_ADVICE = (
    "they must reach every partition of a topic in order, which a DataFrame cannot express; "
    "write with df.write.format(\"cdc\"), leave them out by kind = 'row'"
)
_REFUSED: dict[Kind, str] = {"ddl": _ADVICE, "watermark": _ADVICE}

_Parts: TypeAlias = list[Message | Taken]
_Lists: TypeAlias = tuple[int, _Parts]


def encode(df: DataFrame, *, topic: str | None = None, **options: Any) -> DataFrame:
    """Encode a batch or streaming DataFrame of events or changes: key, value, headers, topic.

    Keeps the order of the rows within a Spark partition.  Refuses DDL and watermarks (or skips
    them with ``unsupportedEvents=skip``): they must reach every partition of a topic after all
    rows before them, which a DataFrame cannot ensure; use ``df.write.format("cdc")`` for them.

    :param topic: the value of the column ``topic``.
    :param options: options of ``df.write.format("cdc")``, except those of files; ``protocol`` is
        required.
    :raises OptionError: for wrong options.  Wrong columns fail the job.
    """
    given = {name: item for name, item in options.items() if item is not None}
    if topic is not None and any(name.lower().startswith(PREFIX) for name in given):
        given.setdefault(TOPIC, topic)
    parsed = parse_write_options(given, of_dataframe=True)
    check_unpartitioned(parsed.values, "the sink of the DataFrame chooses partitions")
    open_encoder(parsed, None)

    def cdc_encode(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for size, parts in _lists(batches, parsed):
            yield _array(size, parts, topic)

    run: Callable[[Column], Column] = arrow_udf(  # type: ignore[call-overload]
        cdc_encode, ArrayType(MESSAGE, containsNull=False)
    )
    return df.select(f.inline(run(f.struct("*"))))


def _lists(batches: Iterator[pa.StructArray], options: WriteOptions) -> Iterator[_Lists]:
    """Numbers of rows, each with the messages of these rows; the last gets all pending messages."""
    first = next(batches, None)
    if first is None:
        return
    schema = from_arrow_schema(pa.schema(list(first.type)))
    check_rows(schema, options)
    done: deque[_Lists] = deque()
    current: _Parts = []

    def feed() -> Iterator[pa.RecordBatch]:
        batch = first
        while batch is not None:
            for start in range(0, len(batch), ROWS_AT_ONCE):
                rows = batch.slice(start, ROWS_AT_ONCE)
                yield pa.RecordBatch.from_struct_array(rows)
                # The writer requests more rows, so it has yielded all messages of these.
                done.append((len(rows), current.copy()))
                current.clear()
            batch = next(batches, None)

    writer = EventWriter(schema, options, refused=_REFUSED)
    for part in writer.parts(feed()):
        while len(done) > 1:
            yield done.popleft()
        current.append(part)
    writer.log_counts()
    if current:
        done[-1][1].extend(current)
    yield from done


def _array(size: int, parts: _Parts, topic: str | None) -> pa.Array:
    """A list array of ``size`` rows; the last one has all messages."""
    type_ = to_arrow_type(ArrayType(MESSAGE, containsNull=False))
    arrays: list[pa.Array] = []
    for is_message, some in groupby(parts, lambda part: isinstance(part, Message)):
        arrays += (_structs if is_message else _columns)(list(some), topic, type_.value_type)
    items = pa.concat_arrays([pa.array([], type_.value_type), *arrays])
    offsets = [0] * size + [len(items)]
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, type=type_)


def _structs(messages: Iterable[Message], topic: str | None, type_: pa.DataType) -> list[pa.Array]:
    cells = [
        {
            "key": message.key,
            "value": message.value,
            "headers": [{"key": name, "value": value} for name, value in message.headers] or None,
            "topic": topic,
        }
        for message in messages
    ]
    return [pa.array(cells, type_)]


def _columns(
    batches: Iterable[pa.RecordBatch], topic: str | None, type_: pa.DataType
) -> Iterator[pa.Array]:
    """Arrays of the kernel's messages, which have no headers."""
    for batch in batches:
        count = batch.num_rows
        columns = {
            "key": batch["key"],
            "value": batch["value"],
            "headers": pa.nulls(count, type_.field("headers").type),
            "topic": pa.repeat(pa.scalar(topic, pa.string()), count),
        }
        arrays = [columns[field.name] for field in type_]
        yield pa.StructArray.from_arrays(arrays, fields=list(type_))
