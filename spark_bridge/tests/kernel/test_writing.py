"""Messages by the compiled kernel: byte for byte those of the reference encoder."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import attrs
import pyarrow as pa
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import StructType
from support.examples import examples
from support.golden_data import about, load_variant, native_messages, reading_options, variant_names
from support.turns import in_turn
from support.written_rows import Rows, change_rows, check_equal, decoded, event_rows, sent, written

from cdcfmt_core.events import Column, Image, Message, RowChange, TableSchema
from cdcfmt_core.opening import open_encoder
from cdcfmt_core.types import Geometry, Int
from cdcfmt_mysql.temporal import REPEATED_HOUR
from cdcfmt_testing.carries import Carries, without
from cdcfmt_testing.strategies import event_lists
from pyspark_cdcfmt.rows.variant import encode_variant

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

SKIP = {"unsupportedEvents": "skip", "unsupportedValues": "skip", "ordered": "false"}
OPTIONS: dict[str, dict[str, str]] = {
    "default": {},
    "extension": {"enableTidbExtension": "true"},
    "full types": {"contentCompatible": "true"},
    "changed": {"onlyOutputUpdatedColumns": "true", "splitKeyUpdates": "true"},
    "keys of deletes": {"deleteOnlyOutputHandleKeyColumns": "true", "upsertAs": "update"},
    "small": {
        "enableTidbExtension": "true",
        "maxMessageBytes": "900",
        "largeMessageHandleOption": "handle-key-only",
        "upsertAs": "insert",
    },
    "canal": {"dialect": "canal"},
    "lz4": {
        "largeMessageHandleCompression": "lz4",
        "maxMessageBytes": "700",
        "enableTidbExtension": "true",
        "largeMessageHandleOption": "handle-key-only",
    },
    "snappy values": {"largeMessageHandleCompression": "snappy", "lineFormat": "value"},
    "debezium lz4": {
        "protocol": "debezium",
        "largeMessageHandleCompression": "lz4",
        "synthesizeCommitTs": "true",
    },
    "open snappy": {
        "protocol": "open-protocol",
        "largeMessageHandleCompression": "snappy",
        "synthesizeCommitTs": "true",
    },
    "debezium": {"protocol": "debezium", "enableTidbExtension": "true"},
    "debezium plain": {
        "protocol": "debezium",
        "debeziumDisableSchema": "true",
        "lineFormat": "value",
        "upsertAs": "update",
    },
    "debezium new values": {
        "protocol": "debezium",
        "debeziumOutputOldValue": "false",
        "splitKeyUpdates": "true",
        "clusterId": "a<\u2028\x08",
        "lineFormat": "message",
        "upsertAs": "insert",
    },
    "open": {"protocol": "open-protocol", "maxBatchSize": "3"},
    "open new values": {
        "protocol": "open-protocol",
        "outputOldValue": "false",
        "deleteOnlyOutputHandleKeyColumns": "true",
        "maxMessageBytes": "1500",
        "lineFormat": "message",
        "largeMessageHandleOption": "handle-key-only",
    },
    "open changed": {
        "protocol": "open-protocol",
        "onlyOutputUpdatedColumns": "true",
        "upsertAs": "update",
        "maxBatchSize": "1",
    },
}
"""Of canal-json, where they name no other format."""
GOLDEN = [
    *(("canal-json", name) for name in variant_names("canal-json")),
    ("open", "default"),
    ("debezium", "tidb-extension"),
    ("simple-json", "default"),
    ("native", "canal/canal_flat"),
    ("native", "debezium/schema_default"),
]
CASES = [(*case, number) for number, case in enumerate([*GOLDEN, ("native", "dts/dts")])]


def some_options(number: int) -> list[dict[str, str]]:
    """Three of the options, by turns: all of them together take minutes."""
    every = list(OPTIONS.values())
    return [{"protocol": "canal-json"} | every[(number + n) % len(every)] for n in (0, 3, 7)]


def golden_messages(protocol: str, name: str) -> tuple[list[Message], dict[str, str]]:
    if protocol == "native":
        return list(native_messages(name)), {"sourceTimeZone": "Asia/Shanghai"}
    variant = load_variant(protocol, name)
    return [golden.message for golden in variant.messages], reading_options(variant)


def golden_changes(
    protocol: str, name: str
) -> Iterator[tuple[Rows, dict[str, str], dict[str, str]]]:
    """The changes of each table, with the options that name it, and those that type it."""
    messages, reading = golden_messages(protocol, name)
    events, _ = decoded(messages, **reading)
    tables = {
        (event.table.database, event.table.table): event.table.key_columns
        for _, event in events
        if isinstance(event, RowChange)
    }
    for table, keys in tables.items():
        rows, types = change_rows(about(messages, table[1], reading), table, **reading)
        quoted = ".".join(f"`{part}`" for part in table)
        typed = {"columnTypes": json.dumps({k: v for k, v in types.items() if v in KNOWN})}
        yield rows, {"table": quoted, "keyColumns": json.dumps(keys)}, typed


@pytest.mark.parametrize(("protocol", "name", "number"), in_turn(CASES, of=2))
def test_golden_events(protocol: str, name: str, number: int) -> None:
    messages, reading = golden_messages(protocol, name)
    events, found = decoded(messages, **reading)
    rows = event_rows(events, found)
    for options in some_options(number):
        check_equal(rows, **SKIP, **options)


@pytest.mark.parametrize(
    ("protocol", "name", "number", "shift"), in_turn(CASES[:-1], range(2), of=4)
)
def test_golden_changes(protocol: str, name: str, number: int, shift: int) -> None:
    """Each table with each of the options; its columns are typed by turns."""
    for place, (rows, table, typed) in enumerate(golden_changes(protocol, name)):
        for turn, options in enumerate(some_options(number)):
            declared = typed if (place + turn + shift) % 2 else {}
            check_equal(rows, **table, **SKIP, **declared, **options)


KNOWN = ("bigint unsigned", "int unsigned", "time", "year", "bit", "timestamp", "datetime")
"""Types that Spark's columns lack."""


def test_ordinary_rows_use_the_kernel() -> None:
    """Of the golden rows that are measured, all but those with unusual floats."""
    messages = [golden.message for golden in load_variant("canal-json", "tidb-extension").messages]
    events, found = decoded(messages, protocol="canal-json", sourceTimeZone="Asia/Shanghai")
    usual = [(m, e) for m, e in events if isinstance(e, RowChange)]
    lines, by_kernel = check_equal(
        event_rows(usual, found), protocol="canal-json", enableTidbExtension="true", ordered="false"
    )
    assert by_kernel > lines * 0.5


@pytest.mark.parametrize("compression", ["lz4", "snappy"])
@pytest.mark.parametrize("protocol", ["canal-json", "debezium", "open-protocol"])
def test_compressed_rows_use_the_kernel(protocol: str, compression: str) -> None:
    messages, reading = golden_messages("canal-json", "tidb-extension")
    events, found = decoded(messages, **reading)
    usual = [pair for pair in events if isinstance(pair[1], RowChange)]
    given = {"protocol": protocol, "largeMessageHandleCompression": compression}
    expected, _ = sent(event_rows(usual, found), by_kernel=False, partitions=2, **SKIP, **given)
    rows, count = sent(event_rows(usual, found), by_kernel=True, partitions=2, **SKIP, **given)
    assert rows == expected
    assert count > len(usual) / 4


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"partitioner": "table"},
        {"partitioner": "ts"},
        {"partitioner": "columns", "partitionColumns": "id", "ordered": "true"},
        {"protocol": "open-protocol", "maxBatchSize": "2"},
    ],
    ids=str,
)
@pytest.mark.parametrize("case", [("canal-json", "tidb-extension"), ("open", "default")], ids=str)
def test_partitions(case: tuple[str, str], options: dict[str, str]) -> None:
    messages, reading = golden_messages(*case)
    events, found = decoded(messages, **reading)
    rows = event_rows([pair for pair in events if isinstance(pair[1], RowChange)], found)
    given = {"protocol": "canal-json", "enableTidbExtension": "true", **SKIP, **options}
    if "maxBatchSize" in options:
        del given["enableTidbExtension"]
    for partitions in (1, 3):
        expected, _ = sent(rows, by_kernel=False, partitions=partitions, **given)
        found, count = sent(rows, by_kernel=True, partitions=partitions, **given)
        assert found == expected
        assert count > len(found) / 4


@pytest.mark.parametrize("protocol", ["debezium", "open-protocol"])
def test_rows_without_commit_ts_use_the_kernel(protocol: str) -> None:
    """Some have one, and the last ones are the largest that there are."""
    messages, reading = golden_messages("canal-json", "tidb-extension")
    events, found = decoded(messages, **reading)
    chance = random.Random(18)
    changes = [pair for pair in events if isinstance(pair[1], RowChange)]
    mixed = [
        (message, attrs.evolve(event, commit_ts=chance.choice([None, None, event.commit_ts])))
        for message, event in changes
    ]
    for distance in (2, 1):
        mixed.append((mixed[0][0], attrs.evolve(changes[0][1], commit_ts=(1 << 63) - distance)))
        mixed.append((mixed[0][0], attrs.evolve(changes[0][1], commit_ts=None)))
    rows = event_rows(mixed, found)
    given = {"protocol": protocol, "synthesizeCommitTs": "true", **SKIP}
    _, by_kernel = check_equal(rows, **given)
    assert by_kernel > len(mixed) / 4
    given["partitioner"] = "ts"
    expected, _ = sent(rows, by_kernel=False, partitions=3, **given)
    assert sent(rows, by_kernel=True, partitions=3, **given)[0] == expected


def inserts(type_: str, cells: list[Any]) -> tuple[Rows, dict[str, str]]:
    """Rows of a table with the columns ``id`` and ``data``, and the options that name it."""
    numbers = list(range(len(cells)))
    columns: dict[str, tuple[str, list[Any]]] = {
        "id": ("long", numbers),
        "data": (type_, cells),
        "_change_type": ("string", ["insert"] * len(cells)),
        "_commit_version": ("long", [number + (1 << 60) for number in numbers]),
    }
    schema = StructType()
    for name, (of, _) in columns.items():
        schema.add(name, of)
    arrays = [pa.array(values) for _, values in columns.values()]
    rows = Rows(schema, [pa.record_batch(arrays, names=list(columns))])
    return rows, {"table": "shop.files", "keyColumns": "id"}


@pytest.mark.parametrize(
    "protocol", ["canal-json", "debezium", "open-protocol", "simple", "cloudcanal-json"]
)
@pytest.mark.parametrize(
    ("name", "type_", "bits"), [("float", pa.float32(), 24), ("double", pa.float64(), 53)]
)
def test_digits_of_floats(protocol: str, name: str, type_: pa.DataType, bits: int) -> None:
    """Of any size, many of them halfway between two of the shortest texts."""
    chance = random.Random(bits)
    cells = [chance.randrange(1 << bits) / 2 ** chance.randrange(0, 70) for _ in range(2_000)]
    cells += [odd * 2.0**-power for power in range(10, 40) for odd in range(1, 100, 2)]
    cells += [chance.random() * 10.0 ** chance.randrange(-30, 30) for _ in range(1_000)]
    rows, table = inserts(name, [1.0] * len(cells))
    [batch] = rows.batches
    rows = Rows(rows.schema, [batch.set_column(1, "data", pa.array(cells).cast(type_))])
    _, by_kernel = check_equal(rows, protocol=protocol, **table)
    assert by_kernel > len(cells) * 0.9


@pytest.mark.parametrize("protocol", ["canal-json", "debezium", "dts-avro"])
@pytest.mark.parametrize(
    ("type_", "spark", "cells"),
    [
        ("decimal(5,2)", "decimal(12,4)", [Decimal("999.9900"), Decimal("999.9910")]),
        ("decimal(5,2)", "decimal(7,2)", [Decimal("-999.99"), Decimal("-1000.00")]),
        ("decimal(5,2)", "long", [999, 1000]),
        ("datetime(3)", "timestamp_ntz", [datetime(2024, 1, 1, 0, 0, 0, 4000), datetime.max]),
        ("time(2)", "string", ["-10:00:00.120", "-10:00:00.123"]),
        ("varbinary(3)", "binary", [b"abc", b"abcd"]),
        ("float", "double", [1e10, 1e39]),
        ("enum('a','b')", "string", ["b", "z"]),
        ("set('a','b')", "string", ["a,b", "a,z"]),
    ],
    ids=str,
)
def test_values_beyond_their_type(protocol: str, type_: str, spark: str, cells: list[Any]) -> None:
    """The kernel writes the first rows, and refuses the last one as the reference does."""
    rows, table = inserts(spark, [cells[0]] * 40)
    given = {"protocol": protocol, "columnTypes": json.dumps({"data": type_}), **table}
    assert check_equal(rows, **given) == (40, 40)
    rows, _ = inserts(spark, [cells[0]] * 40 + cells[1:])
    assert "column data" in check_with_error(rows, **given)


@pytest.mark.parametrize("protocol", ["canal-json", "open-protocol", "simple"])
def test_schema_in_table_name_is_rejected(protocol: str) -> None:
    rows, _ = inserts("string", ["a"])
    named = {"table": "shop.eu.files", "keyColumns": "id", "protocol": protocol}
    assert "table shop.eu.files" in check_with_error(rows, **named)
    assert check_equal(rows, **named, unsupportedEvents="skip") == (0, 0)


@pytest.mark.parametrize("protocol", ["debezium", "open-protocol", "simple"])
def test_key_columns_missing_from_the_table(protocol: str) -> None:
    table = TableSchema("shop", "t", (Column("id", "int", Int(32)),), ("nope",))
    event = RowChange("insert", table, None, Image({"id": 1}), commit_ts=7 << 18)
    rows = event_rows([(Message(None, None, offset=1), event)], None)
    assert check_equal(rows, protocol=protocol)[1] == 0
    for partitions in (1, 3):
        expected, _ = sent(rows, by_kernel=False, partitions=partitions, protocol=protocol)
        assert sent(rows, by_kernel=True, partitions=partitions, protocol=protocol) == (expected, 0)


@pytest.mark.parametrize(
    "options",
    [
        {"protocol": "canal-json"},
        {"protocol": "open-protocol"},
        {"protocol": "simple"},
        {"protocol": "simple", "encodingFormat": "avro"},
        {"protocol": "cloudcanal-json"},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("zone", "repeated"),
    [
        ("America/New_York", datetime(2024, 11, 3, 6, tzinfo=UTC)),
        # Half an hour.
        ("Australia/Lord_Howe", datetime(2024, 4, 6, 15, tzinfo=UTC)),
        # From midnight of UTC on.
        ("Africa/Tripoli", datetime(2012, 11, 10, tzinfo=UTC)),
        ("Asia/Kathmandu", None),
    ],
)
def test_repeated_hours(options: dict[str, str], zone: str, repeated: datetime | None) -> None:
    """All but them are the kernel's."""
    around = repeated or datetime(2024, 1, 1, tzinfo=UTC)
    step = timedelta(minutes=10)
    instants = [around + step * number for number in range(-300, 300)]
    local = [instant.astimezone(ZoneInfo(zone)) for instant in instants]
    rows, table = inserts("timestamp", instants)
    _, by_kernel = check_equal(rows, **table, **options, sourceTimeZone=zone)
    assert by_kernel >= len(instants) - 70
    _, writer = written(rows, by_kernel=True, **table, **options, sourceTimeZone=zone)
    assert writer.counts[REPEATED_HOUR] == sum(each.fold for each in local)
    assert (writer.counts[REPEATED_HOUR] > 0) == (repeated is not None)


@pytest.mark.parametrize("by_kernel", [True, False])
def test_open_protocol_is_not_written_as_lines(by_kernel: bool) -> None:
    rows, table = inserts("string", ["a"])
    given = {"protocol": "open-protocol", "lineFormat": "value", **table}
    lines, _ = written(rows, by_kernel=by_kernel, **given)
    assert lines == [
        "OptionError: option lineFormat: value leaves out keys, which open-protocol cannot be read "
        "without; set lineFormat=message"
    ]


def test_quoted_bytes_use_the_kernel() -> None:
    """Open Protocol's bytes: every character, and some at random."""
    chance = random.Random(18)
    every = "".join(chr(code) for code in range(sys.maxunicode + 1) if code >> 11 != 0xD800 >> 11)
    cells = [every[at : at + 1_000].encode() for at in range(0, len(every), 1_000)]
    cells += [chance.randbytes(100) for _ in range(500)]
    rows, table = inserts("binary", cells)
    _, by_kernel = check_equal(rows, protocol="open-protocol", **table)
    assert by_kernel == len(cells)


@pytest.mark.parametrize("options", [{}, {"protocol": "debezium"}, {"protocol": "simple"}], ids=str)
def test_json_text_uses_the_kernel(options: dict[str, str]) -> None:
    """Columns of strings that are declared as JSON; the row of one that is not JSON fails."""
    texts = ["{}", ' [1, {"a": "\\u0041<"}]\n', "1e400", '"a"', "null", '{"a": 1, "a": 2}'] * 50
    given = {"protocol": "canal-json", "columnTypes": '{"data": "json"}', **options}
    for odd in ([], ["{'a': 1}"], ["[1,]"], ['"\\ud800"']):
        rows, table = inserts("string", texts + odd)
        _, by_kernel = check_equal(rows, **given, **table)
        assert len(texts) - 2 <= by_kernel <= len(texts)


def test_nulls_of_json() -> None:
    cells = [dict(zip(("value", "metadata"), encode_variant(v), strict=True)) for v in ([], None)]
    rows, table = inserts("variant", [*cells, None])
    check_equal(rows, protocol="canal-json", **table)
    lines, _ = written(rows, by_kernel=True, protocol="canal-json", **table)
    assert [json.loads(line)["data"][0]["data"] for line in lines] == ["[]", "null", None]


def batches_of(rows: Rows, size: int) -> Rows:
    """The same rows in batches of this size."""
    cut = (batch.slice(at, size) for batch in rows.batches for at in range(0, len(batch), size))
    return Rows(rows.schema, list(cut))


def drawn_events(data: st.DataObject) -> Rows:
    """Events at random."""
    lists = st.lists(event_lists(Carries(), wide=data.draw(st.booleans())), min_size=1, max_size=3)
    events = [event for some in data.draw(lists) for event in some]
    return event_rows([(Message(None, None, offset=n), e) for n, e in enumerate(events)], None)


def drawn_changes(data: st.DataObject) -> tuple[Rows, dict[str, str], dict[str, str]]:
    """Typed changes of a table at random, the options that name it, and its column types."""
    # Spark has no place for a reference system beyond 31 bits.
    carries = Carries(kinds=frozenset({"row"}), types=without(Geometry))
    encoder = open_encoder("canal-json", {"contentCompatible": True, "enableTidbExtension": True})
    events: list[Any] = data.draw(event_lists(carries, wide=data.draw(st.booleans())))
    table = events[0].table
    # A table with the name of an added column is an error of the options: `metadataPrefix`.
    assume(not any(column.name.lower().startswith("_") for column in table.columns))
    messages = [message for event in events for message in encoder.encode(event)]
    reading = {
        "protocol": "canal-json",
        "sourceTimeZone": "Asia/Shanghai",
        "caseSensitive": "true",
    }
    rows, types = change_rows(messages, (table.database, table.table), **reading)
    quoted = ".".join("`" + part.replace("`", "``") + "`" for part in (table.database, table.table))
    return rows, {"keyColumns": json.dumps(table.key_columns), "table": quoted}, types


@settings(deadline=None, max_examples=examples(60), phases=[Phase.generate])
@given(st.data())
def test_generated_events(data: st.DataObject) -> None:
    rows = drawn_events(data)
    options = data.draw(st.sampled_from(list(OPTIONS.values())))
    ordered = {"ordered": data.draw(st.sampled_from(["true", "false"]))}
    size = data.draw(st.integers(1, 10))
    common = {"unsupportedEvents": "skip", "protocol": "canal-json"}
    check_equal(batches_of(rows, size), **common | ordered | options)


@settings(deadline=None, max_examples=examples(30), phases=[Phase.generate])
@given(st.data())
def test_generated_changes(data: st.DataObject) -> None:
    rows, named, types = drawn_changes(data)
    keys = {**named, "ordered": "false"}
    for declared in ({}, {"columnTypes": json.dumps(types)}):
        options = data.draw(st.sampled_from(list(OPTIONS.values())))
        common = {"protocol": "canal-json", "unsupportedEvents": "skip", **keys, **declared}
        check_equal(batches_of(rows, data.draw(st.integers(1, 10))), **common | options)


def damaged(rows: Rows, chance: random.Random) -> Rows:
    """The rows with some bytes of variants changed."""
    batches = []
    for batch in rows.batches:
        for name in ("before", "after", "extra"):
            place = batch.schema.get_field_index(name)
            cells = batch.column(place).to_pylist()
            for cell in cells:
                if cell is not None and chance.random() < 0.3:
                    part = chance.choice(["value", "value", "metadata"])
                    cell[part] = spoilt(cell[part], chance)
            field = batch.schema.field(place)
            batch = batch.set_column(place, field, pa.array(cells, field.type))
        batches.append(batch)
    return Rows(rows.schema, batches)


def spoilt(data: bytes, chance: random.Random) -> bytes:
    if not data:
        return data
    at = chance.randrange(len(data))
    if chance.random() < 0.2:
        return data[:at]
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def single_rows(rows: Rows) -> Iterator[Rows]:
    for batch in rows.batches:
        for at in range(len(batch)):
            yield Rows(rows.schema, [batch.slice(at, 1)])


@pytest.mark.parametrize(
    "options",
    [
        {"protocol": "canal-json", "enableTidbExtension": "true"},
        {"protocol": "debezium"},
        {"protocol": "open-protocol"},
        {"protocol": "open-protocol", "onlyOutputUpdatedColumns": "true"},
    ],
    ids=str,
)
def test_damaged_variants(options: dict[str, str]) -> None:
    """Each row by itself, as the first bad one ends a write."""
    chance = random.Random(str(options))
    messages, reading = golden_messages("canal-json", "tidb-extension")
    events, found = decoded(messages, **reading)
    some = chance.sample([pair for pair in events if isinstance(pair[1], RowChange)], 100)
    for rows in single_rows(damaged(event_rows(some, found), chance)):
        check_equal(rows, **options)


def test_changes_out_of_order() -> None:
    messages, reading = golden_messages("canal-json", "tidb-extension")
    events, found = decoded(messages, **reading)
    changes = [pair for pair in events if isinstance(pair[1], RowChange)]
    rows = event_rows(changes[::-1], found)
    error = check_with_error(rows, protocol="canal-json")
    assert "comes after one of the same key" in error


def check_with_error(rows: Rows, **options: Any) -> str:
    check_equal(rows, **options)
    lines, _ = written(rows, by_kernel=True, **options)
    assert isinstance(lines[-1], str)
    return lines[-1]


def test_key_column_of_the_option_missing_from_the_table() -> None:
    table = TableSchema("shop", "t", (Column("id", "int", Int(32)),), ())
    event = RowChange("insert", table, None, Image({"id": 1}), commit_ts=7 << 18)
    rows = event_rows([(Message(None, None, offset=1), event)], None)
    assert check_equal(rows, protocol="canal-json", keyColumns="ID") == (1, 1)
    error = check_with_error(rows, protocol="canal-json", keyColumns="idd")
    assert "the option keyColumns names a column that the table lacks, which has id" in error


def test_null_in_a_key_of_debezium() -> None:
    rows, table = inserts("string", ["a"] * 40 + [None])
    given = {**table, "protocol": "debezium"}
    assert check_equal(rows, **given) == (41, 41)
    given["keyColumns"] = "data"
    assert "column data, commit_ts" in check_with_error(rows, **given)
    assert check_equal(rows, **given, debeziumDisableSchema="true")[0] == 41


@pytest.mark.parametrize("protocol", ["canal-json", "debezium", "dts-avro", "open-protocol"])
def test_impossible_images_and_times(protocol: str) -> None:
    table = TableSchema("shop", "t", (Column("id", "int", Int(32), key=True),), ("id",))
    both = Image({"id": 1}), Image({"id": 1})
    good = RowChange("insert", table, None, Image({"id": 1}), commit_ts=7 << 18)
    for bad, reason in [
        (attrs.evolve(good, before=both[0]), "insert has no before image"),
        (RowChange("read", table, *both, commit_ts=7 << 18), "read has no before image"),
        (RowChange("upsert", table, *both, commit_ts=7 << 18), "upsert has no before image"),
        (RowChange("delete", table, *both, commit_ts=7 << 18), "delete has no after image"),
        (attrs.evolve(good, commit_ts=-1), "commit_ts is negative"),
    ]:
        at = [Message(None, None, topic="x", partition=2, offset=number) for number in (6, 7)]
        rows = event_rows(zip(at, (good, bad), strict=True), None)
        given = {"protocol": protocol, "upsertAs": "update", "ordered": "false"}
        error = check_with_error(rows, **given)
        assert reason in error
        assert "(read from topic x, partition 2, offset 7)" in error


@pytest.mark.parametrize("seed", range(6))
def test_shuffled_changes(seed: int) -> None:
    """Preimages that stand apart from their postimages, and changes out of order."""
    chance = random.Random(seed)
    messages, reading = golden_messages("canal-json", "tidb-extension")
    events, _ = decoded(messages, **reading)
    updated = [e for _, e in events if isinstance(e, RowChange) and e.op == "update"]
    table = (updated[0].table.database, updated[0].table.table)
    rows, _ = change_rows(messages, table, **reading)
    whole = pa.Table.from_batches(rows.batches).combine_chunks()
    order = list(range(whole.num_rows))
    for _ in range(chance.randrange(1, 20)):
        one = chance.randrange(len(order))
        other = min(one + chance.randrange(1, 4), len(order) - 1)
        order[one], order[other] = order[other], order[one]
    shuffled = Rows(rows.schema, whole.take(order).to_batches(max_chunksize=7))
    names = json.dumps(updated[0].table.key_columns)
    quoted = ".".join(f"`{part}`" for part in table)
    for ordered in ("true", "false"):
        check_equal(
            shuffled, protocol="canal-json", table=quoted, keyColumns=names, ordered=ordered
        )
