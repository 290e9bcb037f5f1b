"""Infer the digits of DECIMAL columns from values, if the type is only ``decimal``."""

from __future__ import annotations

import decimal
from collections.abc import Callable

from cdcfmt_core.events import RowChange, TableSchema
from cdcfmt_core.types import Decimal, LogicalType

MAX_PRECISION = 38
"""The digits of a 128-bit decimal, Spark's widest."""


class DecimalDigits:
    """The digits that the values of a table's columns need, by column name.

    MySQL prints every value with exactly the column's scale, so one value is enough.  Of several
    scales (other sources, numbers in JSON) the largest is used.

    :param name: maps all spellings of a column to one name.
    """

    def __init__(self, name: Callable[[str], str] = str) -> None:
        self._name = name
        self._scales: dict[str, int] = {}
        self._wholes: dict[str, int] = {}
        self._open: dict[TableSchema, tuple[str, ...]] = {}

    def see(self, event: RowChange) -> None:
        """Record the digits of both images, in columns of unknown precision."""
        names = self._open.get(event.table)
        if names is None:
            names = self._open[event.table] = tuple(
                column.name
                for column in event.table.columns
                if isinstance(column.type, Decimal) and column.type.precision is None
            )
        if not names:
            return
        for image in (event.before, event.after):
            for name in names if image is not None else ():
                value = image.values.get(name)  # type: ignore[union-attr]
                if isinstance(value, decimal.Decimal) and value.is_finite():
                    self._count(self._name(name), value)

    def _count(self, name: str, value: decimal.Decimal) -> None:
        exponent = value.as_tuple().exponent
        assert isinstance(exponent, int)
        self._scales[name] = max(self._scales.get(name, 0), -exponent)
        self._wholes[name] = max(self._wholes.get(name, 0), value.adjusted() + 1)

    def known(self, name: str, type_: LogicalType) -> LogicalType:
        """The type of a column, with inferred digits if it has none and values were seen.

        The precision is 38, or more if the values need it.
        """
        if not isinstance(type_, Decimal) or type_.precision is not None:
            return type_
        if name not in self._scales:
            return type_
        scale = max(self._scales[name], type_.scale or 0)
        return Decimal(max(MAX_PRECISION, self._wholes[name] + scale), scale)
