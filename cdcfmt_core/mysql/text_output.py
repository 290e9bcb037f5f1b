"""Print a value of a logical type as MySQL and its change feeds do.

The inverse of :mod:`cdcfmt_core.mysql.text`.  A printer raises ``ValueError``, ``TypeError`` or
``AttributeError`` for a value that is not of its type; :func:`value_error` converts that to an
:class:`~cdcfmt_core.errors.EncodeError` that names the column.  A printer is never called for NULL.
"""

from __future__ import annotations

from datetime import tzinfo
from typing import Any, Final

from cdcfmt_core import types
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.mysql.members import enum_index, set_bitmap
from cdcfmt_core.mysql.number_output import (
    int_printer,
    print_bool,
    print_decimal,
    print_float,
    print_float32,
    print_vector,
    print_year,
)
from cdcfmt_core.mysql.temporal_output import Printer, temporal_printer
from cdcfmt_core.types import LogicalType

BAD_VALUE: Final = (ValueError, TypeError, AttributeError, OverflowError)
"""The errors that printers raise."""

print_text: Final[Printer] = str.__str__

_PLAIN: Final[dict[type, Printer]] = {
    types.Bool: print_bool,
    types.Decimal: print_decimal,
    types.Text: print_text,
    types.Json: print_text,
    types.Vector: print_vector,
    types.Year: print_year,
}


def text_printer(logical: LogicalType, *, time_zone: tzinfo) -> Printer:
    """The printer of one column; TIMESTAMP is a wall clock in ``time_zone``.

    ENUM and SET are printed as index and bitmap, BINARY as one Latin-1 character per byte,
    geometry as MySQL's internal form in Latin-1.

    :raises EncodeError: for a column of unknown type.
    """
    if isinstance(logical, types.Int):
        return int_printer(*logical.bounds)
    if isinstance(logical, types.Bit):
        return int_printer(0, (1 << (logical.bits or 64)) - 1)
    if isinstance(logical, types.Float):
        return print_float32 if logical.bits == 32 else print_float
    if isinstance(logical, types.Enum):
        index = enum_index(logical.names)
        return lambda value: str(index(value))
    if isinstance(logical, types.Set):
        bitmap = set_bitmap(logical.names)
        return lambda value: str(bitmap(value))
    if isinstance(logical, types.Binary):
        return print_binary
    if isinstance(logical, types.Geometry):
        return print_geometry
    if isinstance(logical, (types.Date, types.DateTime, types.Timestamp, types.Time)):
        return temporal_printer(logical, time_zone)
    if isinstance(logical, types.Unknown):
        raise unknown_type(logical)
    return _PLAIN[type(logical)]


def unknown_type(logical: types.Unknown) -> EncodeError:
    """The error for a column of unknown type."""
    source = f" ({logical.source_type})" if logical.source_type else ""
    return EncodeError(
        f"its type{source} is not known, so its values cannot be written; declare a schema, set "
        "typeMap, also read the messages with types (DDL, tableChanges), or name the type in the "
        "events' `columns`"
    )


def print_binary(value: Any) -> str:
    text: str = value.decode("latin-1")
    return text


def geometry_bytes(value: Any) -> bytes:
    """MySQL's internal form: the SRID in four bytes, little-endian, then WKB."""
    if type(value) is not types.GeometryValue or value.wkb is None:
        raise ValueError("a geometry without WKB")
    return (value.srid or 0).to_bytes(4, "little") + value.wkb


def print_geometry(value: Any) -> str:
    return geometry_bytes(value).decode("latin-1")


def value_error(column: str, value: object, error: Exception) -> EncodeError:
    """The EncodeError for a printer's exception."""
    if isinstance(error, EncodeError):
        return error.at(column=column)
    if isinstance(value, types.InvalidValue):
        return EncodeError(
            "the source has a value that this format cannot write",
            column=column,
            sample=value.text,
        )
    return EncodeError(f"not a value of the column's type ({error})", column=column, sample=value)
