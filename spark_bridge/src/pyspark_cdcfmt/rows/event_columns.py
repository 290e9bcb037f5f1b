"""Columns of events to write: checked on the driver; ``columns``, read on the executors."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, StringType, StructType

from cdcfmt_core.errors import OptionError
from pyspark_cdcfmt.rows.input_columns import check_columns
from pyspark_cdcfmt.rows.input_tables import ColumnCells
from pyspark_cdcfmt.rows.row_schemas import EVENT_COLUMNS

_SHAPE = (
    "rows to write are events, as format('cdc') reads them without the option table; for the "
    "changes of one table set the option table"
)
_NEEDED = {
    "columns": ("name", "source_type"),
    "ddl": ("query", "type"),
    "table_schema": ("table", "columns"),
    "table_schema.columns": ("name", "source_type"),
}
"""Columns whose structs, if they are there, have no use without some field."""


def check_events(schema: StructType) -> None:
    """:raises OptionError: for columns that are not those of events, naming one."""
    for name in ("before", "after"):
        if name in schema.names and isinstance(schema[name].dataType, StringType):
            raise OptionError(
                f"column {name} is string: JSON text does not tell the types of its values; "
                "read with imageFormat=variant"
            )
    check_columns(schema, EVENT_COLUMNS, ("kind",), _SHAPE)
    for path, needed in _NEEDED.items():
        inner = _inner(schema, path)
        for field in needed:
            if inner is not None and field not in inner.names:
                raise OptionError(f"column {path} has no field {field}: {_SHAPE}")


def _inner(schema: StructType, path: str) -> StructType | None:
    """The struct at a path, or within the array there; None if it is not there."""
    for name in path.split("."):
        if name not in schema.names:
            return None
        type_ = schema[name].dataType
        found = type_.elementType if isinstance(type_, ArrayType) else type_
        assert isinstance(found, StructType)
        schema = found
    return schema


def column_cells(batch: pa.RecordBatch) -> list[ColumnCells | None]:
    """``columns`` of every row, as tuples that can be looked up; much faster than rows."""
    array = batch.column("columns")
    told = array.drop_null()
    if len(told) < 2 or not _all_alike(told):
        return _column_cells_of(array)
    (alike,) = _column_cells_of(told.slice(0, 1))
    return [alike if there else None for there in array.is_valid().to_pylist()]


def _all_alike(array: pa.ListArray) -> bool:
    """Whether all lists are equal, as those of one table are."""
    items = array.flatten()
    size = len(items) // len(array)
    if array.value_lengths().unique().to_pylist() != [size]:
        return False
    return bool(items.slice(size).equals(items.slice(0, len(items) - size)))


def _column_cells_of(array: pa.ListArray) -> list[ColumnCells | None]:
    items = array.flatten()
    fields = dict(zip((field.name for field in items.type), items.flatten(), strict=True))
    lists: list[Any] = [
        fields[name].to_pylist() if name in fields else [None] * len(items)
        for name in ("name", "source_type", "nullable", "key")
    ]
    names, types, nullable, key = lists
    result: list[ColumnCells | None] = []
    start = 0
    for length in array.value_lengths().to_pylist():
        if length is None:
            result.append(None)
            continue
        end = start + length
        result.append(
            (
                tuple(names[start:end]),
                tuple(types[start:end]),
                tuple(nullable[start:end]),
                tuple(key[start:end]),
            )
        )
        start = end
    return result
