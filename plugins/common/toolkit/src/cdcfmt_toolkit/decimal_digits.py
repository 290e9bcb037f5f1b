"""Infer the digits of DECIMAL columns from values, if the type is only ``decimal``."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any, TypeAlias

from cdcfmt_core.events import RowChange, TableSchema
from cdcfmt_core.types import Array, Decimal, LogicalType, Map, Struct

MAX_PRECISION = 38
"""The digits of a 128-bit decimal, Spark's widest."""


class DecimalDigits:
    """The digits that the values of a table's columns need, by column name.

    MySQL prints every value with exactly the column's scale, so one value is enough.  Of several
    scales (other sources, numbers in JSON) the largest is used.  The decimals in an array, a map
    or a field of a struct have digits of their own.

    :param name: maps all spellings of a column to one name.
    """

    def __init__(self, name: Callable[[str], str] = str) -> None:
        self._name = name
        self._scales: dict[_Place, int] = {}
        self._wholes: dict[_Place, int] = {}
        self._open: dict[TableSchema, dict[str, LogicalType]] = {}

    def see(self, event: RowChange) -> None:
        """Record the digits of both images, in columns of unknown precision."""
        columns = self._open.get(event.table)
        if columns is None:
            columns = self._open[event.table] = {
                column.name: column.type
                for column in event.table.columns
                if has_open_decimals(column.type)
            }
        if not columns:
            return
        for image in (event.before, event.after):
            for name, type_ in columns.items() if image is not None else ():
                self._see((self._name(name),), type_, image.values.get(name))  # type: ignore[union-attr]

    def _see(self, place: _Place, type_: LogicalType, value: Any) -> None:
        if isinstance(value, list) and isinstance(type_, Array):
            for item in value:
                self._see((*place, None), type_.element, item)
        elif isinstance(value, dict) and isinstance(type_, Map):
            for item in value.values():
                self._see((*place, None), type_.value, item)
        elif isinstance(value, dict) and isinstance(type_, Struct):
            for name, each in type_.fields:
                self._see((*place, name), each, value.get(name))
        elif isinstance(value, decimal.Decimal) and value.is_finite():
            self._count(place, value)

    def _count(self, place: _Place, value: decimal.Decimal) -> None:
        exponent = value.as_tuple().exponent
        assert isinstance(exponent, int)
        self._scales[place] = max(self._scales.get(place, 0), -exponent)
        self._wholes[place] = max(self._wholes.get(place, 0), value.adjusted() + 1)

    def known(self, name: str, type_: LogicalType) -> LogicalType:
        """The type of a column, with inferred digits if it has none and values were seen.

        The precision is 38, or more if the values need it.
        """
        return self._known((name,), type_)

    def _known(self, place: _Place, type_: LogicalType) -> LogicalType:
        if isinstance(type_, Array):
            return Array(self._known((*place, None), type_.element))
        if isinstance(type_, Map):
            return Map(type_.key, self._known((*place, None), type_.value))
        if isinstance(type_, Struct):
            fields = ((name, self._known((*place, name), each)) for name, each in type_.fields)
            return Struct(tuple(fields))
        if not isinstance(type_, Decimal) or type_.precision is not None:
            return type_
        if place not in self._scales:
            return type_
        scale = max(self._scales[place], type_.scale or 0)
        return Decimal(max(MAX_PRECISION, self._wholes[place] + scale), scale)


_Place: TypeAlias = tuple[str | None, ...]
"""A column's name, and the way within its value: names of fields, None for items."""


def has_open_decimals(type_: LogicalType) -> bool:
    """Whether the type is or has a decimal of unknown precision."""
    if isinstance(type_, Array):
        return has_open_decimals(type_.element)
    if isinstance(type_, Map):
        return has_open_decimals(type_.value)
    if isinstance(type_, Struct):
        return any(has_open_decimals(each) for _, each in type_.fields)
    return isinstance(type_, Decimal) and type_.precision is None
