"""The state of a source table: what sync remembers of it from batch to batch."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeAlias

import attrs
from pyspark.sql.types import StructType

from pyspark_cdcfmt.sync.expressions import LogPlace
from pyspark_cdcfmt.sync.names import TableName, table_text

Sequence: TypeAlias = tuple[int, ...]
"""The cells of a ``_sequence``."""

SNAPSHOT_RANK = 2
"""The rank of a snapshot in its commit: behind all changes of the commit."""


_MOST_DELETES = 1000


@attrs.define
class Buried:
    """The last deletes of a table: all that are behind ``since``, by ``_sequence`` and key."""

    since: Sequence = ()
    deletes: list[tuple[Sequence, str]] = attrs.field(factory=list)

    def add(self, deletes: Iterable[tuple[Sequence, str]]) -> None:
        """Remember more deletes; beyond a thousand the first ones are forgotten."""
        known = sorted({*self.deletes, *deletes})
        forgotten, self.deletes = known[:-_MOST_DELETES], known[-_MOST_DELETES:]
        if forgotten:
            self.since = max(self.since, forgotten[-1][0])

    def behind(self, sequence: Sequence) -> list[tuple[Sequence, str]] | None:
        """The deletes behind a position; None where others may be there, too."""
        if sequence < self.since:
            return None
        return [delete for delete in self.deletes if delete[0] > sequence]


@attrs.frozen
class Retired:
    """A name that a column had at the source, until it was renamed or dropped.

    ``now`` is its name in the target, None for one that is gone; ``at`` is the commit and offset of
    the statement, and ``place`` its partition where it has no commit; ``log`` is its place in the
    source's binlog where that is known.
    """

    name: str
    now: str | None
    place: str | None
    at: tuple[int, int]
    log: LogPlace | None = None


@attrs.frozen
class TableState:
    """What sync remembers of a source table between batches.

    ``columns`` are the table's own.  ``truncates`` have the ``_sequence`` of each TRUNCATE;
    ``places`` are the partitions with its rows, as far as no commit_ts orders them, and
    ``truncated`` those that had a TRUNCATE, the last one at ``truncated_log`` in the binlog, None
    where that is not known of all; ``ignored`` are changes of columns that were not followed, and
    logged; ``kept`` are columns that the source has dropped, and the target has still;
    ``altered`` is the ``_sequence`` of the last statement whose changes of columns were followed,
    and ``altered_log`` its place in the binlog.  A table that is ``halted`` has the reason there,
    and its events wait in ``held``.  Once it resumes it is ``catching_up``, and the next batch has
    what was held until then; what was held until ``caught_up`` is done.  Both are texts of times.
    """

    name: TableName
    target: str
    keys: tuple[str, ...] = ()
    columns: StructType | None = None
    halted: str | None = None
    truncates: tuple[tuple[int, ...], ...] = ()
    places: frozenset[str] = frozenset()
    truncated: frozenset[str] = frozenset()
    truncated_log: LogPlace | None = None
    has_tombstones: bool = False
    ignored: frozenset[str] = frozenset()
    retired: tuple[Retired, ...] = ()
    kept: tuple[Retired, ...] = ()
    altered: tuple[int, ...] = ()
    altered_log: LogPlace | None = None
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

    def with_truncated(self, place: str, log: LogPlace | None) -> TableState:
        """The state behind one more TRUNCATE."""
        known = self.truncated_log
        if self.truncated and log is not None:
            is_same = known is not None and known.servers == log.servers
            log = max(known, log, key=lambda each: each.last) if known and is_same else None
        truncated = self.truncated | {place}
        return attrs.evolve(self, truncated=truncated, truncated_log=log)

    @property
    def snapshot(self) -> tuple[int, ...] | None:
        """Where the snapshot that the table began with stands: changes up to there are in it."""
        return next((each for each in self.truncates if each[1] == SNAPSHOT_RANK), None)

    @property
    def says_anything(self) -> bool:
        """Whether it says more than that there is such a table."""
        return bool(self.columns or self.halted or self.truncates or self.truncated)

    def to_json(self) -> str:
        values = attrs.asdict(self, recurse=False)
        values["columns"] = self.columns and self.columns.jsonValue()
        values |= {name: sorted(values[name]) for name in _SETS}
        for name in _NAMES:
            values[name] = [
                (each.name, each.now, each.place, each.at, _log_values(each.log))
                for each in values[name]
            ]
        for name in _LOGS:
            values[name] = _log_values(values[name])
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
                "altered": tuple(values["altered"]),
            }
            | {name: _retired_of(values.get(name, ())) for name in _NAMES}
            | {name: _log_of(values.get(name)) for name in _LOGS}
            | {name: frozenset(values[name]) for name in _SETS}
        )

    def name_now(self, name: str) -> str | None:
        """The target's name of a column of the source; None for one that was dropped."""
        for each in self.retired:
            if each.name.lower() == name.lower():
                return each.now
        return name


def _log_values(log: LogPlace | None) -> list[Any] | None:
    return None if log is None else [sorted(log.servers), log.last]


def _log_of(values: list[Any] | None = None) -> LogPlace | None:
    return None if values is None else LogPlace(frozenset(values[0]), tuple(values[1]))


def _retired_of(values: Iterable[Any]) -> tuple[Retired, ...]:
    return tuple(
        Retired(name, now, place, tuple(at), _log_of(*log)) for name, now, place, at, *log in values
    )


_SETS = ("places", "truncated", "ignored")
_LOGS = ("truncated_log", "altered_log")
_NAMES = ("retired", "kept")
