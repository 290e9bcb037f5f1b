"""The public modules and names, for ``docs/api.md``."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator

PUBLIC = {
    "core": (
        "cdcfmt_core",
        "cdcfmt_core.codec",
        "cdcfmt_core.encoder",
        "cdcfmt_core.errors",
        "cdcfmt_core.events",
        "cdcfmt_core.filters",
        "cdcfmt_core.offsets",
        "cdcfmt_core.options",
        "cdcfmt_core.registry",
        "cdcfmt_core.schema_registry",
        "cdcfmt_core.schemas.records",
        "cdcfmt_core.schemas.store",
        "cdcfmt_core.schemas.versions",
        "cdcfmt_core.transport",
        "cdcfmt_core.types",
    ),
    "toolkit": (
        "cdcfmt_toolkit.dialects",
        "cdcfmt_toolkit.encodings",
        "cdcfmt_toolkit.flat_rows",
        "cdcfmt_toolkit.images",
        "cdcfmt_toolkit.inputs",
        "cdcfmt_toolkit.layout",
        "cdcfmt_toolkit.message_writer",
        "cdcfmt_toolkit.plans",
        "cdcfmt_toolkit.row_messages",
        "cdcfmt_toolkit.row_rules",
        "cdcfmt_toolkit.topics.losses",
        "cdcfmt_toolkit.topics.options",
        "cdcfmt_toolkit.topics.topic_client",
        "cdcfmt_toolkit.topics.topic_options",
        "cdcfmt_toolkit.topics.topic_source",
        "cdcfmt_toolkit.wire_json",
        "cdcfmt_mysql",
        "cdcfmt_mysql.ddl",
        "cdcfmt_mysql.type_output",
        "cdcfmt_postgresql",
        "cdcfmt_files.sources",
        "cdcfmt_files.sources.whole_messages",
    ),
    "kit": ("cdcfmt_testing", "cdcfmt_testing.transports", "cdcfmt_cli.template"),
    "bridge": ("pyspark_cdcfmt", "pyspark_cdcfmt.sync"),
}
"""The tables of the page, and the modules in each."""


def names(module: str) -> list[str]:
    """The names of a module's ``__all__``; without one, of what it defines."""
    found = importlib.import_module(module)
    if hasattr(found, "__all__"):
        return sorted(found.__all__)
    return sorted({name for name in _defined(inspect.getsource(found)) if name[0] != "_"})


def modules(table: str) -> Iterator[tuple[str, str]]:
    """A table of the page: each module, and its names."""
    for module in PUBLIC[table]:
        yield f"`{module}`", ", ".join(f"`{name}`" for name in names(module))


def _defined(source: str) -> Iterator[str]:
    for node in ast.parse(source).body:
        match node:
            case ast.FunctionDef(name) | ast.ClassDef(name):
                yield name
            case ast.AnnAssign(target=ast.Name(name)) | ast.Assign(targets=[ast.Name(name)]):
                if name != "logger":
                    yield name
            case ast.Assign(targets=[ast.Tuple(elements)]):
                yield from (each.id for each in elements if isinstance(each, ast.Name))
