"""Encoding of column values in TiCDC's form.

The inverse of :mod:`cdcfmt_debezium.values`, which lists the sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from cdcfmt_core.events import Column
from cdcfmt_core.mysql.number_output import print_vector
from cdcfmt_core.mysql.temporal import parse_date, parse_datetime
from cdcfmt_core.toolkit.encodings import Encoding
from cdcfmt_core.toolkit.row_messages import Member
from cdcfmt_core.toolkit.value_printers import print_base64
from cdcfmt_core.types import Date, DateTime, Geometry, GeometryValue, Timestamp, Vector

_ZERO_DATES: Final = "dates that no calendar has, written as null or 1970"
_EPOCH_TEXT: Final = "1970-01-01T00:00:00Z"


def member_of(
    column: Column,
    label: str,
    encoding: Encoding,
    *,
    nullable: bool,
    with_schema: bool,
    counts: Counter[str],
) -> Member:
    """A column with this value encoding, and printers for values without one."""
    # Kafka Connect fails on null in a field that its schema requires.
    null = None if with_schema and not nullable else "null"
    printers = {Vector: print_vector, Geometry: _geometry}
    parsers: dict[type, Callable[[str], object]]
    parsers = {Date: parse_date, DateTime: parse_datetime, Timestamp: parse_datetime}
    logical = type(column.type)
    parse = parsers.get(logical)
    zero = _EPOCH_TEXT if logical is Timestamp else None if nullable else 0

    def print_zero(text: str) -> int | str | None:
        """Count ``0000-00-00`` and similar dates, and return TiCDC's replacement."""
        assert parse is not None
        parse(text)
        counts[_ZERO_DATES] += 1
        return zero

    invalid = None if parse is None else print_zero
    return Member(label, encoding, null=null, printer=printers.get(logical), invalid=invalid)


def _geometry(value: Any) -> dict[str, Any]:
    if type(value) is not GeometryValue or value.wkb is None:
        raise ValueError("a geometry without WKB")
    # Debezium writes SRID 0 as null.
    return {"wkb": print_base64(value.wkb), "srid": value.srid or None}
