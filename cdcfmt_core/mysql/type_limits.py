"""Checks of values against limits of their column's type that no printer checks.

These are the digits of numbers and times, and the bytes of binary values: a database with a
column of this type could not have sent more.  Text is not checked, as producers that mask it may
write longer ones.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from cdcfmt_core.events import Column
from cdcfmt_core.mysql.column_type import binary_lengths
from cdcfmt_core.types import Binary, DateTime, Decimal, Time, Timestamp

Check: TypeAlias = Callable[[Any], None]

_TEMPORAL: Final = {DateTime: "datetime", Timestamp: "timestamp", Time: "time"}


def limit_check(column: Column) -> Check | None:
    """A check that raises ``ValueError`` for a value beyond the column's type; None: no limit.

    It ignores values of other Python types, which the column's printer rejects.
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
