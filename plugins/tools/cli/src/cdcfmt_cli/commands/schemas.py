"""``cdcfmt schemas``: list, check and delete the schemas in a schema store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import click
from rich.text import Text

from cdcfmt_cli.console import console, next_command, note
from cdcfmt_cli.parameters import Context
from cdcfmt_cli.printing import number, plain_table, print_table, printable, size
from cdcfmt_cli.writers import print_json
from cdcfmt_core.errors import CdcfmtError, OptionError
from cdcfmt_core.filters import parse_table_name, table_names
from cdcfmt_files.sources.options import parse_storage_options
from cdcfmt_toolkit.schema_directory import Entry, SchemaDirectory
from cdcfmt_toolkit.table_texts import nearest_tables

_JSON = click.option("--json", "as_json", is_flag=True, help="The same as JSON, one line each.")


def _on_a_store(function: Callable[..., Any]) -> Callable[..., Any]:
    option = click.option(
        "--storage-options", metavar="TEXT", help="JSON object of options for the file system."
    )
    return click.argument("store", metavar="FOLDER")(option(function))


class _Group(click.Group):
    context_class = Context


@click.group("schemas", cls=_Group, short_help="List, check and delete schemas of a store.")
def command() -> None:
    """List, check and delete schemas in the folder of the option schemaStore."""


@command.command("list")
@_on_a_store
@_JSON
def list_(store: str, storage_options: str | None, as_json: bool) -> None:
    """List the tables and the number of their schemas."""
    tables: dict[tuple[str, ...], list[Entry]] = {}
    broken = 0
    for entry in _entries(store, storage_options):
        if entry.record is None:
            broken += 1
        else:
            tables.setdefault(entry.record.table.name, []).append(entry)
    if as_json:
        for name, entries in sorted(tables.items()):
            print_json(_json(name, entries))
    elif tables:
        table = plain_table("table", "schemas", "columns", "bytes", right=("schemas", "bytes"))
        for name, entries in sorted(tables.items()):
            counts = sorted({len(e.record.table.columns) for e in entries if e.record})
            columns = f"{counts[0]} … {counts[-1]}" if len(counts) > 1 else str(counts[0])
            table.add_row(
                Text(printable(table_names([name])), "name"),
                number(len(entries)),
                columns,
                size(sum(entry.size for entry in entries)),
            )
        print_table(table, console())
    else:
        console().print("The store has no schema.")
    if broken:
        note(f"files without a valid schema: {number(broken)}; cdcfmt schemas check lists them")


@command.command("check")
@_on_a_store
@_JSON
def check(store: str, storage_options: str | None, as_json: bool) -> bool:
    """Read every schema, and list the files that readers skip or fail on.

    Exit code 1 if it lists any.
    """
    good, broken = 0, []
    for entry in _entries(store, storage_options):
        if entry.problem is None:
            good += 1
        else:
            broken.append(entry)
    if as_json:
        for entry in broken:
            print_json({"file": entry.name, "bytes": entry.size, "problem": entry.problem})
    else:
        out = console()
        if broken:
            table = plain_table("file", "bytes", "problem", right=("bytes",))
            for entry in broken:
                problem = Text(printable(entry.problem or "", 300), "bad")
                table.add_row(Text(printable(entry.name), "name"), number(entry.size), problem)
            print_table(table, out)
            out.print()
            next_command(["schemas", "forget", "--broken"], [store])
            out.print()
        verdict = Text(f"{number(len(broken))} broken", "bad") if broken else Text("all good", "ok")
        out.print(Text.assemble(verdict, f": {number(good)} schemas"))
    return bool(broken)


@command.command("forget")
@_on_a_store
@click.option("--table", metavar="TEXT", help="Delete all schemas of this table.")
@click.option("--broken", is_flag=True, help="Delete the files that check lists.")
def forget(store: str, storage_options: str | None, table: str | None, broken: bool) -> None:
    """Delete schemas, while no query uses the store. Readers learn them again from the stream.

    Exit code 1 if the store has no schema of the table.
    """
    if (table is None) == (not broken):
        raise OptionError("schemas forget needs either --table or --broken")
    wanted = None if table is None else parse_table_name(table)
    directory = _directory(store, storage_options)
    entries = list(directory.entries())
    names = {entry.record.table.name for entry in entries if entry.record is not None}
    if wanted is not None and wanted not in names:
        name = table_names([wanted])
        raise CdcfmtError(f"no schema of {name} in {store}; {nearest_tables(name, names)}")
    found = [e for e in entries if (wanted == e.record.table.name if e.record else broken)]
    for entry in found:
        directory.forget(entry.name)
    note(f"forgotten: {number(len(found))} files")


def _entries(store: str, storage_options: str | None) -> Iterator[Entry]:
    return _directory(store, storage_options).entries()


def _directory(store: str, storage_options: str | None) -> SchemaDirectory:
    return SchemaDirectory(store, parse_storage_options(storage_options))


def _json(name: tuple[str, ...], entries: Iterable[Entry]) -> dict[str, Any]:
    return {
        "table": table_names([name]),
        "schemas": [
            {
                "file": entry.name,
                "bytes": entry.size,
                "stream": entry.record.stream,
                "position": entry.record.position,
                "columns": list(entry.record.table.column_names),
            }
            for entry in entries
            if entry.record is not None
        ],
    }
