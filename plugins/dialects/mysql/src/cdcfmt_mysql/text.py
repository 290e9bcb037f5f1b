"""Parse a MySQL value's text to the Python value of its logical type.

For wires that write every value as text: canal-json, CloudCanal, DTS and the text parts
of the others.  A parser raises ``ValueError`` with a short reason for a bad value, and
returns :class:`~cdcfmt_core.types.InvalidValue` for one that MySQL can hold but Python cannot
(``0000-00-00``).  It is never called for NULL.

Interpretation of ambiguous text:

- ENUM and SET text of digits only is an index or a bitmap, as TiCDC and Canal write them;
  other text is names.  Wires that always send names need no parser.
- BINARY text has one Latin-1 character per byte.
- Geometry is MySQL's internal form in Latin-1: SRID in four bytes, little-endian, then WKB.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import tzinfo
from typing import Final, NoReturn
from uuid import UUID

from cdcfmt_core import types
from cdcfmt_core.types import GeometryValue, LogicalType
from cdcfmt_mysql.members import enum_parser, set_parser
from cdcfmt_mysql.numbers import (
    decimal_limits,
    int_parser,
    parse_bool,
    parse_decimal,
    parse_float,
    parse_vector,
    parse_year,
)
from cdcfmt_mysql.temporal import parse_date, parse_datetime, parse_time, timestamp_parser

_SMALLEST_GEOMETRY: Final = 9
"""SRID, byte order, geometry type: MySQL 8.4 Reference Manual, 11.4.3."""

NO_TEXT: Final = (types.Array, types.Struct, types.Map, types.Interval, types.TimeTz)
"""Types that no text of MySQL has."""

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch


def parse_uuid(text: str) -> UUID:
    """A UUID of 36 characters, as MariaDB prints it."""
    if not _UUID(text):
        raise ValueError("not a UUID")
    return UUID(text)


_PLAIN: Final[dict[type, Callable[[str], object]]] = {
    types.Bool: parse_bool,
    types.Date: parse_date,
    types.DateTime: parse_datetime,
    types.Float: parse_float,
    types.Time: parse_time,
    types.Uuid: parse_uuid,
    types.Vector: parse_vector,
    types.Year: parse_year,
}


def text_parser(
    logical: LogicalType, *, time_zone: tzinfo, counts: Counter[str]
) -> Callable[[str], object]:
    """The parser of one column; text, JSON text and values of unknown type are unchanged.

    :param time_zone: the zone of TIMESTAMP texts.
    :param counts: gets the number of texts affected by the zone's clock changes.
    """
    if isinstance(logical, types.Int):
        return int_parser(*logical.bounds)
    if isinstance(logical, types.Bit):
        return int_parser(0, (1 << (logical.bits or 64)) - 1)
    if isinstance(logical, types.Decimal):
        limits = decimal_limits(logical)
        return lambda text: parse_decimal(text, limits)
    if isinstance(logical, types.Timestamp):
        return timestamp_parser(time_zone, counts)
    if isinstance(logical, types.Enum):
        return enum_parser(logical.names)
    if isinstance(logical, types.Set):
        return set_parser(logical.names)
    if isinstance(logical, types.Binary):
        return parse_binary
    if isinstance(logical, types.Geometry):
        return parse_geometry
    if isinstance(logical, NO_TEXT):

        def refuse(text: str) -> NoReturn:
            raise ValueError(f"MySQL's text has no {logical}")

        return refuse
    return _PLAIN.get(type(logical), str)


def parse_binary(text: str) -> bytes:
    """Bytes from Latin-1 text, one character per byte; other characters replaced lost bytes."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as error:
        character = f"U+{ord(text[error.start]):04X}"
        raise ValueError(
            f"bytes were lost: character {character} at position {error.start} is not a byte"
        ) from None


def parse_geometry(text: str) -> GeometryValue:
    """A geometry from MySQL's internal form."""
    data = parse_binary(text)
    if len(data) < _SMALLEST_GEOMETRY:
        raise ValueError("not a geometry: shorter than SRID and WKB header")
    return GeometryValue(int.from_bytes(data[:4], "little"), data[4:])
