"""``tableChanges``: a table's schema in a DDL message, in TiCDC's form.

The inverse of :mod:`cdcfmt_debezium.table_changes`.  Properties beyond types (charsets, comments,
defaults, AUTO_INCREMENT) come from the ``flags`` of columns; otherwise they are null or false.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cdcfmt_core.events import Column, SchemaChange, TableSchema
from cdcfmt_core.types import Unknown
from cdcfmt_debezium.table_changes import COLUMN_FLAGS, TABLE_EXTRA
from cdcfmt_mysql.column_type import ColumnType
from cdcfmt_mysql.type_output import DISPLAY_WIDTHS, column_type, flag_texts

_WORD_OF: Final = {"CREATE": "CREATE", "ERASE": "DROP"}

_JDBC: Final = {
    "tinyint": 5,
    "smallint": 5,
    "mediumint": 4,
    "int": 4,
    "bigint": -5,
    "float": 6,
    "double": 8,
    "decimal": 3,
    "bit": -7,
    "char": 1,
    "binary": -2,
    "varbinary": -3,
    "tinyblob": 2004,
    "blob": 2004,
    "mediumblob": 2004,
    "longblob": 2004,
    "date": 91,
    "datetime": 93,
    "timestamp": 2014,
    "time": 92,
    "year": 4,
    "enum": 1,
    "set": 1,
    "json": 1111,
}
_VARCHAR: Final = 12


def table_changes(event: SchemaChange) -> list[dict[str, Any]]:
    """The entries; none if the event has no schema of its table."""
    table = event.table_schema
    extra = event.extra or {}
    word = extra.get("ddl_type")
    if word not in ("CREATE", "ALTER", "DROP"):
        word = _WORD_OF.get(event.ddl_type, "ALTER")
    if table is None and not (word == "DROP" and event.table):
        return []
    table_id = extra.get("table_id")
    if not isinstance(table_id, str):
        table_id = f'"{event.database}"."{event.table}"'
    return [
        {"type": word, "id": table_id, "table": None if table is None else _table(table, extra)}
    ]


def _table(table: TableSchema, extra: Mapping[str, Any]) -> dict[str, Any]:
    charset, comment = (extra.get(name) for name in TABLE_EXTRA.values())
    return {
        "defaultCharsetName": charset,
        "primaryKeyColumnNames": list(table.key_columns),
        "columns": [_column(column, position) for position, column in enumerate(table.columns, 1)],
        "comment": comment,
    }


def _column(column: Column, position: int) -> dict[str, Any]:
    unknown = isinstance(column.type, Unknown)
    parsed = ColumnType(column.source_type) if unknown else column_type(column)
    attributes = " UNSIGNED" * parsed.unsigned + " ZEROFILL" * parsed.zerofill
    if parsed.base == "decimal":
        attributes = ""
    name = parsed.base.upper() + attributes
    length, scale = _length_and_scale(parsed)
    texts = flag_texts(column)
    if length is None and texts.get("length", "").isdecimal():
        length = int(texts["length"])
    expression = name
    if parsed.base == "double" and scale is not None:
        expression = f"DOUBLE({length},{scale})" + attributes
    elif parsed.base == "vector" and length is not None:
        expression = f"VECTOR({length})"
    return {
        "name": column.name,
        "jdbcType": _JDBC.get(parsed.base, _VARCHAR),
        "nativeType": None,
        "comment": texts.get("comment"),
        "defaultValueExpression": texts.get("defaultValueExpression"),
        # TiCDC does not double quotes inside a name.
        "enumValues": None if parsed.elements is None else [f"'{e}'" for e in parsed.elements],
        "typeName": name,
        "typeExpression": expression,
        "charsetName": texts.get("charsetName"),
        "length": length,
        "scale": scale,
        "position": position,
        "optional": column.nullable is not False,
        **{name: name in column.flags for name in COLUMN_FLAGS},
    }


def _length_and_scale(parsed: ColumnType) -> tuple[int | None, int | None]:
    if parsed.base == "set":
        return 2 * len(parsed.elements or ()) - 1, None
    if parsed.base == "enum":
        return 1, None
    if not parsed.params:
        return None, None
    length = parsed.params[0]
    if length == DISPLAY_WIDTHS.get(parsed.base, (None, None))[parsed.unsigned]:
        return None, None
    if parsed.base == "bit" and length == 1:
        return None, None
    return length, parsed.params[1] if len(parsed.params) > 1 else None
