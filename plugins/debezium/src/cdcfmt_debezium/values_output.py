"""A value of a logical type → its JSON in Debezium's messages, as TiCDC writes them.

The way back of :mod:`cdcfmt_debezium.values`, which names the sources.  A renderer raises
``ValueError``, ``TypeError`` or ``AttributeError`` for what is no value of its type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import orjson

from cdcfmt_core.mysql.number_output import print_vector
from cdcfmt_core.mysql.temporal import parse_date, parse_datetime
from cdcfmt_core.toolkit.encodings import Encoding
from cdcfmt_core.toolkit.value_printers import PrinterTools, print_base64, value_printer
from cdcfmt_core.types import (
    Date,
    DateTime,
    Geometry,
    GeometryValue,
    InvalidValue,
    LogicalType,
    Timestamp,
    Vector,
)

Render: TypeAlias = Callable[[Any], Any]

_ZERO_DATES: Final = "dates that no calendar has, written as null or 1970"
_EPOCH_TEXT: Final = "1970-01-01T00:00:00Z"


def renderer(
    encoding: Encoding, logical: LogicalType, *, nullable: bool, counts: Counter[str]
) -> Render:
    """The renderer of one column.

    :raises EncodeError: for a column of unknown type.
    """
    if isinstance(logical, Vector):
        return print_vector
    if isinstance(logical, Geometry):
        return _geometry
    tools = PrinterTools(number=orjson.Fragment, counts=counts)
    render = value_printer(encoding, logical, tools)
    if isinstance(logical, Timestamp):
        return _or_zero(render, parse_datetime, _EPOCH_TEXT, counts)
    if isinstance(logical, Date):
        return _or_zero(render, parse_date, None if nullable else 0, counts)
    if isinstance(logical, DateTime):
        return _or_zero(render, parse_datetime, None if nullable else 0, counts)
    return render


def _or_zero(
    render: Render, parse: Callable[[str], object], zero: int | str | None, counts: Counter[str]
) -> Render:
    """``0000-00-00`` and its like as TiCDC writes them, and counted."""

    def render_any(value: Any) -> Any:
        if type(value) is not InvalidValue:
            return render(value)
        parse(value.text)
        counts[_ZERO_DATES] += 1
        return zero

    return render_any


def _geometry(value: Any) -> dict[str, Any]:
    if type(value) is not GeometryValue or value.wkb is None:
        raise ValueError("a geometry without WKB")
    # Debezium writes SRID 0 as null.
    return {"wkb": print_base64(value.wkb), "srid": value.srid or None}
