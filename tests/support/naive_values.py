"""Values as a plain reader of MySQL's texts has them, written without the printers."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest

from cdcfmt_core.types import (
    Date,
    DateTime,
    Decimal,
    Enum,
    Float,
    InvalidValue,
    LogicalType,
    Set,
    Time,
    Timestamp,
    Vector,
)
from cdcfmt_mysql import format_time
from cdcfmt_mysql.text_output import text_printer


def document_value(logical: LogicalType, value: Any) -> Any:
    """Numbers, bytes and text; ENUM and SET by their numbers, TIMESTAMP in UTC."""
    if isinstance(value, InvalidValue):
        return value.text
    if isinstance(logical, Enum):
        return (logical.names or ()).index(value) + 1
    if isinstance(logical, Set):
        chosen = value.split(",") if value else []
        return sum(1 << (logical.names or ()).index(name) for name in chosen)
    if isinstance(logical, Decimal):
        return format(value, "f")
    if isinstance(logical, Float) and logical.bits == 32:
        # As few digits as tell it apart: below the normal ones within half of the smallest.
        return pytest.approx(value, rel=1e-7, abs=2**-150)
    if isinstance(logical, (DateTime, Timestamp)):
        digits = {None: "auto", 1: "microseconds", 3: "milliseconds", 6: "microseconds"}
        text = value.replace(tzinfo=None).isoformat(" ", digits[logical.fsp])
        return text[:21] if logical.fsp == 1 else text
    if isinstance(logical, Date):
        return value.isoformat()
    if isinstance(logical, Time):
        return format_time(value, logical.fsp)
    if isinstance(logical, Vector):
        return text_printer(logical, time_zone=UTC)(value)
    return value
