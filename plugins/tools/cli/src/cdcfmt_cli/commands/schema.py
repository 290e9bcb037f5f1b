"""``cdcfmt schema``: a table's columns on the wire, in Spark and as CREATE TABLE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import click
from rich.text import Text

from cdcfmt_cli.console import console, next_command, note
from cdcfmt_cli.engines import schema_engine
from cdcfmt_cli.inputs import CommandInput, open_input, public
from cdcfmt_cli.observed_schemas import ObservedSchema, ObservedSchemas
from cdcfmt_cli.parameters import declare, reads
from cdcfmt_cli.printing import number, plain_table, print_table, printable, type_name
from cdcfmt_cli.reading import Reader, note_corrupt
from cdcfmt_cli.settings import Settings
from cdcfmt_cli.writers import print_json, print_lines
from cdcfmt_core.errors import CdcfmtError, MissingDependencyError, OptionError
from cdcfmt_core.events import Corrupt
from cdcfmt_core.filters import table_names
from cdcfmt_core.options import Option
from cdcfmt_core.texts import one_line
from cdcfmt_toolkit.table_texts import nearest_tables

OPTIONS = (
    Option(
        name="table",
        help="`database.table` or `database.schema.table`. Without it: list the tables.",
    ),
    Option(
        name="inferSampleMessages",
        type="int",
        default=1000,
        minimum=1,
        help="Number of row messages of the table from which the Spark schema is inferred.",
    ),
)


def _engine_options() -> tuple[str, ...]:
    try:
        names: tuple[str, ...] = schema_engine().OPTIONS
        return names
    except MissingDependencyError:
        return ()


@declare("schema", "A table's columns, for Spark and as SQL.")
@reads(OPTIONS, section="Which table", more=_engine_options)
@click.option(
    "--as",
    "shape",
    type=click.Choice(["table", "spark", "create-table", "delta", "json"]),
    default="table",
    show_default=True,
    help="A table for people; text for Spark's .schema(…); SQL of the source; SQL that creates a "
    "Delta table with these columns; or JSON.",
)
def command(paths: tuple[str, ...], settings: Settings, shape: str) -> None:
    """Print the columns of a table, with their types in the source and in Spark.

    Spark types need pyspark-cdcfmt, but Spark is not started. Without --table: all tables by
    name; as JSON, one line each. Exit code 1 if the table is not in INPUT.
    """
    source = open_input(paths, settings)
    if settings.table is None:
        _all_tables(source, settings, shape, paths)
        return
    if shape in ("spark", "delta"):
        engine = schema_engine()
        fields = engine.columns(source, settings, settings.table)
        print_lines(engine.sql(fields, settings.table if shape == "delta" else None))
        return
    schemas = _collect(source, settings)
    table = schemas.tables.get(settings.table)
    if table is None:
        name = table_names([settings.table])
        near = nearest_tables(name, schemas.tables)
        raise CdcfmtError(f"no table {name} in the input; {near}")
    if shape == "create-table":
        print_lines(table.create_table())
        return
    spark = _spark(source, settings, settings.table)
    if shape == "json":
        print_json(_json(table, spark))
    else:
        _show(table, spark, paths)


def _collect(source: CommandInput, settings: Settings, every: Any = None) -> ObservedSchemas:
    schemas = ObservedSchemas()
    event_filter = attrs.evolve(settings.event_filter(), table=None)
    reader = Reader(source, settings, event_filter)
    corrupt = 0
    for decoded in reader:
        for event in decoded.events:
            schemas.add(event)
            corrupt += isinstance(event, Corrupt)
        if every is not None:
            every.see(decoded.events)
    if every is not None:
        every.finish(source, reader)
    note_corrupt(corrupt)
    return schemas


def _all_tables(
    source: CommandInput, settings: Settings, shape: str, paths: tuple[str, ...]
) -> None:
    if shape == "table":
        _list_tables(_collect(source, settings), paths)
        return
    engine, every = None, None
    if shape != "create-table":
        if not source.again:
            raise OptionError(
                f"--as {shape} of all tables reads the ends of the input again, and this input "
                "can be read only once: write it to a file, or use --as create-table"
            )
        engine = _engine()
        every = None if engine is None else engine.EveryTable(settings)
    schemas = _collect(source, settings, every)
    first = True
    for name, table in sorted(schemas.tables.items()):
        if shape == "json":
            columns = every.of(name) if every else []
            print_json(_json(table, {column.name: column for column in columns}))
            continue
        if shape in ("spark", "delta"):
            text = ""
            if engine and every:
                text = engine.sql(every.of(name), name if shape == "delta" else None)
        else:
            text = table.create_table()
        if text:
            # A newline in a name would end the SQL comment.
            head = one_line(f"-- {table_names([name])}")
            print_lines(("" if first else "\n") + f"{head}\n{text}")
            first = False


def _engine() -> Any:
    try:
        return schema_engine()
    except MissingDependencyError as error:
        note(str(error))
        return None


def _spark(source: CommandInput, settings: Settings, table: tuple[str, ...]) -> Mapping[str, Any]:
    """The columns in Spark; none, and a note, without the bridge or without a row of the table."""
    try:
        return {field.name: field for field in schema_engine().columns(source, settings, table)}
    except OptionError:
        raise
    except CdcfmtError as error:
        note(str(error))
        return {}


def _list_tables(schemas: ObservedSchemas, paths: tuple[str, ...]) -> None:
    out = console()
    if not schemas.tables:
        out.print("No message has a table schema.")
        return
    table = plain_table("table", "columns", "key", right=("columns",))
    for name, schema in sorted(schemas.tables.items()):
        key = ", ".join(printable(column) for column in schema.key_columns)
        text = Text(printable(table_names([name])), "name")
        table.add_row(text, number(len(schema.columns)), key or Text("–", "faint"))
    print_table(table, out)
    out.print()
    next_command(["schema", "--table", table_names([min(schemas.tables)])], public(paths))


def _show(table: ObservedSchema, spark: Mapping[str, Any], paths: tuple[str, ...]) -> None:
    out = console()
    heads = ["column", "source type", "type", *(["Spark"] if spark else []), "null", "key"]
    shown = plain_table(*heads)
    for column in table.columns.values():
        key = column.name in table.key_columns or column.key
        nullable = {None: "?", True: "yes", False: "no"}[column.nullable]
        of_spark = [spark[column.name].type if column.name in spark else ""] if spark else []
        shown.add_row(
            Text(printable(column.name), "key" if key else "name"),
            printable(column.source_type),
            Text(type_name(column.type), "faint"),
            *of_spark,
            Text(nullable, "faint"),
            Text("●", "key") if key else "",
        )
    print_table(shown, out)
    out.print()
    name = table_names([table.name])
    if spark:
        next_command(["schema", "--table", name, "--as", "spark"], public(paths))
    next_command(["schema", "--table", name, "--as", "create-table"], public(paths))


def _json(table: ObservedSchema, spark: Mapping[str, Any]) -> dict[str, object]:
    return {
        "table": ".".join(table.name),
        "key_columns": table.key_columns,
        "columns": [
            {
                "name": column.name,
                "source_type": column.source_type,
                "type": type_name(column.type),
                "spark_type": spark[column.name].type if column.name in spark else None,
                "nullable": column.nullable,
                "key": column.name in table.key_columns or column.key,
            }
            for column in table.columns.values()
        ],
        "create_table": table.create_table(),
        "statements": table.statements,
    }
