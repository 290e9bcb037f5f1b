"""The types that columns have in rows: a change without a statement halts the table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import attrs
from pyspark.sql.types import DataType, DecimalType, StringType

from cdcfmt_core.types import Enum, LogicalType, Set
from cdcfmt_mysql.column_type import ColumnType
from cdcfmt_mysql.conversions import Conversion, Definition, conversion
from cdcfmt_mysql.type_map import resolve_type
from pyspark_cdcfmt.sync import definitions
from pyspark_cdcfmt.sync.expressions import common_number, is_wider
from pyspark_cdcfmt.sync.states import SeenType, TableState
from pyspark_cdcfmt.sync.summary import TableStatement, TableVersion
from pyspark_cdcfmt.sync.table_merge import TableMerge

_MAX_SEEN = 20
"""Maximum number of types that a column keeps, for late rows and statements."""

_NO_STATEMENT = "column {} is {} in rows, and was {}, without a statement of that change ({})"
_NARROWER = "it may not hold all values"
_SHORTER = "it is shorter, or has fewer digits"
_MEMBERS = "its members are others"

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
