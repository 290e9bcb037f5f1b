"""Variants decoded by Spark's own reader, for tests."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st
from pyspark.sql.variant_utils import VariantUtils

from cdcfmt_core.types import GeometryValue


def decode(encoded: tuple[bytes, bytes]) -> Any:
    # PySpark multiplies decimals in the current context, whose 28 digits would round them.
    with localcontext() as context:
        context.prec = 100
        return VariantUtils.to_python(*encoded)


def typed(value: Any) -> Any:
    """``value`` such that True is not 1 and NaN is NaN."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return type(value).__name__, repr(value) if isinstance(value, float) else value


def as_read(value: Any) -> Any:
    """The decoded variant of ``value``."""
    match value:
        case bool():
            return value
        case int() if not -(2**63) <= value < 2**63:
            return Decimal(value) if abs(value) < 10**38 else str(value)
        case Decimal():
            scale = max(0, -int(value.as_tuple().exponent))
            fits = scale <= 38 and abs(Fraction(value) * 10**scale) < 10**38
            return value if fits else format(value, "f")
        case timedelta():
            sign, value = ("-", -value) if value < timedelta(0) else ("", value)
            hours, rest = divmod(value, timedelta(hours=1))
            return f"{sign}{hours:02}:{datetime.min + rest:%M:%S.%f}"
        case GeometryValue():
            return {"srid": value.srid, "wkb": value.wkb, "wkt": value.wkt}
        case list() | tuple():
            return [as_read(item) for item in value]
        case dict():
            return {key: as_read(item) for key, item in value.items()}
    return value


names = st.lists(st.text(min_size=1, max_size=6), unique=True, max_size=12)
