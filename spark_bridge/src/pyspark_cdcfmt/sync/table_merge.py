"""Plan of a table for a batch: its next state, and the actions that lead there; its target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
from pyspark.sql.types import StructType

from cdcfmt_core.errors import SinkError
from pyspark_cdcfmt.sync.control import QUERY_PROPERTY, LogRow
from pyspark_cdcfmt.sync.expressions import is_wider, type_changes
from pyspark_cdcfmt.sync.states import Cast, TableState
from pyspark_cdcfmt.sync.summary import Counts, TableStatement, TableVersion
from pyspark_cdcfmt.sync.target import Target, TargetError

_HIGHEST = (1 << 31) - 1

SOURCE_PROPERTY = "cdcfmt.source"
"""The property of a target that names its source table."""

EPOCH_PROPERTY = "cdcfmt.epoch"
"""The property of a target with the last epoch of its rows; 0 if missing."""

_GONE = (
    "the target {target} of {table} is missing: restore it, or start a new sync with another "
    "checkpoint"
)
_OF_ANOTHER = (
    "the target {target} of {table} is that of {other}: choose another target with the option into"
)
_LACKS = (
    "the target {target} of {table} has lost the column {column}: rename it back, or add it with "
    "the source's values"
)
_OTHER_TYPE = (
    "column {column} of the target {target} of {table} is {there}, which does not hold {wanted} of "
    "the source: change its type, or start a new sync with another target"
)
_OTHER_STORE = (
    "the target {target} of {table} {what} the column {column}: it was written with other options, "
    "or by something else; set store, deletes, partition_by, metadata_prefix, start_at and end_at "
    "as before, or start a new sync with another target"
)
_REPLACED = (
    "the target {target} of {table} is another table than before (dropped and created again, or "
    "replaced), so it may lack rows: start a new sync with another checkpoint; or accept the table "
    "with ALTER TABLE {target} SET TBLPROPERTIES ('{property}' = '{table}')"
)
_RESTORED = (
    "the target {target} of {table} was restored to version {to}, by version {at}, and lacks "
    "changes that sync wrote: if nothing has written to it since, RESTORE it to version {last}; or "
    "start a new sync with another checkpoint and another target; or accept that with ALTER TABLE "
    "{target} SET TBLPROPERTIES ('{property}' = '{at}')"
)
_TAKEN = (
    "the target {target} belongs to another query by now, {owner}, and this one could "
    "restore rows which that one deleted: leave the table out by exclude; or ALTER TABLE {target} "
    "SET TBLPROPERTIES ('{property}' = '{own}') gives it to this query"
)
_THEN = (
    "the source may have changed {0} in rows from before it, without messages: resume leaves these "
    "as they are; then copy the source's values of {0} into the target, or start a new sync that "
    "reads all rows again"
)
_ACCEPTED = "cdcfmt.restored"
"""The property of a target with the version of a RESTORE that the user accepts."""
_OF_STORES = ("change_type", "deleted", "date")
"""Columns that some stores add, without prefix: others would leave them as they are."""


@attrs.define
class TableMerge:
    """A table's state after the batch, and the actions that lead there."""

    state: TableState
    versions: Sequence[TableVersion]
    truncates: list[tuple[int, ...]] = attrs.field(factory=list)
    """The ``_sequence`` of each new TRUNCATE."""
    retired: list[tuple[str, str | None]] = attrs.field(factory=list)
    """Columns of the target to rename; to drop if the new name is None."""
    has_short_rows: bool = False
    """Whether rows may lack columns of their version, such as Debezium's unavailable values."""
    renumbered: list[tuple[int, str]] = attrs.field(factory=list)
    """Statements that give indexes of ENUM or SET other names, each with the first commit of rows
    after it: earlier batches must not have written such rows."""
    fills: list[tuple[str, str, tuple[int, ...]]] = attrs.field(factory=list)
    """Added columns, the SQL of their value in rows before a statement, and its ``_sequence``."""
    casts: list[Cast] = attrs.field(factory=list)
    """Conversions by statements of this batch."""
    log: list[LogRow] = attrs.field(factory=list)
    before: TableState = attrs.field(init=False)
    """The state before the batch."""

    def __attrs_post_init__(self) -> None:
        self.before = self.state

    @property
    def known(self) -> StructType | None:
        """The target's columns before the batch; None for a table without a target."""
        return self.before.columns

    def had(self, name: str, statement: TableStatement) -> bool:
        """Whether the target, or any row that may be from before a statement, has a column."""
        own = self.state.columns.names if self.state.columns else []
        rows = (v for v in self.versions if v.may_precede(statement))
        return name.lower() in map(str.lower, own) or any(not v.lacks(name) for v in rows)

    @property
    def sql_texts(self) -> list[str]:
        """The names and values of the source that statements contain."""
        own = self.state.columns.names if self.state.columns else []
        return [self.state.text, *own, *(value for _, value, _ in self.fills)]

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
            first=min(version.first for version in self.versions).sequence(),
        )

    @property
    def last_delete(self) -> tuple[int, ...]:
        """An upper bound of the ``_sequence`` of the batch's deletes."""
        return max(version.last for version in self.versions).sequence(_HIGHEST)

    @property
    def has_reads(self) -> bool:
        return any(version.reads for version in self.versions)

    @property
    def properties(self) -> Mapping[str, str]:
        """Table properties of a new target: its source, keys, and epoch."""
        known = {SOURCE_PROPERTY: self.state.text, "cdcfmt.keys": ",".join(self.state.keys)}
        return {**known, **self.epoch_property}

    @property
    def epoch_property(self) -> Mapping[str, str]:
        """The property for the rows of this batch."""
        return {EPOCH_PROPERTY: str(self.state.epoch)} if self.state.epoch else {}

    @property
    def is_spread(self) -> bool:
        """Whether changes of a key may be from several partitions, without a commit_ts."""
        # Commits that are times have offsets, too.
        lasts = (version.last for version in self.versions)
        return len(self.state.places) > 1 or any(at.commit and at[2:] != (0, 0) for at in lasts)

    def note(self, action: str, detail: str, level: str = "info") -> None:
        self.log.append(LogRow(action, detail, self.state, level))

    def halt(self, reason: str) -> None:
        self.state = attrs.evolve(self.state, halted=reason)
        self.note("halt", reason, "error")

    def refuse(self, reason: str) -> None:
        """Halt with the state before the batch: all of its events wait."""
        self.state = self.before
        self.log = []
        self.halt(reason)

    def halt_unless_catching_up(self, reason: str) -> None:
        """Halt, unless the table is resuming: then log the reason and continue."""
        if self.state.catching_up:
            self.note("pass", reason, "warning")
        else:
            self.halt(reason)

    def halt_for_values(self, what: str, columns: str) -> None:
        """Halt, unless the table is resuming, for values that no message has.

        :param what: the statement, the column, and why sync cannot compute its values.
        """
        self.halt_unless_catching_up(f"{what}; {_THEN.format(columns)}")


def base_epoch(target: Target, table: str, query_id: str) -> int:
    """The first epoch of a query's changes for a target, which may have rows of earlier queries."""
    if target.schema(table) is None:
        return 0
    marks = target.properties(table)
    owner = marks.get(QUERY_PROPERTY)
    # Without an owner, sync wrote no changes to it.
    later = owner is not None and owner != query_id
    return int(marks.get(EPOCH_PROPERTY, "0")) + later


def check_target(
    plan: TableMerge,
    there: StructType | None,
    wanted: StructType,
    prefix: str,
    target: Target,
    query_id: str,
) -> None:
    """Check a target that others may have changed, before the first write of a run.

    :param there: its columns; None if it is missing.
    :param wanted: the columns of the store.
    :param query_id: becomes the owner of a target of current rows or histories that is new to it.
    :raises TargetError: for a target in which values would be lost or NULL.
    :raises SinkError: for a target of other options of sync, which all targets would be.
    """
    state = plan.state
    fill: dict[str, str] = {"target": state.target, "table": state.text}
    if there is None:
        if plan.known is not None:
            raise TargetError(_GONE.format(**fill))
        return
    has = {field.name.lower(): field for field in there.fields}
    own = {name.lower() for name in state.own_columns.names}
    added = {name.lower() for name in wanted.names} - own
    others = {f"{prefix}{name}".lower() for name in _OF_STORES} - added - own
    for name in wanted.names:
        if name.lower() in added - has.keys():
            raise SinkError(_OTHER_STORE.format(**fill, what="lacks", column=name))
    for name in sorted(others & has.keys()):
        raise SinkError(_OTHER_STORE.format(**fill, what="has", column=name))
    retired = {name.lower() for name, _ in plan.retired}
    # A changelog claims its target at its first write.
    is_log = f"{prefix}change_type".lower() in added
    _check_identity(plan, target, fill, None if is_log else query_id)
    for field in plan.known.fields if plan.known else ():
        if field.name.lower() not in has.keys() | retired:
            raise TargetError(_LACKS.format(**fill, column=field.name))
    for field in wanted.fields:
        before = has.get(field.name.lower())
        if before is None:
            continue
        has_type, type_ = before.dataType, field.dataType
        is_there, is_wanted = has_type.simpleString(), type_.simpleString()
        if (char := before.metadata.get("__CHAR_VARCHAR_TYPE_STRING", "")).startswith("char"):
            is_there = char  # It pads values, and a MERGE by it fails.
        has_more = any(is_new for *_, is_new in type_changes(type_, has_type, ""))
        can_widen = is_wider(has_type, type_) or (is_wider(type_, has_type) and not has_more)
        if is_there != is_wanted and not can_widen:
            fill |= {"column": field.name, "there": is_there, "wanted": is_wanted}
            raise TargetError(_OTHER_TYPE.format(**fill))


def _check_identity(
    plan: TableMerge, target: Target, fill: dict[str, str], query_id: str | None
) -> None:
    """Check that the target is the table that sync wrote, with all of its writes."""
    state = plan.state
    marks = target.properties(state.target)
    other, owner = marks.get(SOURCE_PROPERTY), marks.get(QUERY_PROPERTY)
    if plan.known is None:
        if (other or state.text).lower() != state.text.lower():
            raise TargetError(_OF_ANOTHER.format(**fill, other=other))
        new = {SOURCE_PROPERTY: other or state.text, **plan.epoch_property}
        if query_id and owner != "":
            new[QUERY_PROPERTY] = query_id
        if not new.items() <= marks.items():
            target.set_properties(state.target, new)
        return
    if other is None:
        raise TargetError(_REPLACED.format(**fill, property=SOURCE_PROPERTY))
    restored = target.undone(state.target)
    if restored is not None and marks.get(_ACCEPTED) != str(restored[0]):
        at, to = restored
        raise TargetError(_RESTORED.format(**fill, at=at, to=to, last=at - 1, property=_ACCEPTED))
    if query_id and owner and owner != query_id:
        raise TargetError(taken(state.target, owner, query_id))


def taken(target: str, owner: str, query_id: str) -> str:
    """The error for a target that another query has taken over."""
    return _TAKEN.format(target=target, owner=owner, own=query_id, property=QUERY_PROPERTY)
