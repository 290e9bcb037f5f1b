"""The columns and types of rows: some changes without a statement halt the table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
from pyspark.sql.types import DataType, DecimalType, StringType, StructType

from cdcfmt_core.types import Enum, LogicalType, Set
from cdcfmt_mysql.column_type import ColumnType
from cdcfmt_mysql.conversions import Conversion, Definition, conversion
from cdcfmt_mysql.type_map import resolve_type
from pyspark_cdcfmt.sync import definitions
from pyspark_cdcfmt.sync.expressions import common_number, is_wider
from pyspark_cdcfmt.sync.states import Retired, SeenType, TableState
from pyspark_cdcfmt.sync.summary import TableStatement, TableVersion
from pyspark_cdcfmt.sync.table_merge import TableMerge

_MAX_SEEN = 20
"""Maximum number of types that a column keeps, for late rows and statements."""

_NO_STATEMENT = "column {} is {} in rows, and was {}, without a statement of that change ({})"
_NARROWER = "it may not hold all values"
_SHORTER = "it is shorter, or has fewer digits"
_MEMBERS = "its members are others"

_NOT_NULL = "column {} is new in rows, and NOT NULL: no statement says which value others have"
_RENAMED = (
    "column {} is new in rows, which lack {} of the same type: it may be renamed, without a "
    "statement of that"
)
_UNKNOWN_DEFAULT = (
    "{}: rows from before it have NULL, as no statement says whether it has a DEFAULT: if so, "
    "update all rows at the source without a change (SET id = id), which sends them again, or copy "
    "its values into the target"
)

TypesOf: TypeAlias = Callable[[TableVersion, str], tuple[LogicalType, DataType] | None]
"""The logical and the Spark type of a source type of a version; None if it depends on values."""

_LONGEST = frozenset(
    {
        *("text", "string", "longtext", "clob", "bytea", "bytes"),
        *("io.debezium.time.MicroTimestamp", "io.debezium.time.NanoTimestamp"),
        *("io.debezium.time.MicroTime", "io.debezium.time.NanoTime"),
    }
)
"""Types of other dialects that hold all values of their Spark type."""


def with_types(
    state: TableState, statement: TableStatement, texts: Mapping[str, str]
) -> TableState:
    """The state after a statement that gives columns other types."""
    seen = dict(state.seen)
    for name, text in texts.items():
        entry = SeenType(text, statement.at, statement.place)
        seen[name.lower()] = (*seen.get(name.lower(), ()), entry)[-_MAX_SEEN:]
    return attrs.evolve(state, seen=seen)


def observe_columns(plan: TableMerge, before: StructType | None) -> None:
    """Halt for new columns of rows that come without a statement, and so without earlier values.

    Some sources have no statements on the wire, such as PostgreSQL.  Only messages with a whole
    schema, NULL or NOT NULL included, show the columns of a table.

    :param before: the target's columns before the batch.
    """
    defined = plan.state.definitions
    if defined and defined[-1].columns:
        return
    own = {name.lower() for name in plan.state.own_columns.names}
    known = {name.lower() for name in before.names} if before else set()
    known |= {value.name.lower() for value in plan.state.earlier}
    has_rows = before is not None
    types = {f.name: f.metadata.get("comment") for f in before.fields} if before else {}
    for version in sorted(plan.versions, key=_first):
        names = {column.name.lower() for column in version.columns}
        if names <= {*map(str.lower, version.key_columns)}:
            continue  # Deletes that have only their key.
        for column in version.columns if has_rows else ():
            now = (plan.state.name_now(column.name) or "").lower()
            if column.nullable is None or now in known or now not in own:
                continue
            kept = {each.name.lower() for each in plan.state.kept}
            lost = [
                name
                for name, text in types.items()
                if text == column.source_type and name.lower() not in names | kept
            ]
            _follow_new(plan, version, column.name, column.nullable, lost)
            if plan.state.halted:
                return
        known |= names
        has_rows = True
        types |= {column.name: column.source_type for column in version.columns}


def _first(version: TableVersion) -> tuple[Any, ...]:
    """The place of rows: in the source's log, if they have one, and else on their topic."""
    return (version.first_log.last if version.first_log else ()), version.first


def _follow_new(
    plan: TableMerge, version: TableVersion, name: str, nullable: bool, lost: Sequence[str]
) -> None:
    """Halt, or log that the values of a new column in earlier rows are unknown."""
    if not nullable:
        plan.halt_for_values(_NOT_NULL.format(name), name)
    elif lost:
        plan.halt_for_values(_RENAMED.format(name, " and ".join(lost)), name)
        place = next(iter(version.places)) if len(version.places) == 1 else None
        gone = (Retired(each, each, place, version.first, version.first_log) for each in lost)
        plan.state = attrs.evolve(plan.state, kept=(*plan.state.kept, *gone))
    else:
        plan.note("unknown default", _UNKNOWN_DEFAULT.format(name), "warning")


def observe(
    plan: TableMerge,
    versions: Sequence[TableVersion],
    defined: definitions.Definition | None,
    types_of: TypesOf,
) -> None:
    """Compare the types of rows with earlier ones, or halt the table.

    Where no statement defines a column, only its rows show that its type has changed.
    """
    known = {name.lower() for name, _ in defined.columns} if defined else set()
    for version in sorted(versions, key=lambda each: each.first):
        for column in version.columns:
            if column.name.lower() not in known:
                _observe(plan, version, column.name, column.source_type or "", types_of)
            if plan.state.halted:
                return


def _observe(
    plan: TableMerge, version: TableVersion, name: str, text: str, types_of: TypesOf
) -> None:
    seen = plan.state.seen.get(name.lower(), ())
    if seen and seen[-1].text == text:
        return
    types = types_of(version, text)
    if types is None:
        return
    place = next(iter(version.places)) if len(version.places) == 1 else None
    entry = SeenType(text, version.first, place)
    if seen:
        last = seen[-1]
        old, new = Definition.of_message(last.text), Definition.of_message(text)
        if _are_mysql(old, new) and old.says_no_more(new):
            return
        is_later = _is_later(version, last)
        if is_later is False or (not is_later and any(each.text == text for each in seen)):
            return
        effect = _seen_effect(old, new, types_of(version, last.text), types)
        if effect.kind != "same":
            what = _NO_STATEMENT.format(name, text, last.text, effect.halt or "its values change")
            plan.halt_for_values(what, name)
            if plan.state.halted:
                return
    kept = {**plan.state.seen, name.lower(): (*seen, entry)[-_MAX_SEEN:]}
    plan.state = attrs.evolve(plan.state, seen=kept)


def _is_later(version: TableVersion, seen: SeenType) -> bool | None:
    """Whether all rows are from after the time of a type; None if that is unknown."""
    if seen.place is None and not version.places:
        is_ordered = bool(version.first.commit)
    else:
        is_ordered = version.places == {seen.place}
    if not is_ordered or version.first <= seen.at <= version.last:
        return None
    return version.first > seen.at


def _are_mysql(*definitions: Definition) -> bool:
    return all(resolve_type(each.text) is not None for each in definitions)


def _seen_effect(
    old: Definition,
    new: Definition,
    was: tuple[LogicalType, DataType] | None,
    now: tuple[LogicalType, DataType],
) -> Conversion:
    """The effect of a change that only the rows show."""
    if _are_mysql(old, new):
        # Rows have no charset.
        return conversion(old, attrs.evolve(new, charset=old.charset, type=_completed(old, new)))
    if was is None:
        return Conversion(halt=_NARROWER)
    (before, had), (after, has) = was, now
    if isinstance(before, Enum | Set) and isinstance(after, Enum | Set):
        return Conversion(halt=None if _are_more(before, after, has) else _MEMBERS)
    if had != has:
        return Conversion(halt=None if is_wider(had, has) or keeps_numbers(had, has) else _NARROWER)
    if _are_mysql(old) != _are_mysql(new):
        # Connect's types, which a statement replaces with the source's.
        return Conversion()
    (kind, _, first), (kind_now, _, second) = old.text.partition("("), new.text.partition("(")
    if kind != kind_now:
        return Conversion(halt=None if kind_now in _LONGEST and not second else _NARROWER)
    fewer = any(a > b for a, b in zip(_digits(first), _digits(second), strict=False))
    return Conversion(halt=_SHORTER if second and (fewer or not first) else None)


def keeps_numbers(had: DataType, has: DataType) -> bool:
    """Whether a source that has changed a number's type has kept each value, or refused to."""
    if isinstance(has, DecimalType):
        # Only fractions are rounded; where whole digits do not fit, the statement fails.
        return isinstance(had, DecimalType) and had.scale <= has.scale
    return isinstance(has, StringType) and common_number(had, has) is not None


def _are_more(before: Enum | Set, after: Enum | Set, has: DataType) -> bool:
    """Whether members keep their meaning."""
    known, names = before.names, after.names or ()
    if known is None or type(before) is not type(after):
        return False
    is_reordered = isinstance(after, Enum) and isinstance(has, StringType)
    return names[: len(known)] == known or (is_reordered and {*known} <= {*names})


def _digits(text: str) -> list[int]:
    return [*map(int, re.findall(r"[0-9]{1,9}", text))]


def _completed(old: Definition, new: Definition) -> ColumnType:
    """The new type, with the old one's parameters if the message has none."""
    if old.base == new.base and not new.type.params:
        return attrs.evolve(new.type, params=old.type.params)
    return new.type
