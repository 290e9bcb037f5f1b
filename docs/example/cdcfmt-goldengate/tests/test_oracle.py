from datetime import UTC, datetime

import pytest
from cdcfmt_goldengate.oracle import open_reader, resolve

from cdcfmt_core.types import DateTime, Decimal, InvalidValue, Timestamp


@pytest.mark.parametrize(
    ("text", "logical"),
    [
        ("NUMBER", Decimal()),
        ("NUMBER(10,2)", Decimal(10, 2)),
        ("number(*, 0)", Decimal(38, 0)),
        ("NUMBER(5,-2)", Decimal(7, 0)),
        ("NUMBER(2,4)", Decimal(4, 4)),
        ("TIMESTAMP(9)", DateTime(6)),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", Timestamp(3)),
        ("NUMBER(x)", None),
        ("SDO_GEOMETRY", None),
    ],
)
def test_types(text, logical):
    assert resolve(text) == logical


def test_texts():
    dates = open_reader("DATE")
    assert dates("1994-09-30:15:33:00") == dates("1994-09-30 15:33:00.000000000")
    assert dates("2020-01-01 00:00:00.000000001") == InvalidValue("2020-01-01 00:00:00.000000001")
    zoned = open_reader("TIMESTAMP WITH TIME ZONE")
    assert zoned("2020-01-01 01:00:00.5 +02:00") == datetime(2019, 12, 31, 23, 0, 0, 500_000, UTC)
    # Of WITH LOCAL TIME ZONE: sourceTimeZone is its zone.
    assert zoned("2020-01-01 01:00:00") == datetime(2020, 1, 1, 1)
    for bad in ("2020-01-01", "2020-01-01 00:00:00 +02:00"):
        with pytest.raises(ValueError, match=r"time of Oracle|has a zone"):
            dates(bad)
