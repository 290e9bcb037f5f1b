"""Table schemas from a stream of events, and CREATE TABLE with the source's types."""

from __future__ import annotations

import attrs

from cdcfmt_core.events import Column, Event, RowChange, SchemaChange, TableSchema, full_name
from cdcfmt_core.types import Decimal, Unknown
from cdcfmt_toolkit.decimal_digits import DecimalDigits


@attrs.define
class ObservedSchema:
    """A table's columns in order of appearance; the newest definition of each counts.

    ``statements`` are the DDL statements that shaped the table since its last CREATE, if the
    stream had that one (``created``); TRUNCATE is left out.
    """

    name: tuple[str, ...]
    columns: dict[str, Column] = attrs.field(factory=dict)
    key_columns: tuple[str, ...] = ()
    statements: list[str] = attrs.field(factory=list)
    created: bool = False
    digits: DecimalDigits = attrs.field(factory=DecimalDigits)

    def add(self, schema: TableSchema, *, whole: bool) -> None:
        """Add a schema of the table; a ``whole`` schema removes columns that it lacks."""
        if whole:
            self.columns = {c.name: self.columns.get(c.name, c) for c in schema.columns}
        for column in schema.columns:
            known = self.columns.get(column.name)
            # Some formats send no type with a NULL.
            if known is None or not isinstance(column.type, Unknown):
                self.columns[column.name] = column
        self.key_columns = schema.key_columns or self.key_columns

    def create_table(self) -> str:
        """The source's own statements if known, otherwise one built from the columns."""
        if self.created:
            return "\n".join(statement.rstrip("; \n") + ";" for statement in self.statements)
        lines = [f"  {_quoted(c.name)} {self._type_text(c)}" for c in self.columns.values()]
        if self.key_columns:
            lines.append(f"  PRIMARY KEY ({', '.join(map(_quoted, self.key_columns))})")
        head = ""
        if not any("(" in column.source_type for column in self.columns.values()):
            head = "-- made of the columns' types; this wire has no lengths\n"
        name = ".".join(map(_quoted, self.name))
        return f"{head}CREATE TABLE {name} (\n" + ",\n".join(lines) + "\n);"

    def _type_text(self, column: Column) -> str:
        text = column.source_type or "/* of an unknown type */"
        known = self.digits.known(column.name, column.type)
        if known != column.type and isinstance(known, Decimal):
            # DECIMAL alone would mean DECIMAL(10, 0).
            word, _, rest = text.partition(" ")
            text = " ".join(filter(None, [f"{word}({known.precision},{known.scale})", rest]))
        return text + (" NOT NULL" if column.nullable is False else "")


class ObservedSchemas:
    """The schemas of all tables."""

    def __init__(self) -> None:
        self.tables: dict[tuple[str, ...], ObservedSchema] = {}
        self._seen: dict[tuple[str, ...], TableSchema] = {}

    def add(self, event: Event) -> None:
        if isinstance(event, RowChange):
            name = event.table.name
            # Decoders use the same object for all rows of a table.
            if self._seen.get(name) is not event.table:
                self._seen[name] = event.table
                self._of(name).add(event.table, whole=False)
            self._of(name).digits.see(event)
        elif isinstance(event, SchemaChange):
            self._add_statement(event)
        elif (schema := getattr(event, "table_schema", None)) is not None:
            self._of(schema.name).add(schema, whole=True)

    def _add_statement(self, event: SchemaChange) -> None:
        name = full_name(event.database, event.schema, event.table)
        schema = event.table_schema
        if schema is not None:
            name = schema.name
            self._of(name).add(schema, whole=True)
        if not event.table:
            return
        if event.ddl_type == "CREATE":
            table = self._of(name)
            table.statements, table.created = [event.query], True
        elif event.ddl_type not in ("QUERY", "TRUNCATE") and name in self.tables:
            self.tables[name].statements.append(event.query)

    def _of(self, name: tuple[str, ...]) -> ObservedSchema:
        return self.tables.setdefault(name, ObservedSchema(name))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
