"""Decode plans of tables, created once per table schema and cached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

from cdcfmt_canal_json.binary import HINT, Form, detecting
from cdcfmt_core import DecoderContext
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.types import Binary
from cdcfmt_mysql import parse_column_type
from cdcfmt_mysql.statement_tables import refined_type
from cdcfmt_toolkit import plans
from cdcfmt_toolkit.dialects import column_reader, reads_text
from cdcfmt_toolkit.encodings import Encoding, bounded
from cdcfmt_toolkit.images import ReadValue
from cdcfmt_toolkit.plans import Plans
from cdcfmt_toolkit.table_changes import RowTypes, type_of

_TEXT = Encoding("mysql-json")
_MAX_BINARY_LENGTH = 255
_COLUMN_BYTES = 600
"""Memory of a column in a plan, in addition to its schema."""


Readers: TypeAlias = dict[str, ReadValue]


@attrs.define(eq=False)
class TablePlan(plans.TablePlan):
    """A plan with the source types of its binary columns, if their form is open.

    ``by_form``: the readers by the form of bytes.
    """

    binary: dict[str, str]
    by_form: dict[Form, Readers]

    def readers_of(self, form: Form | None) -> Readers:
        """The readers for rows with bytes in this form."""
        return self.by_form.get(form or "auto", self.readers)


class TablePlans:
    """Plans by table and columns.

    Columns have the order of the row, as TiCDC writes ``mysqlType`` in random order.
    """

    def __init__(self, context: DecoderContext, binary: Form) -> None:
        self._context = context
        self._binary = binary
        self._statements = context.schemas.statements
        self._plans = Plans(self._make, _COLUMN_BYTES)

    def find(
        self,
        place: tuple[str, str, str | None],
        types: RowTypes,
        pk_names: tuple[str, ...],
        position: int | None,
    ) -> TablePlan:
        """The plan for rows with these columns, in this order, at this position.

        ``place``: database, table and schema.
        """
        database, table, schema = place
        stored = None
        if self._statements and schema is None:
            stored = self._statements.find(database, table, position)
        return self._plans.find(place, types, pk_names, stored)

    def _make(
        self,
        place: tuple[str, str, str | None],
        types: RowTypes,
        pk_names: tuple[str, ...],
        stored: TableSchema | None,
    ) -> TablePlan:
        context = self._context
        exact = {column.name.lower(): column for column in stored.columns} if stored else {}
        columns: list[Column] = []
        keys = frozenset(pk_names)
        for name, wire_type in types:
            source_type, logical = type_of(wire_type, context.resolve_type)
            if isinstance(wire_type, str):
                source_type, logical = refined_type(
                    source_type, logical, exact.get(name.lower()), context.resolve_type
                )
            columns.append(Column(name, source_type, logical, key=name in keys))
        database, table, schema_name = place
        schema = TableSchema(database, table, tuple(columns), pk_names, schema_name)
        form: Form = "latin1" if self._binary == "auto" else self._binary
        context.note_zoneless_timestamps(schema)
        plan = TablePlan.open(
            schema, context, lambda column: self._reader(column, form), binary={}, by_form={}
        )
        binary = {
            column.name: column.source_type for column in columns if self._is_binary(column, form)
        }
        if not binary or self._binary != "auto":
            return plan
        by_form: dict[Form, Readers] = {"auto": {}, "latin1": {}, "hex": {}}
        for column in schema.columns:
            if column.name in binary and column.name in plan.readers:
                latin1 = by_form["latin1"][column.name] = plan.readers[column.name]
                by_form["auto"][column.name] = detecting(column.source_type, latin1)
                by_form["hex"][column.name] = self._reader(column, "hex")
        readers = {form: plan.readers | own for form, own in by_form.items()}
        return attrs.evolve(plan, binary=binary, by_form=readers)

    def _reader(self, column: Column, form: Form) -> ReadValue:
        read = column_reader(_encoding(column, form), column, self._context)
        if not self._is_binary(column, form):
            return read

        def read_hinting(value: Any) -> object:
            try:
                return read(value)
            except ValueError as error:
                raise ValueError(f"{error}{HINT}") from None

        return read_hinting

    def _is_binary(self, column: Column, form: Form) -> bool:
        """Whether a column has bytes in the form of its message, not in the type map's text."""
        resolve_type = self._context.resolve_type
        return isinstance(column.type, Binary) and not reads_text(
            _encoding(column, form), column, resolve_type
        )


def column_encodings(form: Form) -> Callable[[bytes, TableSchema], dict[str, Encoding]]:
    """A function from a message and its table to the value encodings of the columns."""

    def of_columns(value: bytes, table: TableSchema) -> dict[str, Encoding]:
        return {column.name: _encoding(column, form) for column in table.columns}

    return of_columns


def _encoding(column: Column, form: Form) -> Encoding:
    if not isinstance(column.type, Binary):
        return _TEXT
    padded = _padded_length(column)
    if form in ("hex", "base64"):
        return bounded(Encoding(form, padded), column)
    return bounded(Encoding("mysql-json", padded, or_hex=form == "auto"), column)


def _padded_length(column: Column) -> int:
    """The n of BINARY(n), whose trailing zeros official Canal drops; 0 for other types."""
    parsed = parse_column_type(column.source_type)
    length = parsed.params[0] if parsed.params else 0
    # A longer length does not exist in MySQL, and must not be allocated.
    return length if parsed.base == "binary" and length <= _MAX_BINARY_LENGTH else 0
