"""Values printed as MySQL prints them; invalid values are rejected."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from cdcfmt_core import types
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column
from cdcfmt_core.types import GeometryValue, InvalidValue, LogicalType
from cdcfmt_mysql.members import enum_name, set_names
from cdcfmt_mysql.numbers import go_json_float
from cdcfmt_mysql.text_output import BAD_VALUE, text_printer
from cdcfmt_mysql.type_output import column_type, type_text

SHANGHAI = ZoneInfo("Asia/Shanghai")


def printed(logical: LogicalType, value: Any, zone: Any = SHANGHAI) -> str:
    return text_printer(logical, time_zone=zone)(value)


@pytest.mark.parametrize(
    ("logical", "value", "text"),
    [
        (types.Int(64, False), 2**64 - 1, "18446744073709551615"),
        (types.Int(8), -128, "-128"),
        (types.Bool(), True, "1"),
        (types.Decimal(), Decimal("1E+3"), "1000"),
        (types.Decimal(), Decimal("0E-30"), "0." + "0" * 30),
        (types.Decimal(), Decimal("-1.50"), "-1.50"),
        (types.Float(64), 1.7976931348623157e308, "17976931348623157" + "0" * 292),
        (types.Float(64), 5e-324, "0." + "0" * 323 + "5"),
        (types.Float(64), -0.0, "-0"),
        (types.Float(64), 3.0, "3"),
        (types.Float(32), 3.140000104904175, "3.14"),
        (types.Float(32), 3.4028234663852886e38, "34028235" + "0" * 31),
        (types.Float(32), 3.4028235e38, "34028235" + "0" * 31),
        (types.Float(32), 1.401298464324817e-45, "0." + "0" * 44 + "1"),
        (types.Text(), "a\udcff", "a\udcff"),
        (types.Binary(), b"\x00\xff", "\x00ÿ"),
        (types.Bit(10), 682, "682"),
        (types.Bit(), 2**64 - 1, "18446744073709551615"),
        (types.Date(), date(18, 5, 6), "0018-05-06"),
        (types.Date(), InvalidValue("2023-02-31"), "2023-02-31"),
        (types.DateTime(0), datetime(2023, 1, 2, 3, 4, 5), "2023-01-02 03:04:05"),
        (types.DateTime(3), datetime(2023, 1, 2, 3, 4, 5, 6000), "2023-01-02 03:04:05.006"),
        (types.DateTime(3), datetime(2023, 1, 2, 3, 4, 5, 1), "2023-01-02 03:04:05.000001"),
        (types.DateTime(), datetime(2023, 1, 2, 3, 4, 5, 6000), "2023-01-02 03:04:05.006000"),
        (types.DateTime(6), datetime(1, 1, 1), "0001-01-01 00:00:00.000000"),
        (types.DateTime(3), InvalidValue("0000-00-00 00:00:00.000"), "0000-00-00 00:00:00.000"),
        (types.Time(1), timedelta(hours=-838, milliseconds=-100), "-838:00:00.1"),
        (types.Year(), 0, "0"),
        (types.Enum(("a", "b")), "b", "2"),
        (types.Enum(("a", "")), "", "2"),
        (types.Enum(("a", "b")), "", "0"),
        (types.Enum(), 7, "7"),
        (types.Set(("a", "b", "c")), "a,c", "5"),
        (types.Set(("a",)), "", "0"),
        (types.Set(), 2**64 - 1, "18446744073709551615"),
        (types.Json(), '{"a": 1}', '{"a": 1}'),
        (types.Vector(), [1.0, 2.5, -3.0, 1e-10], "[1,2.5,-3,0.0000000001]"),
        (types.Geometry(), GeometryValue(1, b"\x01abc"), "\x01\0\0\0\x01abc"),
    ],
)
def test_values(logical: LogicalType, value: Any, text: str) -> None:
    assert printed(logical, value) == text


def test_timestamps_are_wall_clocks_of_the_zone() -> None:
    def at(*parts: int, zone: Any = SHANGHAI, tz: Any = UTC) -> str:
        return printed(types.Timestamp(0), datetime(*parts, tzinfo=tz), zone)  # type: ignore[arg-type,misc]

    assert at(2023, 12, 27, 4, 27, 23) == "2023-12-27 12:27:23"
    assert at(2023, 12, 27, 4, 27, 23, zone=UTC) == "2023-12-27 04:27:23"
    assert at(2023, 12, 27, 4, tz=timezone(timedelta(hours=4))) == "2023-12-27 08:00:00"
    berlin = ZoneInfo("Europe/Berlin")
    # The clock changes at 01:00 UTC of this day.
    assert [at(2024, 3, 31, hour, 30, zone=berlin) for hour in (0, 1)] == [
        "2024-03-31 01:30:00",
        "2024-03-31 03:30:00",
    ]
    assert at(1970, 1, 1, 0, 0, 1, zone=ZoneInfo("Africa/Monrovia")) == "1969-12-31 23:15:31"
    with pytest.raises(ValueError, match="not an instant"):
        at(2023, 1, 1, tz=None)


@pytest.mark.parametrize(
    ("logical", "value"),
    [
        (types.Int(8), 128),
        (types.Int(8), "1"),
        (types.Int(8), 1.5),
        (types.Bool(), 1),
        (types.Bit(2), 4),
        (types.Float(64), float("inf")),
        (types.Float(32), 1e300),
        (types.Float(64), 1),
        (types.Decimal(), Decimal("NaN")),
        (types.Decimal(), Decimal("Infinity")),
        (types.Decimal(), 1),
        (types.Text(), b"a"),
        (types.Binary(), "a"),
        (types.Date(), datetime(2023, 1, 1)),
        (types.Date(), InvalidValue("yesterday")),
        (types.DateTime(), datetime(2023, 1, 1, tzinfo=UTC)),
        (types.DateTime(), date(2023, 1, 1)),
        (types.DateTime(), InvalidValue("12")),
        (types.Time(), InvalidValue("12")),
        (types.Time(), "12:00:00"),
        (types.Time(), timedelta(hours=-839)),
        (types.Year(), 1900),
        (types.Enum(("a",)), "b"),
        (types.Enum(), "b"),
        (types.Enum(("a",)), 2),
        (types.Set(("a",)), "a,b"),
        (types.Set(), "a"),
        (types.Vector(), ["a"]),
        (types.Geometry(), GeometryValue(0, None, "POINT(1 1)")),
    ],
)
def test_values_outside_their_type_are_rejected(logical: LogicalType, value: Any) -> None:
    with pytest.raises(BAD_VALUE):
        printed(logical, value)


def test_unknown_types() -> None:
    with pytest.raises(EncodeError, match=r"its type \(jdbc 93\) is not known"):
        text_printer(types.Unknown("jdbc 93"), time_zone=UTC)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.0, "3"),
        (1e-7, "1e-7"),
        (1.5e-10, "1.5e-10"),
        (1e-6, "0.000001"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (-3.4e38, "-3.4e+38"),
        (0.1, "0.1"),
    ],
)
def test_floats_in_the_json_of_go(value: float, text: str) -> None:
    assert go_json_float(repr(value)) == text


def test_members_by_number() -> None:
    assert enum_name(("a", "b"))(2) == "b"
    assert enum_name(("a", "b"))(0) == ""
    assert enum_name(None)("b") == "b"
    assert set_names(("a", "b"))(3) == "a,b"
    with pytest.raises(ValueError, match="declare the type"):
        enum_name(None)(2)
    with pytest.raises(ValueError, match="declare the type"):
        set_names(None)(2)


@pytest.mark.parametrize(
    ("source", "logical", "plain", "full"),
    [
        ("INT(10) UNSIGNED ZEROFILL", types.Int(32, False), "int unsigned zerofill", None),
        ("decimal(10,4) unsigned", types.Decimal(10, 4), "decimal unsigned", None),
        ("enum('a','b''c','\\\\')", types.Enum(("a", "b'c", "\\")), "enum", None),
        ("text character set binary", types.Binary(), "blob", "blob"),
        ("tinyint(1)", types.Bool(), "tinyint", "tinyint(1)"),
        ("int32", types.Int(32), "int", "int"),
        ("int8", types.Int(8), "tinyint", "tinyint"),
        ("", types.DateTime(3), "datetime", "datetime(3)"),
        ("io.debezium.data.Bits", types.Bit(10), "bit", "bit(10)"),
        ("3", types.Decimal(), "decimal", "decimal"),
    ],
)
def test_type_texts(source: str, logical: LogicalType, plain: str, full: str | None) -> None:
    parsed = column_type(Column("c", source, logical))
    assert type_text(parsed, full=False) == plain
    assert type_text(parsed, full=True) == (source.lower() if full is None else full)
