"""CloudCanal's ``tableChanges``: the table's schema in a DDL message.

Source: CloudCanal "MQ message formats", the DDL examples of CloudCanal Json and Canal Json,
and its appendix "jdbcType".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any, TypeAlias, TypeVar

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.types import LogicalType, Unknown
from cdcfmt_mysql.jdbc import logical_from_jdbc
from cdcfmt_toolkit.wire_json import names_of

_Schema = TypeVar("_Schema")
RowTypes: TypeAlias = tuple[tuple[str, str | int | None], ...]
"""Each column's name with its type text or JDBC code; None if the message has neither."""


def type_from_jdbc(code: Any) -> tuple[str, LogicalType]:
    """Source type and logical type from a JDBC code; unknown if there is no code."""
    if type(code) is int:
        return f"jdbc {code}", logical_from_jdbc(code)
    return "", Unknown()


def row_types(
    names: Iterable[str], texts: Mapping[str, Any] | None, codes: Mapping[str, Any] | None
) -> RowTypes:
    """The types of a row's columns in a message: type texts, else JDBC codes, else None."""
    texts, codes = texts or {}, codes or {}
    types: list[tuple[str, str | int | None]] = []
    for name in names:
        text, code = texts.get(name), codes.get(name)
        if isinstance(text, str) and text.strip():
            types.append((name, text))
        else:
            types.append((name, code if type(code) is int else None))
    return tuple(types)


def type_of(
    known: str | int | None, resolve_type: Callable[[str], LogicalType]
) -> tuple[str, LogicalType]:
    """Source type and logical type of a column of :func:`row_types`."""
    return (known, resolve_type(known)) if isinstance(known, str) else type_from_jdbc(known)


def readable(
    read: Callable[[], _Schema], extra: dict[str, Any], counts: Counter[str]
) -> _Schema | None:
    """The table schema of a DDL message; None if it cannot be read.

    The event keeps its statement: the reason is counted, and in ``extra.schema_error``.
    """
    try:
        return read()
    except DecodeError as error:
        counts["DDL whose table schema cannot be read"] += 1
        extra["schema_error"] = f"{error.field}: {error.reason}" if error.field else error.reason
        return None


def schema_from_table_changes(
    changes: Any,
    database: str,
    table: str,
    resolve_type: Callable[[str], LogicalType],
    schema: str | None = None,
) -> TableSchema | None:
    """The table schema in ``tableChanges``, or None if it has none.

    :raises DecodeError: if ``tableChanges`` has an unknown structure.
    """
    if not changes:
        return None
    body = changes.get("table") if isinstance(changes, dict) else None
    if body is None and isinstance(changes, dict):
        return None
    if not isinstance(body, dict) or not isinstance(body.get("columns"), list):
        raise DecodeError("is not a table's columns", field="tableChanges", sample=changes)
    key_columns = tuple(names_of(body, "primaryKeyColumnNames") or ())
    keys = frozenset(key_columns)
    columns = []
    for column in body["columns"]:
        if not isinstance(column, dict) or not isinstance(column.get("name"), str):
            raise DecodeError("is not a column", field="tableChanges.table.columns", sample=column)
        name = column["name"]
        text = {name: column.get("typeExpression") or column.get("typeName")}
        ((_, known),) = row_types((name,), text, {name: column.get("jdbcType")})
        columns.append(
            (column.get("position"), Column(name, *type_of(known, resolve_type), key=name in keys))
        )
    if not columns:
        # Of a sequence, for example.
        return None
    if all(type(position) is int for position, _ in columns):
        columns.sort(key=itemgetter(0))
    return TableSchema(database, table, tuple(column for _, column in columns), key_columns, schema)
