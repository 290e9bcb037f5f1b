"""A value of a logical type → its text as MySQL and its change feeds write it.

The way back of :mod:`cdcfmt_core.mysql.text`.  A printer raises ``ValueError``,
``TypeError`` or ``AttributeError`` for what is no value of its type; :func:`value_error`
makes an :class:`~cdcfmt_core.errors.EncodeError` of that, which names the column.  NULL
never reaches a printer.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from typing import Any, Final, TypeAlias

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column
from cdcfmt_core.mysql.members import enum_index, set_bitmap
from cdcfmt_core.mysql.number_output import (
    float_printer,
    int_printer,
    print_bool,
    print_decimal,
    print_vector,
    print_year,
)
from cdcfmt_core.mysql.temporal_output import Printer, temporal_printer
from cdcfmt_core.types import (
    Binary,
    Bit,
    Bool,
    Date,
    DateTime,
    Decimal,
    Enum,
    Float,
    Geometry,
    GeometryValue,
    Int,
    InvalidValue,
    Json,
    LogicalType,
    Set,
    Text,
    Time,
    Timestamp,
    Unknown,
    Vector,
    Year,
)

BAD_VALUE: Final = (ValueError, TypeError, AttributeError, OverflowError)
"""The errors of printers."""

Values: TypeAlias = dict[str, Any]

Printers: TypeAlias = tuple[tuple[str, Callable[[Any], Any]], ...]
"""Name and printer of each column."""

print_text: Final[Printer] = str.__str__

_PLAIN: Final[dict[type, Printer]] = {
    Bool: print_bool,
    Decimal: print_decimal,
    Text: print_text,
    Json: print_text,
    Vector: print_vector,
    Year: print_year,
}


def text_printer(
    logical: LogicalType, *, time_zone: tzinfo, dumps: Callable[[Any], bytes] | None = None
) -> Printer:
    """The printer of one column; TIMESTAMP is a wall clock in ``time_zone``.

    ENUM and SET are printed as index and bitmap, BINARY has one Latin-1 character a byte,
    geometry is MySQL's internal form in Latin-1.  ``dumps``, a JSON writer, makes floats faster.

    :raises EncodeError: for a column of unknown type.
    """
    if isinstance(logical, Int):
        return int_printer(*logical.bounds)
    if isinstance(logical, Bit):
        return int_printer(0, (1 << (logical.bits or 64)) - 1)
    if isinstance(logical, Float):
        return float_printer(logical.bits, dumps)
    if isinstance(logical, Enum):
        index = enum_index(logical.names)
        return lambda value: str(index(value))
    if isinstance(logical, Set):
        bitmap = set_bitmap(logical.names)
        return lambda value: str(bitmap(value))
    if isinstance(logical, Binary):
        return print_binary
    if isinstance(logical, Geometry):
        return print_geometry
    if isinstance(logical, (Date, DateTime, Timestamp, Time)):
        return temporal_printer(logical, time_zone)
    if isinstance(logical, Unknown):
        raise unknown_type(logical)
    return _PLAIN[type(logical)]


def unknown_type(logical: Unknown) -> EncodeError:
    """The error for a column of unknown type."""
    source = f" ({logical.source_type})" if logical.source_type else ""
    return EncodeError(
        f"its type{source} is not known, so its values cannot be written; declare a "
        "schema, set typeMap, or read the messages with types (DDL, tableChanges), too"
    )


def print_binary(value: Any) -> str:
    text: str = value.decode("latin-1")
    return text


def geometry_bytes(value: Any) -> bytes:
    """MySQL's internal form: the SRID in four bytes, little-endian, then WKB."""
    if type(value) is not GeometryValue or value.wkb is None:
        raise ValueError("a geometry without WKB")
    return (value.srid or 0).to_bytes(4, "little") + value.wkb


def print_geometry(value: Any) -> str:
    return geometry_bytes(value).decode("latin-1")


def value_error(column: str, value: object, error: Exception) -> EncodeError:
    """The EncodeError for a printer's exception."""
    if isinstance(error, EncodeError):
        return error.at(column=column)
    if isinstance(value, InvalidValue):
        return EncodeError(
            "the source holds a value that this format cannot write",
            column=column,
            sample=value.text,
        )
    return EncodeError(f"not a value of the column's type ({error})", column=column, sample=value)


def column_printers(
    columns: tuple[Column, ...], make: Callable[[LogicalType], Callable[[Any], Any]]
) -> Printers:
    """Name and printer of each column.

    :raises EncodeError: naming a column that cannot be written.
    """
    result = []
    for column in columns:
        try:
            result.append((column.name, make(column.type)))
        except EncodeError as error:
            raise error.at(column=column.name) from error
    return tuple(result)


class RowPrinter:
    """A function that prints rows of one table; ``len`` is the number of its columns."""

    def __init__(self, printers: Printers) -> None:
        self._printers = printers

    def __len__(self) -> int:
        return len(self._printers)

    def __call__(self, values: Values) -> Values:
        """A row's values printed, in the order of the columns; absent ones stay absent.

        :raises EncodeError: naming the column of a value that is not of its type, or one that
            the table's schema lacks.
        """
        if len(values) == len(self._printers):
            try:
                return {
                    name: None if (value := values[name]) is None else print_value(value)
                    for name, print_value in self._printers
                }
            except (*BAD_VALUE, KeyError):
                pass
        return _print_carefully(values, self._printers)


def _print_carefully(values: Values, printers: Printers) -> Values:
    known = dict(printers)
    for name in values:
        if name not in known:
            raise EncodeError("the table's schema has no such column", column=name)
    printed: Values = {}
    for name, print_value in printers:
        if name in values:
            value = values[name]
            try:
                printed[name] = None if value is None else print_value(value)
            except BAD_VALUE as error:
                raise value_error(name, value, error) from error
    return printed
