"""Rows into Arrow record batches of bounded size, with exactly Spark's Arrow schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType, StructType, VariantType

from pyspark_cdcfmt.rows.row_bytes import row_weigher
from pyspark_cdcfmt.rows.variant_scalars import clean_text

MAX_ROWS = 8192
MAX_MESSAGE_BYTES = 8 << 20
MAX_BATCH_BYTES = 16 << 20
"""A batch ends after so many rows, rows from so many bytes of messages, or bytes of rows."""


class Columns:
    """Turns rows (tuples in the schema's order) into one array a column."""

    def __init__(self, schema: StructType) -> None:
        self.schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self.weigh = row_weigher(schema)
        self._build = [
            array_builder(field.dataType, arrow.type)
            for field, arrow in zip(schema.fields, self.schema, strict=True)
        ]

    def arrays(self, rows: list[tuple[Any, ...]]) -> list[pa.Array]:
        columns = zip(*rows, strict=True) if rows else [()] * len(self._build)
        return [build(column) for build, column in zip(self._build, columns, strict=True)]


class BatchBuilder:
    """Collects the rows of messages in record batches."""

    def __init__(self, schema: StructType) -> None:
        self._columns = Columns(schema)
        self.weigh = self._columns.weigh
        self._rows: list[tuple[Any, ...]] = []
        self._message_bytes = 0
        self._row_bytes = 0

    def add(self, rows: Iterable[tuple[Any, ...]], message_bytes: int) -> Iterator[pa.RecordBatch]:
        """Add the rows of one message; yields a batch whenever one is full."""
        for row in rows:
            self._rows.append(row)
            self._row_bytes += self.weigh(row)
            if len(self._rows) >= MAX_ROWS or self._row_bytes >= MAX_BATCH_BYTES:
                yield from self.flush()
        self._message_bytes += message_bytes
        if self._message_bytes >= MAX_MESSAGE_BYTES:
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        """The rows since the last batch, if there are any."""
        rows, self._rows, self._message_bytes, self._row_bytes = self._rows, [], 0, 0
        if rows:
            yield self.batch(rows)

    def batch(self, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
        """These rows, one at least, as a batch of their own."""
        return pa.RecordBatch.from_arrays(self._columns.arrays(rows), schema=self._columns.schema)


class ListBuilder:
    """Collects the rows of messages in arrays of lists of structs: one list a message.

    A list is never split, so one message's rows are all in one array.
    """

    def __init__(self, schema: StructType) -> None:
        self._columns = Columns(schema)
        self.weigh = self._columns.weigh
        self._fields = list(self._columns.schema)
        element = pa.field("element", pa.struct(self._fields), nullable=False)
        self._type = pa.list_(element)
        self._rows: list[tuple[Any, ...]] = []
        self._ends = [0]
        self._message_bytes = 0
        self._row_bytes = 0

    def add(self, rows: Iterable[tuple[Any, ...]], message_bytes: int) -> Iterator[pa.ListArray]:
        """Add the rows of one message; yields an array whenever one is full."""
        added = list(rows)
        self._rows += added
        self._ends.append(len(self._rows))
        self._message_bytes += message_bytes
        self._row_bytes += sum(map(self.weigh, added))
        if (
            max(len(self._ends), len(self._rows)) >= MAX_ROWS
            or self._message_bytes >= MAX_MESSAGE_BYTES
            or self._row_bytes >= MAX_BATCH_BYTES
        ):
            yield from self.flush()

    def flush(self) -> Iterator[pa.ListArray]:
        """The lists of the messages since the last array, if there were any."""
        rows, ends = self._rows, self._ends
        self._rows, self._ends, self._message_bytes, self._row_bytes = [], [0], 0, 0
        if len(ends) > 1:
            yield self._lists(self._columns.arrays(rows), ends)

    def of_batch(self, batch: pa.RecordBatch, counts: Sequence[int]) -> pa.ListArray:
        """The rows of a batch as lists, with so many in each."""
        return self._lists(batch.columns, list(accumulate(counts, initial=0)))

    def _lists(self, columns: list[pa.Array], ends: list[int]) -> pa.ListArray:
        structs = pa.StructArray.from_arrays(columns, fields=self._fields)
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structs, type=self._type)


def array_builder(
    spark_type: DataType, arrow_type: pa.DataType
) -> Callable[[Sequence[Any]], pa.Array]:
    """What makes the array of one column from the values of its rows."""
    if isinstance(spark_type, VariantType):
        return lambda column: _variant_array(column, arrow_type)

    return lambda column: to_array(column, arrow_type)


def to_array(values: Sequence[Any], arrow_type: pa.DataType) -> pa.Array:
    """Values of any type but variants."""
    # As strings, bytes would be decoded to see whether they can be.
    first = pa.binary() if pa.types.is_string(arrow_type) else arrow_type
    try:
        return pa.array(values, type=first).cast(arrow_type)
    except UnicodeEncodeError:
        # Names and statements may hold bytes that are no UTF-8, too.
        return pa.array([_clean(value) for value in values], type=arrow_type)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {name: _clean(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value


def _variant_array(column: Sequence[Any], arrow_type: pa.DataType) -> pa.Array:
    """Variants as (value, metadata) pairs; None is SQL NULL."""
    mask = pa.array([pair is None for pair in column], type=pa.bool_())
    pairs = [pair if pair is not None else (b"", b"") for pair in column]
    return pa.StructArray.from_arrays(
        [pa.array([pair[place] for pair in pairs], type=pa.binary()) for place in (0, 1)],
        fields=list(arrow_type),
        mask=mask,
    )
