"""DTS records against the truth: the input of the record class, and the SDK's output.

The golden set has neither ``bornTimestamp`` nor INIT with images: those records are built
by hand in ``plugins/formats/dts-avro/tests``.
"""

from __future__ import annotations

import struct
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

from support.golden_data import Bits, native_messages, open_decoder, read_jsonl, same

from cdcfmt_core.events import (
    Event,
    Heartbeat,
    Image,
    RowChange,
    SchemaChange,
    Transaction,
)
from cdcfmt_core.registry import default_registry
from cdcfmt_core.types import GeometryValue, InvalidValue

NAMESPACE = "com.alibaba.dts.formats.avro."
CODECS = {"utf8": "utf-8", "utf8mb4": "utf-8", "gbk": "gbk", "latin1": "cp1252"}
OPS = {"INSERT": "insert", "UPDATE": "update", "DELETE": "delete"}
ABSENT = object()


@cache
def records() -> list[tuple[dict[str, Any], Event]]:
    """Every truth with the one event of its message."""
    truths = {truth["offset"]: truth for truth in read_jsonl("native/dts/dts_truth.jsonl.gz")}
    decode = open_decoder(protocol="dts-avro").decode
    found = []
    for message in native_messages("dts/dts"):
        (event,) = decode(message)
        assert message.offset is not None
        found.append((truths.pop(message.offset), event))
    assert not truths
    return found


def rows() -> list[tuple[dict[str, Any], RowChange]]:
    return [(truth, event) for truth, event in records() if isinstance(event, RowChange)]


def expected_value(source: str, number: int, truth: Any) -> Any:
    """The image's value for a value in Avro's JSON encoding."""
    if truth is None:
        return None
    ((branch, value),) = truth.items()
    branch = branch.removeprefix(NAMESPACE)
    if branch == "EmptyObject":
        return ABSENT if value == "NONE" else None
    if branch == "Integer":
        is_bigint = source == "MySQL" and number == 8
        return Decimal(value["value"]) if is_bigint else int(value["value"])
    if branch == "Character":
        data = value["value"].encode("latin-1")
        charset = value["charset"]
        return data.decode(CODECS[charset], "surrogateescape") if charset else data
    if branch == "Decimal":
        number_ = Decimal(value["value"])
        return number_ if number_.is_finite() else InvalidValue(value["value"])
    if branch == "Float":
        return Bits(struct.pack(">d", value["value"]).hex(), str(value["value"]))
    if branch == "Timestamp":
        seconds = datetime.fromtimestamp(value["timestamp"], UTC)
        return seconds.replace(microsecond=value["millis"])
    if branch == "DateTime":
        return expected_datetime(value)
    if branch == "TimestampWithTimeZone":
        assert value["timezone"] == "+08:00"
        return (expected_datetime(value["value"]) - timedelta(hours=8)).replace(tzinfo=UTC)
    if branch == "BinaryGeometry":
        return GeometryValue(None, value["value"].encode("latin-1"))
    if branch == "TextGeometry":
        return GeometryValue(None, None, value["value"])
    if branch == "BinaryObject":
        data = value["value"].encode("latin-1")
        return int(data.hex(), 16) if source == "MySQL" and number == 16 else data
    assert branch == "TextObject"
    return value["value"]


def expected_datetime(value: Any) -> Any:
    parts = {name: None if part is None else part["int"] for name, part in value.items()}
    year, month, day = parts["year"], parts["month"], parts["day"]
    micro = parts["millis"] or 0
    if year is None:
        return timedelta(0, parts["hour"] * 3600 + parts["minute"] * 60 + parts["second"], micro)
    if month is None:
        return year
    if parts["hour"] is None:
        return date(year, month, day) if month else InvalidValue(f"{year:04}-{month:02}-{day:02}")
    clock = f"{parts['hour']:02}:{parts['minute']:02}:{parts['second']:02}"
    if not month:
        return InvalidValue(f"{year:04}-{month:02}-{day:02} {clock}")
    return datetime.fromisoformat(f"{year:04}-{month:02}-{day:02} {clock}.{micro:06}")


def test_kinds_of_events() -> None:
    counted = Counter((truth["avro_json"]["operation"], type(e).__name__) for truth, e in records())
    assert counted == {
        ("INSERT", "RowChange"): 137,
        ("UPDATE", "RowChange"): 86,
        ("DELETE", "RowChange"): 48,
        ("DDL", "SchemaChange"): 2,
        ("BEGIN", "Transaction"): 32,
        ("COMMIT", "Transaction"): 26,
        ("ROLLBACK", "Transaction"): 1,
        ("HEARTBEAT", "Heartbeat"): 6,
        ("CHECKPOINT", "Heartbeat"): 1,
        ("COMMAND", "Heartbeat"): 1,
        ("FINISH", "Heartbeat"): 1,
        ("CONTROL", "Heartbeat"): 1,
        ("NOOP", "Heartbeat"): 1,
        ("INIT", "Heartbeat"): 1,
    }


def test_every_value_of_every_image() -> None:
    compared: Counter[str] = Counter()
    for truth, event in rows():
        wire = truth["avro_json"]
        source = wire["source"]["sourceType"]
        fields = wire["fields"]["array"]
        for name, image in (("beforeImages", event.before), ("afterImages", event.after)):
            values = (wire[name] or {"array": []})["array"]
            if not values:
                assert image is None, truth["note"]
                continue
            assert image is not None
            expected = {
                field["name"]: expected_value(source, field["dataTypeNumber"], value)
                for field, value in zip(fields, values, strict=True)
            }
            absent = [column for column, value in expected.items() if value is ABSENT]
            assert image.complete == (not absent)
            assert image.completed == ()
            assert list(image.values) == [column for column in expected if column not in absent]
            for column, actual in image.values.items():
                where = (truth["offset"], column, expected[column], actual)
                assert same(expected[column], actual), where
                compared[column] += 1
    assert len(compared) == 37
    assert min(compared[name] for name in compared if name.startswith("c_")) > 300


def sdk_text(kind: str, value: Any) -> str:
    """A value as the SDK's text of this kind."""
    if isinstance(value, InvalidValue):
        return value.text
    if kind in ("INTEGER_NUMERIC", "DECIMAL_NUMERIC"):
        return str(value)
    if kind == "STRING":
        return value.hex().upper() if isinstance(value, bytes) else str(value)
    if kind == "BINARY_ENCODING_OBJECT":
        if isinstance(value, int):
            value = value.to_bytes((value.bit_length() + 7) // 8, "big")
        return str(value.hex().upper())
    if kind == "UNIX_TIMESTAMP":
        fraction = f"{value.microsecond:06}".rstrip("0") or "0"
        return f"{value:%Y-%m-%d %H:%M:%S}.{fraction}"
    if isinstance(value, timedelta):
        minutes, seconds = divmod(value.days * 86_400 + value.seconds, 60)
        text = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
    elif isinstance(value, datetime):
        text = f"{value:%Y-%m-%d %H:%M:%S}"
        text = f"{value.year:04}{text[text.index('-') :]}"
    elif isinstance(value, date):
        return value.isoformat()
    else:
        return str(value)
    micro = value.microseconds if isinstance(value, timedelta) else value.microsecond
    return f"{text}.{micro:06}".rstrip("0") if micro else text


COMPARED_AS_TEXT = {
    "INTEGER_NUMERIC",
    "DECIMAL_NUMERIC",
    "STRING",
    "BINARY_ENCODING_OBJECT",
    "TEXT_ENCODING_OBJECT",
    "UNIX_TIMESTAMP",
    "DATETIME",
}
SDK_DIFFERS = {
    ("bad", "the SDK replaces bytes that are not UTF-8"),
    ("c_latin1", "MySQL's latin1 is Windows-1252, which the SDK takes for ISO 8859-1"),
}
"""Values that cannot yield the SDK's text, with the reason; strict."""


def test_values_equal_those_of_the_official_sdk() -> None:
    compared: Counter[str] = Counter()
    different = set()
    for truth, event in rows():
        sdk = truth["sdk"]
        if "sdk_error" in sdk:
            continue
        assert (sdk["database"], sdk["table"]) == (event.table.database, event.table.table)
        assert [field["name"] for field in sdk["fields"]] == list(event.table.column_names)
        primary = [field["name"] for field in sdk["fields"] if field["primary"]]
        assert primary == list(event.table.key_columns)
        assert primary == [column.name for column in event.table.columns if column.key]
        for texts, image in ((sdk["before"], event.before), (sdk["after"], event.after)):
            assert (texts is None) == (image is None)
            for column, text in zip(event.table.column_names, texts or (), strict=False):
                assert image is not None
                if text is None:
                    assert image.values[column] is None
                elif text["type"] == "NONE":
                    assert column not in image.values
                elif text["type"] in COMPARED_AS_TEXT:
                    compared[text["type"]] += 1
                    if sdk_text(text["type"], image.values[column]) != text["string"]:
                        different.add(column)
    assert different == {column for column, _ in SDK_DIFFERS}
    assert compared.keys() == COMPARED_AS_TEXT
    assert min(compared.values()) > 300


def test_envelopes() -> None:
    for truth, event in records():
        wire = truth["avro_json"]
        assert not isinstance(event, tuple)
        extra = event.extra  # type: ignore[union-attr]
        assert extra["id"] == wire["id"]
        assert extra["source_position"] == wire["sourcePosition"]
        assert extra["safe_source_position"] == wire["safeSourcePosition"]
        assert extra["source_type"] == wire["source"]["sourceType"]
        assert extra["source_version"] == wire["source"]["version"]
        assert extra.get("tags", {}) == wire["tags"]
        times = wire["processTimestamps"]
        assert extra.get("process_timestamps") == (times and times["array"])
        assert event.source_time == wire["sourceTimestamp"] * 1_000_000  # type: ignore[union-attr]
        if isinstance(event, RowChange):
            assert event.op == OPS[wire["operation"]]
            assert extra["transaction_id"] == wire["sourceTxid"]
        elif isinstance(event, Transaction):
            assert event.transaction_id == wire["sourceTxid"]
            assert event.status == wire["operation"].lower()
        elif isinstance(event, Heartbeat):
            assert extra["operation"] == wire["operation"]


def by_note(note: str) -> Event:
    (event,) = (event for truth, event in records() if truth["note"] == note)
    return event


def test_ddl() -> None:
    ddl = by_note("ddl, objectName=db.table")
    assert isinstance(ddl, SchemaChange)
    assert ddl.query == "ALTER TABLE `shop`.`wide` ADD COLUMN `列` varchar(10) DEFAULT 'x\"y'"
    assert (ddl.database, ddl.schema, ddl.table, ddl.ddl_type) == ("shop", None, "wide", "ALTER")
    ddl = by_note("ddl, before empty string")
    assert isinstance(ddl, SchemaChange)
    assert (ddl.database, ddl.table, ddl.ddl_type) == ("shop", "", "ERASE")


def test_names_of_three_parts() -> None:
    event = by_note("three-part name, PostgreSQL, timestamptz")
    assert isinstance(event, RowChange)
    table = event.table
    assert (table.database, table.schema, table.table) == ("db", "sch", "tab")
    assert [column.source_type for column in table.columns] == [
        "bigint", "timestamp with time zone", "uuid", "numeric",
    ]  # fmt: skip


def test_null_absent_and_invalid() -> None:
    event = by_note("EmptyObject NONE / NULL / null")
    assert isinstance(event, RowChange)
    assert event.after == Image({"id": 7, "e2": None, "nul": None}, complete=False)
    event = by_note("invalid utf-8 bytes")
    assert isinstance(event, RowChange)
    assert event.after == Image({"id": 9, "bad": "\udcff\udcfea"})


TYPES = {
    "id": ("bigint", "Decimal(precision=20, scale=0)"),
    "c_tiny": ("tinyint", "Int(bits=16, signed=True)"),
    "c_small": ("smallint", "Int(bits=24, signed=True)"),
    "c_medium": ("mediumint", "Int(bits=32, signed=True)"),
    "c_uint": ("int", "Int(bits=64, signed=True)"),
    "c_ubig": ("bigint", "Decimal(precision=20, scale=0)"),
    "c_dec": ("decimal", "Decimal(precision=65, scale=30)"),
    "c_float": ("float", "Float(bits=32)"),
    "c_double": ("double", "Float(bits=64)"),
    "c_ts": ("timestamp", "Timestamp(fsp=None)"),
    "c_ts6": ("timestamp", "Timestamp(fsp=None)"),
    "c_dt": ("datetime", "DateTime(fsp=None)"),
    "c_dt6": ("datetime", "DateTime(fsp=None)"),
    "c_date": ("date", "Date()"),
    "c_time": ("time", "Time(fsp=None)"),
    "c_time6": ("time", "Time(fsp=None)"),
    "c_year": ("year", "Year()"),
    "c_vc": ("varchar", "Text(charset='utf8mb4')"),
    "c_gbk": ("varchar", "Text(charset='gbk')"),
    "c_latin1": ("varchar", "Text(charset='latin1')"),
    "c_bin": ("binary", "Binary()"),
    "c_text": ("text", "Text(charset='utf8')"),
    "c_blob": ("blob", "Binary()"),
    "c_json": ("json", "Json()"),
    "c_enum": ("enum", "Text(charset=None)"),
    "c_set": ("set", "Text(charset=None)"),
    "c_bit": ("bit", "Bit(bits=None)"),
    "c_geom": ("geometry", "Geometry()"),
    # Its number is GEOMETRY's.
    "列.名": ("text", "Text(charset='utf8mb4')"),
}


def test_types() -> None:
    wide = [event for _, event in rows() if len(event.table.columns) == len(TYPES)]
    last = wide[-1].table
    assert {c.name: (c.source_type, repr(c.type)) for c in last.columns} == TYPES
    # Types are learnt from values; once all are known, rows share one object.
    assert len({id(event.table) for event in wide}) <= 5
    assert all(event.table is last for event in wide[20:])


def test_types_by_source_type() -> None:
    """The type that events keep: wide enough for either sign, and Text without a charset."""
    resolve = default_registry().get_type_map("dts-avro")
    columns = {column for _, event in rows() for column in event.table.columns}
    unlike = {(c.source_type, repr(c.type)) for c in columns if resolve(c.source_type) != c.type}
    assert unlike == {
        # A PostgreSQL bigint: MySQL's has room for it.
        ("bigint", "Int(bits=64, signed=True)"),
        ("decimal", "Decimal(precision=65, scale=30)"),
        ("text", "Text(charset='utf8')"),
        ("text", "Text(charset='utf8mb4')"),
        ("varchar", "Text(charset='gbk')"),
        ("varchar", "Text(charset='latin1')"),
        ("varchar", "Text(charset='utf8mb4')"),
        # All of its values are NULL.
        ("varchar/varbinary", "Unknown(source_type='varchar/varbinary')"),
    }
    assert {repr(resolve(c.source_type)) for c in columns if c.source_type == "bigint"} == {
        "Decimal(precision=20, scale=0)"
    }
