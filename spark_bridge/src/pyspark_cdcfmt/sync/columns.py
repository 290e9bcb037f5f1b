"""Columns and keys of a target, derived from those of the source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from cdcfmt_core import default_registry
from cdcfmt_core.column_names import clashes
from cdcfmt_core.schemas.statements import refined_types
from cdcfmt_core.texts import did_you_mean
from cdcfmt_core.types import Decimal, LogicalType, Unknown
from pyspark_cdcfmt import columns_schema, spark_schema
from pyspark_cdcfmt.sync.definitions import in_force
from pyspark_cdcfmt.sync.expressions import is_wider
from pyspark_cdcfmt.sync.names import TableName
from pyspark_cdcfmt.sync.options import SyncOptions
from pyspark_cdcfmt.sync.retiring import check_retired
from pyspark_cdcfmt.sync.states import TableState
from pyspark_cdcfmt.sync.summary import Version
from pyspark_cdcfmt.sync.table_plan import TablePlan

Events: TypeAlias = Callable[[TableName], DataFrame]
"""The events of a table in a batch."""

_NO_KEY = "the messages name no key: set keys for this table, or exclude it"
_LOST_KEY = "some messages name no key, others ({}): set keys for this table, or exclude it"
_OTHER_KEY = "keys names ({}), and the key of the target is ({}): choose a new target"


@attrs.frozen
class ColumnPlanner:
    """Plans columns and keys from the rows' columns; asks Spark only if types depend on values."""

    options: SyncOptions
    source: Mapping[str, str]
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
        elif is_wider(old.dataType, field.dataType):
            field = StructField(old.name, field.dataType, metadata=field.metadata)
            change = "widen column", f"{old.name} from {old.dataType.simpleString()} to {type_}"
        elif old.dataType == field.dataType or is_wider(field.dataType, old.dataType):
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
        options = {k: v for k, v in self.source.items() if k.lower() == "typemap"}
        given = next(iter(options.values()), None)
        for version in plan.versions:
            type_map = given or default_registry().get_codec(version.protocol).type_map
            resolve = default_registry().get_type_map(type_map)
            for columns in _typed(version, plan.state, resolve):
                comments |= columns
                unclear |= {n for n, text in columns.items() if _is_unclear(resolve(text))}
                rows = [{"name": n, "source_type": text} for n, text in columns.items()]
                fields += columns_schema(rows, typeMap=type_map).fields
        now = {name: plan.state.name_now(name) for name in comments}
        settled = {name for name in unclear if (now[name] or name).lower() in known}
        if any(now[name] for name in unclear - settled):
            # The scale of a DECIMAL without digits, and the type of a NULL, depend on values.
            whole = spark_schema(events(plan.state.name), plan.state.text, **options)
            fields = [field for field in whole.fields if field.name in comments]
        # Known columns keep their types: other values may have another scale.
        return [
            StructField(name, field.dataType, metadata={"comment": comments[field.name]})
            for field in fields
            if field.name not in settled and (name := now[field.name]) is not None
        ]


def _typed(
    version: Version, state: TableState, resolve: Callable[[str], LogicalType]
) -> Iterator[dict[str, str]]:
    """The source types of a version's columns, for each definition that its rows may have."""
    columns = {column.name: column.source_type for column in version.columns}
    has_statements = default_registry().get_codec(version.protocol).scan_statements is not None
    if not has_statements or version.places:
        yield columns
        return
    for exact in in_force(state.definitions, version.first[0], version.last[0]):
        types = refined_types(columns.items(), exact, resolve)
        yield {name: text for name, (text, _) in zip(columns, types, strict=True)}


def _is_unclear(type_: Any) -> bool:
    return isinstance(type_, Unknown) or (isinstance(type_, Decimal) and type_.precision is None)
