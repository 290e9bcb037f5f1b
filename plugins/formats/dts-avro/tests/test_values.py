"""Values of every type number, good and bad."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from dts_decode import INTEGER, change, decode, decode_all
from dts_records import encode, record, row

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import (
    Image,
    RowChange,
    SchemaChange,
)
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.types import (
    Binary,
    Bit,
    Bool,
    Date,
    DateTime,
    Float,
    Geometry,
    GeometryValue,
    Int,
    InvalidValue,
    Json,
    Text,
    Time,
    Timestamp,
    Unknown,
    Year,
)
from cdcfmt_core.types import Decimal as DecimalType


def column(number: int, value: Any, source: str = "MySQL") -> tuple[Any, Any]:
    """Logical type and value of the only column of an inserted row."""
    event = change(**row(number, value), source={"sourceType": source, "version": ""})
    assert event.after is not None
    return event.table.columns[0].type, event.after.values["c"]


def parts(*values: int | None) -> dict[str, int | None]:
    names = ("year", "month", "day", "hour", "minute", "second", "millis")
    return dict(zip(names, [*values, *[None] * 7], strict=False))


CASES: list[tuple[int, Any, Any, Any]] = [
    (1, ("Integer", {"precision": 1, "value": "255"}), Int(16), 255),
    (8, ("Integer", {"precision": 8, "value": str(2**64 - 1)}), DecimalType(20, 0),
     Decimal(2**64 - 1)),
    (13, ("Integer", {"precision": 4, "value": "1999"}), Year(), 1999),
    (13, ("DateTime", parts(0)), Year(), 0),
    (16, ("Integer", {"precision": 1, "value": "1"}), Bit(), 1),
    (16, ("BinaryObject", {"type": "BIT", "value": b"\x01\x00"}), Bit(), 256),
    (10, ("Integer", {"precision": 1, "value": "20240102"}), DecimalType(None, 0),
     Decimal(20240102)),
    (254, ("Character", {"charset": "binary", "value": b"\0\xff"}), Binary(), b"\0\xff"),
    (254, ("Character", {"charset": "swe7", "value": b"}"}), Binary(), b"}"),
    (254, ("Character", {"charset": "nonsense", "value": b"a"}), Binary(), b"a"),
    (254, ("Character", {"charset": "UTF8MB4", "value": b"a"}), Text("UTF8MB4"), "a"),
    (254, ("Character", {"charset": "latin1", "value": b"\x80"}), Text("latin1"), "€"),
    # MySQL's latin1 has all bytes, Windows' code page lacks these five.
    (
        254,
        ("Character", {"charset": "latin1", "value": b"\x81\x8d\x8f\x90\x9d"}),
        Text("latin1"),
        "\x81\x8d\x8f\x90\x9d",
    ),
    (254, ("Character", {"charset": "gbk", "value": b"\xd6\xd0"}), Text("gbk"), "中"),
    (254, ("Character", {"charset": "gbk", "value": b"\xff"}), Text("gbk"), "\udcff"),
    (254, ("Character", {"charset": "utf16", "value": b"\0a"}), Text("utf16"), "a"),
    (254, ("Character", {"charset": "ucs2", "value": b"\0a"}), Text("ucs2"), "a"),
    (245, ("Character", {"charset": "utf8mb4", "value": b"{}"}), Json(), "{}"),
    (245, ("TextObject", {"type": "json", "value": "{}"}), Json(), "{}"),
    (247, ("TextObject", {"type": "enum", "value": "1"}), Text(), "1"),
    (248, ("TextObject", {"type": "set", "value": "a,b"}), Text(), "a,b"),
    (246, ("Decimal", {"value": "-1.50", "precision": 5, "scale": 2}), DecimalType(5, 2),
     Decimal("-1.50")),
    (246, ("Decimal", {"value": "1", "precision": 2, "scale": 5}), DecimalType(), Decimal(1)),
    # As PostgreSQL's numeric may be.
    (246, ("Decimal", {"value": "9" * 90 + ".5", "precision": 91, "scale": 1}), DecimalType(),
     Decimal("9" * 90 + ".5")),
    (4, ("Float", {"value": 1.5, "precision": 24, "scale": 0}), Float(32), 1.5),
    (5, ("Float", {"value": float("inf"), "precision": 53, "scale": 300}), Float(64), float("inf")),
    (7, ("Timestamp", {"timestamp": -1, "millis": 5}), Timestamp(),
     datetime(1969, 12, 31, 23, 59, 59, 5, UTC)),
    (7, ("Timestamp", {"timestamp": 1 << 60, "millis": 0}), Timestamp(),
     InvalidValue(f"{1 << 60}.000000")),
    # The branch decides: a TIMESTAMP that comes as a wall clock is one.
    (7, ("DateTime", parts(2024, 1, 2, 3, 4, 5, 6)), DateTime(), datetime(2024, 1, 2, 3, 4, 5, 6)),
    (12, ("DateTime", parts(2024, 1, 2)), DateTime(), datetime(2024, 1, 2)),
    (12, ("DateTime", parts(2024, 2, 30, 1, 2, 3)), DateTime(),
     InvalidValue("2024-02-30 01:02:03")),
    (12, ("DateTime", parts(0, 0, 0, 0, 0, 0, 7)), DateTime(),
     InvalidValue("0000-00-00 00:00:00.000007")),
    (10, ("DateTime", parts(2024, 1, 2)), Date(), date(2024, 1, 2)),
    (10, ("DateTime", parts(2024, 1, 2, 0, 0, 0)), Date(), date(2024, 1, 2)),
    (10, ("DateTime", parts(2024, 1, 2, 3, 0, 0)), DateTime(), datetime(2024, 1, 2, 3)),
    (11, ("DateTime", parts(None, None, None, -838, 59, 59)), Time(),
     -timedelta(hours=838, minutes=59, seconds=59)),
    (11, ("DateTime", parts(None, None, None, 0, -1, -2, -3)), Time(),
     -timedelta(minutes=1, seconds=2, microseconds=3)),
    (12, ("TimestampWithTimeZone", {"value": parts(2024, 1, 1, 8, 0, 0), "timezone": "+08:00"}),
     Timestamp(), datetime(2024, 1, 1, tzinfo=UTC)),
    (12, ("TimestampWithTimeZone",
          {"value": parts(2024, 1, 1, 8, 0, 0), "timezone": "Asia/Shanghai"}),
     Timestamp(), datetime(2024, 1, 1, tzinfo=UTC)),
    (12, ("TimestampWithTimeZone", {"value": parts(2024, 1, 1, 8), "timezone": "GMT-5"}),
     Timestamp(), datetime(2024, 1, 1, 13, tzinfo=UTC)),
    (255, ("BinaryGeometry", {"type": "point", "value": b"\1\1\0\0\0"}), Geometry(),
     GeometryValue(None, b"\1\1\0\0\0")),
    (255, ("TextGeometry", {"type": "point", "value": "POINT(1 2)"}), Geometry(),
     GeometryValue(None, None, "POINT(1 2)")),
    (252, ("BinaryObject", {"type": "blob", "value": b"\xff"}), Binary(), b"\xff"),
    (252, ("TextObject", {"type": "text", "value": "x"}), Text(), "x"),
    (252, None, Unknown("text/blob"), None),
    (246, None, Unknown("decimal"), None),
    (10, None, Date(), None),
    (252, ("EmptyObject", "NULL"), Unknown("text/blob"), None),
    (99, ("TextObject", {"type": "XML", "value": "<a/>"}), Text(), "<a/>"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "wire", "logical", "value"), CASES, ids=repr)
def test_mysql_values(number: int, wire: Any, logical: Any, value: Any) -> None:
    assert column(number, wire) == (logical, value)


@pytest.mark.parametrize(
    ("source", "number", "wire", "logical", "value"),
    [
        ("PostgreSQL", 16, ("Integer", {"precision": 1, "value": "1"}), Bool(), True),
        ("PostgreSQL", 21, INTEGER, Int(16), 7),
        ("PostgreSQL", 20, INTEGER, Int(64), 7),
        ("PPAS", 23, INTEGER, Int(32), 7),
        ("PostgreSQL", 700, ("Float", {"value": 1.5, "precision": 0, "scale": 0}), Float(32), 1.5),
        ("PostgreSQL", 1083, ("DateTime", parts(None, None, None, 1, 2, 3)), Time(),
         timedelta(hours=1, minutes=2, seconds=3)),
        ("PostgreSQL", 3802, ("TextObject", {"type": "json", "value": "1"}), Json(), "1"),
        ("PostgreSQL", 1082, ("DateTime", parts(-44, 3, 15)), Date(), InvalidValue("-044-03-15")),
        ("Oracle", 12, INTEGER, DecimalType(None, 0), Decimal(7)),
        ("Oracle", 12, ("DateTime", parts(2024, 1, 2, 0, 0, 0)), DateTime(), datetime(2024, 1, 2)),
        ("Oracle", 12, None, Unknown("type 12"), None),
    ],
    ids=repr,
)  # fmt: skip
def test_values_of_other_sources(
    source: str, number: int, wire: Any, logical: Any, value: Any
) -> None:
    assert column(number, wire, source) == (logical, value)


@pytest.mark.parametrize(
    ("number", "wire"),
    [
        (3, ("Integer", {"precision": 4, "value": "x"})),
        (3, ("Integer", {"precision": 4, "value": str(1 << 64)})),
        (8, ("Integer", {"precision": 4, "value": str(1 << 64)})),
        (13, ("Integer", {"precision": 4, "value": "1800"})),
        (13, ("DateTime", parts(1800))),
        (10, ("DateTime", parts())),
        (10, ("DateTime", parts(2024, 13, 1))),
        (10, ("DateTime", parts(2024, None, 1))),
        (10, ("DateTime", parts(None, 1, 1))),
        (11, ("DateTime", parts(None, None, None, 839, 0, 0))),
        (11, ("DateTime", parts(None, None, None, 1, 60, 0))),
        (12, ("DateTime", parts(2024, 1, 1, 24, 0, 0))),
        (12, ("DateTime", parts(2024, 1, 1, 0, 0, 0, 1_000_000))),
        (12, ("DateTime", parts(1 << 30, 1, 1))),
        (7, ("Timestamp", {"timestamp": 0, "millis": 1_000_000})),
        (7, ("Timestamp", {"timestamp": 0, "millis": -1})),
        (7, ("TimestampWithTimeZone", {"value": parts(2024, 1, 1), "timezone": "../etc"})),
        (7, ("TimestampWithTimeZone", {"value": parts(2024, 1, 1), "timezone": "Asia"})),
        (7, ("TimestampWithTimeZone", {"value": parts(2024, 1, 1), "timezone": "+99:00"})),
        (7, ("TimestampWithTimeZone", {"value": parts(), "timezone": "UTC"})),
        (16, ("BinaryObject", {"type": "binary", "value": bytes(9)})),
        (246, ("Decimal", {"value": "1" * 66, "precision": 65, "scale": 0})),
        (246, ("Decimal", {"value": "", "precision": 65, "scale": 0})),
        (255, ("BinaryGeometry", {"type": "point", "value": b"\1"})),
        (254, ("Character", {"charset": "utf16", "value": b"a"})),
    ],
    ids=repr,
)
def test_bad_values(number: int, wire: Any) -> None:
    with pytest.raises(DecodeError) as caught:
        column(number, wire)
    assert caught.value.field == "afterImages.c"


def test_a_column_gets_the_type_of_its_first_value() -> None:
    text = ("Character", {"charset": "utf8mb4", "value": b"x"})
    values = [encode(record(**row(252, value))) for value in (None, text, None, text)]
    events = decode_all(*values)
    schemas = [event.table for event in events if isinstance(event, RowChange)]
    assert [schema.columns[0].type for schema in schemas] == [
        Unknown("text/blob"), *[Text("utf8mb4")] * 3,
    ]  # fmt: skip
    assert schemas[1] is schemas[2] is schemas[3]
    assert [schema.columns[0].source_type for schema in schemas[:2]] == ["text/blob", "text"]


def test_type_change_within_a_stream() -> None:
    blob = ("BinaryObject", {"type": "blob", "value": b"x"})
    text = ("TextObject", {"type": "text", "value": "x"})
    events = decode_all(*(encode(record(**row(252, value))) for value in (blob, text, blob)))
    types = [event.table.columns[0].type for event in events if isinstance(event, RowChange)]
    assert types == [Binary(), Text(), Binary()]
    update = row(252, text) | {"operation": "UPDATE", "beforeImages": [blob]}
    with pytest.raises(DecodeError, match="values of two types in one row"):
        decode(**update)
    latin = ("Character", {"charset": "latin1", "value": b"x"})
    utf8 = ("Character", {"charset": "utf8", "value": b"x"})
    update = row(253, latin) | {"operation": "UPDATE", "beforeImages": [utf8]}
    assert change(**update).before == Image({"c": "x"})


def test_table_filter_skips_the_images() -> None:
    wanted = EventFilter(include_tables=("d.t",))
    good = encode(record(**row(3, INTEGER)))
    # Images outside of the projection are not checked.
    other = encode(
        record(**row(3, ("Integer", {"precision": 1, "value": "x"})) | {"objectName": "d.u"})
    )
    (event,) = decode_all(good, other, event_filter=wanted)
    assert isinstance(event, RowChange)
    assert event.table.table == "t"


def test_a_statement_belongs_to_its_names() -> None:
    event = decode(operation="DDL", objectName="d.s.t", afterImages="create index i on t(c)")
    assert isinstance(event, SchemaChange)
    assert (event.database, event.schema, event.table) == ("d", "s", "t")
    assert event.ddl_type == "CINDEX"
    assert event.source_time == 1_700_000_000_000_000
