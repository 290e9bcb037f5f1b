"""A value of a logical type → its text as MySQL and its change feeds write it.

The way back of :mod:`cdcfmt_core.mysql.text`.  A printer raises ``ValueError``,
``TypeError`` or ``AttributeError`` for what is no value of its type; :func:`value_error`
makes an :class:`~cdcfmt_core.errors.EncodeError` of that, which names the column.  NULL
never reaches a printer.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, Final, TypeAlias

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column
from cdcfmt_core.mysql.instants import EPOCH_UTC
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
from cdcfmt_core.mysql.temporal import EPOCH, format_time, parse_date, parse_datetime
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

Printer: TypeAlias = Callable[[Any], str]

_MAX_DAYS: Final = 10_000
_ALMOST_A_DAY: Final = timedelta(days=1, microseconds=-1)

BAD_VALUE: Final = (ValueError, TypeError, AttributeError, OverflowError)
"""What printers raise."""

print_text: Final[Printer] = str.__str__

_PLAIN: Final[dict[type, Printer]] = {
    Bool: print_bool,
    Decimal: print_decimal,
    Text: print_text,
    Json: print_text,
    Vector: print_vector,
    Year: print_year,
}


def text_printer(logical: LogicalType, *, time_zone: tzinfo) -> Printer:
    """The printer of one column; TIMESTAMP is a wall clock in ``time_zone``.

    ENUM and SET are printed as index and bitmap, BINARY has one Latin-1 character a byte,
    geometry is MySQL's internal form in Latin-1.

    :raises EncodeError: for a column of unknown type.
    """
    if isinstance(logical, Int):
        return int_printer(*logical.bounds)
    if isinstance(logical, Bit):
        return int_printer(0, (1 << (logical.bits or 64)) - 1)
    if isinstance(logical, Float):
        return print_float32 if logical.bits == 32 else print_float
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
    """The error for a column whose type nobody knows."""
    source = f" ({logical.source_type})" if logical.source_type else ""
    return EncodeError(
        f"its type{source} is not known, so how to write its values is not either; declare a "
        "schema, set typeMap, or read what tells the types (DDL, tableChanges) with it"
    )


def temporal_printer(logical: Date | DateTime | Timestamp | Time, time_zone: tzinfo) -> Printer:
    """Dates and times, with the digits that the type tells; where it does not, six or none."""
    if isinstance(logical, Date):
        return _print_date
    if isinstance(logical, Time):
        time_fsp = logical.fsp
        return lambda value: _invalid_free(value) or format_time(value, time_fsp)
    print_wall = _wall_clock_printer(logical.fsp)
    if isinstance(logical, DateTime):
        return print_wall

    return _instant_printer(print_wall, time_zone)


def _instant_printer(print_wall: Printer, zone: tzinfo) -> Printer:
    # Of each day in UTC without a change of the clock: the epoch as local time.
    epochs: dict[int, datetime] = {}

    def print_instant(value: Any) -> str:
        if type(value) is InvalidValue:
            return print_wall(value)
        if value.tzinfo is not UTC:
            if value.tzinfo is None:
                raise ValueError("a timestamp without a time zone is no instant")
            value = value.astimezone(UTC)
        day = value.toordinal()
        epoch = epochs.get(day)
        if epoch is None:
            start = datetime.combine(value.date(), time(), UTC)
            offsets = {_offset(start, zone), _offset(start + _ALMOST_A_DAY, zone)}
            if len(offsets) > 1:
                return print_wall(EPOCH + (value - EPOCH_UTC) + _offset(value, zone))
            if len(epochs) >= _MAX_DAYS:
                epochs.clear()
            epoch = epochs[day] = EPOCH + offsets.pop()
        return print_wall(epoch + (value - EPOCH_UTC))

    return print_instant


def _offset(value: datetime, zone: tzinfo) -> timedelta:
    return value.astimezone(zone).utcoffset() or timedelta()


def _wall_clock_printer(fsp: int | None) -> Printer:
    unit = 10 ** (6 - (fsp or 0))
    end = 19 + (fsp + 1 if fsp else 0)

    def print_wall_clock(value: Any) -> str:
        if type(value) is not datetime:
            return _invalid_wall_clock(value)
        # What the digits of the type do not hold is not cut off.
        if value.microsecond % unit:
            text = value.isoformat(" ", "microseconds")
        elif fsp:
            text = value.isoformat(" ", "microseconds")[:end]
        else:
            text = value.isoformat(" ")
        if value.tzinfo is not None:
            raise ValueError("a wall clock has no time zone")
        return text

    return print_wall_clock


def _invalid_wall_clock(value: Any) -> str:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    if type(value) is not InvalidValue:
        raise TypeError("not a datetime")
    parse_datetime(value.text)
    return value.text


def _print_date(value: Any) -> str:
    if type(value) is date:
        return value.isoformat()
    if type(value) is not InvalidValue:
        raise TypeError("not a date")
    # What MySQL stores and no calendar has; anything else raises here.
    parse_date(value.text)
    return value.text


def _invalid_free(value: Any) -> str:
    if type(value) is InvalidValue:
        raise ValueError("not a time")
    return ""


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
    """What a printer's exception means."""
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
) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
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


def print_row(
    values: dict[str, Any], printers: tuple[tuple[str, Callable[[Any], Any]], ...]
) -> dict[str, Any]:
    """A row's values printed, in the order of the columns; absent ones stay absent.

    :raises EncodeError: naming the column of a value that is not of its type, or one that
        the table's schema lacks.
    """
    if len(values) == len(printers):
        try:
            return {
                name: None if (value := values[name]) is None else print_value(value)
                for name, print_value in printers
            }
        except (*BAD_VALUE, KeyError):
            pass
    return _print_carefully(values, printers)


def _print_carefully(
    values: dict[str, Any], printers: tuple[tuple[str, Callable[[Any], Any]], ...]
) -> dict[str, Any]:
    known = dict(printers)
    for name in values:
        if name not in known:
            raise EncodeError("the table's schema has no such column", column=name)
    printed: dict[str, Any] = {}
    for name, print_value in printers:
        if name in values:
            value = values[name]
            try:
                printed[name] = None if value is None else print_value(value)
            except BAD_VALUE as error:
                raise value_error(name, value, error) from error
    return printed
