"""Arbitrary values of all logical types: boundaries, Unicode, invalid dates."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from hypothesis import strategies as st

from cdcfmt_core import types
from cdcfmt_core.types import GeometryValue, IntervalValue, InvalidValue, LogicalType
from cdcfmt_testing.carries import Carries


def values(logical: LogicalType, carries: Carries) -> st.SearchStrategy[Any]:
    """Values of one type, without NULL."""
    return _VALUES[type(logical)](logical, carries)


def _or_null(logical: LogicalType, carries: Carries) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values(logical, carries))


def texts() -> st.SearchStrategy[str]:
    """Any Unicode except surrogates, with characters that JSON writers escape or get wrong."""
    return st.one_of(
        st.text(st.characters(codec="utf-8"), max_size=20),
        st.sampled_from(["", "<&>\u2028\u2029", "\b\f\\b\\\\f\x00\x7f\x80\x9f", '"\\\n\r\t', "😀"]),
    )


def _decimals(logical: Any, carries: Carries) -> st.SearchStrategy[Any]:
    scale = logical.scale or 0
    largest = 10 ** (logical.precision or 65) - 1
    context = decimal.Context(prec=100)
    return st.one_of(
        st.integers(-largest, largest), st.sampled_from([0, 1, -1, largest, -largest])
    ).map(lambda unscaled: decimal.Decimal(unscaled).scaleb(-scale, context))


def _floats(bits: int) -> st.SearchStrategy[Any]:
    return st.floats(allow_nan=False, allow_infinity=False, width=32 if bits == 32 else 64)


def _microseconds(fsp: int | None) -> st.SearchStrategy[int]:
    unit = 10 ** (6 - (fsp or 0))
    return st.integers(0, 999_999).map(lambda number: number // unit * unit)


def _dates(logical: Any, carries: Carries) -> st.SearchStrategy[Any]:
    known = st.dates(min_value=date(carries.earliest_year, 1, 1))
    if not carries.invalid_dates:
        return known
    return st.one_of(known, st.sampled_from(["0000-00-00", "2023-00-15"]).map(InvalidValue))


def _datetimes(logical: Any, carries: Carries) -> st.SearchStrategy[Any]:
    known = st.builds(
        lambda value, fraction: value.replace(microsecond=fraction, fold=0),
        st.datetimes(min_value=datetime(carries.earliest_year, 1, 1)),
        _microseconds(logical.fsp),
    )
    if not carries.invalid_dates:
        return known
    return st.one_of(known, st.just(InvalidValue("0000-00-00 00:00:00")))


def _timestamps(logical: Any, carries: Carries) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda seconds, fraction: (
            datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=fraction)
        ),
        st.integers(1, 2**31 - 1),
        _microseconds(logical.fsp),
    )


def _times(logical: Any, carries: Carries) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda sign, seconds, fraction: sign * timedelta(seconds=seconds, microseconds=fraction),
        st.sampled_from([1, -1]),
        st.integers(0, 838 * 3600 + 59 * 60 + 58),
        _microseconds(logical.fsp),
    )


def _intervals(logical: Any, carries: Carries) -> st.SearchStrategy[Any]:
    nothing = st.just(0)
    return st.builds(
        IntervalValue,
        st.integers(-(10**6), 10**6) if logical.months else nothing,
        st.integers(-(10**6), 10**6) if logical.days else nothing,
        st.integers(-(2**62), 2**62) if logical.micros else nothing,
    )


def _sets(logical: Any, carries: Carries) -> st.SearchStrategy[Any]:
    return st.sets(st.sampled_from(logical.names)).map(
        lambda chosen: ",".join(name for name in logical.names if name in chosen)
    )


_VALUES: Final[dict[type, Callable[[Any, Carries], st.SearchStrategy[Any]]]] = {
    types.Bool: lambda t, c: st.booleans(),
    types.Int: lambda t, c: st.one_of(st.integers(*t.bounds), st.sampled_from(t.bounds)),
    types.Float: lambda t, c: _floats(t.bits),
    types.Decimal: _decimals,
    types.Text: lambda t, c: texts(),
    types.Binary: lambda t, c: st.one_of(st.binary(max_size=20), st.just(bytes(range(256)))),
    types.Bit: lambda t, c: st.integers(0, (1 << t.bits) - 1),
    types.Date: _dates,
    types.DateTime: _datetimes,
    types.Timestamp: _timestamps,
    types.Time: _times,
    types.Year: lambda t, c: st.one_of(st.just(0), st.integers(1901, 2155)),
    types.Enum: lambda t, c: st.sampled_from(t.names),
    types.Set: _sets,
    types.Json: lambda t, c: texts(),
    types.Vector: lambda t, c: st.lists(_floats(32), max_size=4),
    types.Geometry: lambda t, c: st.builds(
        GeometryValue, st.integers(0, 2**32 - 1), st.binary(min_size=5, max_size=30), st.none()
    ),
    types.Uuid: lambda t, c: st.uuids(),
    types.Interval: _intervals,
    types.TimeTz: lambda t, c: st.times(timezones=st.just(UTC)),
    types.Array: lambda t, c: st.lists(_or_null(t.element, c), max_size=4),
    types.Map: lambda t, c: st.dictionaries(values(t.key, c), _or_null(t.value, c), max_size=4),
    types.Struct: lambda t, c: st.fixed_dictionaries(
        {name: _or_null(each, c) for name, each in t.fields}
    ),
    # The unchanged JSON value.
    types.Unknown: lambda t, c: st.one_of(st.integers(-(2**63), 2**63 - 1), st.booleans(), texts()),
}
