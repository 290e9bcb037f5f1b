"""Checksum of a written row: the original one if known, otherwise a computed one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC
from typing import Any, Final, Literal, TypeAlias

import attrs

from cdcfmt_core import types
from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.events import Column, Image, RowChange, TableSchema
from cdcfmt_core.types import LogicalType
from cdcfmt_mysql.text_output import BAD_VALUE, text_printer, value_error
from cdcfmt_mysql.type_output import column_type
from cdcfmt_simple.message import Wire
from cdcfmt_toolkit.row_checksum import BYTES, INTEGERS, checksum_of
from cdcfmt_toolkit.row_messages import Checksum

_Printers: TypeAlias = Mapping[str, Callable[[Any], Any]]

_VERSION: Final = 2
"""TiCDC's version number of checksums over columns; TiDB also has checksums over whole rows."""

_COLUMN_BYTES: Final = 800
"""Memory of a column in the cache, in addition to its schema."""


class Checksums:
    """Checksums of rows, with a cache per table."""

    def __init__(self) -> None:
        self._tables: Cache[TableSchema, tuple[TableSchema, _Printers]] = Cache()

    def of(self, event: RowChange) -> Wire:
        """``checksum``."""
        came = (event.extra or {}).get("checksum")
        if isinstance(came, dict):
            return came
        return {
            "version": _VERSION,
            "corrupted": False,
            "current": self._compute(event.table, event.after),
            "previous": self._compute(event.table, event.before),
        }

    def part(self, table: TableSchema, write: Callable[[Wire], bytes]) -> Checksum:
        """The message part with the checksums of a table's rows, encoded by ``write``."""
        kinds = {column.name: _kind(column) for column in table.columns}
        known = {name: kind for name, kind in kinds.items() if kind is not None}
        return Checksum(
            known if len(known) == len(kinds) else None, lambda row: write(self.of(row))
        )

    def _compute(self, schema: TableSchema, image: Image | None) -> int:
        if image is None:
            return 0
        known = self._tables.get(schema)
        if known is None:
            known = _as_written(schema)
            self._tables.add(schema, known, table_size(schema, _COLUMN_BYTES))
        written, printers = known
        # A TIMESTAMP is already printed in UTC.
        return checksum_of(written.columns, _printed(image, printers), str)


def _kind(column: Column) -> Literal["number", "float", "double", "text"] | None:
    base, logical = column_type(column).base, column.type
    if base in INTEGERS:
        is_number = isinstance(
            logical, (types.Bit, types.Bool, types.Enum, types.Int, types.Set, types.Year)
        )
        return "number" if is_number else None
    if base == "float":
        return "float" if logical == types.Float(32) else None
    if base == "double":
        return "double" if logical == types.Float(64) else None
    has_bytes = base not in BYTES or isinstance(logical, types.Binary)
    return "text" if has_bytes and not isinstance(logical, (types.Geometry, types.Vector)) else None


def _as_written(schema: TableSchema) -> tuple[TableSchema, _Printers]:
    """The table with MySQL's base types, and printers of its values."""
    columns = tuple(
        attrs.evolve(column, source_type=column_type(column).base) for column in schema.columns
    )
    printers = {column.name: _printer(column.type) for column in columns}
    return attrs.evolve(schema, columns=columns), printers


def _printed(image: Image, printers: _Printers) -> dict[str, Any]:
    printed = {}
    for name, print_value in printers.items():
        value = image.values.get(name)
        try:
            printed[name] = None if value is None else print_value(value)
        except BAD_VALUE as error:
            raise value_error(name, value, error) from error
    return printed


def _printer(logical: LogicalType) -> Callable[[Any], Any]:
    return bytes if isinstance(logical, types.Binary) else text_printer(logical, time_zone=UTC)
