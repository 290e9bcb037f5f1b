"""Columns by name: matching as Spark does, and the columns of rows to write."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    DataType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from cdcfmt_core.column_names import fold, spelled
from cdcfmt_core.errors import EncodeError, OptionError, PolicyError, show
from pyspark_cdcfmt.options import SPARKS_SWITCH
from pyspark_cdcfmt.rows.event_values import JSON_NULL
from pyspark_cdcfmt.rows.policy import shortest_text
from pyspark_cdcfmt.rows.row_schemas import EVENT_COLUMNS
from pyspark_cdcfmt.rows.variant import decode_variant


def match_fields(
    fields: Sequence[StructField], columns: Sequence[str], *, case_sensitive: bool
) -> dict[str, StructField]:
    """The fields by the columns that they name, without fields that match no column.

    :raises PolicyError: for a field that matches two columns, or would match one in another case.
    """
    by_name: dict[str, list[str]] = {}
    for column in columns:
        by_name.setdefault(fold(column, case_sensitive=case_sensitive), []).append(column)
    matched = {}
    for field in fields:
        found = by_name.get(fold(field.name, case_sensitive=case_sensitive), ())
        if len(found) > 1:
            alike = " and ".join(map(show, found))
            raise PolicyError(
                f"the table has columns {alike}, which differ only in case: set "
                f"caseSensitive=true, and {SPARKS_SWITCH}=true in the session",
                column=field.name,
            )
        if found:
            matched[found[0]] = field
    if case_sensitive:
        _check_near_misses(fields, columns, matched)
    return matched


def match_keys(
    given: Sequence[str], columns: Sequence[str], *, case_sensitive: bool
) -> tuple[str, ...]:
    """The option ``keyColumns`` in the table's spelling; unknown names stay unchanged.

    :raises PolicyError: for a name that matches two columns.
    """
    fields = [StructField(name, NullType()) for name in given if name not in columns]
    match_fields(fields, columns, case_sensitive=case_sensitive)
    return spelled(given, columns, case_sensitive=case_sensitive)


def _check_near_misses(
    fields: Sequence[StructField], columns: Sequence[str], matched: dict[str, StructField]
) -> None:
    # NULL in every row would look like an empty column.
    others = {column.lower(): column for column in columns if column not in matched}
    for field in fields:
        if field.name not in matched and field.name.lower() in others:
            raise PolicyError(
                f"the table has {show(others[field.name.lower()])}, and names are case-sensitive "
                f"({SPARKS_SWITCH}, or the option caseSensitive): declare that name",
                column=field.name,
            )


def check_columns(
    given: StructType, known: Mapping[str, DataType], required: Iterable[str], shape: str
) -> None:
    """:raises OptionError: for a column that is missing, unknown or of another type."""
    names = given.names
    check_twice(names)
    for name in required:
        if name not in names:
            raise OptionError(f"column {name} is missing: {shape}")
    for field in given.fields:
        expected = known.get(field.name)
        if expected is None:
            near = difflib.get_close_matches(field.name.lower(), known, n=1, cutoff=0.6)
            hint = f"; did you mean {near[0]}?" if near else f" (known: {', '.join(known)})"
            raise OptionError(f"column {field.name} is unknown: {shape}{hint}")
        if not _alike(field.dataType, expected):
            raise OptionError(
                f"column {field.name} is {field.dataType.simpleString()}; it must be "
                f"{expected.simpleString()}"
            )


def check_twice(names: Sequence[str]) -> None:
    """:raises OptionError: for duplicate names of columns."""
    for name in names:
        if names.count(name) > 1:
            raise OptionError(f"the rows to write have column {name} twice: rename one of them")


def check_spelling(names: Iterable[str], added: Iterable[str]) -> None:
    """:raises OptionError: for a column that may be a misspelt added column."""
    spellings = {name.lower(): name for name in added}
    for name in names:
        if (near := spellings.get(name.lower())) is not None:
            raise OptionError(
                f"column {name} differs from {near} only in case: rename it, or set "
                "metadataPrefix if it is the table's"
            )


def _alike(given: DataType, expected: DataType) -> bool:
    """Whether a column has the expected type, ignoring nullability and width of integers."""
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

    All NULL if the batch lacks the column.
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
        # The array's type has the session's time zone, which does not matter.
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
        raise OptionError("a column to write cannot be a map")
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


_SHAPE = (
    "rows to write must be events, as read by format('cdc') without the option table; to write "
    "changes of one table, set the option table"
)
_NEEDED = {
    "columns": ("name", "source_type"),
    "ddl": ("query", "type"),
    "table_schema": ("table", "columns"),
    "table_schema.columns": ("name", "source_type"),
}
"""Fields that a struct column must have, if it exists."""


def check_events(schema: StructType) -> None:
    """:raises OptionError: for an unknown or missing column."""
    for name in ("before", "after"):
        if name in schema.names and isinstance(schema[name].dataType, StringType):
            raise OptionError(
                f"column {name} is string: JSON text does not have the types of its values; "
                "read with imageFormat=variant"
            )
    check_columns(schema, EVENT_COLUMNS, ("kind",), _SHAPE)
    for path, needed in _NEEDED.items():
        inner = _inner(schema, path)
        for field in needed:
            if inner is not None and field not in inner.names:
                raise OptionError(f"column {path} has no field {field}: {_SHAPE}")


def _inner(schema: StructType, path: str) -> StructType | None:
    """The struct at a path, or within the array there; None if missing."""
    for name in path.split("."):
        if name not in schema.names:
            return None
        type_ = schema[name].dataType
        found = type_.elementType if isinstance(type_, ArrayType) else type_
        assert isinstance(found, StructType)
        schema = found
    return schema


def column_cells(batch: pa.RecordBatch) -> list[ColumnCells | None]:
    """``columns`` of every row, as tuples that can be looked up."""
    array = batch.column("columns")
    items = array.flatten()
    fields = dict(zip((field.name for field in items.type), items.flatten(), strict=True))
    fields["source_type"] = fields["source_type"].fill_null("")
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


ColumnCells: TypeAlias = tuple[
    tuple[str, ...], tuple[str, ...], tuple[bool | None, ...], tuple[bool | None, ...]
]
"""Names, source types, nullable and key of a table's columns."""


def own_cells(array: pa.Array, type_: DataType) -> list[Any]:
    """The cells of a column of the table, as values for images.

    A JSON ``null`` in a variant is :data:`JSON_NULL`.

    :raises EncodeError: for a date outside of Python's range.
    """
    if isinstance(type_, VariantType):
        cells = ((pair, variant_cell(pair)) for pair in array_cells(array, type_))
        return [JSON_NULL if pair and value is None else value for pair, value in cells]
    if isinstance(type_, TimestampType):
        array = array.cast(pa.timestamp("us", tz="UTC"))
    try:
        values: list[Any] = array.to_pylist()
    except (OverflowError, ValueError) as error:
        raise EncodeError(f"a date is outside of the years 1 to 9999 ({error})") from error
    if isinstance(type_, FloatType):
        return [None if value is None else float(shortest_text(value, 6)) for value in values]
    read = _variants_within(type_)
    return values if read is None else [None if value is None else read(value) for value in values]


def _variants_within(type_: DataType) -> Callable[[Any], Any] | None:
    """A function that decodes the variants in a cell other than NULL; None if it has none."""
    if isinstance(type_, VariantType):
        return lambda pair: decode_variant(pair["value"], pair["metadata"])
    if isinstance(type_, ArrayType):
        item = _variants_within(type_.elementType)
        return item and (lambda items: [each if each is None else item(each) for each in items])
    if isinstance(type_, MapType):
        of_value = _variants_within(type_.valueType)
        return of_value and (
            lambda pairs: [(key, each if each is None else of_value(each)) for key, each in pairs]
        )
    if not isinstance(type_, StructType):
        return None
    fields = {field.name: _variants_within(field.dataType) for field in type_.fields}
    known = {name: read for name, read in fields.items() if read is not None}
    if not known:
        return None
    return lambda struct: {
        name: known[name](each) if name in known and each is not None else each
        for name, each in struct.items()
    }
