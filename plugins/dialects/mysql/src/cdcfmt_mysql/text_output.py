"""Print a value of a logical type as MySQL and its change feeds do, and check its column's limits.

The inverse of :mod:`cdcfmt_mysql.text`.  A printer raises ``ValueError``, ``TypeError`` or
``AttributeError`` for a value that is not of its type; :func:`value_error` converts that to an
:class:`~cdcfmt_core.errors.EncodeError` that names the column.  A printer is never called for NULL.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final, TypeAlias
from uuid import UUID

from cdcfmt_core import types
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column
from cdcfmt_core.types import Binary, DateTime, Decimal, LogicalType, Time, Timestamp
from cdcfmt_mysql.column_type import binary_lengths
from cdcfmt_mysql.members import enum_index, set_bitmap
from cdcfmt_mysql.numbers import (
    int_printer,
    print_bool,
    print_decimal,
    print_float,
    print_float32,
    print_vector,
    print_year,
)
from cdcfmt_mysql.temporal import Printer, temporal_printer

BAD_VALUE: Final = (ValueError, TypeError, AttributeError, OverflowError)
"""The errors that printers raise."""

print_text: Final[Printer] = str.__str__

_PLAIN: Final[dict[type, Printer]] = {
    types.Bool: print_bool,
    types.Decimal: print_decimal,
    types.Text: print_text,
    types.Json: print_text,
    types.Uuid: UUID.__str__,
    types.Vector: print_vector,
    types.Year: print_year,
}


def text_printer(logical: LogicalType, *, time_zone: tzinfo) -> Printer:
    """The printer of one column; TIMESTAMP is a wall clock in ``time_zone``.

    ENUM and SET are printed as index and bitmap, BINARY as one Latin-1 character per byte,
    geometry as MySQL's internal form in Latin-1.

    :raises EncodeError: for a column of unknown type, and for arrays, maps and structs.
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
    if isinstance(logical, UNWRITTEN):
        raise unwritten_type(logical)
    return _PLAIN[type(logical)]


UNWRITTEN: Final = (
    types.Unknown,
    types.Interval,
    types.TimeTz,
    types.Array,
    types.Map,
    types.Struct,
)
"""The types that MySQL lacks."""


def unwritten_type(logical: LogicalType) -> EncodeError:
    """The error for a column of a type that MySQL lacks."""
    if not isinstance(logical, types.Unknown):
        return EncodeError(
            f"its type is {type(logical).__name__.lower()}, which the format lacks; write a column "
            "of its text (Spark's to_json for arrays, maps and structs)"
        )
    return unknown_type(logical)


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


Check: TypeAlias = Callable[[Any], None]

_TEMPORAL: Final = {DateTime: "datetime", Timestamp: "timestamp", Time: "time"}


def limit_check(column: Column) -> Check | None:
    """A check that raises ``ValueError`` for a value beyond the column's type; None: no limit.

    Limits that no printer checks: digits of numbers and times, bytes of binary values.  A database
    with a column of this type could not have sent more.  Text is not checked, as producers that
    mask it may write longer ones; values of other Python types are left to the column's printer.
    """
    logical = column.type
    if isinstance(logical, Decimal):
        if logical.precision is None or logical.scale is None:
            return None
        return _decimal_check(logical.precision, logical.scale)
    if isinstance(logical, (DateTime, Timestamp, Time)):
        return None if logical.fsp is None else _fraction_check(logical, logical.fsp)
    if isinstance(logical, Binary):
        exact, longest = binary_lengths(column.source_type)
        kind = "varbinary" if exact is None else "binary"
        return None if longest is None else _length_check(kind, longest)
    return None


def _decimal_check(precision: int, scale: int) -> Check:
    # Rounds to the scale; raises if that drops a digit, or leaves more than the precision.
    context = decimal.Context(precision, traps=[decimal.Inexact, decimal.InvalidOperation])
    unit = decimal.Decimal((0, (1,), -scale))

    def check(value: Any) -> None:
        if type(value) is not decimal.Decimal:
            return
        try:
            value.quantize(unit, context=context)
        except (decimal.Inexact, decimal.InvalidOperation):
            _, digits, exponent = value.as_tuple()
            if isinstance(exponent, int):
                zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
                places = max(-exponent - zeros, scale)
                wanted = max(value.adjusted() + 1, precision - scale) + places
                given = f"{precision},{scale}"
                raise _too_narrow("decimal", given, f"{wanted},{places}") from None

    return check


def _fraction_check(logical: DateTime | Timestamp | Time, fsp: int) -> Check:
    kind, unit = _TEMPORAL[type(logical)], 10 ** (6 - fsp)

    def check(value: Any) -> None:
        if not isinstance(value, datetime | timedelta):
            return
        fraction = value.microseconds if isinstance(value, timedelta) else value.microsecond
        if fraction % unit:
            digits = len(f"{fraction:06}".rstrip("0"))
            raise _too_narrow(kind, fsp, digits)

    return check


def _length_check(kind: str, longest: int) -> Check:
    def check(value: Any) -> None:
        if type(value) is bytes and len(value) > longest:
            raise _too_narrow(kind, longest, len(value))

    return check


def _too_narrow(kind: str, given: object, wanted: object) -> ValueError:
    return ValueError(
        f"it needs {kind}({wanted}), not {kind}({given}): cast it, or declare that type (option "
        "columnTypes, or the events' `columns`)"
    )
