"""Encoding of events of other sources, read by fastavro with the vendor's schema.

The conformance kit (plugins/formats/dts-avro/tests) writes the golden records again.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any

import attrs
import pytest
from dts_records import NAMESPACE, read_record
from support.golden_data import open_decoder
from support.golden_encoding import open_encoder

from cdcfmt_core.errors import EncodeError, OptionError, UnsupportedEventError
from cdcfmt_core.events import (
    Column,
    Event,
    Heartbeat,
    Image,
    RowChange,
    SchemaChange,
    TableSchema,
    Transaction,
    Watermark,
)
from cdcfmt_core.types import (
    Binary,
    Bit,
    Bool,
    Date,
    DateTime,
    Decimal,
    Geometry,
    GeometryValue,
    Int,
    InvalidValue,
    LogicalType,
    Text,
    Time,
    Timestamp,
    Unknown,
    Vector,
)

# Events of other sources


def insert(type_: LogicalType, value: Any, source_type: str = "", **more: Any) -> RowChange:
    schema = TableSchema("shop", "t", (Column("c", source_type, type_, key=True),), ("c",))
    return RowChange("insert", schema, None, Image({"c": value}), source_time=7_900_000, **more)


def written(event: Event, **options: Any) -> dict[str, Any]:
    (message,) = open_encoder("dts-avro", **options).encode(event)
    return read_record(message.value or b"")


@pytest.mark.parametrize(
    ("type_", "value", "source_type", "number", "branch", "fields"),
    [
        (Int(8), -1, "tinyint(4)", 1, "Integer", {"precision": 1, "value": "-1"}),
        (Int(8), -1, "int8", 1, "Integer", {"precision": 1, "value": "-1"}),
        (Int(64, False), 2**64 - 1, "bigint unsigned", 8, "Integer",
         {"precision": 8, "value": "18446744073709551615"}),
        (Bool(), True, "tinyint(1)", 1, "Integer", {"precision": 1, "value": "1"}),
        (Bit(64), 2**64 - 1, "bit(64)", 16, "Integer",
         {"precision": 8, "value": "18446744073709551615"}),
        (Text("gbk"), "中", "varchar(9)", 253, "Character",
         {"charset": "gbk", "value": b"\xd6\xd0"}),
        (Text("latin1"), "\x81\u20ac", "text", 252, "Character",
         {"charset": "latin1", "value": b"\x81\x80"}),
        (Text(), "a\udcff", "", 251, "Character", {"charset": "utf8mb4", "value": b"a\xff"}),
        (Binary(), b"\x00", "binary(1)", 254, "BinaryObject", {"type": "binary", "value": b"\x00"}),
        (Binary(), b"\x00", "", 251, "BinaryObject", {"type": "blob", "value": b"\x00"}),
        (Timestamp(), datetime(1969, 12, 31, 23, 59, 59, 5, UTC), "timestamp", 7, "Timestamp",
         {"timestamp": -1, "millis": 5}),
        (Geometry(), GeometryValue(0, b"12345"), "point", 255, "BinaryGeometry",
         {"type": "point", "value": b"12345"}),
    ],
)  # fmt: skip
def test_forms_of_values(
    type_: LogicalType, value: Any, source_type: str, number: int, branch: str, fields: Any
) -> None:
    record = written(insert(type_, value, source_type))
    assert record["fields"] == [{"name": "c", "dataTypeNumber": number}]
    assert record["afterImages"] == [(NAMESPACE + branch, fields)]
    assert record["tags"] == {"pk_uk_info": '{"PRIMARY": ["c"]}'}
    assert (record["sourceTimestamp"], record["objectName"]) == (7, "shop.t")


def test_times_have_their_sign_in_every_part() -> None:
    value = -timedelta(hours=838, minutes=1, microseconds=5)
    record = written(insert(Time(), value, "time(6)"))
    (_, parts) = record["afterImages"][0]
    assert [parts[name] for name in ("hour", "minute", "second", "millis")] == [-838, -1, 0, -5]
    record = written(insert(Date(), InvalidValue("2023-00-15"), "date"))
    assert (
        record["afterImages"][0][1] | {"year": 0}
        == written(insert(Date(), InvalidValue("0000-00-15"), "date"))["afterImages"][0][1]
    )
    assert written(insert(Date(), date(1, 2, 3), "date"))["afterImages"][0][1]["month"] == 2


def test_records_are_numbered_and_dots_in_names_kept() -> None:
    encoder = open_encoder("dts-avro")
    event = insert(Int(32), 1, "int")
    event.table = attrs.evolve(event.table, database="a.b", schema="s")
    records = [read_record(m.value or b"") for _ in range(2) for m in encoder.encode(event)]
    assert [record["id"] for record in records] == [1, 2]
    assert records[0]["objectName"] == "a\\u002Eb.s.t"


def test_absent_columns_are_written_as_absent() -> None:
    event = insert(Int(32), 1, "int")
    columns = (*event.table.columns, Column("d", "int", Int(32)))
    event.table = attrs.evolve(event.table, columns=columns)
    event.after = Image({"c": 1}, complete=False)
    record = written(event)
    assert record["afterImages"][1] == "NONE" or record["afterImages"][1][1] == "NONE"
    event.after = Image({"c": 1, "d": 2}, complete=False)
    with pytest.raises(UnsupportedEventError, match="lacks no column"):
        written(event)


def test_operations_round_trip() -> None:
    events: list[Event] = [
        Heartbeat(source_time=1_000_000, extra={"operation": "CHECKPOINT"}),
        Heartbeat(source_time=1_000_000),
        Transaction("rollback", "tx", source_time=1_000_000, extra={"operation": "ABORT"}),
        Transaction("begin", "tx", source_time=1_000_000, extra={"born_timestamp": 1_700_000_000}),
        SchemaChange("drop table t", "ERASE", "shop", source_time=1_000_000),
        attrs.evolve(insert(Int(32), 1, "int"), op="read"),
    ]
    encoder, decoder = open_encoder("dts-avro"), open_decoder(protocol="dts-avro")
    messages = [message for event in events for message in encoder.encode(event)]
    decoded: list[Any] = [event for message in messages for event in decoder.decode(message)]
    assert [type(event) for event in decoded] == [type(event) for event in events]
    assert [event.extra.get("operation") for event in decoded] == [
        "CHECKPOINT", "HEARTBEAT", "ABORT", None, None, None,
    ]  # fmt: skip
    assert decoded[3].extra["born_timestamp"] == 1_700_000_000
    assert (decoded[4].query, decoded[4].database, decoded[4].table) == ("drop table t", "shop", "")
    assert decoded[5].op == "read"


def test_inexpressible_events_are_rejected() -> None:
    with pytest.raises(EncodeError, match="has no vector"):
        written(insert(Vector(), None, "vector(3)"))
    with pytest.raises(EncodeError, match="is not known"):
        written(insert(Unknown("money"), "1", "money"))
    with pytest.raises(EncodeError, match="gbk does not have"):
        written(insert(Text("gbk"), "😀", "varchar(9)"))
    with pytest.raises(EncodeError, match="latin1 does not have"):
        written(insert(Text("latin1"), "中", "varchar(9)"))
    with pytest.raises(EncodeError, match=r"shop\.t.*column c"):
        written(insert(Int(8), 200, "tinyint"))
    with pytest.raises(UnsupportedEventError, match="no watermark events"):
        written(Watermark(1))
    event = insert(Int(32), 1, "int")
    with pytest.raises(EncodeError, match="no source_time and no commit_ts"):
        written(attrs.evolve(event, source_time=None))
    event.table = attrs.evolve(event.table, table="a\\u002Eb")
    with pytest.raises(EncodeError, match="read as a dot"):
        written(event)
    with pytest.raises(OptionError, match="leave them at none"):
        written(event, largeMessageHandleCompression="lz4")


def test_lost_srids_are_counted() -> None:
    counts: Counter[str] = Counter()
    encoder = open_encoder("dts-avro", counts=counts)
    encoder.encode(insert(Geometry(), GeometryValue(4326, b"12345"), "point"))
    assert counts == {"geometries written without their SRID": 1}


@pytest.mark.parametrize(
    ("type_", "source_type", "texts"),
    [
        (Decimal(65, 0), "decimal(65,0)", ["1e+65", "oops", "1"]),
        (Decimal(20, 0), "decimal(20,0)", ["1e+20"]),
        (Date(), "date", ["2024-13-45", "2024-02-10", "2024-02-30 10:00:00", "oops"]),
        (DateTime(), "datetime", ["2024-13-45 00:00:00", "0000-00-00 25:00:00", "2024-02-10"]),
    ],
)
def test_invalid_values_that_cannot_round_trip_are_rejected(
    type_: LogicalType, source_type: str, texts: list[str]
) -> None:
    for text in texts:
        with pytest.raises(EncodeError, match=r"dts-avro table shop\.t, column c") as caught:
            written(insert(type_, InvalidValue(text), source_type))
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("type_", "source_type", "text"),
    [
        (Decimal(10, 2), "decimal(10,2)", "NaN"),
        (Date(), "date", "2024-02-30"),
        (DateTime(), "datetime", "0000-00-00 00:00:00"),
        (DateTime(), "datetime", "2024-00-15 01:02:03.000004"),
    ],
)
def test_invalid_values_round_trip(type_: LogicalType, source_type: str, text: str) -> None:
    encoder, decoder = open_encoder("dts-avro"), open_decoder(protocol="dts-avro")
    (message,) = encoder.encode(insert(type_, InvalidValue(text), source_type))
    events: list[Any] = decoder.decode(message)
    assert [event.after.values for event in events] == [{"c": InvalidValue(text)}]
