"""What the events of a batch mean for a table: its next state, decided before any write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from cdcfmt_core import default_registry
from cdcfmt_core.column_names import clashes
from cdcfmt_core.mysql.column_changes import column_changes
from cdcfmt_core.mysql.lexemes import NotUnderstood
from cdcfmt_core.types import Decimal, Unknown
from pyspark_cdcfmt import columns_schema, spark_schema
from pyspark_cdcfmt.sync.control import LogRow, TableState
from pyspark_cdcfmt.sync.looking import Statement, Version
from pyspark_cdcfmt.sync.names import TableName, safe_name, table_text, target_of
from pyspark_cdcfmt.sync.options import SyncOptions
from pyspark_cdcfmt.sync.targets.protocol import Target

_NO_KEY = "the messages name no key: set keys for this table, or leave it out by exclude"
_MOST_TRUNCATES = 100
"""Of a table, kept for changes that come late."""
_NO_ORDER = (
    "{} came on another partition than rows of the table, without a commit_ts: nothing tells "
    "which rows came before it"
)


@attrs.define
class TablePlan:
    """A table's state behind the batch, and what to do for it."""

    state: TableState
    versions: Sequence[Version]
    truncates: list[tuple[int, ...]] = attrs.field(factory=list)
    """The ``_sequence`` of each TRUNCATE that was not seen before."""
    log: list[LogRow] = attrs.field(factory=list)

    @property
    def properties(self) -> Mapping[str, str]:
        """Of a new target: where it comes from."""
        return {"cdcfmt.source": self.state.text, "cdcfmt.keys": ",".join(self.state.keys)}

    def note(self, action: str, detail: str, level: str = "info") -> None:
        self.log.append(LogRow(action, detail, self.state, level))

    def halt(self, reason: str) -> None:
        self.state = attrs.evolve(self.state, halted=reason)
        self.note("halt", reason, "error")


@attrs.define
class Planner:
    """Decides; it asks Spark only where types need a look at values."""

    options: SyncOptions
    source: Mapping[str, str]
    target: Target
    needs_key: bool
    taken: frozenset[str]
    """The columns that the store adds, in lower case."""
    _targets: dict[str, TableName] = attrs.field(factory=dict)

    def know(self, states: Iterable[TableState]) -> None:
        """Take note of the tables that have targets."""
        for state in states:
            if state.columns is not None:
                self._targets[state.target.lower()] = state.name

    def plan(
        self,
        state: TableState | None,
        name: TableName,
        versions: Sequence[Version],
        statements: Sequence[Statement],
        events: DataFrame,
    ) -> TablePlan:
        """The plan of one table.  ``state`` is None where it was never seen."""
        is_first = state is None
        if state is None:
            state = TableState(name, target_of(self.options.into, name))
        plan = TablePlan(state, versions)
        if state.halted:
            return plan
        owner = self._targets.setdefault(state.target.lower(), name)
        if owner != name:
            plan.halt(f"the target {state.target} is that of {table_text(owner)}: change into")
            return plan
        if is_first and any(safe_name(part) != part for part in name if part):
            plan.note("map name", f"the target is {state.target}")
        for step in (self._follow_places, self._follow_statements, self._follow_versions):
            step(plan, statements, events)
            if plan.state.halted:
                # As it was, but for the reason: its events wait, those of this batch, too.
                plan.state = attrs.evolve(state, halted=plan.state.halted)
                del plan.log[:-1]
                break
        return plan

    def _follow_places(
        self, plan: TablePlan, statements: Sequence[Statement], _: DataFrame
    ) -> None:
        places = plan.state.places.union(*(version.places for version in plan.versions))
        plan.state = attrs.evolve(plan.state, places=places)

    def _follow_statements(
        self, plan: TablePlan, statements: Sequence[Statement], _: DataFrame
    ) -> None:
        for statement in statements:
            choices = {"TRUNCATE": self.options.on_truncate, "ERASE": self.options.on_drop}
            choice = choices.get(statement.type)
            known = plan.state.truncates
            is_there = plan.state.columns is not None or any(
                version.may_begin_before(statement) for version in plan.versions
            )
            if choice == "halt" and not is_there:
                # Rows that came before it may come yet, and are not to stay.
                choice = "apply"
            if plan.state.catching_up and choice in (None, "halt"):
                plan.note("pass", statement.query, "warning")
                continue
            if choice is None:
                if reason := _cannot_follow(statement, is_there):
                    plan.halt(reason)
                    return
                plan.note("statement", statement.query)
                continue
            if statement.sequence in known or (
                len(known) == _MOST_TRUNCATES and statement.sequence < known[0]
            ):
                continue
            if choice == "halt":
                plan.halt(f"{statement.query} at the source")
                return
            if choice == "ignore":
                plan.note("ignore", statement.query, "warning")
                continue
            is_unordered = statement.place is not None and plan.state.places - {statement.place}
            if is_there and is_unordered:
                plan.halt(_NO_ORDER.format(statement.query))
                return
            if is_unordered:
                # It came before all rows, which have positions of another place.
                plan.note("statement", statement.query)
                continue
            plan.truncates.append(statement.sequence)
            truncates = tuple(sorted([*known, statement.sequence])[-_MOST_TRUNCATES:])
            plan.state = attrs.evolve(plan.state, truncates=truncates)
            plan.note("truncate", statement.query)

    def _follow_versions(
        self, plan: TablePlan, statements: Sequence[Statement], events: DataFrame
    ) -> None:
        if not plan.versions:
            return
        self._follow_keys(plan)
        if plan.state.halted:
            return
        before = plan.state.columns
        columns = {field.name.lower(): field for field in before.fields} if before else {}
        if reason := self._refused_names(plan.versions):
            plan.halt(reason)
            return
        for field in self._fields(plan, events):
            self._follow_column(plan, columns, field)
            if plan.state.halted:
                return
        plan.state = attrs.evolve(plan.state, columns=StructType([*columns.values()]))
        if before is None:
            plan.note("create", plan.state.target)

    def _follow_column(
        self, plan: TablePlan, columns: dict[str, StructField], field: StructField
    ) -> None:
        """Make ``columns``, those of the target, take a column of the source."""
        name, type_ = field.name.lower(), field.dataType.simpleString()
        old = columns.get(name)
        if old is None:
            change = "add column", f"{field.name} {type_}"
        elif self.target.can_widen(old, field):
            field = StructField(old.name, field.dataType, metadata=field.metadata)
            change = "widen column", f"{old.name} from {old.dataType.simpleString()} to {type_}"
        elif old.dataType == field.dataType or self.target.can_widen(field, old):
            return
        else:
            change = "", f"{old.name} from {old.dataType.simpleString()} to {type_}"
        is_new = plan.state.columns is None
        policy = "lenient" if is_new else self.options.schema_changes
        action, detail = change
        if policy == "ignore":
            if detail not in plan.state.ignored:
                plan.note("ignore column", detail, "warning")
                ignored = plan.state.ignored | {detail}
                plan.state = attrs.evolve(plan.state, ignored=ignored)
        elif policy == "exception" or not action:
            plan.halt(f"{action or 'column'}: {detail} (schema_changes={policy})")
        else:
            columns[name] = field
            if not is_new:
                plan.note(action, detail)

    def _refused_names(self, versions: Sequence[Version]) -> str | None:
        """Why columns cannot stand side by side in a target."""
        for version in versions:
            names = [column.name for column in version.columns]
            for alike in clashes(names):
                return f"columns {' and '.join(alike)} differ only in case"
            for name in names:
                if name.lower() in self.taken:
                    return f"sync adds a column {name}: set metadata_prefix"
        return None

    def _follow_keys(self, plan: TablePlan) -> None:
        given = self.options.keys.get(tuple(part for part in plan.state.name if part is not None))
        if given:
            keys = {given}
        else:
            keys = {version.key_columns for version in plan.versions if version.key_columns}
            keys |= {plan.state.keys} - {()}
        if not keys:
            if self.needs_key:
                plan.halt(_NO_KEY)
        elif len(keys) > 1 and self.needs_key:
            texts = " and ".join(sorted(f"({', '.join(each)})" for each in keys))
            plan.halt(f"the messages name several keys, {texts}: set keys for this table")
        else:
            plan.state = attrs.evolve(plan.state, keys=keys.pop())

    def _fields(self, plan: TablePlan, events: DataFrame) -> list[StructField]:
        """The columns of all versions, with the source's type as the comment."""
        own = plan.state.columns
        known = {name.lower() for name in own.names} if own else set()
        fields: list[StructField] = []
        comments: dict[str, str] = {}
        unclear: set[str] = set()
        for version in plan.versions:
            type_map = self._type_map(version.protocol)
            resolve = default_registry().get_type_map(type_map)
            for column in version.columns:
                comments[column.name] = column.source_type
                if _is_unclear(resolve(column.source_type)):
                    unclear.add(column.name)
            fields += columns_schema(version.columns, typeMap=type_map).fields
        if not unclear.isdisjoint(name for name in comments if name.lower() not in known):
            # Only values tell the scale of a DECIMAL without digits, and what a NULL is.
            whole = spark_schema(events, plan.state.text, **self._type_options())
            fields = [field for field in whole.fields if field.name in comments]
        # What has a type keeps it: other values tell another scale, and NULLs tell none.
        settled = {name.lower() for name in unclear} & known
        return [
            StructField(field.name, field.dataType, metadata={"comment": comments[field.name]})
            for field in fields
            if field.name.lower() not in settled
        ]

    def _type_map(self, protocol: str) -> str:
        given = next((v for k, v in self.source.items() if k.lower() == "typemap"), None)
        return given or default_registry().get_codec(protocol).type_map

    def _type_options(self) -> dict[str, str]:
        return {k: v for k, v in self.source.items() if k.lower() == "typemap"}


def _cannot_follow(statement: Statement, is_there: bool) -> str | None:
    """Why rows of the table come or go by a statement without changes of them."""
    if statement.type == "RENAME":
        return f"{statement.query}: the rows before it are in the target of the old name"
    try:
        loses_rows = column_changes(statement.query).rows
    except NotUnderstood:
        loses_rows = False
    if loses_rows and is_there:
        return f"{statement.query}: partitions go or come with their rows"
    return None


def _is_unclear(type_: Any) -> bool:
    return isinstance(type_, Unknown) or (isinstance(type_, Decimal) and type_.precision is None)
