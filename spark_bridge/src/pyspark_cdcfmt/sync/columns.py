"""Columns and keys of a target, derived from those of the source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import attrs
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DecimalType,
    IntegralType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from cdcfmt_core import default_registry
from cdcfmt_core.events import full_name
from cdcfmt_core.texts import did_you_mean
from cdcfmt_core.types import (
    Bit,
    Decimal,
    Enum,
    Int,
    LogicalType,
    Set,
    Time,
    Unknown,
    storage_of,
)
from cdcfmt_mysql.statement_tables import refined_types
from cdcfmt_mysql.type_map import resolve_type
from cdcfmt_toolkit.column_names import clashes
from pyspark_cdcfmt import columns_schema, spark_schema
from pyspark_cdcfmt.sync.definitions import in_force
from pyspark_cdcfmt.sync.expressions import (
    common_number,
    is_wider,
    union_type,
    with_any_digits,
)
from pyspark_cdcfmt.sync.names import TableName
from pyspark_cdcfmt.sync.options import SyncOptions
from pyspark_cdcfmt.sync.retiring import check_retired
from pyspark_cdcfmt.sync.seen_types import keeps_numbers, observe
from pyspark_cdcfmt.sync.states import TableState
from pyspark_cdcfmt.sync.summary import TableVersion
from pyspark_cdcfmt.sync.table_merge import TableMerge

Events: TypeAlias = Callable[[TableName], DataFrame]
"""The events of a table in a batch."""

_GUESSED = (
    "{name}: {source} without {what}, as no CREATE TABLE or ALTER TABLE of the topic defines it: "
    "{type}; the option definitions takes the table's CREATE TABLE, and a target that exists keeps "
    "its type"
)
_NO_NAMES = (
    "column {name}: {source} without names, as no CREATE TABLE or ALTER TABLE of the topic defines "
    "it, and the target's column is a string: pass the table's CREATE TABLE by the option "
    "definitions"
)
_NEW_TARGET = "start a new sync, into a new target, that reads all rows again: all are text there"
_NO_KEY = "the messages name no key: set keys for this table, or exclude it"
_LOST_KEY = "some messages name no key, others ({}): set keys for this table, or exclude it"
_OTHER_KEY = "keys names ({}), and the key of the target is ({}): choose a new target"


@attrs.frozen
class ColumnPlanner:
    """Plans columns and keys from the rows' columns; asks Spark only if types depend on values."""

    options: SyncOptions
    needs_key: bool
    taken: frozenset[str]
    """Names of the columns that the store adds, in lower case."""
    types: Mapping[str, str] = attrs.field(factory=dict)
    """The options of the source that choose types, such as ``enumAs``."""
    there: Callable[[str], StructType | None] = lambda _: None
    """The columns of a target that was made before; None if there is none."""

    def follow(self, plan: TableMerge, events: Events) -> None:
        """Adapt the state's columns and keys to the rows of the batch, or halt the table."""
        check_retired(plan)
        if plan.state.halted:
            return
        before = plan.state.columns
        columns = {field.name.lower(): field for field in before.fields} if before else {}
        if reason := self._refused_names(plan.versions):
            plan.halt(reason)
            return
        fields = self._fields(plan, events)
        if plan.state.halted:
            return
        for field in fields:
            self._follow_column(plan, columns, field)
            if plan.state.halted:
                return
        known = plan.state.definitions
        observe(plan, plan.versions, known[-1] if known else None, self.types_of)
        if plan.state.halted:
            return
        plan.state = attrs.evolve(plan.state, columns=StructType([*columns.values()]))
        self._follow_keys(plan, {name: field.name for name, field in columns.items()})
        if before is None and not plan.state.halted:
            plan.note("create", plan.state.target)

    def types_of(self, version: TableVersion, text: str) -> tuple[LogicalType, DataType] | None:
        """The logical and the Spark type of a source type; None if it depends on values."""
        codec = default_registry().get_codec(version.protocol)
        options = {"typeMap": codec.type_map} | dict(self.types)
        return _types_of(text, tuple(options.items()))

    def _follow_column(
        self, plan: TableMerge, columns: dict[str, StructField], field: StructField
    ) -> None:
        """Adapt ``columns`` of the target to a column of the source."""
        name, type_ = field.name.lower(), field.dataType.simpleString()
        old, is_new = columns.get(name), plan.state.columns is None
        if old is None:
            change = "add column", f"{field.name} {type_}"
        else:
            change = "", f"{old.name} from {old.dataType.simpleString()} to {type_}"
            common = union_type(old.dataType, field.dataType)
            if common is None:
                common = common_number(old.dataType, field.dataType)
            elif not is_wider(old.dataType, common):
                return
            if common is not None and (is_new or is_wider(old.dataType, common)):
                field = StructField(old.name, common, metadata=field.metadata)
                was, now = old.dataType.simpleString(), common.simpleString()
                change = "widen column", f"{old.name} from {was} to {now}"
            elif keeps_numbers(old.dataType, field.dataType):
                change = "", f"{change[1]}: {_NEW_TARGET}"
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

    def _refused_names(self, versions: Sequence[TableVersion]) -> str | None:
        """The reason why a target cannot have these columns together; None if it can."""
        for version in versions:
            names = [column.name for column in version.columns]
            for alike in clashes(names):
                return f"columns {' and '.join(alike)} differ only in case"
            for name in names:
                if name.lower() in self.taken:
                    return f"sync adds a column {name}: set {self.options.name_option(name)}"
        return None

    def _follow_keys(self, plan: TableMerge, names: Mapping[str, str]) -> None:
        """Set the state's key to that of the rows, or halt the table.

        :param names: the columns of the target, by name in lower case.
        """

        def spelled(key: Iterable[str]) -> tuple[str, ...]:
            return tuple(names.get(name.lower(), name) for name in key)

        own = spelled(plan.state.keys)
        name = full_name(*plan.state.name)
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

    def _fields(self, plan: TableMerge, events: Events) -> list[StructField]:
        """The columns of all versions, with the source type as comment, or halt the table.

        Columns that were renamed later have their new names; dropped ones are left out.
        """
        own = plan.state.columns
        # The target keeps its columns, if the reader can fill them.
        have = own if own is not None else self.there(plan.state.target)
        known = {field.name.lower(): field for field in have.fields} if have else {}
        fields: list[StructField] = []
        comments: dict[str, str] = {}
        incomplete: dict[str, LogicalType] = {}
        by_statements: set[str] = set()
        for version in plan.versions:
            codec = default_registry().get_codec(version.protocol)
            type_map = self.types.get("typeMap") or codec.type_map
            resolve = default_registry().get_type_map(type_map)
            source_types = {column.name: column.source_type for column in version.columns}
            for columns in _typed(version, source_types, plan.state, resolve):
                comments |= columns
                if columns != source_types:
                    plan.state = attrs.evolve(plan.state, is_typed=True)
                types = {name: storage_of(resolve(text)) for name, text in columns.items()}
                incomplete |= {name: t for name, t in types.items() if _is_incomplete(t)}
                by_statements |= types.keys() if _has_statements(version) else set()
                rows = [{"name": n, "source_type": text} for n, text in columns.items()]
                for field in columns_schema(rows, **{**self.types, "typeMap": type_map}).fields:
                    own_name = plan.state.name_now(field.name) or field.name
                    there = known.get(own_name.lower())
                    type_ = types[field.name]
                    # Of an INT that became an ENUM the target has other numbers.
                    before = there.metadata.get("comment") if there and own is not None else None
                    is_same = before is None or isinstance(storage_of(resolve(before)), type(type_))
                    if there and (_needs_values(type_) or is_same) and _can_fill(type_, there):
                        has = there.dataType
                        if before is not None and _lost_digits(
                            resolve(before), type_, columns[field.name]
                        ):
                            has = with_any_digits(has, getattr(type_, "scale", None) or 0)
                        field = StructField(field.name, has)
                    fields.append(field)
        now = {name: plan.state.name_now(name) for name in comments}
        new = {
            name: type_
            for name, type_ in incomplete.items()
            if (in_target := now[name]) is not None and in_target.lower() not in known
        }
        # A column whose names one row lacks is a number in all rows.
        first = {
            field.name: field
            for field in reversed(fields)
            if field.name in new and not isinstance(field.dataType, StringType)
        }
        if any(map(_needs_values, new.values())):
            # The scale of a DECIMAL without digits, and the type of a NULL, depend on values.
            whole = spark_schema(events(plan.state.name), plan.state.text, **self.types)
            first |= {f.name: f for f in whole.fields if _needs_values(new.get(f.name))}
        found = []
        for field in (first.get(field.name, field) for field in fields):
            if field.name in incomplete.keys() & by_statements:
                told_type, is_new = comments[field.name], field.name in new
                self._note_guessed(plan, field, incomplete[field.name], told_type, is_new)
            if (name := now[field.name]) is not None:
                comment = {"comment": comments[field.name]}
                found.append(StructField(name, field.dataType, metadata=comment))
        return found

    def _note_guessed(
        self, plan: TableMerge, field: StructField, type_: LogicalType, source: str, is_new: bool
    ) -> None:
        """Log once that a column's type is incomplete; halt if names are wanted and unknown."""
        is_member = isinstance(type_, Enum | Set)
        if is_member and isinstance(field.dataType, StringType):
            plan.halt(_NO_NAMES.format(name=field.name, source=source))
            return
        is_chosen = is_member and self.types.get("enumAs") == "index"
        if not is_new or is_chosen or isinstance(type_, Unknown):
            return
        text = _GUESSED.format(
            name=field.name,
            source=source,
            what="names" if is_member else "digits",
            type=field.dataType.simpleString(),
        )
        if all(row.detail != text for row in plan.log):
            plan.note("guess type", text, "warning")


@lru_cache(10_000)
def _types_of(
    text: str, options: tuple[tuple[str, str], ...]
) -> tuple[LogicalType, DataType] | None:
    type_ = storage_of(default_registry().get_type_map(dict(options)["typeMap"])(text))
    if _needs_values(type_):
        return None
    rows = [{"name": "column", "source_type": text}]
    return type_, columns_schema(rows, **dict(options)).fields[0].dataType


def _typed(
    version: TableVersion,
    columns: dict[str, str],
    state: TableState,
    resolve: Callable[[str], LogicalType],
) -> Iterator[dict[str, str]]:
    """The source types of a version's columns, for each definition that its rows may have."""
    if not _has_statements(version):
        yield columns
        return
    for exact in in_force(state.definitions, version.first.commit, version.last.commit):
        types = refined_types(columns.items(), exact, resolve)
        yield {name: text for name, (text, _) in zip(columns, types, strict=True)}


def _has_statements(version: TableVersion) -> bool:
    """Whether the wire has incomplete types, and positions to compare rows with statements."""
    codec = default_registry().get_codec(version.protocol)
    return codec.scan_statements is not None and not version.places


def _is_incomplete(type_: LogicalType) -> bool:
    """Whether a type lacks the parameters that its Spark type depends on."""
    if isinstance(type_, Enum | Set):
        return type_.names is None
    return _needs_values(type_) or (isinstance(type_, Bit) and type_.bits is None)


def _needs_values(type_: LogicalType | None) -> bool:
    return isinstance(type_, Unknown) or (isinstance(type_, Decimal) and type_.precision is None)


def _lost_digits(before: LogicalType, type_: LogicalType, text: str) -> bool:
    """Whether the source no longer limits a number's digits; MySQL's texts may only lack them."""
    is_open = isinstance(type_, Decimal) and type_.precision is None
    return (
        is_open
        and isinstance(before, Decimal | Int)
        and not (_is_incomplete(before) or resolve_type(text) is not None)
    )


def _can_fill(type_: LogicalType, field: StructField) -> bool:
    """Whether a field of the target can have values of a type, other than by default."""
    there = field.dataType
    if isinstance(type_, Enum | Set):
        # Without names the table halts at a string.
        return isinstance(there, IntegralType | DecimalType | StringType)
    if isinstance(type_, Time):
        return isinstance(there, StringType | LongType)
    if isinstance(type_, Bit):
        return type_.bits is None and isinstance(there, BooleanType | LongType | DecimalType)
    return _needs_values(type_)
