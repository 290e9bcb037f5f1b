"""Decode plans, created once per writer schema and cached.

Sources: TiCDC's ``codec/avro``; "TiCDC Avro Protocol", "Data format" and "Column data format".
"""

from __future__ import annotations

import re
from typing import Any, Final

import attrs

from cdcfmt_core import DecoderContext, types
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.schema_registry import WriterSchema
from cdcfmt_core.types import LogicalType, storage_of
from cdcfmt_mysql.column_type import ColumnType
from cdcfmt_mysql.type_output import type_text
from cdcfmt_ticdc_avro.message import ADDED
from cdcfmt_toolkit import plans
from cdcfmt_toolkit.avro_schemas import (
    AvroField,
    AvroNode,
    ReadDatum,
    open_datum_reader,
    parse_avro,
)
from cdcfmt_toolkit.dialects import column_reader
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.images import ReadValue

_COLUMN_BYTES = 2_000
"""Memory of a column in a plan and its Avro type, in addition to its schema."""
_PARAMETERS: Final = "connect.parameters"
_TYPE: Final = "tidb_type"
_TYPES: Final = {
    "INT": "int",
    "INT UNSIGNED": "int unsigned",
    "BIGINT": "bigint",
    "BIGINT UNSIGNED": "bigint unsigned",
    "FLOAT": "float",
    "DOUBLE": "double",
    "TEXT": "text",
    "BLOB": "blob",
    "DATE": "date",
    "DATETIME": "datetime",
    "TIMESTAMP": "timestamp",
    "TIME": "time",
    "YEAR": "year",
    "JSON": "json",
    "TiDBVECTORFloat32": "vector",
}
_ESCAPED_COMMAS: Final = re.compile(r"(?:\\,|[^,])*")


@attrs.define(eq=False)
class TablePlan(plans.TablePlan):
    """The plan of a writer schema; ``read``: the reader of its data."""

    read: ReadDatum


class TablePlans:
    """Plans by the writer schema of a row (or of the key of a delete) and its key columns."""

    def __init__(self, context: DecoderContext) -> None:
        self._context = context
        self.find = plans.Plans(self._make, _COLUMN_BYTES).find

    def _make(self, writer: WriterSchema, keys: tuple[str, ...] | None) -> TablePlan:
        """``keys``: None if the record itself is a key.

        :raises DecodeError: if the schema is not TiCDC's.
        """
        if writer.kind != "avro":
            raise DecodeError(f"schema {writer.id} of the registry is not Avro but {writer.kind}")
        root = parse_avro(writer)
        if root.kind != "record":
            raise DecodeError(f"schema {writer.id} of the registry is not that of a row")
        fields = [field for field in root.fields if field.name not in ADDED]
        database, table = names_of(root)
        names = [field.name for field in fields]
        keys = tuple(names) if keys is None else tuple(name for name in keys if name in names)
        columns, encodings = [], {}
        for field in fields:
            source_type = _source_type(field)
            logical = self._context.resolve_type(source_type)
            encodings[field.name] = value_encoding(field, storage_of(logical))
            key = field.name in keys
            columns.append(Column(field.name, source_type, logical, field.type.nullable, key))
        schema = TableSchema(database, table, tuple(columns), keys)
        self._context.note_zoneless_timestamps(schema)
        context = self._context

        def open_reader(column: Column) -> ReadValue:
            return column_reader(encodings[column.name], column, context)

        read = open_datum_reader(root, context.max_message_bytes)
        return TablePlan.open(schema, context, open_reader, read=read)


def names_of(root: AvroNode) -> tuple[str, str]:
    """Database and table, from the name of a row's record."""
    # The namespace is that of the changefeed, and the database.
    space, _, table = root.name.rpartition(".")
    return space.rpartition(".")[2], table


def _source_type(field: AvroField) -> str:
    """The column's type as MySQL's text, as far as the schema tells it."""
    props = field.type.without_null.props
    parameters = props.get(_PARAMETERS)
    parameters = parameters if type(parameters) is dict else {}
    name = parameters.get(_TYPE)
    if name == "DECIMAL":
        digits = props.get("precision"), props.get("scale")
        known = all(type(number) is int for number in digits)
        return "decimal({},{})".format(*digits) if known else "decimal"
    if name == "BIT":
        return f"bit({parameters.get('length', 64)})"
    if name in ("ENUM", "SET"):
        column = ColumnType(name.lower(), elements=_members(parameters.get("allowed")))
        return type_text(column, full=True)
    if name not in _TYPES:
        raise DecodeError(
            "the schema has no TiDB type of the column", field=field.name, sample=name
        )
    return _TYPES[name]


def _members(text: Any) -> tuple[str, ...] | None:
    """Members are joined by commas, and those in them escaped."""
    if type(text) is not str:
        return None
    members: list[str] = []
    at = 0
    while at <= len(text):
        match = _ESCAPED_COMMAS.match(text, at)
        assert match is not None  # may match an empty text
        members.append(match[0].replace("\\,", ","))
        at = match.end() + 1
    return tuple(members)


def value_encoding(field: AvroField, logical: LogicalType) -> Encoding:
    """The value encoding of a column."""
    kind = field.type.without_null.kind
    if kind == "bytes":
        if isinstance(logical, types.Decimal):
            return Encoding("connect-decimal")
        return Encoding("big-endian-bits" if isinstance(logical, types.Bit) else "base64")
    if kind == "string":
        # Names of digits only are no numbers.
        has_names = isinstance(logical, types.Enum | types.Set)
        return Encoding("text" if has_names else "mysql-text")
    if kind in ("int", "long", "float", "double"):
        # From 2^63 on, the long is negative.
        return Encoding("json-number", wraps=logical == types.Int(64, signed=False))
    raise DecodeError(f"a column of Avro's type {kind}", field=field.name)
