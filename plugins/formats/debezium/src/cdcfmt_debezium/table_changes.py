"""Table schemas from ``tableChanges`` of DDL messages.

Sources: Debezium MySQL connector, "Schema change topic"; CloudCanal's "MQ message formats",
Debezium Envelope, where it is an object instead of a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any, Final, TypeAlias

import attrs

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.types import LogicalType, Unknown
from cdcfmt_mysql.column_type import ALIASES

_FIELD: Final = "tableChanges"
TABLE_EXTRA: Final = {"defaultCharsetName": "table_charset", "comment": "table_comment"}
"""Fields of a table → their names in ``extra`` of the event."""
COLUMN_FLAGS: Final = ("autoIncremented", "generated")
COLUMN_TEXTS: Final = ("charsetName", "defaultValueExpression", "comment")
"""Fields of a column that become its ``flags``."""
_WITH_LENGTH: Final = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "bigint", "bit", "decimal", "float"}
    | {"char", "varchar", "binary", "varbinary", "vector"}
)
_WITH_FRACTION: Final = frozenset({"time", "datetime", "timestamp"})
_WITH_SCALE: Final = frozenset({"decimal", "float", "double"})
_MAX_WORDS: Final = 3
"""Maximum number of words in a type name."""


TablePlace: TypeAlias = tuple[str, str, str | None]
"""Database, table and schema."""


@attrs.frozen
class TableChange:
    """One entry of ``tableChanges``.

    - ``word``: its ``type``
    - ``id``, ``names``: the table's id, and the names in it
    - ``place``: database, name and schema of the changed table
    - ``extra``: other properties of the table
    """

    word: str
    id: str
    names: tuple[TablePlace, ...]
    place: TablePlace
    table: TableSchema | None
    extra: Mapping[str, str]


def read_table_changes(
    changes: Any,
    of_message: TablePlace,
    resolve_type: Callable[[str], LogicalType] | None,
    *,
    escaped_values: bool,
) -> list[TableChange]:
    """Read the entries.

    :param of_message: The message's names, those of the table if there is one entry.  Connectors
        list all tables of the statement (``a,b``), and send a message per table.
    :param resolve_type: None for a database whose type names are unknown.
    :param escaped_values: Whether quotes and backslashes in ``enumValues`` are doubled (not by
        TiCDC).
    :raises DecodeError: if ``changes`` has another structure.
    """
    if changes is None:
        return []
    entries = [changes] if type(changes) is dict else changes
    if type(entries) is not list or not all(type(entry) is dict for entry in entries):
        raise DecodeError("is not a list of changes", field=_FIELD, sample=changes)
    result = []
    for entry in entries:
        id_ = entry.get("id")
        names = _names(id_, of_message) if type(id_) is str else ()
        table = of_message[1]
        place = of_message
        listed = names and names[-1][1] != table and names[-1][1] in table.split(",")
        says_schema = names and names[-1][2] is not None and of_message[2] is None
        if names and (len(entries) > 1 or not table or listed or says_schema):
            place = names[-1]
        word = entry.get("type")
        schema, extra = None, {}
        if entry.get("table") is not None:
            schema = _table(entry["table"], place, resolve_type, escaped_values)
            extra = _texts(entry["table"], TABLE_EXTRA)
        result.append(
            TableChange(
                word if type(word) is str else "",
                id_ if type(id_) is str else "",
                names,
                place,
                schema,
                extra,
            )
        )
    return result


def _texts(body: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    return {name: body[name] for name in names if type(body.get(name)) is str}


def _names(id_: str, of_message: TablePlace) -> tuple[TablePlace, ...]:
    """Parse ``"db"."table"``, or two of them for TiCDC's RENAME, with unescaped quotes.

    Databases with schemas have ``"db"."schema"."table"``, or ``"schema"."table"``.
    """
    database, _, schema = of_message
    names: list[TablePlace] = []
    for part in id_.split('","'):
        *parents, table = part.strip('"').split('"."')
        if len(parents) > 1:
            names.append((parents[-2], table, parents[-1]))
        elif schema is not None:
            names.append((database, table, parents[0] if parents else schema))
        else:
            names.append((parents[0] if parents else "", table, None))
    return tuple(names)


def _table(
    body: Any,
    of_table: TablePlace,
    resolve_type: Callable[[str], LogicalType] | None,
    escaped: bool,
) -> TableSchema | None:
    """The schema of a table; None without columns, as of a sequence."""
    if type(body) is not dict or type(body.get("columns")) is not list:
        raise DecodeError("is not a table's columns", field=f"{_FIELD}.table", sample=body)
    keys = body.get("primaryKeyColumnNames") or []
    if type(keys) is not list or not all(type(name) is str for name in keys):
        raise DecodeError(
            "is not a list of names", field=f"{_FIELD}.table.primaryKeyColumnNames", sample=keys
        )
    columns = []
    key_names = frozenset(keys)
    for column in body["columns"]:
        if type(column) is not dict or type(column.get("name")) is not str:
            raise DecodeError("is not a column", field=f"{_FIELD}.table.columns", sample=column)
        text = type_text(column, escaped)
        nullable = column.get("optional")
        columns.append(
            (
                column.get("position"),
                Column(
                    column["name"],
                    text,
                    resolve_type(text) if resolve_type and text else Unknown(text),
                    nullable if type(nullable) is bool else None,
                    column["name"] in key_names,
                    _flags(column, text),
                ),
            )
        )
    if not columns:
        return None
    if all(type(position) is int for position, _ in columns):
        columns.sort(key=itemgetter(0))
    database, table, schema = of_table
    own = tuple(column for _, column in columns)
    return TableSchema(database, table, own, tuple(keys), schema)


def _flags(column: Mapping[str, Any], text: str) -> tuple[str, ...]:
    """Other properties of a column, with wire names (``autoIncremented``, ``length 0``)."""
    flags = [name for name in COLUMN_FLAGS if column.get(name) is True]
    flags += [f"{name} {flag_text}" for name, flag_text in _texts(column, COLUMN_TEXTS).items()]
    length = column.get("length")
    if type(length) is int and "(" not in text:
        # TiCDC distinguishes datetime(0) from datetime, and year(4) from year.
        flags.append(f"length {length}")
    return tuple(flags)


def type_text(column: Mapping[str, Any], escaped_values: bool) -> str:
    """A column's type as SHOW CREATE TABLE prints it.

    Adds separate fields to the type expression: ``DECIMAL`` with length 10 and scale 4.
    """
    text = column.get("typeExpression") or column.get("typeName")
    if type(text) is not str:
        return ""
    text = text.strip()
    values: Any = column.get("enumValues")
    if "(" in text or not text:
        return text if values else text.lower()
    name, base, attributes = _name(text.lower().split())
    if name == "int8":
        # Kafka Connect's int8 has 8 bits, MySQL's has 8 bytes.
        name = base
    is_named = base in ("enum", "set") and type(values) is list
    if is_named and all(type(value) is str for value in values):
        return f"{base}({','.join(_quoted(value, escaped_values) for value in values)})"
    length, scale = column.get("length"), column.get("scale")
    parameters = ""
    if base in _WITH_SCALE and type(length) is int and type(scale) is int:
        parameters = f"({length},{scale})"
    elif base == "bit" and length is None:
        parameters = "(1)"
    elif type(length) is int and (base in _WITH_LENGTH or (base in _WITH_FRACTION and length)):
        # The length of FLOAT is its precision: FLOAT(53) is a double.
        parameters = f"({length})"
    return " ".join([name + parameters, *attributes])


def _name(words: list[str]) -> tuple[str, str, list[str]]:
    """A type's original name, its canonical name, and its attributes."""
    for count in range(_MAX_WORDS, 0, -1):
        name = " ".join(words[:count])
        if name in ALIASES:
            return name, ALIASES[name], words[count:]
    return words[0], words[0], words[1:]


def _quoted(value: str, escaped: bool) -> str:
    if len(value) >= 2 and value[0] == value[-1] == "'":
        value = value[1:-1]
        if escaped:
            # The literal of the statement, as SHOW CREATE TABLE prints it.
            value = value.replace("''", "'").replace("\\\\", "\\")
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
