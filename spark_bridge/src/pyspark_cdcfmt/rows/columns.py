"""The fields of a schema beside the columns of a table: matched as Spark matches names."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import NullType, StructField, StructType

from cdcfmt_core.column_names import clashes, fold, spelled
from cdcfmt_core.errors import OptionError, PolicyError, show

SPARKS_SWITCH = "spark.sql.caseSensitive"


def is_case_sensitive(option: bool | None) -> bool:
    """The option ``caseSensitive``, else what the session of a task has set.

    Spark shows its settings to tasks alone, so on the driver names then match without case.
    """
    if option is not None:
        return option
    from pyspark import TaskContext

    task = TaskContext.get()
    told = None if task is None else task.getLocalProperty(SPARKS_SWITCH)
    return told is not None and told.lower() == "true"


def match_fields(
    fields: Sequence[StructField], columns: Sequence[str], *, case_sensitive: bool
) -> dict[str, StructField]:
    """The fields by the columns that they name; those without a column are left out.

    :raises PolicyError: for a field that two columns match, and for one that matches none only
        because of case.
    """
    by_name: dict[str, list[str]] = {}
    for column in columns:
        by_name.setdefault(fold(column, case_sensitive=case_sensitive), []).append(column)
    matched = {}
    for field in fields:
        found = by_name.get(fold(field.name, case_sensitive=case_sensitive), ())
        if len(found) > 1:
            raise PolicyError(
                f"the table has columns {_and(found)}, which differ only in case: set "
                f"caseSensitive=true, and {SPARKS_SWITCH}=true in the session",
                column=field.name,
            )
        if found:
            matched[found[0]] = field
    if case_sensitive:
        _check_near_misses(fields, columns, matched)
    return matched


def match_keys(
    given: Sequence[str], columns: Sequence[str], *, case_sensitive: bool
) -> tuple[str, ...]:
    """The option ``keyColumns`` as the table spells them; one without a column stays as it is.

    :raises PolicyError: for a name that two columns match.
    """
    fields = [StructField(name, NullType()) for name in given if name not in columns]
    match_fields(fields, columns, case_sensitive=case_sensitive)
    return spelled(given, columns, case_sensitive=case_sensitive)


def _check_near_misses(
    fields: Sequence[StructField], columns: Sequence[str], matched: dict[str, StructField]
) -> None:
    # NULL in every row would look like an empty column.
    others = {column.lower(): column for column in columns if column not in matched}
    for field in fields:
        if field.name not in matched and field.name.lower() in others:
            raise PolicyError(
                f"the table has {show(others[field.name.lower()])}, and names match with case "
                f"({SPARKS_SWITCH}, or the option caseSensitive): declare it so",
                column=field.name,
            )


def check_declared(schema: StructType, *, case_sensitive: bool) -> None:
    """OptionError for names that stand in a schema twice."""
    twice = [name for name in dict.fromkeys(schema.names) if schema.names.count(name) > 1]
    if twice:
        raise OptionError(f"the schema has column {show(twice[0])} twice")
    for names in () if case_sensitive else clashes(schema.names):
        raise OptionError(
            f"the schema has columns {_and(names)}, which differ only in case: set "
            f"caseSensitive=true, and {SPARKS_SWITCH}=true in the session"
        )


def canonical(schema: StructType, known: Sequence[str]) -> StructType:
    """The schema with ``known`` names, those that we add, spelled as we do."""
    ours = {name.lower(): name for name in known}
    return StructType(
        [
            StructField(
                ours.get(field.name.lower(), field.name),
                field.dataType,
                field.nullable,
                field.metadata,
            )
            for field in schema.fields
        ]
    )


def _and(names: Sequence[str]) -> str:
    return " and ".join(map(show, names))
