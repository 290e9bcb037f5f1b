"""Column types that a user gives, for tables whose messages have none (``tableSchemas``).

Source: Debezium PostgreSQL connector, "Data type mappings"; without schema a message has the
same values, and nothing of their types.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from cdcfmt_core.errors import OptionError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.texts import parse_json
from cdcfmt_core.types import (
    Array,
    Binary,
    Bit,
    Geometry,
    LogicalType,
    Struct,
    Text,
    Unknown,
    storage_of,
)
from cdcfmt_debezium.profile import BITS

OPTION: Final = "tableSchemas"
EXAMPLE: Final = '{"public": {"orders": {"id": "bigint", "price": "numeric(10,2)"}}}'
_BITS: Final = re.compile(r"(?:bit varying|varbit) *\(([0-9]{1,2})\)").fullmatch
_TEXTS_AS_BYTES: Final = frozenset(
    ["box", "circle", "line", "lseg", "path", "pg_lsn", "polygon", "regclass", "tsquery", "xid8"]
)
"""Types of PostgreSQL that ``include.unknown.datatypes`` sends as bytes of their texts."""


class GivenTables:
    """The tables of the option.

    :raises OptionError: if it is not such an object, or for a type that the type map lacks.
    """

    def __init__(self, text: str | None, resolve_type: Callable[[str], LogicalType]) -> None:
        self._resolve = resolve_type
        self._tables: dict[tuple[str, ...], TableSchema] = {}
        if text is not None:
            try:
                found = parse_json(text)
            except ValueError:
                found = None
            self._add((), found)

    def find(self, database: str, table: str, schema: str | None) -> TableSchema | None:
        """The table by database, schema and name, else without its first name."""
        names = (database, table) if schema is None else (database, schema, table)
        return self._tables.get(names) or self._tables.get(names[1:])

    def _add(self, names: tuple[str, ...], found: Any) -> None:
        if type(found) is not dict or not found or len(names) > 3:
            raise OptionError(f"option {OPTION}: not a JSON object such as {EXAMPLE}")
        if any(type(each) is dict for each in found.values()) or len(names) < 2:
            for name, inner in found.items():
                self._add((*names, name), inner)
            return
        columns = tuple(self._column(names, *each) for each in found.items())
        self._tables[names] = TableSchema("", names[-1], columns)

    def _column(self, names: tuple[str, ...], name: str, source_type: Any) -> Column:
        if source_type is None:
            return Column(name, "", Unknown())
        shown = ".".join((*names, name))
        if type(source_type) is not str:
            raise OptionError(f"option {OPTION}: {shown}: a type is text, not {source_type!r}")
        logical = storage_of(self._resolve(source_type))
        if isinstance(logical, Unknown):
            raise OptionError(
                f"option {OPTION}: {shown}: the type map has no type {source_type!r}; give the "
                "type in which messages have the value (text for labels of an enum), null for the "
                "value as in the JSON, or another typeMap"
            )
        return Column(name, source_type, _as_written(source_type.strip().lower(), logical))


def _as_written(source_type: str, logical: LogicalType) -> LogicalType:
    """The type of the connectors' values: PostgreSQL's own texts have others."""
    if isinstance(logical, Array) and source_type.endswith("]"):
        return Array(_as_written(source_type.rpartition("[")[0], logical.element))
    if source_type.endswith("multirange") or source_type in _TEXTS_AS_BYTES:
        return Binary()
    if source_type == "point":
        return Geometry()
    if (bits := _BITS(source_type)) is not None and 0 < int(bits[1]) <= 64:
        return Bit(int(bits[1]))
    if isinstance(logical, Text) and source_type.startswith(BITS):
        return Binary()
    # Ranges.
    return Text() if isinstance(logical, Struct) else logical
