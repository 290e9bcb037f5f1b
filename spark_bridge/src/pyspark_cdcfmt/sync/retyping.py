"""Statements that change column types: their effect on earlier rows, which have no messages."""

from __future__ import annotations

import re

import attrs
from pyspark.sql.types import BinaryType, DataType, StringType, StructField

from cdcfmt_mysql.column_changes import DefinitionChange, column_changes
from cdcfmt_mysql.column_type import TEXT_BASES, parse_column_type
from cdcfmt_mysql.conversions import (
    UNKNOWN,
    Conversion,
    Definition,
    charset_change,
    conversion,
)
from cdcfmt_mysql.ddl import ddl_type_of
from cdcfmt_mysql.lexemes import NotUnderstood
from pyspark_cdcfmt.sync import definitions
from pyspark_cdcfmt.sync.definitions import around, identity
from pyspark_cdcfmt.sync.names import text_literal
from pyspark_cdcfmt.sync.seen_types import TypesOf, observe, with_types
from pyspark_cdcfmt.sync.states import Cast, EarlierValue, TableState
from pyspark_cdcfmt.sync.summary import TableStatement
from pyspark_cdcfmt.sync.table_merge import TableMerge

_MAX_CASTS = 100
"""Maximum number that a table keeps, for late rows and statements."""

_UNORDERED = "its values change, and without a commit_ts which rows are before it is unknown"
_COMPUTED = "its values change, and a generated column may change with it"
_NUMBERS = "the target has the numbers of its members, which the source changes"

_CHARSET = (
    "its character set before is unknown; if that was not the table's, the source has converted "
    "the values, outside of strict mode with ? for what the table's lacks: a CREATE TABLE in the "
    "option definitions shows it"
)

_RETYPES = re.compile(r"\b(?:MODIFY|CHANGE|CONVERT|ALTER\s+COLUMN)\b", re.IGNORECASE).search

_WITH_CHARSET = TEXT_BASES | {"enum", "set"}


@attrs.frozen
class Change:
    """A column that a statement changes.

    :ivar old: None if its definition before is unknown.
    """

    name: str
    now: str
    old: Definition | None
    new: Definition
    effect: Conversion


def follow_types(
    plan: TableMerge, statement: TableStatement, policy: str, store: str, types_of: TypesOf
) -> None:
    """Convert the rows from before a statement as the source does, or halt the table.

    :param policy: the option ``schema_changes``.
    :param store: the option ``store``.
    """
    by = identity(statement)
    if by in plan.state.retyped:
        return
    try:
        changes = column_changes(statement.query)
    except (NotUnderstood, IndexError) as error:
        # Such as Oracle's statements; ADD and DROP show in the rows.
        is_alter = "ALTER" in (statement.type, ddl_type_of(statement.query))
        if is_alter and _RETYPES(statement.query):
            what = f"{statement.query}: {error or 'it cannot be read'}"
            plan.halt_for_values(what, "its columns")
            if not plan.state.halted:
                _note_followed(plan, by)
        return
    if not (changes.definitions or changes.renamed):
        return
    before, _ = around(plan.state.definitions, statement)
    observe(plan, [v for v in plan.versions if v.may_precede(statement)], before, types_of)
    if plan.state.halted:
        return
    found = [c for change in changes.definitions for c in _changes(plan, before, change)]
    for each in found:
        _follow(plan, before, each, statement, policy, store)
        if plan.state.halted:
            return
    seen = plan.state.seen
    renamed = [(old.lower(), new) for old, new in changes.renamed.items() if old.lower() in seen]
    texts = {new: seen[old][-1].text for old, new in renamed}
    plan.state = with_types(
        plan.state, statement, texts | {each.now: each.new.text for each in found}
    )
    charset = next((c.charset for c in changes.definitions if c.charset), plan.state.charset)
    plan.state = attrs.evolve(plan.state, charset=charset)
    _note_followed(plan, by)


def _follow(
    plan: TableMerge,
    before: definitions.Definition | None,
    each: Change,
    statement: TableStatement,
    policy: str,
    store: str,
) -> None:
    what = f"{statement.query}: {each.name}"
    if not plan.had(each.name, statement):
        _follow_waiting(plan, each, statement)
    elif reason := _reason(plan, before, each, statement, policy, store):
        if policy == "ignore":
            plan.note("ignore column", f"{what}: {reason}", "warning")
        else:
            plan.halt_for_values(f"{what}: {reason}", each.name)
    else:
        if _has_unknown_charset(plan, before, each):
            plan.note("convert column", f"{what}: {_CHARSET}", "warning")
        if each.effect.steps and store == "changelog":
            text = "rows from before it have the values that were sent"
            plan.note("convert column", f"{what}: {text}", "warning")
        elif each.effect.steps:
            _convert(plan, each, statement)


def _has_unknown_charset(
    plan: TableMerge, before: definitions.Definition | None, each: Change
) -> bool:
    """Whether a text column may get the table's character set in place of another one."""
    is_defined = before is not None and before.column(each.name) is not None
    charsets = (plan.state.charset, each.old and each.old.charset, each.new.charset)
    return each.new.base in _WITH_CHARSET and not is_defined and not any(charsets)


def _note_followed(plan: TableMerge, by: str) -> None:
    retyped = (*plan.state.retyped, by)[-_MAX_CASTS:]
    plan.state = attrs.evolve(plan.state, retyped=retyped)


def _changes(
    plan: TableMerge, before: definitions.Definition | None, change: DefinitionChange
) -> list[Change]:
    if (new := change.definition) is not None:
        assert change.old is not None
        old = _known(plan, before, change.old)
        return [Change(change.old, change.new, old, new, _effect(plan, old, new))]
    if not change.converts:
        return []
    defined = [name.lower() for name, _ in before.columns] if before else []
    names = dict.fromkeys([*plan.state.seen, *defined])
    found = []
    for name in names:
        old = _known(plan, before, name)
        if old is None or old.base not in _WITH_CHARSET or old.charset == "binary":
            continue
        reason = charset_change(old.charset or UNKNOWN, change.charset)
        if change.charset in (UNKNOWN, "binary"):
            reason = f"its character set becomes {change.charset}"
        new = attrs.evolve(old, text=f"{old.text} CHARACTER SET {change.charset}")
        found.append(Change(name, name, old, new, Conversion(halt=reason)))
    return found


def _known(plan: TableMerge, before: definitions.Definition | None, name: str) -> Definition | None:
    """The definition of a column: from a statement, or else from its rows."""
    column = before.column(name) if before else None
    if column is not None:
        return Definition.of_statement(column.definition)
    seen = plan.state.seen.get(name.lower())
    return Definition.of_message(seen[-1].text) if seen else None


def _effect(plan: TableMerge, old: Definition | None, new: Definition) -> Conversion:
    if old is None:
        return Conversion(halt="its definition before is unknown")
    if new.charset is None and new.base in _WITH_CHARSET:
        # Most columns have the table's charset, whichever that is.
        changed = plan.state.charset
        now = changed if old.charset is None and changed else None
        was = UNKNOWN if now else old.charset
        return conversion(attrs.evolve(old, charset=was), attrs.evolve(new, charset=now))
    return conversion(old, new)


def _reason(
    plan: TableMerge,
    before: definitions.Definition | None,
    each: Change,
    statement: TableStatement,
    policy: str,
    store: str,
) -> str | None:
    """The reason why sync cannot convert rows as the source does."""
    effect = each.effect
    if effect.halt is not None:
        return f"{each.old.text if each.old else 'unknown'} to {each.new.text}: {effect.halt}"
    if effect.names and not _has_names(plan, each.name):
        return _NUMBERS
    computed, is_whole = _computed(plan, before, statement)
    if computed and each.old is not None and each.old.type != each.new.type:
        return _COMPUTED
    if not effect.steps or store == "changelog":
        return None
    keys = {key.lower() for version in plan.versions for key in version.key_columns}
    if each.name.lower() in keys.union(map(str.lower, plan.state.keys)):
        return "its values change, and it is of the key"
    if policy == "exception":
        return "its values change (schema_changes=exception)"
    if store == "scd2":
        return "its values change, and versions of rows keep theirs"
    if not is_whole:
        return f"{_COMPUTED}, as no CREATE TABLE of the topic defines the others"
    return None if _is_ordered(plan, statement) else _UNORDERED


def _is_ordered(plan: TableMerge, statement: TableStatement) -> bool:
    """Whether ``_sequence`` orders a statement among the rows."""
    return statement.place is None or not plan.state.places - {statement.place}


def _has_names(plan: TableMerge, name: str) -> bool:
    """Whether the values of an ENUM or SET are names."""
    now = (plan.state.name_now(name) or name).lower()
    for field in plan.state.columns.fields if plan.state.columns else ():
        if field.name.lower() == now:
            return isinstance(field.dataType, StringType)
    rows = (c for v in plan.versions for c in v.columns if c.name.lower() == name.lower())
    types = (parse_column_type(column.source_type) for column in rows)
    return all(type_.elements is not None for type_ in types if type_.base in ("enum", "set"))


def _computed(
    plan: TableMerge, before: definitions.Definition | None, statement: TableStatement
) -> tuple[bool, bool]:
    """Whether a stored column is computed from others, and whether all columns are known."""
    known = {name.lower(): text for name, text in before.columns} if before else {}
    is_computed = any(Definition.of_statement(text).generated for text in known.values())
    own = plan.state.columns.names if plan.state.columns else []
    earlier = (v for v in plan.versions if v.may_precede(statement))
    names = {*own, *(column.name for version in earlier for column in version.columns)}
    return is_computed, {*map(str.lower, names)} <= known.keys()


def _follow_waiting(plan: TableMerge, each: Change, statement: TableStatement) -> None:
    """A column that no row has yet: only its value in earlier rows may change."""
    name, steps = each.name.lower(), each.effect.steps
    waiting = [value for value in plan.state.earlier if value.name.lower() == name]
    if each.effect.kind == "same" or (not waiting and [step for step, _ in steps] != ["null"]):
        return
    if not waiting and _is_ordered(plan, statement):
        # ADD COLUMN left NULL in the rows.
        value = EarlierValue(each.name, statement.sequence, steps[0][1][0])
        plan.state = attrs.evolve(plan.state, earlier=(*plan.state.earlier, value))
    elif not waiting or [step for step, _ in steps] != ["null"] or any(v.old for v in waiting):
        plan.halt_for_values(f"{statement.query}: {each.name}: its values change", each.name)
        if not plan.state.halted:
            others = tuple(value for value in plan.state.earlier if value not in waiting)
            plan.state = attrs.evolve(plan.state, earlier=others)


def _convert(plan: TableMerge, each: Change, statement: TableStatement) -> None:
    cast = Cast(each.name, each.effect.steps, statement.sequence)
    plan.casts.append(cast)
    plan.state = attrs.evolve(plan.state, casts=(*plan.state.casts, cast)[-_MAX_CASTS:])
    assert each.old is not None
    plan.note("convert column", f"{each.name} from {each.old.text} to {each.new.text}")


def converted_column(state: TableState, cast: Cast) -> StructField | None:
    """The target's column; None if it is dropped."""
    name = state.name_now(cast.name)
    fields = state.own_columns.fields
    return next((f for f in fields if name and f.name.lower() == name.lower()), None)


def cast_sql(cast: Cast, column: str, type_: DataType) -> str:
    """The SQL of a converted value; of a converted one it is the value itself.

    :param column: the quoted name.
    """
    value, is_binary = column, isinstance(type_, BinaryType)
    for step, arguments in cast.steps:
        if step == "null":
            default = "X''" if is_binary else text_literal(arguments[0])
            if not isinstance(type_, BinaryType | StringType):
                default = f"CAST({arguments[0]} AS {type_.simpleString()})"
            value = f"coalesce({value}, {default})"
        elif step == "round":
            value = f"round({value}, {arguments[0]})"
        elif step == "clip":
            low, high = (f"{limit}BD" for limit in arguments)
            # least and greatest pass over NULL.
            value = f"IF({value} < {low}, {low}, IF({value} > {high}, {high}, {value}))"
        elif step == "cut":
            value = f"substring({value}, 1, {arguments[0]})"
        elif step == "single":
            value = f"CAST({value} AS FLOAT)"
        elif step == "trim":
            value = f"rtrim({value})"
        else:
            value = f"rpad({value}, {arguments[0]}, X'00')"
    return f"CAST({value} AS {type_.simpleString()})"
