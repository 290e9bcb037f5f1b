"""What a table is in Spark, from the bridge: its type table is the only one."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

import attrs

from cdcfmt_core.cli.inputs import Input
from cdcfmt_core.cli.reading import Reader
from cdcfmt_core.cli.settings import Settings
from cdcfmt_core.errors import MissingDependencyError
from cdcfmt_core.options import validate

BRIDGE_OPTIONS = ("timeAs", "enumAs", "jsonAs", "invalidValues", "caseSensitive")
"""Options of the bridge that choose columns and types; ``-o`` takes them."""


@attrs.frozen
class SparkColumn:
    name: str
    type: str

    @property
    def ddl(self) -> str:
        """The column in Spark's DDL."""
        return f"{_quoted(self.name)} {self.type.upper() if '<' not in self.type else self.type}"


def spark_sql(columns: Iterable[SparkColumn], delta_table: tuple[str, ...] | None = None) -> str:
    """The columns as text for ``.schema(…)``, or the statement that makes a Delta table of them.

    Empty without columns.
    """
    lines = [column.ddl for column in columns]
    if delta_table is None or not lines:
        return ",\n".join(lines)
    name = ".".join(map(_quoted, delta_table))
    return f"CREATE TABLE {name} (\n  " + ",\n  ".join(lines) + "\n) USING delta;"


def _quoted(name: str) -> str:
    plain = name.isascii() and name.replace("_", "a").isalnum()
    return name if plain else f"`{name.replace('`', '``')}`"


def spark_columns(source: Input, settings: Settings, table: tuple[str, ...]) -> list[SparkColumn]:
    """The table's columns as ``format("cdc")`` infers them.

    :raises MissingDependencyError: without pyspark-cdcfmt or pyspark.
    :raises SourceError: if no row of the table is in the input.
    """
    infer, types, options = (_bridge(name) for name in ("infer", "types", "options"))
    declared = [option for option in options.bridge_options() if option.name in BRIDGE_OPTIONS]
    chosen = validate(settings.rest, declared, owner="cdcfmt schema")
    event_filter = attrs.evolve(settings.event_filter(), table=table)
    one = Reader(source, settings, event_filter)
    every = Reader(source, settings, attrs.evolve(event_filter, table=None))
    fields: list[Any] = infer.infer_columns(
        one.messages,
        _Decoder(one),
        table,
        settings["inferSampleMessages"],
        types.TypeOptions.of(chosen),
        any_table=_Decoder(every),
        ends=source.ends,
        schemas=one.schemas_of(table),
    )
    return [SparkColumn(field.name, field.dataType.simpleString()) for field in fields]


@attrs.frozen
class _Decoder:
    """What inference uses of a message decoder, with the schemas that a reader finds."""

    reader: Reader

    def decode(self, message: Any) -> Any:
        return self.reader.decode(0, message).events


def _bridge(module: str) -> Any:
    # By name, as the core must do without the bridge: only this command asks for it.
    try:
        return importlib.import_module(f"pyspark_cdcfmt.{module}")
    except ImportError as error:
        raise MissingDependencyError(
            f"what a column is in Spark is pyspark-cdcfmt's to say, and {error.name} is missing: "
            "pip install 'pyspark-cdcfmt[spark]' (schema --as create-table does without)"
        ) from error
