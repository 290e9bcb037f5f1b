"""Plan of a table for a batch: its next state, and the actions that lead there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
from pyspark.sql.types import StructType

from pyspark_cdcfmt.sync.control import LogRow
from pyspark_cdcfmt.sync.states import TableState
from pyspark_cdcfmt.sync.summary import Counts, Version

_HIGHEST = (1 << 31) - 1

SOURCE_PROPERTY = "cdcfmt.source"
"""The property of a target that names its source table."""

TOPICS_PROPERTY = "cdcfmt.topics"
"""The property of a target with the topics whose offsets order its rows, separated by commas."""


@attrs.define
class TablePlan:
    """A table's state after the batch, and the actions that lead there."""

    state: TableState
    versions: Sequence[Version]
    truncates: list[tuple[int, ...]] = attrs.field(factory=list)
    """The ``_sequence`` of each new TRUNCATE."""
    retired: list[tuple[str, str | None]] = attrs.field(factory=list)
    """Columns of the target to rename; to drop if the new name is None."""
    has_short_rows: bool = False
    """Whether rows may lack columns of their version, such as Debezium's unavailable values."""
    fills: list[tuple[str, str, tuple[int, ...]]] = attrs.field(factory=list)
    """Added columns, the SQL of their value in rows before a statement, and its ``_sequence``."""
    log: list[LogRow] = attrs.field(factory=list)
    known: StructType | None = attrs.field(init=False)
    """The target's columns before the batch; None for a table without a target."""

    def __attrs_post_init__(self) -> None:
        self.known = self.state.columns

    @property
    def rows(self) -> int:
        return sum(version.count for version in self.versions)

    @property
    def updates(self) -> int:
        return sum(version.updates for version in self.versions)

    @property
    def deletes(self) -> int:
        return sum(version.deletes for version in self.versions)

    @property
    def most_deletes(self) -> int:
        """An upper bound: an update of the key also deletes a row."""
        return self.deletes + self.updates

    @property
    def lacks_columns(self) -> bool:
        """Whether any row may lack a column of the target."""
        assert self.state.columns is not None
        names = [{column.name for column in version.columns} for version in self.versions]
        wanted = self.state.columns.names
        return self.has_short_rows or not all(each.issuperset(wanted) for each in names)

    @property
    def counts(self) -> Counts:
        """Counts if all rows are valid; ``first`` is a lower bound."""
        return Counts(
            self.rows,
            self.deletes,
            partial=self.rows if self.lacks_columns else 0,
            first=_sequence(min(version.first for version in self.versions), 0),
        )

    @property
    def last_delete(self) -> tuple[int, ...]:
        """An upper bound of the ``_sequence`` of the batch's deletes."""
        return _sequence(max(version.last for version in self.versions), _HIGHEST)

    @property
    def has_reads(self) -> bool:
        return any(version.reads for version in self.versions)

    @property
    def properties(self) -> Mapping[str, str]:
        """Table properties of a new target: its source, keys, and topics without an order."""
        known = {SOURCE_PROPERTY: self.state.text, "cdcfmt.keys": ",".join(self.state.keys)}
        topics = ",".join(sorted(self.state.topics))
        return known | {TOPICS_PROPERTY: topics} if topics else known

    def note(self, action: str, detail: str, level: str = "info") -> None:
        self.log.append(LogRow(action, detail, self.state, level))

    def halt(self, reason: str) -> None:
        self.state = attrs.evolve(self.state, halted=reason)
        self.note("halt", reason, "error")

    def halt_unless_catching_up(self, reason: str) -> None:
        """Halt, unless the table is resuming: then log the reason and continue."""
        if self.state.catching_up:
            self.note("pass", reason, "warning")
        else:
            self.halt(reason)


def _sequence(position: tuple[int, ...], index: int) -> tuple[int, ...]:
    """The ``_sequence`` of a delete at a commit and offset."""
    commit, offset = position
    return commit, 0, offset, index, 0
