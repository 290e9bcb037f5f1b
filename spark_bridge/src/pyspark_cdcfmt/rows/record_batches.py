"""Conversion of rows to Arrow record batches of bounded size, with exactly Spark's Arrow schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DecimalType,
    StringType,
    StructType,
    VariantType,
)

from cdcfmt_toolkit.repeats import value_bytes
from pyspark_cdcfmt.rows.variant_scalars import clean_text
from pyspark_cdcfmt.spark_api import arrow_schema

_LARGE: Final = 1 << 20
MAX_ROWS = 8192
MAX_MESSAGE_BYTES = 8 << 20
MAX_BATCH_BYTES = 16 << 20
"""Limits that end a batch: rows, bytes of their messages, bytes of the rows."""


class ColumnArrays:
    """Converts rows (tuples in the schema's order) to one array per column."""

    def __init__(self, schema: StructType) -> None:
        self.schema: pa.Schema = arrow_schema(schema)
        self._build = [
            partial(
                _variant_array if isinstance(field.dataType, VariantType) else to_array,
                arrow_type=arrow.type,
            )
            for field, arrow in zip(schema.fields, self.schema, strict=True)
        ]

    def arrays(self, rows: list[tuple[Any, ...]]) -> list[pa.Array]:
        columns = zip(*rows, strict=True) if rows else [()] * len(self._build)
        return [build(column) for build, column in zip(self._build, columns, strict=True)]


class BatchBuilder:
    """Collects the rows of messages in record batches."""

    def __init__(self, schema: StructType) -> None:
        self._columns = ColumnArrays(schema)
        self._rows: list[tuple[Any, ...]] = []
        self._message_bytes = 0
        self._row_bytes = 0

    def add(self, rows: Iterable[tuple[Any, ...]], message_bytes: int) -> Iterator[pa.RecordBatch]:
        """Add the rows of one message; yields a batch whenever one is full."""
        for row in rows:
            self._rows.append(row)
            self._row_bytes += value_bytes(row)
            if self._is_full(len(self._rows)):
                yield from self.flush()
        self._message_bytes += message_bytes
        if self._is_full(0):
            yield from self.flush()

    def _is_full(self, rows: int) -> bool:
        return (
            rows >= MAX_ROWS
            or self._message_bytes >= MAX_MESSAGE_BYTES
            or self._row_bytes >= MAX_BATCH_BYTES
        )

    def _taken(self) -> list[tuple[Any, ...]]:
        """Remove and return the rows since the last batch."""
        rows, self._rows, self._message_bytes, self._row_bytes = self._rows, [], 0, 0
        return rows

    def flush(self) -> Iterator[pa.RecordBatch]:
        """The rows since the last batch, if any."""
        rows = self._taken()
        if rows:
            yield self.batch(rows)

    def batch(self, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
        """A batch of these rows (at least one)."""
        return pa.RecordBatch.from_arrays(self._columns.arrays(rows), schema=self._columns.schema)


class ListBuilder(BatchBuilder):
    """Collects the rows of messages in arrays of lists of structs: one list per message.

    A list is never split.
    """

    def __init__(self, schema: StructType) -> None:
        super().__init__(schema)
        self._fields = list(self._columns.schema)
        self._type = pa.list_(pa.field("element", pa.struct(self._fields), nullable=False))
        self._ends = [0]

    def add(self, rows: Iterable[tuple[Any, ...]], message_bytes: int) -> Iterator[pa.ListArray]:
        """Add the rows of one message; yields an array whenever one is full."""
        added = list(rows)
        self._rows += added
        self._ends.append(len(self._rows))
        self._message_bytes += message_bytes
        self._row_bytes += sum(map(value_bytes, added))
        if self._is_full(max(len(self._ends), len(self._rows))):
            yield from self.flush()

    def flush(self) -> Iterator[pa.ListArray]:
        """The lists of the messages since the last array, if any."""
        ends, self._ends = self._ends, [0]
        rows = self._taken()
        if len(ends) > 1:
            yield self._lists(self._columns.arrays(rows), ends)

    def of_batch(self, batch: pa.RecordBatch, counts: Sequence[int]) -> pa.ListArray:
        """The rows of a batch as lists; ``counts`` are their lengths."""
        return self._lists(batch.columns, list(accumulate(counts, initial=0)))

    def _lists(self, columns: list[pa.Array], ends: list[int]) -> pa.ListArray:
        structs = pa.StructArray.from_arrays(columns, fields=self._fields)
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structs, type=self._type)


def to_array(values: Sequence[Any], arrow_type: pa.DataType) -> pa.Array:
    """An array of values of any type except variants."""
    # For string arrays Arrow would decode bytes to check them.
    first = pa.binary() if pa.types.is_string(arrow_type) else arrow_type
    try:
        if pa.types.is_binary(first) and sum(map(len, filter(None, values))) >= _LARGE:
            return _from_buffers(values).cast(arrow_type)
        if pa.types.is_list(first) and pa.types.is_string(first.value_type):
            return _texts_in_lists(values, first)
        return pa.array(values, type=first).cast(arrow_type)
    except UnicodeEncodeError:
        # Names and statements may hold invalid UTF-8, too.
        return pa.array([_clean(value) for value in values], type=arrow_type)


def _from_buffers(values: Sequence[str | bytes | None]) -> pa.Array:
    """An array of large values; avoids two copies by Arrow."""
    pieces = [_encoded(value) if isinstance(value, str) else value for value in values]
    ends = accumulate((len(piece or b"") for piece in pieces), initial=0)
    are_there = pa.array([piece is not None for piece in pieces])
    # A single piece is not copied.
    data = pa.py_buffer(b"".join(filter(None, pieces)))
    buffers = [are_there.buffers()[1], pa.array(ends, pa.int32()).buffers()[1], data]
    return pa.Array.from_buffers(pa.binary(), len(pieces), buffers)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return clean_text(text).encode()


def _texts_in_lists(values: Sequence[list[str | None] | None], arrow_type: pa.DataType) -> pa.Array:
    ends = accumulate((len(value or ()) for value in values), initial=0)
    texts = to_array([text for value in values for text in value or ()], arrow_type.value_type)
    nulls = pa.array([value is None for value in values], pa.bool_())
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), texts, type=arrow_type, mask=nulls)


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


_OFFSETS: Final = 4


def fixed_bytes(type_: DataType) -> int:
    """The bytes of a value that is NULL or empty."""
    if isinstance(type_, StructType):
        return 1 + sum(fixed_bytes(field.dataType) for field in type_.fields)
    if isinstance(type_, VariantType):
        return 1 + 2 * _OFFSETS
    if isinstance(type_, DecimalType):
        return 16
    return 1 + (_OFFSETS if isinstance(type_, StringType | BinaryType | ArrayType) else 8)
