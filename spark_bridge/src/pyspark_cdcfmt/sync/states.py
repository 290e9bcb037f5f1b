"""The state of a source table: what sync remembers of it from batch to batch."""

from __future__ import annotations

import json

import attrs
from pyspark.sql.types import StructType

from pyspark_cdcfmt.sync.names import TableName, table_text


@attrs.frozen
class Retired:
    """A name that a column had at the source, until it was renamed or dropped.

    ``now`` is its name in the target, None for a dropped one; ``at`` is the commit and offset of
    the statement, and ``place`` its partition where it has no commit.
    """

    name: str
    now: str | None
    place: str | None
    at: tuple[int, int]


@attrs.frozen
class TableState:
    """What sync remembers of a source table between batches.

    ``columns`` are the table's own.  ``truncates`` have the ``_sequence`` of each TRUNCATE;
    ``places`` are the partitions with its rows, as far as no commit_ts orders them, and
    ``truncated`` those that had a TRUNCATE; ``ignored`` are changes of columns that were not
    followed, and logged; ``altered`` is the ``_sequence`` of the last statement whose changes of
    columns were.  A table that is ``halted`` has the reason there, and its events wait in
    ``held``.  Once it resumes it is ``catching_up``, and the next batch has what was held until
    then; what was held until ``caught_up`` is done.  Both are texts of times.
    """

    name: TableName
    target: str
    keys: tuple[str, ...] = ()
    columns: StructType | None = None
    halted: str | None = None
    truncates: tuple[tuple[int, ...], ...] = ()
    places: frozenset[str] = frozenset()
    truncated: frozenset[str] = frozenset()
    has_tombstones: bool = False
    ignored: frozenset[str] = frozenset()
    retired: tuple[Retired, ...] = ()
    altered: tuple[int, ...] = ()
    catching_up: str | None = None
    caught_up: str = "1970-01-01"

    @property
    def text(self) -> str:
        return table_text(self.name)

    def settled(self) -> TableState:
        """The state behind a batch that is done.

        Of what was held until now all is in the target, or held anew.  A TRUNCATE without a
        commit_ts has done its part: offsets of its partition go on rising, and rows of another
        one are compared with ``truncated``.
        """
        state = self
        if state.catching_up:
            state = attrs.evolve(state, catching_up=None, caught_up=state.catching_up)
        if state.truncates and not state.truncates[-1][0]:
            state = attrs.evolve(state, truncates=())
        return state

    @property
    def says_anything(self) -> bool:
        """Whether it says more than that there is such a table."""
        return bool(self.columns or self.halted or self.truncates or self.truncated)

    def to_json(self) -> str:
        values = attrs.asdict(self, recurse=False)
        values["columns"] = self.columns and self.columns.jsonValue()
        values |= {name: sorted(values[name]) for name in _SETS}
        values["retired"] = [attrs.astuple(each) for each in self.retired]
        return json.dumps(values, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> TableState:
        values = json.loads(text)
        columns = values["columns"]
        return cls(
            **values
            | {
                "name": tuple(values["name"]),
                "keys": tuple(values["keys"]),
                "columns": columns and StructType.fromJson(columns),
                "truncates": tuple(map(tuple, values["truncates"])),
                "retired": tuple(
                    Retired(name, now, place, tuple(at))
                    for name, now, place, at in values["retired"]
                ),
                "altered": tuple(values["altered"]),
            }
            | {name: frozenset(values[name]) for name in _SETS}
        )

    def name_now(self, name: str) -> str | None:
        """The target's name of a column of the source; None for one that was dropped."""
        for each in self.retired:
            if each.name.lower() == name.lower():
                return each.now
        return name


_SETS = ("places", "truncated", "ignored")
