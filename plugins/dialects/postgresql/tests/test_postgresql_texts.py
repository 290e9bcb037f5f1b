"""Texts that a real server printed, as values."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from support.golden_data import read_jsonl
from support.postgres_values import Beyond, array_items, postgres_value

from cdcfmt_core.types import IntervalValue, InvalidValue
from cdcfmt_postgresql import domain_map, open_reader

INTERVALS = [
    line.split("|")
    for line in (Path(__file__).parent / "intervals.txt").read_text().splitlines()
    if not line.startswith("#")
]
GOLDEN_TYPES = domain_map(
    "golden",
    {
        "amount": "numeric",
        "email": "text",
        "posint": "int4",
        "mood": "enum('sad', 'ok', 'happy', 'with,comma')",
        "addr": "text",
    },
)


def read(source_type: str, text: str) -> Any:
    reader = open_reader(source_type)
    assert reader is not None, source_type
    return reader(text)


@pytest.mark.parametrize(("style", "given", "text", "months", "days", "micros"), INTERVALS)
def test_intervals_in_every_style(
    style: str, given: str, text: str, months: str, days: str, micros: str
) -> None:
    assert read("interval", text) == IntervalValue(int(months), int(days), int(micros))


def golden_texts() -> Mapping[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]]:
    """The values of each type in PostgreSQL's golden truth: columns and values."""
    found: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    for name in ("truth", "truth_snapshot"):
        for event in read_jsonl(f"postgres/{name}.jsonl.gz"):
            for column in event.get("columns", ()):
                for image in ("old", "new"):
                    if column.get(image):
                        found.setdefault(column["type"], []).append((column, column[image]))
    return found


GOLDEN = golden_texts()
SEVERAL_DIMENSIONS = {"integer[]", "text[]"}
"""Types of columns with arrays of two dimensions."""


@pytest.mark.parametrize("source_type", sorted(GOLDEN))
def test_texts_of_the_golden_truth(source_type: str) -> None:
    """Its values are what another reader, that of the tests, makes of them."""
    assert GOLDEN_TYPES.open_reader is not None
    reader = GOLDEN_TYPES.open_reader(source_type) or open_reader(source_type)
    assert reader is not None
    kinds = Counter[str]()
    for column, true in GOLDEN[source_type]:
        text = f"\\x{true['v']}" if true["t"] == "bytes" else true["v"]
        if source_type in SEVERAL_DIMENSIONS and text.startswith("{{"):
            with pytest.raises(ValueError, match="an array of 1 dimensions"):
                reader(text)
            continue
        value: Any = reader(text)
        kinds[type(value).__name__] += 1
        if isinstance(value, InvalidValue):
            assert value.text == text
        elif source_type.endswith("[]"):
            assert [item is None for item in value] == [i is None for i in array_items(text)]
        elif true["t"] in ("float", "double"):
            packing = ">f" if true["t"] == "float" else ">d"
            assert math.isnan(value) or struct.pack(packing, value).hex() == true["hex"]
        elif true["t"] in (
            "int",
            "decimal",
            "money",
            "bool",
            "bytes",
            "uuid",
            "str",
            "time",
            "enum",
        ):
            assert value == postgres_value(column, true)
        elif true["t"] in ("date", "timestamp", "timestamptz"):
            expected = postgres_value(column, true)
            assert value == expected or isinstance(expected, Beyond)
    assert kinds


@pytest.mark.parametrize(
    ("source_type", "text", "value"),
    [
        ("boolean", "t", True),
        ("bool", "false", False),
        ("bytea", "\\x00ff", b"\x00\xff"),
        ("bytea", "\\000\\377\\\\A'ap", b"\x00\xff\\A'ap"),
        ("money", "$1,234,567.89", Decimal("1234567.89")),
        ("money", "-$1.50", Decimal("-1.50")),
        ("money", "($1.50)", Decimal("-1.50")),
        ("numeric", "NaN", InvalidValue("NaN")),
        ("numeric", "9" * 200 + ".5", Decimal("9" * 200 + ".5")),
        ("real", "0.1", 0.10000000149011612),
        ("real", "1e-45", 1.401298464324817e-45),
        ("double precision", "-Infinity", -math.inf),
        ("date", "2024-02-29", date(2024, 2, 29)),
        *(("date", t, InvalidValue(t)) for t in ("infinity", "0044-03-15 BC", "10000-01-01")),
        ("timestamp", "2024-02-29 23:59:59.5", datetime(2024, 2, 29, 23, 59, 59, 500_000)),
        ("timestamp", "0044-03-15 01:02:03.5 BC", InvalidValue("0044-03-15 01:02:03.5 BC")),
        (
            "timestamp(3) with time zone",
            "1899-12-31 20:29:08-03:30:52",
            datetime(1900, 1, 1, tzinfo=UTC),
        ),
        ("timestamptz", "2024-01-01 00:00:00+05:30", datetime(2023, 12, 31, 18, 30, tzinfo=UTC)),
        ("timestamptz", "0001-01-01 00:00:00+05", InvalidValue("0001-01-01 00:00:00+05")),
        ("time", "24:00:00", timedelta(days=1)),
        ("timetz", "24:00:00+13:45", InvalidValue("24:00:00+13:45")),
        (
            "timetz",
            "01:02:03.5+05:30:15",
            time(1, 2, 3, 500_000, timezone(timedelta(hours=5, minutes=30, seconds=15))),
        ),
        (
            "uuid",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            UUID(int=0xA0EEBC999C0B4EF8BB6D6BB9BD380A11),
        ),
        ("bit(5)", "01000", 8),
        ("varbit", "0001", "0001"),
        ("text[]", '{1,NULL,"a,b","NULL","q\\"\\\\",""}', ["1", None, "a,b", "NULL", 'q"\\', ""]),
        ("int4[]", "[0:1]={1,2}", [1, 2]),
        ("int4[][]", "{{1,2},{3,NULL}}", [[1, 2], [3, None]]),
        ("int4[][]", "[0:1][2:3]={{1,2},{3,4}}", [[1, 2], [3, 4]]),
        ("integer array", "{}", []),
        ("_varbit", "{101,0}", ["101", "0"]),
        ("box[]", "{(1,1),(0,0);(2,2),(1,1)}", ["(1,1),(0,0)", "(2,2),(1,1)"]),
        ("numeric(10,2)[]", "{1.50,NULL}", [Decimal("1.50"), None]),
        (
            "hstore",
            '"a"=>"1", "c"=>"x\\\\y, z", "b \\"q"=>NULL',
            {"a": "1", "c": "x\\y, z", 'b "q': None},
        ),
        ("hstore", "", {}),
    ],
)
def test_texts(source_type: str, text: str, value: object) -> None:
    found = read(source_type, text)
    assert found == value
    assert type(found) is type(value)


def bounds(lower: Any, upper: Any, closed: str = "[)", *, is_empty: bool = False) -> dict[str, Any]:
    ends = {"lower_inclusive": closed[0] == "[", "upper_inclusive": closed[1] == "]"}
    return {"lower": lower, "upper": upper, **ends, "is_empty": is_empty}


@pytest.mark.parametrize(
    ("source_type", "text", "value"),
    [
        ("int4range", "[1,5)", bounds(1, 5)),
        ("int8range", "(,5]", bounds(None, 5, "(]")),
        ("numrange", "empty", bounds(None, None, "()", is_empty=True)),
        (
            "tsrange",
            '["2024-01-01 00:00:00",infinity)',
            bounds(datetime(2024, 1, 1), InvalidValue("infinity")),
        ),
        ("int4multirange", "{[1,3),[5,7)}", [bounds(1, 3), bounds(5, 7)]),
        ("int4multirange", "{}", []),
        (
            "tsmultirange",
            '{["2024-01-01 00:00:00","2024-02-01 12:00:00")}',
            [bounds(datetime(2024, 1, 1), datetime(2024, 2, 1, 12))],
        ),
        (
            "int4range[]",
            '{"[1,5)",NULL,empty}',
            [bounds(1, 5), None, bounds(None, None, "()", is_empty=True)],
        ),
    ],
)
def test_ranges(source_type: str, text: str, value: object) -> None:
    assert read(source_type, text) == value


@pytest.mark.parametrize(
    ("source_type", "text"),
    [
        ("boolean", "yes"),
        ("integer", "2147483648"),
        ("integer", "1.0"),
        ("integer", " 1"),
        ("oid", "-1"),
        ("numeric", "1e5"),
        ("numeric", "٣"),
        ("numeric", "1" * 150_000),
        ("real", "1e39"),
        ("money", "€1.234,56"),
        ("money", "¥1,234"),
        ("bytea", "\\xfg"),
        ("bytea", "a\\"),
        ("bit(3)", "01"),
        ("bit(3)", "012"),
        ("uuid", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1}"),
        ("date", "01/02/2024"),
        ("date", "2024-02-30"),
        ("timestamp", "2024-01-01 25:00:00"),
        ("timestamp", "2024-01-01 00:00:00+01"),
        ("timestamptz", "2024-01-01 00:00:00"),
        ("time", "24:00:01"),
        ("timetz", "01:02:03"),
        ("interval", ""),
        ("interval", "P"),
        ("interval", "1 fortnight"),
        ("interval", "1.5 days"),
        ("int4[]", "{1,2"),
        ("int4[]", "{1,,2}"),
        ("int4[]", "{1}2"),
        ("int4[]", "{{1}}"),
        ("int4[][]", "{1}"),
        ("int4range", "[1,5"),
        ("int4multirange", "{[1,3)[5,7)}"),
        ("hstore", '"a"=>1'),
        ("geometry", "00"),
    ],
)
def test_bad_texts(source_type: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"of PostgreSQL|part of a day"):
        read(source_type, text)
