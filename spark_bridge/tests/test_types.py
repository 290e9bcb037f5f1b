"""Types that hold the values of two, for a column whose type changed on the way."""

from __future__ import annotations

import pytest

from cdcfmt_core.types import (
    Binary,
    Bit,
    DateTime,
    Decimal,
    Enum,
    Float,
    Int,
    Json,
    LogicalType,
    Text,
    Unknown,
)
from pyspark_cdcfmt.rows.types import merge


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (Int(8), Int(8), Int(8)),
        (Int(32), Int(64), Int(64)),
        (Int(8, signed=False), Int(8), Int(16)),
        (Int(64, signed=False), Int(64), Decimal(20, 0)),
        (Int(32), Decimal(20, 0), Decimal(20, 0)),
        (Int(64, signed=False), Decimal(10, 4), Decimal(24, 4)),
        (Int(8), Decimal(), Decimal(scale=0)),
        (Decimal(10, 2), Decimal(8, 4), Decimal(12, 4)),
        (Decimal(10, 2), Decimal(), Decimal(scale=2)),
        (Decimal(), Decimal(), Decimal()),
        (Float(32), Float(64), Float(64)),
        (DateTime(0), DateTime(6), DateTime()),
        (Bit(1), Bit(8), Bit()),
        (Enum(("a",)), Enum(), Enum()),
        (Text("latin1"), Text("utf8mb4"), Text()),
        (Int(32), Text(), Text()),
        (Json(), Text(), Text()),
        (Text(), Binary(), Binary()),
        (Unknown("x"), Unknown("y"), Unknown()),
    ],
    ids=str,
)
def test_merge(one: LogicalType, other: LogicalType, both: LogicalType) -> None:
    assert merge(one, other) == both
    assert merge(other, one) == both
