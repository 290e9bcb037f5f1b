"""Values and types by their codes and flags."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from open_messages import (
    decode_row,
    value_of,
)

from cdcfmt_core import types
from cdcfmt_core.events import (
    Image,
)
from cdcfmt_core.types import InvalidValue


@pytest.mark.parametrize(
    ("code", "value", "expected"),
    [
        # [doc] "Column type code"
        (1, 1, 1),
        (2, 1, 1),
        (3, 123, 123),
        (4, 153.123, 153.123),
        (5, 153.123, 153.123),
        (6, None, None),
        (8, 123, 123),
        (9, 123, 123),
        (10, "2000-01-01", date(2000, 1, 1)),
        (14, "2000-01-01", date(2000, 1, 1)),
        (11, "23:59:59", timedelta(hours=23, minutes=59, seconds=59)),
        (12, "2015-12-20 23:58:58", datetime(2015, 12, 20, 23, 58, 58)),
        (7, "1973-12-30 15:30:00", datetime(1973, 12, 30, 15, 30, tzinfo=UTC)),
        (13, 1970, 1970),
        (15, "测试", "测试"),
        (253, "测试", "测试"),
        (254, "测试", "测试"),
        (16, 81, 81),
        (245, '{"key1": "value1"}', '{"key1": "value1"}'),
        (246, "129012.1230000", Decimal("129012.1230000")),
        (247, 1, 1),
        (248, 3, 3),
        (249, "5rWL6K+VdGV4dA==", "测试text"),
        (250, "5rWL6K+VdGV4dA==", "测试text"),
        (251, "5rWL6K+VdGV4dA==", "测试text"),
        (252, "5rWL6K+VdGV4dA==", "测试text"),
        # beyond the document
        (225, "[1,2.5,-3]", [1.0, 2.5, -3.0]),
        (255, "POINT(1 1)", "POINT(1 1)"),
        (255, {"any": 1}, {"any": 1}),
        (99, [1, None], [1, None]),
        (8, -(2**63), -(2**63)),
        (4, 3, 3.0),
        (5, -1.7976931348623157e308, -1.7976931348623157e308),
        (11, "-838:59:59.000000", -timedelta(hours=838, minutes=59, seconds=59)),
        (10, "0000-00-00", InvalidValue("0000-00-00")),
        (12, "2023-00-00 00:00:00", InvalidValue("2023-00-00 00:00:00")),
        (13, 0, 0),
        (252, "", ""),
        (252, "/w==", "\udcff"),
        (15, "", ""),
        (15, "\\x00", "\\x00"),
    ],
)
def test_values(code: int, value: Any, expected: Any) -> None:
    for _ in range(2):
        actual = value_of(code, value)
        assert (type(actual), actual) == (type(expected), expected)


@pytest.mark.parametrize(
    ("code", "flags", "value", "expected"),
    [
        (8, 193, 2**64 - 1, 2**64 - 1),
        (3, 193, 2**32 - 1, 2**32 - 1),
        (16, 193, 2**64 - 1, 2**64 - 1),
        (16, 193, 2**63, 2**63),
        (248, 64, 2**64 - 1, 2**64 - 1),
        # [doc] VARBINARY; the backslashes are JSON's
        (15, 65, r"\x89PNG\r\n\x1a\n", b"\x89PNG\r\n\x1a\n"),
        (253, 65, r"\x89PNG\r\n\x1a\n", b"\x89PNG\r\n\x1a\n"),
        (254, 65, r"中文😀\x00", "中文😀\0".encode()),
        (252, 65, "iVBORw0KGgo=", b"\x89PNG\r\n\x1a\n"),
        (249, 65, "", b""),
        # without flags
        (8, None, 2**64 - 1, Decimal(2**64 - 1)),
        (1, None, 255, 255),
        (252, None, "YWE=", "YWE="),
        (15, None, r"\x00", r"\x00"),
        (246, None, "1.50", Decimal("1.50")),
    ],
)
def test_values_by_their_flags(code: int, flags: int | None, value: Any, expected: Any) -> None:
    actual = value_of(code, value, flags)
    assert (type(actual), actual) == (type(expected), expected)


@pytest.mark.parametrize(
    ("code", "flags", "source_type", "logical"),
    [
        (3, 193, "int unsigned", types.Int(32, signed=False)),
        (13, 193, "year", types.Year()),
        (16, 193, "bit", types.Bit()),
        (252, 65, "blob", types.Binary()),
        (251, 64, "longtext", types.Text()),
        (15, 65, "varbinary", types.Binary()),
        (254, 64, "char", types.Text()),
        (245, 65, "json", types.Json()),
        (255, 65, "geometry", types.Unknown("geometry")),
        (6, 65, "null", types.Unknown("null")),
        (99, 65, "type code 99", types.Unknown("type code 99")),
    ],
)
def test_types(code: int, flags: int, source_type: str, logical: types.LogicalType) -> None:
    (column,) = decode_row({"u": {"c": {"t": code, "f": flags, "v": None}}}).table.columns
    assert (column.source_type, column.type) == (source_type, logical)


def test_text_with_raw_bytes() -> None:
    """TiCDC's new architecture writes invalid UTF-8 unchanged."""
    value = b'{"u":{"id":{"t":3,"h":true,"f":11,"v":1},"d":{"t":5,"f":65,"v":0.1},'
    value += b'"c":{"t":15,"f":64,"v":"a\xffb"}}}'
    row = decode_row(value)
    assert row.after == Image({"id": 1, "d": 0.1, "c": "a\udcffb"})


def test_numbers_beyond_floats() -> None:
    row = decode_row('{"u":{"a":{"t":246,"f":65,"v":0.12345678901234567890123}}}')
    assert row.after is not None
    assert str(row.after.values["a"]) == "0.12345678901234567890123"
