"""How the rows of one table are written: made once per table schema, then looked up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cdcfmt_core import EncoderContext
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.mysql import parse_column_type, resolve_type
from cdcfmt_core.mysql.codes import CODE_NAMES
from cdcfmt_core.mysql.text_output import BAD_VALUE, value_error
from cdcfmt_core.mysql.type_output import column_type
from cdcfmt_core.toolkit.avro_output import NULL, write_array, write_long, write_text
from cdcfmt_core.toolkit.json_output import valid_name
from cdcfmt_core.toolkit.plans import Plans
from cdcfmt_core.toolkit.row_messages import Member, Members, Which
from cdcfmt_core.types import Decimal, Int, LogicalType, Unknown
from cdcfmt_dts_avro.message import EMPTY_OBJECT
from cdcfmt_dts_avro.message import NULL as NULL_BRANCH
from cdcfmt_dts_avro.types import NUMBER_FLAG, POSTGRESQL, family_of
from cdcfmt_dts_avro.values_output import Form, form_of

_COLUMN_BYTES: Final = 800
"""Of a column of a plan, beside its schema."""
_ARRAY: Final = write_long(2)
_SQL_NULL: Final = write_long(NULL_BRANCH)
_ABSENT: Final = write_long(EMPTY_OBJECT) + write_long(1)

_MYSQL: Final = {
    name: number
    for number, names in reversed(CODE_NAMES.items())
    for name in (names, *names.split("/"))
    # VECTOR is TiDB's, and 6 the type of NULL.
    if number not in (6, 225)
} | {"varchar": 253, "varbinary": 253, "varchar/varbinary": 253, "decimal": 246}
"""Names as the decoder gives them, and those of MySQL's types."""

_GEOMETRIES: Final = frozenset(
    {"point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"}
    | {"geometrycollection"}
)
_POSTGRESQL: Final = {name: number for number, (name, _) in POSTGRESQL.items()}


class EncodePlan:
    """A table's ``fields`` as they stand in each record, and how its values are written."""

    def __init__(self, table: TableSchema, source_type: str, context: EncoderContext) -> None:
        self.schema = table
        fields = []
        self._forms: list[tuple[str, Form]] = []
        for column in table.columns:
            try:
                number = _number_of(column, source_type)
                form = form_of(column, number, family_of(source_type), context)
            except EncodeError as error:
                raise error.at(column=column.name) from error
            fields.append((valid_name(column.name), number))
            self._forms.append((column.name, form))
        self.fields = _ARRAY + write_array(fields, lambda f: write_text(f[0]) + write_long(f[1]))
        self.size = len(fields)
        self._head = _ARRAY + write_long(self.size)

    def image(self, values: Mapping[str, Any]) -> bytes:
        """An image of a row.

        :raises EncodeError: naming the column of a value that is not of its type, or one
            that the table's schema lacks.
        """
        parts = [self._head]
        name = ""
        value: Any = None
        try:
            for name, form in self._forms:
                if name not in values:
                    parts.append(_ABSENT)
                    continue
                value = values[name]
                if value is None:
                    parts.append(_SQL_NULL)
                else:
                    parts += form.head, form.render(value), form.tail
        except BAD_VALUE as error:
            raise value_error(name, value, error) from error
        except EncodeError as error:
            raise error.at(column=name) from error
        if unknown := values.keys() - {name for name, _ in self._forms}:
            raise EncodeError("the table's schema has no such column", column=min(unknown))
        parts.append(b"\x00")
        return b"".join(parts)

    def members(self, which: Which) -> Members:
        """The same of a whole image, as data for the kernel."""
        members = {
            name: Member("", form.encoding, form.head, form.tail, _SQL_NULL)
            for name, form in self._forms
        }
        return Members(which, members, self._head, b"\x00", NULL, separator="")


class EncodePlans:
    """Plans by table schema, compared by identity, and source."""

    def __init__(self, context: EncoderContext) -> None:
        self._context = context
        self.find = Plans(self._make, _COLUMN_BYTES).find

    def _make(self, table: TableSchema, source_type: str) -> EncodePlan:
        """:raises EncodeError: for a column whose type is unknown, or that the format lacks."""
        return EncodePlan(table, source_type, self._context)


def _number_of(column: Column, source_type: str) -> int:
    """``dataTypeNumber``: the one that came, else that of the column's type."""
    text = column.source_type
    for flag in column.flags:
        number = flag.removeprefix(NUMBER_FLAG)
        if number != flag and number.isdecimal() and len(number) < 11:
            return int(number)
    if text.startswith("type ") and text[5:].isdecimal() and len(text) < 16:
        return int(text[5:])
    family = family_of(source_type)
    if family == "postgresql" and text in _POSTGRESQL:
        return _POSTGRESQL[text]
    if family != "mysql":
        raise EncodeError(f"{text or 'its type'} has no number of {source_type} that is known")
    # As the decoder names it: such a type has no lengths.
    if text in _MYSQL and (isinstance(column.type, Unknown) or _holds(text, column.type)):
        return _MYSQL[text]
    base = parse_column_type(text).base
    if base not in _MYSQL or not _holds(text, column.type):
        base = column_type(column).base
    if base not in _MYSQL and base not in _GEOMETRIES:
        raise EncodeError(f"DTS has no {base}")
    return 255 if base in _GEOMETRIES else _MYSQL[base]


def _holds(text: str, logical: LogicalType) -> bool:
    """Whether this is what is read of such a column: of integers a type for either sign."""
    resolved = resolve_type(text)
    if isinstance(resolved, Int):
        if isinstance(logical, Int):
            return logical.bits >= resolved.bits
        return logical == Decimal(20, 0)
    return type(resolved) is type(logical) or text in ("enum", "set", "geometry", "bit")
