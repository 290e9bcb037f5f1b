"""What every format's tests of bad input share: what must hold, and how to do damage."""

from __future__ import annotations

import decimal
import pickle
from datetime import date, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from cdcfmt_core import types
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import RowChange

# A guard against hangs, not a measure.
settings.register_profile("patient", deadline=timedelta(seconds=20))
patient = settings(
    settings.get_profile("patient"),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def check_error(error: DecodeError, protocol: str) -> None:
    assert error.reason
    # Every reason is one that the decoder meant to give.
    assert not error.reason.startswith("the decoder failed"), error
    assert "topic t, partition 3, offset 99: " in str(error)
    assert protocol == "auto" or error.protocol == protocol
    assert error.sample is None or len(error.sample) < 2_100
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), type(copy)) == (str(error), type(error))


PYTHON: dict[type, type | tuple[type, ...]] = {
    types.Bool: bool,
    types.Int: int,
    types.Float: float,
    types.Decimal: decimal.Decimal,
    types.Text: str,
    types.Binary: bytes,
    types.Bit: int,
    types.Date: date,
    types.DateTime: datetime,
    types.Timestamp: datetime,
    types.Time: timedelta,
    types.Year: int,
    types.Enum: (str, int),
    types.Set: (str, int),
    types.Json: str,
    types.Vector: list,
    types.Geometry: types.GeometryValue,
    types.Unknown: object,
}


def check_row(event: RowChange) -> None:
    by_name = {column.name: column.type for column in event.table.columns}
    images = [image for image in (event.before, event.after) if image is not None]
    assert images
    for image in images:
        for name, value in image.values.items():
            logical = by_name[name]
            if value is None or isinstance(value, types.InvalidValue):
                continue
            assert isinstance(value, PYTHON[type(logical)]), (logical, value)
            if isinstance(logical, types.Int):
                low, high = logical.bounds
                assert low <= value <= high
    assert event.extra is None or event.extra


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["1", "-1", "1.10", "2024-01-02", "int", "INSERT", 1 << 63, -(1 << 63), 1e300]
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["id", "name", "commitTs", "columns", "table"]) | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def paths_of(wire: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, Any]] = []
    if isinstance(wire, dict):
        inner = list(wire.items())
    elif isinstance(wire, list):
        inner = list(enumerate(wire))
    return [path, *(found for name, part in inner for found in paths_of(part, (*path, name)))]


def changed(wire: Any, path: tuple[Any, ...], value: Any) -> Any:
    """``wire`` with another value at ``path``; ``...`` drops it."""
    if not path:
        return value
    name, *rest = path
    if not rest and value is ...:
        if isinstance(wire, dict):
            return {other: part for other, part in wire.items() if other != name}
        return [*wire[:name], *wire[name + 1 :]]
    part = changed(wire[name], tuple(rest), value)
    if isinstance(wire, dict):
        return {**wire, name: part}
    return [*wire[:name], part, *wire[name + 1 :]]
