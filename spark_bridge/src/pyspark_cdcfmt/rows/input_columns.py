"""Columns of the DataFrame that is written: checked on the driver, read on the executors."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from cdcfmt_core.errors import OptionError
from pyspark_cdcfmt.rows.variant_reader import decode_variant


def check_columns(
    given: StructType, known: Mapping[str, DataType], required: Iterable[str], shape: str
) -> None:
    """:raises OptionError: for a column that is missing, unknown or of another type."""
    names = given.names
    for name in names:
        if names.count(name) > 1:
            raise OptionError(f"column {name} stands twice in the rows to write")
    for name in required:
        if name not in names:
            raise OptionError(f"column {name} is missing: {shape}")
    for field in given.fields:
        expected = known.get(field.name)
        if expected is None:
            near = difflib.get_close_matches(field.name, known, n=1, cutoff=0.6)
            hint = f"; did you mean {near[0]}?" if near else f" (there are {', '.join(known)})"
            raise OptionError(f"column {field.name} is not written: {shape}{hint}")
        if not _alike(field.dataType, expected):
            raise OptionError(
                f"column {field.name} is {field.dataType.simpleString()}, and must be "
                f"{expected.simpleString()}"
            )


def _alike(given: DataType, expected: DataType) -> bool:
    """Whether a column serves: nullability does not matter, nor how wide an integer is."""
    if isinstance(expected, StructType):
        return isinstance(given, StructType) and _alike_fields(given.fields, expected)
    if isinstance(expected, ArrayType):
        return isinstance(given, ArrayType) and _alike(given.elementType, expected.elementType)
    if isinstance(expected, LongType):
        return isinstance(given, LongType | IntegerType | ShortType)
    return type(given) is type(expected)


def _alike_fields(given: Sequence[StructField], expected: StructType) -> bool:
    known = {field.name: field.dataType for field in expected.fields}
    return all(field.name in known and _alike(field.dataType, known[field.name]) for field in given)


def cells(batch: pa.RecordBatch, name: str, type_: DataType) -> Iterable[Any]:
    """The cells of a column: variants as ``(value, metadata)``, times as microseconds.

    NULL for each row where the batch has no such column.
    """
    index = batch.schema.get_field_index(name)
    if index < 0:
        return repeat(None)
    return array_cells(batch.column(index), type_)


def array_cells(array: pa.Array, type_: DataType) -> list[Any]:
    """The cells of an array of this Spark type, as :func:`cells` gives them."""
    if array.null_count == len(array):
        return [None] * len(array)
    if isinstance(type_, TimestampType | TimestampNTZType):
        # The session's zone is in the array's type, and does not matter.
        result: list[Any] = array.cast(pa.int64()).to_pylist()
        return result
    if isinstance(type_, StructType) and array.type.num_fields:
        return _struct_cells(array, type_)
    if type_.typeName() == "variant":
        value, metadata = (child.to_pylist() for child in array.flatten())
        return [
            None if data is None else (data, names)
            for data, names in zip(value, metadata, strict=True)
        ]
    if isinstance(type_, MapType):
        raise OptionError("a map is no type of a column that is written")
    plain: list[Any] = array.to_pylist()
    return plain


def _struct_cells(array: pa.StructArray, type_: StructType) -> list[Any]:
    known = {field.name: field.dataType for field in type_.fields}
    names = [field.name for field in array.type]
    children = [
        array_cells(child, known[name]) for name, child in zip(names, array.flatten(), strict=True)
    ]
    valid = array.is_valid().to_pylist()
    return [
        dict(zip(names, row, strict=True)) if there else None
        for there, row in zip(valid, zip(*children, strict=True), strict=True)
    ]


def variant_cell(pair: tuple[bytes, bytes] | None) -> Any:
    """The value of a variant's cell; None for SQL NULL."""
    return None if pair is None else decode_variant(*pair)
