"""The schemas of one table by position, and tables that get schemas after one of their rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, TypeAlias

import attrs

from cdcfmt_core.events import TableSchema

Position: TypeAlias = tuple[Any, ...]

_MAX_ALTERNATIVES = 10
"""Maximum number of distinct schemas at one position."""


@attrs.define
class Versions:
    """The positions in order, and the schemas added at each, in order.

    ``sizes``: approximate bytes of each position.
    """

    positions: list[Position] = attrs.field(factory=list)
    tables: dict[Position, tuple[TableSchema, ...]] = attrs.field(factory=dict)
    sizes: dict[Position, int] = attrs.field(factory=dict)

    def copy(self) -> Versions:
        """An independent copy."""
        return Versions(self.positions[:], self.tables.copy(), self.sizes.copy())

    def in_order(self) -> Iterator[tuple[Position, TableSchema]]:
        """Each schema with its position, ordered by position."""
        for position in self.positions:
            for table in self.tables[position]:
                yield position, table

    def interned(self, position: Position, table: TableSchema) -> TableSchema:
        """An equal schema at this or the previous position, else ``table``."""
        at = bisect_right(self.positions, position)
        # The position itself, if present, and the previous one.
        for index in range(at - 1, max(at - 3, -1), -1):
            for known in reversed(self.tables[self.positions[index]]):
                if alike(known, table):
                    return known
        return table


def with_newest(known: tuple[TableSchema, ...], table: TableSchema) -> tuple[TableSchema, ...]:
    """The schemas of a position, with ``table`` as the last."""
    others = tuple(other for other in known if other is not table)
    return (*others[1 - _MAX_ALTERNATIVES :], table)


def alike(one: TableSchema, other: TableSchema) -> bool:
    """Whether two schemas have equal columns and key columns."""
    return one.columns == other.columns and one.key_columns == other.key_columns


TableName: TypeAlias = tuple[str, str | None, str]
"""Database, schema and table."""
