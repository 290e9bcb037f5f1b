"""State of a source table between batches."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs
from pyspark.sql.types import StructType

from cdcfmt_core.errors import SourceError
from cdcfmt_core.texts import parse_json
from cdcfmt_mysql.conversions import Step
from pyspark_cdcfmt.blocks.schema import FILE
from pyspark_cdcfmt.sync.definitions import Definition
from pyspark_cdcfmt.sync.expressions import At, LogPlace, Position
from pyspark_cdcfmt.sync.names import TableName, table_text

SNAPSHOT_RANK = 2
"""The rank of a snapshot in its commit: after all changes of the commit."""


_DAMAGES = (ValueError, LookupError, TypeError, AttributeError, AssertionError)
"""Errors about parts of another type; Spark asserts those of its schemas."""


@attrs.frozen
class Retired:
    """A column name that the source renamed or dropped.

    :ivar now: the column's name in the target; None if it is dropped there, too.
    :ivar place: the partition of the statement, if it has no commit.
    :ivar at: the position of the statement.
    :ivar log: its position in the source's binlog, if known.
    """

    name: str
    now: str | None
    place: str | None
    at: At
    log: LogPlace | None = None


@attrs.frozen
class EarlierValue:
    """The value of a column that the source added or renamed, in rows from before that.

    :ivar at: the ``_sequence`` of the statement.
    :ivar text: a constant of the source.
    :ivar old: the column's old name, which the target keeps.  Without both the rows keep NULL.
    """

    name: str
    at: Position
    text: str | None = None
    old: str | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether neither a constant nor another column has the value."""
        return self.text is None and self.old is None


@attrs.frozen
class Cast:
    """A column whose values a statement converts, in rows from before it.

    :ivar at: the ``_sequence`` of the statement.
    """

    name: str
    steps: tuple[Step, ...]
    at: Position


@attrs.frozen
class SeenType:
    """A type that a column had, from a row or a statement on.

    :ivar at: its position.
    :ivar place: its partition, if it has no commit.
    """

    text: str
    at: At
    place: str | None


@attrs.frozen
class TableState:
    """State of a source table between batches.

    :ivar columns: the target's columns, without those that sync adds.
    :ivar halted: the reason of a halt; the table's events then wait in ``held``.
    :ivar truncates: the ``_sequence`` of each TRUNCATE.
    :ivar base: number that its target adds to the epochs of messages: the rows of earlier queries
        are older.
    :ivar epoch: the last epoch of its rows.
    :ivar places: partitions with rows of the last epoch that no commit_ts orders.
    :ivar truncated: partitions with a TRUNCATE that no commit_ts orders.
    :ivar truncated_log: binlog position of the last of these; None if any has an unknown one.
    :ivar ignored: column changes that were logged but not applied.
    :ivar retired: column names that were renamed or dropped in the target.
    :ivar kept: columns that the source dropped or renamed, and the target keeps.
    :ivar altered: the ``_sequence`` of the last statement that renamed or dropped columns.
    :ivar altered_log: its position in the binlog.
    :ivar earlier: columns with a value in rows from before the statement that added them.
    :ivar definitions: the columns after each of the last statements, in their order; see
        :func:`~pyspark_cdcfmt.sync.definitions.around`.
    :ivar casts: columns that statements convert in rows from before them.
    :ivar seen: types of columns so far, by lower-case name, in the order of their arrival.
    :ivar retyped: identities of the last statements that changed types; a copy has no effect.
    :ivar charset: the default charset that a statement has set.
    :ivar is_typed: whether rows had incomplete types, which a definition completed.
    :ivar catching_up: the time of the resume (ISO text): the next batch applies events held
        until then.
    :ivar caught_up: the time until which held events are applied (ISO text).
    """

    name: TableName
    target: str
    keys: tuple[str, ...] = ()
    columns: StructType | None = None
    halted: str | None = None
    truncates: tuple[tuple[int, ...], ...] = ()
    base: int = 0
    epoch: int = 0
    places: frozenset[str] = frozenset()
    truncated: frozenset[str] = frozenset()
    truncated_log: LogPlace | None = None
    has_tombstones: bool = False
    ignored: frozenset[str] = frozenset()
    retired: tuple[Retired, ...] = ()
    kept: tuple[Retired, ...] = ()
    altered: tuple[int, ...] = ()
    altered_log: LogPlace | None = None
    earlier: tuple[EarlierValue, ...] = ()
    definitions: tuple[Definition, ...] = ()
    casts: tuple[Cast, ...] = ()
    seen: Mapping[str, tuple[SeenType, ...]] = attrs.field(factory=dict)
    retyped: tuple[str, ...] = ()
    charset: str | None = None
    is_typed: bool = False
    catching_up: str | None = None
    caught_up: str = "1970-01-01"

    @property
    def text(self) -> str:
        return table_text(self.name)

    @property
    def own_columns(self) -> StructType:
        """``columns`` of a table that has a target."""
        assert self.columns is not None
        return self.columns

    def settled(self) -> TableState:
        """The state after a completed batch.

        All events held so far are in the target, or held again.  A TRUNCATE without a commit_ts
        is no longer needed: later offsets of its partition are higher, and rows of other
        partitions are compared with ``truncated``.  Neither are values of added columns, and casts.
        """
        state = self
        if state.catching_up:
            state = attrs.evolve(state, catching_up=None, caught_up=state.catching_up)
        if state.truncates and not At.of(state.truncates[-1]).commit:
            state = attrs.evolve(state, truncates=())
        known = {name.lower() for name in state.columns.names} if state.columns else set()
        waiting = [e for e in state.earlier if At.of(e.at).commit or e.name.lower() not in known]
        casts = tuple(cast for cast in state.casts if At.of(cast.at).commit)
        return attrs.evolve(state, earlier=tuple(waiting), casts=casts)

    def in_epoch(self, epoch: int) -> TableState:
        """The state at the first rows of a later epoch: those of earlier ones cannot follow."""
        return attrs.evolve(
            self, epoch=epoch, places=frozenset(), truncated=frozenset(), truncated_log=None
        )

    def with_truncated(self, place: str, log: LogPlace | None) -> TableState:
        """The state after one more TRUNCATE."""
        known = self.truncated_log
        if self.truncated and log is not None:
            is_same = known is not None and known.servers == log.servers
            log = max(known, log, key=lambda each: each.last) if known and is_same else None
        truncated = self.truncated | {place}
        return attrs.evolve(self, truncated=truncated, truncated_log=log)

    @property
    def topics(self) -> frozenset[str]:
        """Topics with rows that no commit_ts orders."""
        topics = (place for place in self.places if not place.startswith(FILE))
        return frozenset(place.rpartition("/")[0] for place in topics)

    @property
    def snapshot(self) -> tuple[int, ...] | None:
        """The ``_sequence`` of the initial snapshot, which has all changes up to it."""
        return next((each for each in self.truncates if each[2] == SNAPSHOT_RANK), None)

    @property
    def is_significant(self) -> bool:
        """Whether the state has any information besides the table's name."""
        has_place = self.truncates or self.truncated
        return bool(self.columns or self.halted or has_place or self.definitions)

    def to_json(self) -> str:
        values = attrs.asdict(self, recurse=False)
        values["columns"] = self.columns and self.columns.jsonValue()
        values |= {name: sorted(values[name]) for name in _SETS}
        for name in ("earlier", "casts", "definitions"):
            values[name] = _tuples(values[name])
        values["seen"] = {column: _tuples(types) for column, types in self.seen.items()}
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
        """:raises SourceError: if the text is damaged, or of a later version."""
        try:
            return cls._of(parse_json(text))
        except _DAMAGES as error:
            raise SourceError(
                f"the state of a table in the folder control is damaged ({error!r:.200}): restore "
                "the folder, or start a new sync with another checkpoint and control"
            ) from error

    @classmethod
    def _of(cls, values: Any) -> TableState:
        columns = values["columns"]
        return cls(
            **values
            | {
                "name": tuple(values["name"]),
                "keys": tuple(values["keys"]),
                "columns": columns and StructType.fromJson(columns),
                "truncates": tuple(map(tuple, values["truncates"])),
                "altered": tuple(values["altered"]),
                "retyped": tuple(values.get("retyped", ())),
                "earlier": tuple(
                    EarlierValue(name, tuple(at), *value)
                    for name, at, *value in values.get("earlier", ())
                ),
                "casts": tuple(
                    Cast(name, tuple((step, tuple(given)) for step, given in steps), tuple(at))
                    for name, steps, at in values.get("casts", ())
                ),
                "seen": {
                    name: tuple(SeenType(text, At(*at), place) for text, at, place in types)
                    for name, types in values.get("seen", {}).items()
                },
                "definitions": tuple(
                    Definition(start, by, tuple(map(tuple, columns)))
                    for start, by, columns in values.get("definitions", ())
                ),
            }
            | {name: _retired_of(values.get(name, ())) for name in _NAMES}
            | {name: _log_of(values.get(name)) for name in _LOGS}
            | {name: frozenset(values[name]) for name in _SETS}
        )

    def name_now(self, name: str) -> str | None:
        """The target's name of a source column; None if it was dropped."""
        for each in self.retired:
            if each.name.lower() == name.lower():
                return each.now
        return name


def _tuples(entries: Iterable[Any]) -> list[tuple[Any, ...]]:
    return [attrs.astuple(each, recurse=False) for each in entries]


def _log_values(log: LogPlace | None) -> list[Any] | None:
    return None if log is None else [sorted(log.servers), log.last]


def _log_of(values: list[Any] | None = None) -> LogPlace | None:
    return None if values is None else LogPlace(frozenset(values[0]), tuple(values[1]))


def _retired_of(values: Iterable[Any]) -> tuple[Retired, ...]:
    return tuple(
        Retired(name, now, place, At(*at), _log_of(*log)) for name, now, place, at, *log in values
    )


_SETS = ("places", "truncated", "ignored")
_LOGS = ("truncated_log", "altered_log")
_NAMES = ("retired", "kept")
