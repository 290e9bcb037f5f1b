"""Rows: their plans and images, for both message encodings.

A row has the version of its schema, and its plan is made from exactly that version.  Rows lack
virtual columns, columns excluded by column selectors, and most columns if only the handle key is
sent, so a plan belongs to the set of columns of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs

from cdcfmt_core import DecoderContext
from cdcfmt_core.errors import DecodeError, join_names
from cdcfmt_core.events import Column, Image, Op, TableSchema
from cdcfmt_core.texts import qualified
from cdcfmt_simple.checksum import Verifier
from cdcfmt_simple.instants import Zones
from cdcfmt_simple.message import STREAM, Wire
from cdcfmt_toolkit.plans import Plans, TablePlan

WireImage: TypeAlias = Mapping[str, Any] | None
"""An undecoded image."""

Row: TypeAlias = tuple[TableSchema, Image | None, Image | None, dict[str, int] | None]
"""The schema of a row's columns, its before and after image, and the computed checksums that
differ from those in the message, by their names (None if there are none)."""


@attrs.frozen
class WireRows:
    """How a message encoding writes images.

    - ``open_reader``: the reader of a column
    - ``read``: the values of an image with these readers; the text is the path of the image
    - ``plain``: an image's values without their types
    - ``column_bytes``: memory of a reader
    """

    open_reader: Callable[[Column, TableSchema, DecoderContext, Zones], Any]
    read: Callable[[Mapping[str, Any], Mapping[str, Any], str], dict[str, Any]]
    plain: Callable[[WireImage], WireImage]
    column_bytes: int


@attrs.define(eq=False)
class RowPlan(TablePlan):
    """A plan for rows with these columns; values are in the table's order."""

    form: WireRows

    def read(self, row: WireImage, field: str, *, complete: bool) -> Image | None:
        """An image, which may lack columns.

        :raises DecodeError: for an invalid value; ``field`` is the path of the image.
        """
        if row is None:
            return None
        ordered = {name: row[name] for name in self.readers if name in row}
        values = self.form.read(ordered, self.readers, field)
        return Image(values, complete and len(row) == len(self.schema.columns))


class Rows:
    """Decodes the rows of messages of one encoding."""

    def __init__(
        self, form: WireRows, context: DecoderContext, zones: Zones, verifier: Verifier | None
    ) -> None:
        self._form = form
        self._context = context
        self._zones = zones
        self._verifier = verifier
        self._schemas = context.schemas
        self._plans = Plans(self._make_plan, form.column_bytes)

    def read(
        self,
        wire: Wire,
        images: tuple[Any, Any],
        op: Op,
        database: str,
        table: str,
        version: int,
        *,
        complete: bool,
    ) -> Row:
        """The images of a row; ``images``: its ``data`` and ``old``.

        :raises MissingSchemaError: if its table's schema is not known.
        """
        data, old = images
        if op == "insert":
            old = None
        elif op == "delete":
            data = None
        field, first = ("old", old) if op == "delete" else ("data", data)
        if first is None:
            raise DecodeError(
                f"a required field of a row event is missing ({wire['type']})", field=field
            )
        if type(first) is not dict or not (old is None or type(old) is dict):
            field, value = (field, first) if type(first) is not dict else ("old", old)
            raise DecodeError("is not an object", field=field, sample=value)
        plan = self._find(database, table, version, frozenset(first))
        read = old
        if data is not None and old is not None:
            read = old if plan.reads_before(old, data) else None
        if read is not None and data is not None and not read.keys() <= data.keys():
            plan = self._find(database, table, version, frozenset(data | read))
        after = plan.read(data, "data", complete=complete)
        before = plan.read(read, "old", complete=complete)
        mismatch = None
        if self._verifier is not None and complete and wire.get("checksum") is not None:
            plain = self._form.plain
            mismatch = self._verifier.verify(wire, plan.schema, plain(data), plain(old))
        return plan.schema, before, after, mismatch

    def _find(self, database: str, table: str, version: int, names: frozenset[str]) -> RowPlan:
        """The plan of rows with these columns.

        :raises MissingSchemaError: if no schema of this version is known.
        :raises DecodeError: if no schema of this version has these columns, or several do.
        """
        tables = self._schemas.at(database, table, (version,), stream=STREAM)
        if not tables:
            raise self._schemas.missing(database, table, (version,), stream=STREAM)
        return self._plans.find(tables, version, names)

    def _make_plan(
        self, tables: tuple[TableSchema, ...], version: int, names: frozenset[str]
    ) -> RowPlan:
        place = f"{qualified(tables[0].database, tables[0].table)}@{version}"
        schema, form = _choose(tables, names, place), self._form

        def open_reader(column: Column) -> Any:
            return form.open_reader(column, schema, self._context, self._zones)

        return RowPlan.open(schema, self._context, open_reader, form=form)


def _choose(tables: tuple[TableSchema, ...], names: frozenset[str], place: str) -> TableSchema:
    """The schema that has these columns, reduced to them."""
    if not names:
        raise DecodeError(f"a row of {place} has no columns")
    having = [table for table in tables if names <= _names_of(table)]
    if not having:
        lacking = names - frozenset[str]().union(*map(_names_of, tables))
        what = f"has {join_names(lacking)}" if lacking else "has columns of several schemas"
        raise DecodeError(f"a row {what}, which no schema of {place} has")
    exact = [table for table in having if names == _names_of(table)]
    parts = [_part(table, names) for table in exact or having]
    if any(part.columns != parts[0].columns for part in parts):
        raise DecodeError(
            f"{len(parts)} different schemas of {place} fit a row: the right one is unknown"
        )
    return parts[-1]


def _names_of(table: TableSchema) -> frozenset[str]:
    return frozenset(table.column_names)


def _part(table: TableSchema, names: frozenset[str]) -> TableSchema:
    if len(names) == len(table.columns):
        return table
    return TableSchema(
        table.database,
        table.table,
        tuple(column for column in table.columns if column.name in names),
        tuple(name for name in table.key_columns if name in names),
    )
