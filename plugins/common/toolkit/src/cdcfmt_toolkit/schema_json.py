"""Table schemas as JSON, for the files of a schema store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from cdcfmt_core import types
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.schemas.records import SchemaRecord
from cdcfmt_core.types import LogicalType

FORMAT = 1
"""Version of the text; newer versions are rejected."""

_TYPES: dict[str, type] = {class_.__name__: class_ for class_ in types.LogicalType.__args__}


def record_to_json(record: SchemaRecord) -> str:
    """A record as one line of JSON; equal records give equal text."""
    fields = {"format": FORMAT, "stream": record.stream, "position": list(record.position)}
    fields |= table_to_dict(record.table)
    # ASCII, as names may hold bytes that are not UTF-8.
    return json.dumps(fields, ensure_ascii=True, separators=(",", ":"))


def record_from_json(text: str | bytes) -> SchemaRecord:
    """The record from a text of :func:`record_to_json`.

    :raises ValueError: if it is invalid, or was written by a newer version.
    """
    try:
        fields = json.loads(text)
        if fields["format"] > FORMAT:
            raise ValueError("it was written by a newer version of cdcfmt-core")
        table = table_from_dict(fields)
        return SchemaRecord(table, tuple(fields["position"]), fields["stream"])
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"it is not a table schema: {type(error).__name__}: {error}") from error


def table_to_dict(table: TableSchema) -> dict[str, Any]:
    """A table schema as plain JSON values."""
    return {
        "database": table.database,
        "schema": table.schema,
        "table": table.table,
        "key_columns": list(table.key_columns),
        "columns": [_column_to_dict(column) for column in table.columns],
    }


def table_from_dict(fields: Mapping[str, Any]) -> TableSchema:
    """The table schema that :func:`table_to_dict` wrote.

    :raises KeyError: or TypeError, if it is invalid.
    """
    return TableSchema(
        fields["database"],
        fields["table"],
        tuple(_column_from_dict(column) for column in fields["columns"]),
        tuple(fields["key_columns"]),
        fields["schema"],
    )


def _column_to_dict(column: Column) -> dict[str, Any]:
    """A column as plain JSON values."""
    fields = attrs.asdict(column, recurse=False)
    if column.extension is None:
        del fields["extension"]
    return {**fields, "type": _type_to_dict(column.type), "flags": list(column.flags)}


def _column_from_dict(fields: dict[str, Any]) -> Column:
    """The column that :func:`_column_to_dict` wrote.

    :raises KeyError: or TypeError, if it is invalid.
    """
    return Column(
        fields["name"],
        fields["source_type"],
        _type_from_dict(fields["type"]),
        fields["nullable"],
        fields["key"],
        tuple(fields["flags"]),
        fields.get("extension"),
    )


def _type_to_dict(logical: LogicalType) -> dict[str, Any]:
    parameters = attrs.asdict(logical, recurse=False)
    return {
        "name": type(logical).__name__,
        **{name: _parameter_to_json(value) for name, value in parameters.items()},
    }


def _parameter_to_json(value: Any) -> Any:
    """Types are objects, and fields and the members of an ENUM are lists."""
    if isinstance(value, tuple):
        return [_parameter_to_json(each) for each in value]
    return _type_to_dict(value) if attrs.has(type(value)) else value


def _type_from_dict(fields: dict[str, Any]) -> LogicalType:
    parameters = {
        name: _parameter_from_json(value) for name, value in fields.items() if name != "name"
    }
    logical: LogicalType = _TYPES[fields["name"]](**parameters)
    return logical


def _parameter_from_json(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_parameter_from_json, value))
    return _type_from_dict(value) if isinstance(value, dict) else value
