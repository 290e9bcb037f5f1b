"""Columns and keys of a target, derived from those of the source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from cdcfmt_core import default_registry
from cdcfmt_core.column_names import clashes
from cdcfmt_core.errors import SinkError
from cdcfmt_core.texts import did_you_mean
from cdcfmt_core.types import Decimal, Unknown
from pyspark_cdcfmt import columns_schema, spark_schema
from pyspark_cdcfmt.sync.names import TableName
from pyspark_cdcfmt.sync.options import SyncOptions
from pyspark_cdcfmt.sync.retiring import check_retired
from pyspark_cdcfmt.sync.summary import Version
from pyspark_cdcfmt.sync.table_plan import SOURCE_PROPERTY, TOPICS_PROPERTY, TablePlan
from pyspark_cdcfmt.sync.targets.protocol import Target

Events: TypeAlias = Callable[[TableName], DataFrame]
"""The events of a table in a batch."""

_NO_KEY = "the messages name no key: set keys for this table, or exclude it"
_LOST_KEY = "some messages name no key, others ({}): set keys for this table, or exclude it"
_OTHER_KEY = "keys names ({}), and the key of the target is ({}): choose a new target"

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
_OTHER_TOPIC = (
    "the target {target} of {table} has rows in the order of the topics {known}, and offsets of "
    "another topic have no order among them: choose another target with the option into; if their "
    "keys differ, ALTER TABLE {target} SET TBLPROPERTIES ('{property}' = '{all}') accepts it"
)
_RESTORED = (
    "the target {target} of {table} was restored to version {to}, by version {at}, and lacks "
    "changes that sync wrote: if nothing has written to it since, RESTORE it to version {last}; or "
    "start a new sync with another checkpoint and another target; or accept that with ALTER TABLE "
    "{target} SET TBLPROPERTIES ('{property}' = '{at}')"
)
_ACCEPTED = "cdcfmt.restored"
"""The property of a target with the version of a RESTORE that the user accepts."""
_OF_STORES = ("change_type", "deleted", "date")
"""Columns that some stores add, without prefix: others would leave them as they are."""


def check_target(
    plan: TablePlan, there: StructType | None, wanted: StructType, prefix: str, target: Target
) -> None:
    """Check a target that others may have changed, before the first write of a run.

    :param there: its columns; None if it is missing.
    :param wanted: the columns of the store.
    :raises SinkError: for a target in which values would be lost or NULL.
    """
    state = plan.state
    fill: dict[str, str] = {"target": state.target, "table": state.text}
    if there is None:
        if plan.known is not None:
            raise SinkError(_GONE.format(**fill))
        return
    has = {field.name.lower(): field for field in there.fields}
    assert state.columns is not None
    own = {name.lower() for name in state.columns.names}
    added = {name.lower() for name in wanted.names} - own
    others = {f"{prefix}{name}".lower() for name in _OF_STORES} - added - own
    for name in wanted.names:
        if name.lower() in added - has.keys():
            raise SinkError(_OTHER_STORE.format(**fill, what="lacks", column=name))
    for name in sorted(others & has.keys()):
        raise SinkError(_OTHER_STORE.format(**fill, what="has", column=name))
    retired = {name.lower() for name, _ in plan.retired}
    is_log = f"{prefix}change_type".lower() in added
    _check_identity(plan, target, fill, is_log=is_log)
    for field in plan.known.fields if plan.known else ():
        if field.name.lower() not in has.keys() | retired:
            raise SinkError(_LACKS.format(**fill, column=field.name))
    for field in wanted.fields:
        before = has.get(field.name.lower())
        if before is None:
            continue
        is_there, is_wanted = before.dataType.simpleString(), field.dataType.simpleString()
        if (char := before.metadata.get("__CHAR_VARCHAR_TYPE_STRING", "")).startswith("char"):
            is_there = char  # It pads values, and a MERGE by it fails.
        can_widen = target.can_widen(before, field) or target.can_widen(field, before)
        if is_there != is_wanted and not can_widen:
            fill |= {"column": field.name, "there": is_there, "wanted": is_wanted}
            raise SinkError(_OTHER_TYPE.format(**fill))


def _check_identity(plan: TablePlan, target: Target, fill: dict[str, str], *, is_log: bool) -> None:
    """Check that the target is the table that sync wrote, with all of its writes."""
    state = plan.state
    marks = target.properties(state.target)
    other = marks.get(SOURCE_PROPERTY)
    if plan.known is None:
        if other is None:
            target.set_properties(state.target, {SOURCE_PROPERTY: state.text})
        elif other.lower() != state.text.lower():
            raise SinkError(_OF_ANOTHER.format(**fill, other=other))
        known = marks.get(TOPICS_PROPERTY)
        topics = state.topics.union(known.split(",") if known else ())
        if known and not is_log and len(topics) > len(known.split(",")):
            fill |= {"known": known, "all": ",".join(sorted(topics)), "property": TOPICS_PROPERTY}
            raise SinkError(_OTHER_TOPIC.format(**fill))
        return
    if other is None:
        raise SinkError(_REPLACED.format(**fill, property=SOURCE_PROPERTY))
    restored = target.undone(state.target)
    if restored is not None and marks.get(_ACCEPTED) != str(restored[0]):
        at, to = restored
        raise SinkError(_RESTORED.format(**fill, at=at, to=to, last=at - 1, property=_ACCEPTED))


def type_map_of(source: Mapping[str, str], protocol: str) -> str:
    """The type map of a source's messages of a protocol."""
    given = next((v for k, v in source.items() if k.lower() == "typemap"), None)
    return given or default_registry().get_codec(protocol).type_map


@attrs.frozen
class ColumnPlanner:
    """Plans columns and keys from the rows' columns; asks Spark only if types depend on values."""

    options: SyncOptions
    source: Mapping[str, str]
    target: Target
    needs_key: bool
    taken: frozenset[str]
    """Names of the columns that the store adds, in lower case."""

    def follow(self, plan: TablePlan, events: Events) -> None:
        """Adapt the state's columns and keys to the rows of the batch, or halt the table."""
        check_retired(plan)
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
        self._follow_keys(plan, {name: field.name for name, field in columns.items()})
        if before is None and not plan.state.halted:
            plan.note("create", plan.state.target)

    def _follow_column(
        self, plan: TablePlan, columns: dict[str, StructField], field: StructField
    ) -> None:
        """Adapt ``columns`` of the target to a column of the source."""
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
        """The reason why a target cannot have these columns together; None if it can."""
        for version in versions:
            names = [column.name for column in version.columns]
            for alike in clashes(names):
                return f"columns {' and '.join(alike)} differ only in case"
            for name in names:
                if name.lower() in self.taken:
                    return f"sync adds a column {name}: set {self.options.name_option(name)}"
        return None

    def _follow_keys(self, plan: TablePlan, names: Mapping[str, str]) -> None:
        """Set the state's key to that of the rows, or halt the table.

        :param names: the columns of the target, by name in lower case.
        """

        def spelled(key: Iterable[str]) -> tuple[str, ...]:
            return tuple(names.get(name.lower(), name) for name in key)

        own = spelled(plan.state.keys)
        name = tuple(part for part in plan.state.name if part is not None)
        given = spelled(self.options.keys.get(name, ()))
        named = {spelled(version.key_columns) for version in plan.versions}
        keyless = [version for version in plan.versions if not (version.key_columns or given)]
        if self.needs_key:
            named.add(own)
        keys = {given} if given else named - {()}
        if not keys:
            if self.needs_key:
                plan.halt(_NO_KEY)
            plan.state = attrs.evolve(plan.state, keys=())
            return
        if len(keys) > 1 and self.needs_key:
            texts = " and ".join(sorted(f"({', '.join(each)})" for each in keys))
            plan.halt(f"the messages name several keys, {texts}: set keys for this table")
            return
        key = keys.pop()
        # After DROP PRIMARY KEY two rows may be equal there.  A row without the columns is bad.
        has_key = ({*key} <= {*spelled(each.name for each in v.columns)} for v in keyless)
        if self.needs_key and any(has_key):
            plan.halt(_LOST_KEY.format(", ".join(key)))
            return
        lacking = next((name for name in key if name.lower() not in names), None)
        if lacking and (given or self.needs_key):
            who = "keys names" if given else "the messages name the key"
            near = did_you_mean(lacking, names.values())
            plan.halt(f"{who} {lacking}, which the table lacks{near}")
        elif {*own} == {*key}:
            # Tombstones have the columns in this order.
            plan.state = attrs.evolve(plan.state, keys=own)
        elif own and self.needs_key:
            plan.halt(_OTHER_KEY.format(", ".join(key), ", ".join(own)))
        else:
            plan.state = attrs.evolve(plan.state, keys=key)

    def _fields(self, plan: TablePlan, events: Events) -> list[StructField]:
        """The columns of all versions, with the source type as comment.

        Columns that were renamed later have their new names; dropped ones are left out.
        """
        own = plan.state.columns
        known = {name.lower() for name in own.names} if own else set()
        fields: list[StructField] = []
        comments: dict[str, str] = {}
        unclear: set[str] = set()
        for version in plan.versions:
            type_map = type_map_of(self.source, version.protocol)
            resolve = default_registry().get_type_map(type_map)
            for column in version.columns:
                comments[column.name] = column.source_type
                if _is_unclear(resolve(column.source_type)):
                    unclear.add(column.name)
            fields += columns_schema(version.columns, typeMap=type_map).fields
        now = {name: plan.state.name_now(name) for name in comments}
        settled = {name for name in unclear if (now[name] or name).lower() in known}
        if any(now[name] for name in unclear - settled):
            # The scale of a DECIMAL without digits, and the type of a NULL, depend on values.
            whole = spark_schema(events(plan.state.name), plan.state.text, **self._type_options())
            fields = [field for field in whole.fields if field.name in comments]
        # Known columns keep their types: other values may have another scale.
        return [
            StructField(name, field.dataType, metadata={"comment": comments[field.name]})
            for field in fields
            if field.name not in settled and (name := now[field.name]) is not None
        ]

    def _type_options(self) -> dict[str, str]:
        return {k: v for k, v in self.source.items() if k.lower() == "typemap"}


def _is_unclear(type_: Any) -> bool:
    return isinstance(type_, Unknown) or (isinstance(type_, Decimal) and type_.precision is None)
