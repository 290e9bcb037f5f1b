"""``cdcfmt schema``: a table's columns in Spark."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import attrs

from cdcfmt_cli.console import note
from cdcfmt_cli.inputs import CommandInput
from cdcfmt_cli.reading import Reader
from cdcfmt_cli.settings import Settings
from cdcfmt_core.errors import CdcfmtError
from cdcfmt_core.events import Event, Message, full_name, named_by
from cdcfmt_core.filters import table_names
from cdcfmt_core.options import validate
from pyspark_cdcfmt.option_groups import bridge_options
from pyspark_cdcfmt.read.inference import UnitedColumns, describe_missing, infer_columns
from pyspark_cdcfmt.rows.types import TypeOptions

OPTIONS = ("timeAs", "enumAs", "jsonAs", "invalidValues", "caseSensitive")
"""Names of options that choose columns and types; ``-o`` takes them."""


@attrs.frozen
class SparkColumn:
    """A column's name, and its type in Spark's DDL."""

    name: str
    type: str

    @property
    def ddl(self) -> str:
        """The column in Spark's DDL."""
        return f"{_quoted(self.name)} {self.type.upper() if '<' not in self.type else self.type}"


def sql(columns: Iterable[SparkColumn], delta_table: tuple[str, ...] | None = None) -> str:
    """The columns as text for ``.schema(…)``, or a statement that creates a Delta table.

    Empty without columns.
    """
    lines = [column.ddl for column in columns]
    if delta_table is None or not lines:
        return ",\n".join(lines)
    name = ".".join(map(_quoted, delta_table))
    return f"CREATE TABLE {name} (\n  " + ",\n  ".join(lines) + "\n) USING delta;"


def _quoted(name: str) -> str:
    # Spark parses 123 and 1e5 as numbers.
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
    return name if plain else f"`{name.replace('`', '``')}`"


def columns(source: CommandInput, settings: Settings, table: tuple[str, ...]) -> list[SparkColumn]:
    """The table's columns as ``format("cdc")`` infers them.

    :raises CdcfmtError: if no row of the table is in the input.
    """
    event_filter = attrs.evolve(settings.event_filter(), table=table)
    one = Reader(source, settings, event_filter)
    fields: list[Any] = infer_columns(
        one.messages,
        _Decoder(one),
        table,
        settings["inferSampleMessages"],
        _type_options(settings),
        ends=source.ends,
        schemas=one.schemas_of(table),
        on_guessed=partial(_note_digits, table),
    )
    if not fields:
        every = Reader(source, settings, attrs.evolve(event_filter, table=None))
        raise CdcfmtError(describe_missing(every.messages(), _Decoder(every), table))
    return _spark_columns(fields)


class EveryTable:
    """The columns of all tables as inferred by ``format("cdc")``, in one pass over the input."""

    def __init__(self, settings: Settings) -> None:
        self._new = partial(UnitedColumns, _type_options(settings))
        self._sample = settings["inferSampleMessages"]
        self._columns: dict[tuple[str, ...], Any] = {}
        self._rows: Counter[tuple[str, ...]] = Counter()

    def see(self, events: Iterable[Event], *, of_end: bool = False) -> None:
        """Add a message's events; after a table's sample is full, only ends of the input count."""
        for name, own in _by_table(events).items():
            if of_end or self._rows[name] < self._sample:
                if name not in self._columns:
                    self._columns[name] = self._new()
                self._rows[name] += self._columns[name].see_events(own)

    def finish(self, source: CommandInput, reader: Reader) -> None:
        """Add the input's ends, and the schemas that the scan has found."""
        for message in source.ends():
            self.see(reader.decode(0, message).events, of_end=True)
        for name, columns in self._columns.items():
            columns.add_missing(reader.schemas_of(name))

    def of(self, table: tuple[str, ...]) -> list[SparkColumn]:
        """The table's columns; empty for a table without rows and schemas."""
        columns = self._columns.get(table)
        if not columns:
            return []
        if columns.guessed:
            _note_digits(table, columns.guessed)
        return _spark_columns(columns.fields())


def _note_digits(table: tuple[str, ...], columns: list[str]) -> None:
    note(
        f"{table_names([table])}: the messages do not have the digits of DECIMAL columns "
        f"({', '.join(columns)}), whose scale is that of the sampled values: write the source's"
    )


def _by_table(events: Iterable[Event]) -> dict[tuple[str, ...], list[Event]]:
    found: dict[tuple[str, ...], list[Event]] = {}
    for event in events:
        if (of := named_by(event)) is not None:
            name = full_name(of.database, of.schema, of.table)
            found.setdefault(name, []).append(event)
    return found


def _type_options(settings: Settings) -> TypeOptions:
    declared = [option for option in bridge_options() if option.name in OPTIONS]
    return TypeOptions.of(validate(settings.rest, declared, owner="cdcfmt schema"))


def _spark_columns(fields: Iterable[Any]) -> list[SparkColumn]:
    return [SparkColumn(field.name, field.dataType.simpleString()) for field in fields]


@attrs.frozen
class _Decoder:
    """A message decoder for inference, with the schemas that a reader finds."""

    reader: Reader

    def decode(self, message: Message) -> Sequence[Event]:
        return self.reader.decode(0, message).events
