"""Rules for every format that writes."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import attrs
import pytest
from support.golden_data import open_decoder
from support.golden_encoding import open_encoder

from cdcfmt_core import default_registry
from cdcfmt_core.errors import EncodeError, UnsupportedEventError
from cdcfmt_core.events import (
    Column,
    Image,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
    TableSchemaEvent,
    Watermark,
)
from cdcfmt_core.types import (
    Array,
    Bool,
    Int,
    LogicalType,
    Map,
    Struct,
    Text,
    Timestamp,
    Unknown,
)
from cdcfmt_mysql import resolve_type

OPTIONS: dict[str, dict[str, Any]] = {
    "canal-json": {"enableTidbExtension": True},
    "cloudcanal-json": {},
    "debezium": {"enableTidbExtension": True},
    "dts-avro": {},
    "open-protocol": {"maxBatchSize": 1},
    "simple": {},
    "ticdc-avro": {
        "enableTidbExtension": True,
        "avroIncludeBeforeValue": True,
        "avroEnableWatermark": True,
    },
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EVERY = pytest.mark.parametrize("protocol", sorted(OPTIONS))


def table(logical: LogicalType | None, source_type: str = "") -> TableSchema:
    assert logical is not None
    columns = (Column("id", "int", Int(32), key=True), Column("c", source_type, logical))
    return TableSchema("shop", "t", columns, ("id",))


def row(op: Any, schema: TableSchema, before: Any, after: Any) -> RowChange:
    images = [None if values is None else Image(values) for values in (before, after)]
    return RowChange(op, schema, *images, commit_ts=7 << 18, source_time=7_000_000)


def write(protocol: str, events: list[Any], **more: Any) -> list[Message]:
    encoder = open_encoder(protocol, **OPTIONS[protocol] | more)
    messages = [message for event in events for message in encoder.encode(event)]
    return messages + encoder.flush()


def read_rows(protocol: str, messages: list[Message]) -> list[RowChange]:
    decoder = open_decoder(protocol=protocol)
    events = [event for message in messages for event in decoder.decode(message)]
    return [event for event in events if isinstance(event, RowChange)]


def test_all_formats_are_covered() -> None:
    codecs = default_registry().codecs().items()
    assert set(OPTIONS) == {name for name, spec in codecs if spec.open_encoder}


@EVERY
def test_booleans_become_mysql_numbers(protocol: str) -> None:
    schema = table(Bool(), "boolean")
    values = [{"id": number, "c": value} for number, value in enumerate((True, False, None))]
    back = read_rows(protocol, write(protocol, [row("insert", schema, None, v) for v in values]))
    assert [event.after and event.after.values for event in back] == values
    with pytest.raises(EncodeError, match="column c"):
        write(protocol, [row("insert", schema, None, {"id": 1, "c": "1"})])


@EVERY
def test_a_column_of_unknown_type_is_an_error(protocol: str) -> None:
    event = row("insert", table(Unknown("money"), "money"), None, {"id": 1, "c": "5"})
    with pytest.raises(EncodeError, match=rf"{protocol} table shop\.t, column c.*not known"):
        write(protocol, [event])


NESTED: list[tuple[LogicalType, Any]] = [
    (Array(Int(32)), [1]),
    (Map(Text(), Text()), {"a": "b"}),
    (Struct((("a", Int(32)),)), {"a": 1}),
]


@EVERY
@pytest.mark.parametrize(("type_", "value"), NESTED, ids=["array", "map", "struct"])
def test_a_column_of_many_values_is_written_by_debezium_alone(
    protocol: str, type_: LogicalType, value: Any
) -> None:
    event = row("insert", table(type_, "x[]"), None, {"id": 1, "c": value})
    if protocol == "debezium":
        (back,) = read_rows(protocol, write(protocol, [event]))
        assert back.after is not None
        assert back.after.values["c"] == value
        assert back.table.columns[1].type == type_
        return
    what = type(type_).__name__.lower()
    with pytest.raises(EncodeError, match=rf"{protocol} table shop\.t, column c.* {what}"):
        write(protocol, [event])


@EVERY
@pytest.mark.parametrize("value", [5, b"x", 1.5, [1]])
def test_a_value_of_another_type_is_an_error(protocol: str, value: Any) -> None:
    """Also from a plan that has been compiled."""
    schema = table(Text(), "varchar(9)")
    events = [row("insert", schema, None, {"id": n, "c": "x"}) for n in range(40)]
    bad = row("insert", schema, None, {"id": 1, "c": value})
    for before in ([], events):
        with pytest.raises(EncodeError, match=rf"{protocol} table shop\.t, column c"):
            write(protocol, [*before, bad])


BEYOND: list[tuple[str, Any, Any, str]] = [
    ("decimal(10,2)", Decimal("-12345678.9000"), Decimal("1.234"), "decimal(11,3), not"),
    ("decimal(10,2)", Decimal(0), Decimal("1E+10"), "decimal(13,2), not"),
    ("decimal(3,3)", Decimal("0.999"), Decimal("1"), "decimal(4,3), not"),
    ("datetime(3)", datetime(2024, 2, 3, 4, 5, 6, 7000), datetime(2024, 2, 3, 4, 5, 6, 7), "(6)"),
    ("timestamp(0)", EPOCH, EPOCH + timedelta(milliseconds=1), "timestamp(3), not timestamp(0)"),
    ("time(1)", timedelta(seconds=-0.5), timedelta(seconds=-0.25), "time(2), not time(1)"),
    ("varbinary(3)", b"abc", b"abcd", "varbinary(4), not varbinary(3)"),
    ("binary(3)", b"abc", b"abcd", "binary(4), not binary(3)"),
    ("float", 3.5, 1e39, ""),
]


@EVERY
@pytest.mark.parametrize(("type_", "fits", "beyond", "wanted"), BEYOND)
def test_a_value_beyond_its_columns_type_is_an_error(
    protocol: str, type_: str, fits: Any, beyond: Any, wanted: str
) -> None:
    schema = table(resolve_type(type_), type_)
    options = {"binaryEncoding": "base64"} if protocol == "cloudcanal-json" else {}
    messages = write(protocol, [row("insert", schema, None, {"id": 1, "c": fits})], **options)
    [event] = read_rows(protocol, messages)
    assert event.after is not None
    assert event.after.values["c"] == fits
    with pytest.raises(EncodeError, match=rf"{protocol} table shop\.t, column c.*") as caught:
        write(protocol, [row("insert", schema, None, {"id": 1, "c": beyond})], **options)
    assert wanted in str(caught.value)


@EVERY
@pytest.mark.parametrize(
    ("type_", "members", "others"),
    [
        ("enum('a','b')", ["b", 2, "", 0], ["z", "a,b", "2", 3, -1]),
        ("set('a','b')", ["a,b", 3, "", 0], ["z", "a,z", "3", 4, -1]),
    ],
)
def test_only_members_of_the_type_are_written(
    protocol: str, type_: str, members: list[Any], others: list[Any]
) -> None:
    schema = table(resolve_type(type_), type_)
    for value in members:
        assert write(protocol, [row("insert", schema, None, {"id": 1, "c": value})])
    for value in others:
        with pytest.raises(EncodeError, match=rf"{protocol} table shop\.t, column c.*"):
            write(protocol, [row("insert", schema, None, {"id": 1, "c": value})])


@EVERY
@pytest.mark.parametrize(
    ("op", "extra"),
    [("insert", "before"), ("read", "before"), ("upsert", "before"), ("delete", "after")],
)
def test_image_not_allowed_for_the_operation_is_an_error(
    protocol: str, op: str, extra: str
) -> None:
    schema, image = table(Text(), "varchar(9)"), {"id": 1, "c": "a"}
    with pytest.raises(EncodeError, match=rf"shop\.t.*{op} has no {extra} image.*NULL in a table"):
        write(protocol, [row(op, schema, image, image)], upsertAs="insert")


@EVERY
def test_a_negative_commit_ts_is_an_error(protocol: str) -> None:
    event = row("insert", table(Text(), "varchar(9)"), None, {"id": 1, "c": "a"})
    with pytest.raises(EncodeError, match=r"shop\.t, commit_ts -5: the commit_ts is negative"):
        write(protocol, [attrs.evolve(event, commit_ts=-5)])


@EVERY
def test_an_update_is_one_message_and_rows_of_one_key_share_a_partition(protocol: str) -> None:
    schema = table(Text(), "varchar(9)")
    partitions = set()
    for number in range(20):
        old, new = {"id": number, "c": "a"}, {"id": number, "c": None}
        changes = [
            row("insert", schema, None, old),
            row("update", schema, old, new),
            row("delete", schema, new, None),
        ]
        messages = write(protocol, changes, partitions=4)
        back = read_rows(protocol, messages)
        assert [event.op for event in back] == ["insert", "update", "delete"]
        assert (back[1].before and back[1].before.values) == old
        (partition,) = {message.partition for message in messages}
        partitions.add(partition)
    assert partitions == {0, 1, 2, 3}


@EVERY
def test_ddl_and_watermarks_reach_every_partition(protocol: str) -> None:
    ddl = SchemaChange(
        "create table t (id int)", "CREATE", "shop", "t", commit_ts=7 << 18, source_time=7_000_000
    )
    messages = write(protocol, [ddl], partitions=3)
    first_alone = protocol == "canal-json"
    assert [message.partition for message in messages] == ([0] if first_alone else [0, 1, 2])
    if "watermark" in (default_registry().get_codec(protocol).emits):
        messages = write(protocol, [Watermark(8 << 18, emit_time=1_000)], partitions=3)
        assert [message.partition for message in messages] == [0, 1, 2]
    else:
        with pytest.raises(EncodeError, match="no watermark"):
            write(protocol, [Watermark(8 << 18)])


NO_SCHEMA = (
    "the table's name has a schema, which the format cannot express; write debezium, dts-avro or "
    "cloudcanal-json, or rename the table"
)


@EVERY
def test_schema_in_table_names_is_kept_or_rejected(protocol: str) -> None:
    named = attrs.evolve(table(Text(), "varchar(9)"), schema="eu")
    times: dict[str, Any] = {"commit_ts": 7 << 18, "source_time": 7_000_000}
    events: list[Any] = [
        row("insert", named, None, {"id": 1, "c": "a"}),
        row("update", named, {"id": 1, "c": "a"}, {"id": 2, "c": "a"}),
        SchemaChange("drop table t", "ERASE", "shop", "t", "eu", **times),
    ]
    if protocol in ("debezium", "dts-avro", "cloudcanal-json"):
        decoder = open_decoder(protocol=protocol)
        read: list[Any] = [e for m in write(protocol, events) for e in decoder.decode(m)]
        assert [(event.table.name) for event in read[:2]] == [("shop", "eu", "t")] * 2
        assert (read[2].database, read[2].schema, read[2].table) == ("shop", "eu", "t")
        return
    if protocol == "simple":
        events.append(TableSchemaEvent(named))
    for event in events:
        with pytest.raises(UnsupportedEventError) as caught:
            write(protocol, [event])
        assert caught.value.reason == f"{NO_SCHEMA}; unsupportedEvents=skip leaves it out"
        assert caught.value.table == "shop.eu.t"
    counts: Counter[str] = Counter()
    skipping: dict[str, Any] = {"unsupportedEvents": "skip", "counts": counts}
    assert write(protocol, events, **skipping, splitKeyUpdates=True) == []
    assert counts == {f"skipped: {NO_SCHEMA}": len(events)}


@EVERY
def test_key_columns_missing_from_the_table(protocol: str) -> None:
    """Kept where keys are names alone, else left out and counted."""
    lacking = attrs.evolve(table(Text(), "varchar(9)"), key_columns=("id", "nope"))
    counts: Counter[str] = Counter()
    values = {"id": 1, "c": "a"}
    messages = write(protocol, [row("insert", lacking, None, values)], counts=counts)
    (event,) = read_rows(protocol, messages)
    assert event.after is not None
    assert event.after.values == values
    is_lost = protocol in ("debezium", "open-protocol", "simple", "ticdc-avro")
    assert event.table.key_columns == (("id",) if is_lost else ("id", "nope"))
    assert counts == ({"key columns that the table lacks, left out": 1} if is_lost else {})


@EVERY
def test_changed_instants_of_a_repeated_hour_are_counted(protocol: str) -> None:
    """01:30 in New York on 3 November 2024 is 05:30 and 06:30 in UTC."""
    columns = (Column("id", "int", Int(32), key=True), Column("c", "timestamp", Timestamp()))
    schema = TableSchema("shop", "t", columns, ("id",))
    zone = {"sourceTimeZone": "America/New_York"}
    for hour, is_second in ((5, False), (6, True), (7, False)):
        instant = datetime(2024, 11, 3, hour, 30, tzinfo=UTC)
        counts: Counter[str] = Counter()
        event = row("insert", schema, None, {"id": 1, "c": instant})
        messages = write(protocol, [event], counts=counts, **zone)
        decoder = open_decoder(protocol=protocol, **zone)
        read: list[Any] = [e for message in messages for e in decoder.decode(message)]
        (back,) = (e.after.values["c"] for e in read if isinstance(e, RowChange))
        is_changed = is_second and protocol not in ("debezium", "dts-avro")
        assert back == instant - timedelta(hours=is_changed)
        text = "TIMESTAMPs in a repeated hour, whose text is that of the earlier hour"
        assert counts == ({text: 1} if is_changed else {})
