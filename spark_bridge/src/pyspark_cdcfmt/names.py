"""The names that the user gave, compared with those that the input has (``requireTables``)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import partial

import attrs
from pyspark.sql.types import StructType

from cdcfmt_core.column_names import fold
from cdcfmt_core.errors import SourceError
from cdcfmt_core.filters import EventFilter, nearest_tables, table_names
from pyspark_cdcfmt.change_schema import metadata_fields
from pyspark_cdcfmt.column_names import canonical
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.survey import Survey, TableName

_MOST_NAMES = 20


@attrs.frozen
class GivenNames:
    """Table, patterns of tables and columns that the user named.

    Where the schema was inferred, table and columns are those of the input.  ``added`` are
    the names of the columns that the changes shape adds.
    """

    table: TableName | None
    patterns: Mapping[str, EventFilter]
    columns: tuple[str, ...]
    added: tuple[str, ...]
    case_sensitive: bool

    @classmethod
    def of(cls, options: ReadOptions, schema: StructType, *, inferred: bool) -> GivenNames:
        added: tuple[str, ...] = ()
        columns: tuple[str, ...] = ()
        if options.table is not None:
            added = tuple(field.name for field in metadata_fields(options))
            if not inferred:
                spelled = canonical(schema, added).names
                columns = tuple(name for name in spelled if name not in added)
        return cls(
            None if inferred else options.table,
            {text: EventFilter(include_tables=(text,)) for text in options["includeTables"]},
            columns,
            added,
            options.case_sensitive,
        )

    def __bool__(self) -> bool:
        """Whether there is anything to compare."""
        return self.table is not None or bool(self.patterns)

    def table_in(self, survey: Survey) -> bool:
        """Whether the survey has a schema of the table, or none is asked for."""
        return self.table is None or bool(survey.complete_schemas_of(self.table))

    def all_in(self, survey: Survey) -> bool:
        """Whether the survey knows all of them."""
        return (
            self.table_in(survey)
            and not self._unmatched(survey)
            and not self._unknown_columns(survey)
        )

    def check(self, survey: Survey) -> None:
        """
        :raises SourceError: if messages were seen, and a name is not among theirs.
        """
        reason = self.unknown(survey)
        if reason:
            raise SourceError(
                f"{reason} (requireTables=false reads without this check, for names that are "
                "rare or still to come)"
            )

    def unknown(self, survey: Survey) -> str | None:
        """What is wrong with the first name that the survey does not know; None if all is well.

        An input without tables says nothing.
        """
        if not survey.tables:
            return None
        looked = f"the {survey.messages} messages looked at" if survey.messages else "the schemas"
        if self.table is not None and self.table not in survey.tables:
            name = table_names([self.table])
            return (
                f"option table: no table {name} is in {looked}; "
                f"{nearest_tables(name, survey.tables)}"
            )
        for text in self._unmatched(survey):
            return (
                f"option includeTables: {text} matches no table of {looked}; "
                f"{nearest_tables(text, survey.tables)}"
            )
        for column in self._unknown_columns(survey):
            assert self.table is not None
            known = self._known_columns(survey)
            near = _near(column, [*known, *self.added])
            hint = f"; did you mean {near}?" if near else ""
            return (
                f"column {column} of the schema: table {table_names([self.table])} has no such "
                f"column in {looked}, but {some(known)}{hint}"
            )
        return None

    def _unmatched(self, survey: Survey) -> list[str]:
        return [
            text
            for text, pattern in self.patterns.items()
            if not any(_wants(pattern, table) for table in survey.tables)
        ]

    def _known_columns(self, survey: Survey) -> list[str]:
        assert self.table is not None
        schemas = survey.schemas_of(self.table)
        return list(dict.fromkeys(name for schema in schemas for name in schema.column_names))

    def _unknown_columns(self, survey: Survey) -> list[str]:
        # Partial rows may lack any column.
        if not self.columns or self.table is None or not survey.complete_schemas_of(self.table):
            return []
        same = partial(fold, case_sensitive=self.case_sensitive)
        known = set(map(same, self._known_columns(survey)))
        return [name for name in self.columns if same(name) not in known]


def _wants(pattern: EventFilter, table: TableName) -> bool:
    database, *schema, name = table
    return pattern.wants_table(database, name, schema[0] if schema else None)


def _near(name: str, known: Iterable[str]) -> str | None:
    """The likeliest of the known names, one that differs only in case before all others."""
    names: dict[str, str] = {}
    for each in known:
        names.setdefault(each.lower(), each)
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    return names[near[0]] if near else None


def some(names: Iterable[str]) -> str:
    """The names in one line, of many the first ones."""
    listed = list(names)
    more = f" and {len(listed) - _MOST_NAMES} more" if len(listed) > _MOST_NAMES else ""
    return ", ".join(listed[:_MOST_NAMES]) + more
