"""Numbers of table schemas."""

from __future__ import annotations

import attrs

from cdcfmt_core.events import TableSchema


@attrs.define
class NumberedTables:
    """Table schemas by numbers, for rows that are written again."""

    schemas: list[TableSchema] = attrs.field(factory=list)
    _numbers: dict[TableSchema, int] = attrs.field(factory=dict)

    def number_of(self, table: TableSchema) -> int:
        """The number, which is a new one for a new schema."""
        if table not in self._numbers:
            self._numbers[table] = len(self.schemas)
            self.schemas.append(table)
        return self._numbers[table]

    def clear(self) -> None:
        """Begin anew; no plan may have a number then."""
        self.schemas.clear()
        self._numbers.clear()
