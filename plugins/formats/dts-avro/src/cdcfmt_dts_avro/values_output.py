"""Encoding of values: a branch of the image union, followed by its record.

The inverse of ``values``.  If the SDK accepts several forms of a type (YEAR as
Integer, BINARY as Character), one of them is written.

Dates and times are the parts of ``DateTime``, whose part ``millis`` holds microseconds; an instant
is two numbers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from cdcfmt_core import EncoderContext, types
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column
from cdcfmt_core.types import InvalidValue, LogicalType
from cdcfmt_dts_avro import message as wire
from cdcfmt_dts_avro.charsets import BINARY, codec_of
from cdcfmt_dts_avro.types import Family
from cdcfmt_mysql.numbers import check_year, parse_decimal, print_decimal
from cdcfmt_mysql.temporal import EPOCH_UTC, MAX_TIME
from cdcfmt_mysql.text_output import unknown_type
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.json_output import valid_text
from cdcfmt_toolkit.row_messages import MYSQL_TEXT, ColumnTemplate
from cdcfmt_toolkit.scalar_readers import Parts, to_date, to_datetime
from cdcfmt_toolkit.value_printers import Print
from cdcfmt_toolkit.wire_avro import NULL, write_bytes, write_long, write_text

_match_parts = re.compile(
    r"(\d{4,6})-(\d{2})-(\d{2})(?: (\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,6}))?)?", re.ASCII
).fullmatch
_ZERO: Final = timedelta()


def _date_parts(*parts: int | None) -> bytes:
    """The seven parts: year, month, day, hour, minute, second, microsecond."""
    return b"".join(NULL if part is None else b"\x02" + write_long(part) for part in parts)


def render_date(value: Any) -> bytes:
    if type(value) is InvalidValue:
        return _invalid(value.text, to_date)
    if type(value) is not date:
        raise TypeError("not a date")
    return _date_parts(value.year, value.month, value.day, None, None, None, None)


def _wall_clock(value: Any) -> tuple[int | None, ...]:
    if type(value) is not datetime:
        raise TypeError("not a datetime")
    if value.tzinfo is not None:
        raise ValueError("a wall clock has no time zone")
    return (
        *(value.year, value.month, value.day, value.hour, value.minute, value.second),
        value.microsecond or None,
    )


def render_datetime(value: Any) -> bytes:
    if type(value) is InvalidValue:
        return _invalid(value.text, to_datetime)
    return _date_parts(*_wall_clock(value))


def _invalid(text: str, read: Callable[[Parts], object]) -> bytes:
    """Encode zero dates and impossible dates; ``read`` is the decoder's reader."""
    match = _match_parts(text)
    if match is None:
        raise ValueError("neither a date nor a time")
    *parts, fraction = match.groups()
    micro = int(fraction.ljust(6, "0")) if fraction else None
    numbers = [*(None if part is None else int(part) for part in parts), micro]
    if type(read(numbers)) is not InvalidValue:
        raise ValueError("not read again as an invalid date or time")
    return _date_parts(*numbers)


def render_time(value: Any) -> bytes:
    if type(value) is not timedelta or not -MAX_TIME <= value <= MAX_TIME:
        raise ValueError("not a time within 838:59:59")
    # Every part of a negative time is negative.
    sign = -1 if value < _ZERO else 1
    value = abs(value)
    minutes, seconds = divmod(value.days * 86_400 + value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    clock = (sign * hours, sign * minutes, sign * seconds, sign * value.microseconds or None)
    return _date_parts(None, None, None, *clock)


def render_year(value: Any) -> bytes:
    return _date_parts(check_year(value), None, None, None, None, None, None)


def render_zoned(value: Any) -> bytes:
    """An instant as the parts of its local time in UTC."""
    return _date_parts(*_wall_clock(_instant(value).astimezone(UTC).replace(tzinfo=None)))


def render_instant(value: Any) -> bytes:
    """Seconds since 1970, and microseconds."""
    since = _instant(value) - EPOCH_UTC
    return write_long(since.days * 86_400 + since.seconds) + write_long(since.microseconds)


def _instant(value: Any) -> datetime:
    if value.tzinfo is None:
        raise ValueError("a timestamp without a time zone is not an instant")
    instant: datetime = value
    return instant


_BYTES_OF_INTEGER: Final = {1: 1, 2: 2, 9: 4, 3: 4, 8: 8, 16: 8}
"""MySQL's type number → the ``precision`` of an Integer, in bytes."""
_BLOBS: Final = frozenset({249, 250, 251, 252})
_KINDS: Final[dict[Family, dict[int, str]]] = {
    "mysql": {247: "enum", 248: "set"},
    "postgresql": {2950: "uuid"},
    "other": {},
}
"""Types that are written as TextObject instead of Character, by type number."""
_UTF8: Final = "utf8mb4"
_TEXT: Final = Encoding("text")
_PARTS: Final = Encoding("calendar-parts")
_OTHER: Final = Encoding("other")
_ASCII: Final = "".join(map(chr, range(128)))
_SQL_NULL: Final = write_long(wire.NULL)


def column_template(
    column: Column, number: int, family: Family, context: EncoderContext
) -> ColumnTemplate:
    """A column of an image; its values are preceded by their branch number.

    :raises EncodeError: for a type that the format lacks.
    """
    logical = column.type
    if isinstance(logical, (types.Int, types.Bool)) or _is_integer(logical, number, family):
        return _integer(logical, number, family)
    if isinstance(logical, types.Text):
        kind = _KINDS[family].get(number)
        # DTS does not send the definition of such a column with its rows.
        return _character(logical) if kind is None else _valid_object(kind, context)
    if isinstance(logical, types.Json):
        return _valid_object("json", context)
    if isinstance(logical, types.Geometry):
        return _geometry(column, context)
    if isinstance(logical, types.Unknown):
        # A column with only NULLs so far.
        def refuse(value: Any) -> bytes:
            raise unknown_type(logical)

        return _template(b"", _OTHER, printer=refuse)
    open_one = _FORMS.get(type(logical))
    if open_one is None:
        raise EncodeError(f"DTS has no {column.source_type or type(logical).__name__}")
    return open_one(logical, number, family)


def _template(head: bytes, encoding: Encoding, tail: bytes = b"", **more: Any) -> ColumnTemplate:
    return ColumnTemplate("", encoding, head, tail, _SQL_NULL, **more)


def _is_integer(logical: LogicalType, number: int, family: Family) -> bool:
    """Whether a decimal stands for an integer whose sign is unknown."""
    if not isinstance(logical, types.Decimal):
        return False
    return (logical.precision is None and logical.scale == 0) or (family == "mysql" and number == 8)


# Numbers


def _integer(logical: LogicalType, number: int, family: Family) -> ColumnTemplate:
    size = _BYTES_OF_INTEGER.get(number, 8) if family == "mysql" else 8
    if isinstance(logical, types.Int) and family != "mysql":
        size = logical.bits // 8
    head = write_long(wire.INTEGER) + write_long(size)
    if isinstance(logical, types.Decimal):
        return _template(head, Encoding("integer-text"), printer=_integral)
    return _template(head, MYSQL_TEXT)


def _integral(value: Any) -> bytes:
    text = print_decimal(value)
    if "." in text:
        raise ValueError("not an integer")
    return write_text(text)


def _decimal(logical: Any, number: int, family: Family) -> ColumnTemplate:
    tail = write_long(logical.precision or 0) + write_long(logical.scale or 0)
    # PostgreSQL's NaN is not a value of this type.
    return _template(write_long(wire.DECIMAL), MYSQL_TEXT, tail, invalid=_not_finite)


def _not_finite(text: str) -> bytes:
    if type(parse_decimal(text)) is not types.InvalidValue:
        raise ValueError("not NaN or infinite")
    return write_text(text)


def _float(logical: Any, number: int, family: Family) -> ColumnTemplate:
    tail = write_long(24 if logical.bits == 32 else 53) + write_long(0)
    return _template(write_long(wire.FLOAT), Encoding("json-number", doubles=True), tail)


# Text and bytes


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("not text")
    return value


def _character(logical: types.Text) -> ColumnTemplate:
    charset = logical.charset or _UTF8
    codec = None if charset in BINARY else codec_of(charset)
    if codec is None:
        charset, codec = _UTF8, "utf_8"
    is_latin1 = charset.lower() == "latin1"

    def render(value: Any) -> bytes:
        text = _text(value)
        try:
            data = text.encode(codec, "surrogateescape")
        except UnicodeEncodeError:
            if not is_latin1:
                raise ValueError(f"text that {charset} does not have") from None
            data = b"".join(map(_latin1, text))
        return write_bytes(data)

    head = write_long(wire.CHARACTER) + write_text(charset)
    return _template(head, _text_encoding(codec), printer=render)


@functools.cache
def _text_encoding(codec: str) -> Encoding:
    if codec == "utf_8":
        return _TEXT
    has_ascii = _ASCII.encode(codec, "replace") == _ASCII.encode()
    return Encoding("charset-text", charset=codec) if has_ascii else _OTHER


def _latin1(character: str) -> bytes:
    """Where the Windows code page has no character, MySQL's latin1 has C1 controls."""
    try:
        return character.encode("cp1252", "surrogateescape")
    except UnicodeEncodeError:
        if ord(character) > 0xFF:
            raise ValueError("text that latin1 does not have") from None
        return character.encode("latin_1")


def _binary(logical: Any, number: int, family: Family) -> ColumnTemplate:
    kind = "blob" if number in _BLOBS else "binary"
    return _template(write_long(wire.BINARY_OBJECT) + write_text(kind), MYSQL_TEXT)


def _text_object(kind: str, printer: Print | None = None) -> ColumnTemplate:
    return _template(write_long(wire.TEXT_OBJECT) + write_text(kind), _TEXT, printer=printer)


def _valid_object(kind: str, context: EncoderContext) -> ColumnTemplate:
    """A text that the format allows only in UTF-8."""
    return _text_object(kind, lambda value: write_text(valid_text(_text(value), context)))


def _geometry(column: Column, context: EncoderContext) -> ColumnTemplate:
    kind = write_text(column.source_type or "geometry")

    def render(value: Any) -> bytes:
        if type(value) is not types.GeometryValue:
            raise TypeError("not a geometry")
        if value.srid:
            context.counts["geometries written without their SRID"] += 1
        if value.wkb is not None:
            return write_long(wire.BINARY_GEOMETRY) + kind + write_bytes(value.wkb)
        if value.wkt is None:
            raise ValueError("a geometry without WKB and WKT")
        return write_long(wire.TEXT_GEOMETRY) + kind + write_text(value.wkt)

    return _template(b"", _OTHER, printer=render)


def _parts(printer: Print) -> Callable[[Any, int, Family], ColumnTemplate]:
    return lambda *_: _template(write_long(wire.DATETIME), _PARTS, printer=printer)


def _timestamp(logical: Any, number: int, family: Family) -> ColumnTemplate:
    if family == "postgresql":
        zone = write_text("+00:00")
        return _template(write_long(wire.ZONED_TIMESTAMP), _PARTS, zone, printer=render_zoned)
    return _template(write_long(wire.TIMESTAMP), Encoding("epoch-pair"), printer=render_instant)


_FORMS: Final[dict[type, Callable[[Any, int, Family], ColumnTemplate]]] = {
    types.Binary: _binary,
    types.Bit: _integer,
    types.Date: _parts(render_date),
    types.DateTime: _parts(render_datetime),
    types.Decimal: _decimal,
    types.Enum: lambda *_: _text_object("enum"),
    types.Float: _float,
    types.Set: lambda *_: _text_object("set"),
    types.Time: _parts(render_time),
    types.Timestamp: _timestamp,
    types.Year: _parts(render_year),
}
