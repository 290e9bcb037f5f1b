"""ADD, RENAME and DROP of columns: changes of the target, and rows from before the statement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import attrs
from pyspark.sql.types import (
    DateType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from cdcfmt_mysql.column_changes import ColumnChanges, column_changes
from cdcfmt_mysql.column_type import NUMBER_BASES, TEXT_BASES, parse_column_type
from cdcfmt_mysql.lexemes import NotUnderstood
from pyspark_cdcfmt.sync.expressions import At, is_wider
from pyspark_cdcfmt.sync.names import quote, text_literal
from pyspark_cdcfmt.sync.states import EarlierValue, Retired
from pyspark_cdcfmt.sync.summary import TableStatement, TableVersion
from pyspark_cdcfmt.sync.table_merge import TableMerge

_TEXT_TYPES = TEXT_BASES | {"enum", "set"}
_MAX_EARLIER = 100
"""Maximum number kept per table, for late rows."""

_NO_CONSTANT = "the text of its default does not show the value that rows get"
_UNORDERED = "without a commit_ts, which rows are before it is unknown"
_OTHER_TYPE = "its new type does not hold the old values in Delta"

_TIME = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?").fullmatch


def follow_columns(plan: TableMerge, statement: TableStatement, policy: str) -> None:
    """Apply renames and drops of a statement to the state's columns, by ``schema_changes``.

    Added and changed columns are applied later, when rows have them.
    """
    if policy == "ignore" or _was_followed(plan, statement):
        return
    try:
        changes = column_changes(statement.query)
    except NotUnderstood as error:
        if policy != "lenient":
            plan.note("refuse", f"{statement.query}: {error}", "warning")
        return
    if policy == "lenient":
        _keep(plan, statement, [*changes.dropped, *changes.renamed])
        return
    steps = [*changes.renamed.items(), *((name, None) for name in changes.dropped)]
    steps = [step for step in steps if plan.had(step[0], statement)]
    if not steps:
        return
    if policy == "exception":
        plan.halt_unless_catching_up(f"{statement.query} (schema_changes=exception)")
        return
    if not _is_ordered(plan, statement):
        text = "without a commit_ts or binlog position, which rows are before it is unknown"
        plan.note("refuse", f"{statement.query}: {text}", "warning")
        return
    for old, new in steps:
        _retire(plan, statement, old, new)
        if plan.state.halted:
            return
    plan.state = attrs.evolve(plan.state, altered=statement.sequence, altered_log=statement.log)


def _keep(plan: TableMerge, statement: TableStatement, names: Iterable[str]) -> None:
    """Remember columns that the source has dropped or renamed, and the target keeps."""
    place, at, log = statement.place, statement.at, statement.log
    kept = [Retired(name, name, place, at, log) for name in names if plan.had(name, statement)]
    if kept:
        kept = [*plan.state.kept, *kept]
        plan.state = attrs.evolve(
            plan.state, kept=tuple(kept), altered=statement.sequence, altered_log=log
        )


def _was_followed(plan: TableMerge, statement: TableStatement) -> bool:
    """Whether the statement is the last one that was applied, or an earlier one."""
    done = plan.state.altered_log
    if done is not None and statement.log is not None and done.servers == statement.log.servers:
        # A restarted connector may repeat a statement after later ones.
        return statement.log.is_before(done)
    return statement.sequence <= plan.state.altered


def _is_ordered(plan: TableMerge, statement: TableStatement) -> bool:
    """Whether rows before a statement can be distinguished from rows after it."""
    if statement.place is None or not plan.state.places - {statement.place}:
        return True
    return statement.log is not None and all(version.log for version in plan.versions)


def _retire(plan: TableMerge, statement: TableStatement, old: str, new: str | None) -> None:
    keys = {name.lower() for version in plan.versions for name in version.key_columns}
    if old.lower() in keys.union(map(str.lower, plan.state.keys)):
        plan.halt_unless_catching_up(f"{statement.query}: {old} is of the key")
        return
    columns = plan.state.columns
    if columns is not None:
        fields = [*columns.fields]
        names = [field.name.lower() for field in fields]
        if new is not None and new.lower() in names:
            text = f"the target already has a column {new} and keeps both"
            plan.note("refuse", f"{statement.query}: {text}", "warning")
            return
        if old.lower() in names:
            place = names.index(old.lower())
            field = fields.pop(place)
            if new is not None:
                fields.insert(place, StructField(new, field.dataType, metadata=field.metadata))
            plan.retired.append((field.name, new))
            columns = StructType(fields)
    retired = [
        attrs.evolve(each, now=new) if (each.now or "").lower() == old.lower() else each
        for each in plan.state.retired
    ]
    retired.append(Retired(old, new, statement.place, statement.at, statement.log))
    plan.state = attrs.evolve(plan.state, columns=columns, retired=tuple(retired))
    plan.note("drop column" if new is None else "rename column", f"{old} to {new}" if new else old)


def check_retired(plan: TableMerge) -> None:
    """Halt if rows have the name of a renamed or dropped column again."""
    for retired in (*plan.state.retired, *plan.state.kept):
        is_kept = retired in plan.state.kept
        if not any(_has_again(version, retired, is_sure=is_kept) for version in plan.versions):
            continue
        what = "dropped" if retired.now is None else f"renamed to {retired.now}"
        then = "resume adds it as a new column"
        if is_kept:
            what = "dropped or renamed"
            then = "rows in the target have its old values: give them the source's, and resume"
        plan.halt_unless_catching_up(
            f"column {retired.name} was {what}, and rows have it again: {then}"
        )
        if plan.state.halted:
            return
        plan.state = attrs.evolve(
            plan.state,
            retired=tuple(each for each in plan.state.retired if each != retired),
            kept=tuple(each for each in plan.state.kept if each != retired),
        )


def _has_again(version: TableVersion, retired: Retired, *, is_sure: bool) -> bool:
    """Whether rows of a version have the column after the statement.

    Rows without an order count as later, unless ``is_sure`` is set.
    """
    if retired.name.lower() not in {column.name.lower() for column in version.columns}:
        return False
    is_ordered = retired.place is None or version.places == {retired.place}
    if is_ordered and version.last <= retired.at:
        return False
    if version.log is not None and version.log.is_before(retired.log):
        return False
    return is_ordered or not is_sure or version.is_after(retired.log)


def follow_added(plan: TableMerge, statement: TableStatement, policy: str) -> None:
    """Remember the values that columns of a statement have in existing rows."""
    if policy in ("ignore", "exception"):
        return
    try:
        changes = column_changes(statement.query)
    except NotUnderstood:
        return
    known = {name.lower() for name in plan.state.columns.names} if plan.state.columns else set()
    is_ordered = statement.place is None or not plan.state.places - {statement.place}
    at, query = statement.sequence, statement.query
    _move_waiting(plan, statement, changes, known)
    values = [EarlierValue(name, at, text) for name, text in changes.filled.items()]
    for old, new in changes.renamed.items() if policy == "lenient" else ():
        # Renamed twice before any row had the first new name.
        first = [e.old for e in plan.state.earlier if e.name.lower() == old.lower() and e.old]
        if plan.had(old, statement) or first:
            old = old if old.lower() in known or not first else first[-1]
            values.append(EarlierValue(new, at, old=old))
    for value in values:
        if value.name.lower() in known or value in plan.state.earlier:
            continue
        if value.is_unknown or not is_ordered:
            _halt_unfilled(plan, value.name, query, None if is_ordered else _UNORDERED)
            if plan.state.halted:
                return
            # Resumed: a copy of the statement on another partition halts no more.
            value = EarlierValue(value.name, at)
        earlier = [*plan.state.earlier, value][-_MAX_EARLIER:]
        plan.state = attrs.evolve(plan.state, earlier=tuple(earlier))


def _move_waiting(
    plan: TableMerge, statement: TableStatement, changes: ColumnChanges, known: set[str]
) -> None:
    """Give values of added columns that no row has yet to the columns' new names."""
    names: dict[str, str | None] = {old.lower(): new for old, new in changes.renamed.items()}
    names |= dict.fromkeys((name.lower() for name in changes.dropped), None)
    earlier = []
    for value in plan.state.earlier:
        name = value.name.lower()
        is_waiting = name not in known and not plan.had(name, statement)
        if value.old is None and name in names and is_waiting:
            if (new := names[name]) is None:
                continue
            value = attrs.evolve(value, name=new)
        earlier.append(value)
    plan.state = attrs.evolve(plan.state, earlier=tuple(earlier))


def fill_added(plan: TableMerge, before: StructType | None) -> None:
    """Plan the values of columns in rows from before the statement that added or renamed them.

    :param before: the target's columns before the batch.
    """
    known = {name.lower() for name in before.names} if before else set()
    assert plan.state.columns is not None
    fields = {field.name.lower(): field for field in plan.state.columns.fields}
    for value in plan.state.earlier:
        if value.is_unknown:
            continue
        name, at = value.name, At.of(value.at)
        field = fields.get((plan.state.name_now(name) or "").lower())
        is_late = any(each.lacks(name) and each.first < at for each in plan.versions)
        is_new = field is not None and field.name.lower() not in known
        if field is None or not (is_new or is_late):
            continue
        converted = {cast.name.lower() for cast in plan.state.casts}
        cell = _cell(value, field, fields, converted)
        if cell is not None:
            plan.fills.append((field.name, cell, value.at))
            if is_new:
                plan.note("fill column", f"{field.name} with {cell} in rows from before it")
        elif is_new:
            what = "ADD COLUMN" if value.old is None else f"RENAME COLUMN {value.old}"
            _halt_unfilled(plan, name, what, None if value.old is None else _OTHER_TYPE)
            if plan.state.halted:
                return


def _halt_unfilled(plan: TableMerge, name: str, query: str, why: str | None = None) -> None:
    """Halt: rows from before a statement would have NULL, and have another value at the source."""
    plan.halt_for_values(f"{query}: {name}: {why or _NO_CONSTANT}", name)


def _cell(
    value: EarlierValue, field: StructField, fields: Mapping[str, StructField], converted: set[str]
) -> str | None:
    """The SQL of a column's value; None if it is unknown.

    :param converted: columns whose values were converted to what a new type holds.
    """
    if value.old is None:
        return _constant(value.text or "", field)
    old, wanted = fields.get(value.old.lower()), field.dataType
    if old is None or not (
        old.dataType == wanted
        or is_wider(old.dataType, wanted)
        or (old.name.lower() in converted and is_wider(wanted, old.dataType))
    ):
        return None
    return f"CAST({quote(old.name)} AS {wanted.simpleString()})"


def _constant(text: str, field: StructField) -> str | None:
    """The SQL of a column's value; None if its text may mean another one."""
    type_, base = field.dataType, parse_column_type(field.metadata.get("comment", "")).base
    if isinstance(type_, StringType):
        return text_literal(text) if base in _TEXT_TYPES else None
    is_time = isinstance(type_, DateType | TimestampNTZType) and _TIME(text)
    # ENUM and BIT are numbers, too.
    if is_time or (isinstance(type_, NumericType) and base in NUMBER_BASES | {"year"}):
        return f"TRY_CAST({text_literal(text)} AS {type_.simpleString()})"
    return None
