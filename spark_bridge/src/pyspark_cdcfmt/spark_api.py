"""Names of Spark's Python API that differ between its versions.

Limits of a stream's batches came with Spark 4.2 (``pyspark.sql.streaming.datasource``), which
passes ``latestOffset`` a start and a limit, and prepares AvailableNow.  Spark 4.1 calls
``latestOffset()`` without either, once only for AvailableNow.  At each start of a query with a
checkpoint, it first calls ``partitions(offset, offset)`` with the checkpoint's last offset.

Arrays of no elements from Spark 4.1, with Arrow 18 for Java, have no offsets where there must be
one: whoever reads it, as the kernel does, reads other memory.  Those of Spark 4.2 have it.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )
else:
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxRows,
            ReadMinRows,
            SupportsTriggerAvailableNow,
        )
    except ModuleNotFoundError:
        import attrs

        class SupportsTriggerAvailableNow:
            pass

        class ReadLimit:
            pass

        class ReadAllAvailable(ReadLimit):
            pass

        @attrs.frozen
        class ReadMaxRows(ReadLimit):
            max_rows: int

        @attrs.frozen
        class ReadMinRows(ReadLimit):
            min_rows: int


__all__ = [
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "ReadMinRows",
    "SupportsTriggerAvailableNow",
    "arrow_schema",
    "with_offsets",
]

# Spark 4.1 has no parameter, as all its timestamps with a zone are in UTC.
_IS_OLD = "timezone" not in inspect.signature(to_arrow_schema).parameters
_IN_UTC = {} if _IS_OLD else {"timezone": "UTC"}


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of rows for Spark; timestamps with a zone are in UTC."""
    return to_arrow_schema(schema, **_IN_UTC)  # type: ignore[arg-type]


T = TypeVar("T", pa.Array, pa.RecordBatch)


def with_offsets(received: Iterator[T]) -> Iterator[T]:
    """Arrays or batches from Spark, whose arrays of no elements are made anew on Spark 4.1."""
    return map(_with_offsets, received) if _IS_OLD else received


def _with_offsets(received: T) -> T:
    if isinstance(received, pa.RecordBatch):
        arrays = list(map(_repaired, received.columns))
        return pa.RecordBatch.from_arrays(arrays, schema=received.schema)
    return _repaired(received)


def _repaired(array: pa.Array) -> pa.Array:
    """The array with new arrays of no elements in it; itself without any."""
    if len(array) == 0:
        return pa.array([], array.type)
    if pa.types.is_struct(array.type):
        parts = [array.field(index) for index in range(array.type.num_fields)]
        repaired = list(map(_repaired, parts))
        if all(map(operator.is_, parts, repaired)):
            return array
        return pa.StructArray.from_arrays(
            repaired, fields=list(array.type), mask=array.is_null() if array.null_count else None
        )
    if pa.types.is_list(array.type):
        values = array.values
        repaired_values = _repaired(values)
        if repaired_values is values:
            return array
        # A copy: pyarrow takes no slice of offsets beside a mask.
        offsets = pa.concat_arrays([array.offsets, pa.array([], pa.int32())])
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(offsets, repaired_values, type=array.type, mask=mask)
    if pa.types.is_map(array.type) and len(array.keys) == 0:
        return pa.array(array.to_pylist(), array.type)
    return array
