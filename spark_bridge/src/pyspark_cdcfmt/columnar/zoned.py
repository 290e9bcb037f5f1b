"""TIMESTAMP values that are an object of a time zone's name and of text.

A plan takes one name for each column, as producers write the same one in every row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, Final, Literal

from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.events import TableSchema
from cdcfmt_core.layout import Zoned
from cdcfmt_core.types import Timestamp
from pyspark_cdcfmt.columnar.structs import struct

text_of: Final = attrgetter("f1")
"""The text of such a value, as :func:`zoned_type` has it."""


def zoned_type(zoned: Zoned, name: str) -> Any:
    """What msgspec checks of values in the zone of this name."""
    return struct([(zoned.zone, Literal[name]), (zoned.text, str)]) | None


class ZoneNames:
    """The names of zones that columns have had, remembered from plan to plan."""

    def __init__(self) -> None:
        self._seen: Cache[TableSchema, dict[str, str | None]] = Cache(8 << 20)

    def find(
        self, zoned: Zoned | None, table: TableSchema, rows: Iterable[Mapping[str, Any]]
    ) -> dict[str, str]:
        """Columns with zoned values → the names, once these rows were seen."""
        columns = [column.name for column in table.columns if isinstance(column.type, Timestamp)]
        if zoned is None or not columns:
            return {}
        seen = self._seen.get(table)
        if seen is None:
            seen = self._seen.add(table, {}, table_size(table))
        for row in rows:
            for column in columns:
                value = row.get(column)
                if value is not None:
                    name = value.get(zoned.zone) if type(value) is dict else None
                    seen[column] = name if type(name) is str else None
        # Of a column that had no value yet the zone is probably that of the others.
        usual = next((name for name in seen.values() if name is not None), None)
        names = {column: seen.get(column, usual) for column in columns}
        return {column: name for column, name in names.items() if name is not None}
