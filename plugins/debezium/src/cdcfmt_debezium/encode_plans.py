"""How the rows of one table are written: made once per table schema, then looked up."""

from __future__ import annotations

from typing import Any, Final

import attrs
import orjson

from cdcfmt_core import EncoderContext
from cdcfmt_core.events import TableSchema
from cdcfmt_core.mysql.text_output import RowPrinter, column_printers
from cdcfmt_core.mysql.type_output import column_type
from cdcfmt_core.toolkit.encodings import Encoding as ValueEncoding
from cdcfmt_core.toolkit.json_output import valid_name
from cdcfmt_core.toolkit.plans import Plans
from cdcfmt_core.types import DateTime
from cdcfmt_debezium.connect_output import envelope_schema, field_of, key_schema_of, schema_name
from cdcfmt_debezium.encoding import Encoding
from cdcfmt_debezium.value_encodings import value_encoding
from cdcfmt_debezium.values_output import renderer

_COLUMN_BYTES: Final = 600
"""Of a column of a plan, beside its schema."""


@attrs.define
class EncodePlan:
    """How the rows of a table are written.

    - ``encodings``, ``fields``: of the columns, and their Connect schemas
    - ``unsure``: DATETIME columns of unknown digits: milliseconds serve until a value has more
    - ``keys``: the columns of keys
    - ``name``: what the schemas are named after
    - ``value_end``, ``key_end``: what follows the payload of value and key
    """

    schema: TableSchema
    encodings: dict[str, ValueEncoding]
    fields: dict[str, dict[str, Any]]
    unsure: tuple[str, ...]
    print_row: RowPrinter
    keys: tuple[str, ...]
    name: str
    value_end: bytes
    key_end: bytes


class EncodePlans:
    """Plans by table schema, compared by identity."""

    def __init__(
        self, context: EncoderContext, cluster: str, *, with_schema: bool, tidb_types: bool
    ) -> None:
        self._context = context
        self._cluster = cluster
        self.with_schema = with_schema
        self._tidb_types = tidb_types
        self._plans = Plans(self._make, _COLUMN_BYTES)

    def find(self, table: TableSchema, fine: tuple[str, ...] = ()) -> EncodePlan:
        """``fine`` are DATETIME columns whose values have more digits than milliseconds.

        :raises EncodeError: for a column whose type is unknown.
        """
        return self._plans.find(table, fine)

    def end(self, schema: dict[str, Any]) -> bytes:
        """The end of a message, behind its payload."""
        return b',"schema":%b}' % orjson.dumps(schema) if self.with_schema else b"}"

    def _make(self, table: TableSchema, fine: tuple[str, ...]) -> EncodePlan:
        fields, encodings, printers = {}, {}, []
        for column in table.columns:
            valid_name(column.name)
            logical = column.type
            milliseconds = (
                isinstance(logical, DateTime)
                and (logical.fsp or 0) <= 3
                and column.name not in fine
            )
            field = fields[column.name] = field_of(
                column,
                column_type(column),
                nullable=_nullable(column.nullable, column.name in table.key_columns),
                milliseconds=milliseconds,
                tidb_type=self._tidb_types,
            )
            encoding = encodings[column.name] = value_encoding(
                column, field["type"], Encoding(datetimes="ms" if milliseconds else "us")
            )
            ((name, render),) = column_printers(
                (column,),
                lambda logical, f=field, e=encoding: renderer(  # type: ignore[misc]
                    e, logical, nullable=f["optional"], counts=self._context.counts
                ),
            )
            printers.append((name, render))
        name = schema_name(self._cluster, valid_name(table.database), valid_name(table.table))
        # In the key they have the order of the table.
        keys = tuple(n for n in table.column_names if n in table.key_columns)
        return EncodePlan(
            table,
            encodings,
            fields,
            tuple(column.name for column in table.columns if column.type == DateTime(None)),
            RowPrinter(tuple(printers)),
            keys,
            name,
            self.end(envelope_schema(name, list(fields.values()))),
            self.end(key_schema_of(name, [fields[key] for key in keys])),
        )


def _nullable(nullable: bool | None, is_key: bool) -> bool:
    """Whether NULL is allowed; where it is unknown, in all columns but the key's."""
    return not is_key if nullable is None else nullable
