"""By the kernel or by the reference: the same record batches for any input."""

from __future__ import annotations

import random
import re

import pytest
from pyspark.sql.types import StructType
from support.damaged_messages import mutated_message
from support.golden_data import (
    about,
    load_variant,
    native_messages,
    open_decoder,
    reading_options,
    scan_schemas,
    variant_names,
)
from support.turns import in_turn

from cdcfmt_core.events import Message, RowChange
from cdcfmt_files.sources import BadLine
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed, table_option

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

PROTOCOLS = ("canal-json", "debezium", "simple-json", "open")
VARIANTS = [(protocol, name) for protocol in PROTOCOLS for name in variant_names(protocol)]

SOME_TABLES = ("all_types", "upd_cols", "pk_change", "txn_a")

OPTIONS: list[dict[str, str]] = [
    {},
    {"images": "after", "includeSource": "true"},
    {"splitKeyUpdates": "true", "incompleteRows": "emit", "timeAs": "micros", "enumAs": "index"},
    {"jsonAs": "string", "timeAs": "interval", "invalidValues": "text", "onSchemaChange": "rescue"},
    {"invalidValues": "corrupt", "invalidText": "escape", "onSchemaChange": "ignore"},
    {"mode": "DROPMALFORMED", "metadataPrefix": "m_", "keyColumns": "id", "includeSource": "true"},
    {"mode": "FAILFAST", "onTruncate": "ignore", "sourceTimeZone": "UTC"},
    {"sourceTimeZone": "Europe/Berlin", "onTruncate": "row"},
    {"invalidValues": "fail", "onSchemaChange": "fail", "incompleteRows": "fail"},
]


OF_EVENTS: list[dict[str, str]] = [
    {},
    {"images": "after", "sourceTimeZone": "Europe/Berlin"},
    {"splitKeyUpdates": "true", "invalidValues": "text", "invalidText": "escape"},
    {"keyColumns": "id", "mode": "DROPMALFORMED", "invalidValues": "corrupt"},
    {"includeTables": "golden.*", "mode": "FAILFAST"},
]


def golden(protocol: str, name: str) -> tuple[list[Message], dict[str, str], list[tuple[str, str]]]:
    variant = load_variant(protocol, name)
    messages = [message.message for message in variant.messages]
    if name == "storage-txn":  # each value is the body of a file
        bodies = [line for message in messages for line in (message.value or b"").splitlines()]
        messages = [Message(None, line, offset=at) for at, line in enumerate(bodies)]
    return messages, reading_options(variant), variant.tables


@pytest.mark.parametrize(("protocol", "name"), in_turn(VARIANTS, of=2))
def test_golden_messages(protocol: str, name: str) -> None:
    messages, given, tables = golden(protocol, name)
    by_kernel = 0
    # All tables, but each in some of the variants only; they differ in little.
    turn = VARIANTS.index((protocol, name)) % 3
    for place, table in enumerate(tables):
        if place % 3 != turn and table[1] not in SOME_TABLES:
            continue
        some = about(messages, table[1], given)
        for extra in (OPTIONS[0], OPTIONS[1 + place % (len(OPTIONS) - 1)]):
            options = parsed({**given, "table": table_option(*table), **extra})
            schema = inferred_schema(some, options)
            assert schema is not None
            by_kernel += check_equal(some, schema, options).by_kernel
    assert (by_kernel > 0) != ("largeMessageHandleCompression" in given)


@pytest.mark.parametrize(("protocol", "name"), in_turn(VARIANTS, of=2, begin=1))
def test_golden_events(protocol: str, name: str) -> None:
    messages, given, _ = golden(protocol, name)
    turn = VARIANTS.index((protocol, name))
    by_kernel = 0
    some = OF_EVENTS[1 + turn % (len(OF_EVENTS) - 1)]
    for extra in ({"imageFormat": "json"}, {"imageFormat": "json"} | some, some):
        options = parsed({**given, **extra})
        by_kernel += check_equal(messages, events_schema(options), options).by_kernel
    assert (by_kernel > 0) != ("largeMessageHandleCompression" in given)


NATIVE = {
    "canal/canal_flat": "canal-json",
    "canal/canal_flat_hash": "canal-json",
    "debezium/schema_default": "debezium",
    "debezium/noschema_default": "debezium",
    "debezium/noschema_strings": "debezium",
}


@pytest.mark.parametrize("file", NATIVE)
def test_native_messages(file: str) -> None:
    messages = list(native_messages(file))
    decode = open_decoder(protocol=NATIVE[file]).decode
    tables = {
        (event.table.database, event.table.table)
        for message in messages
        for event in decode(message)
        if isinstance(event, RowChange)
    }
    by_kernel = 0
    for place, table in enumerate(sorted(tables)):
        some = about(messages, table[1], {})
        for extra in OPTIONS[place % 3 :: 3]:
            given = {"protocol": NATIVE[file], "table": table_option(*table), **extra}
            options = parsed(given)
            schema = inferred_schema(some, options)
            assert schema is not None
            by_kernel += check_equal(some, schema, options).by_kernel
    for form in ("json", "variant"):
        options = parsed({"protocol": NATIVE[file], "imageFormat": form})
        check_equal(messages, events_schema(options), options)
    assert by_kernel > 0


def test_times_of_ambiguous_unit() -> None:
    """`timePrecisionMode=auto` refuses those near 1970, among others that it is sure of."""
    messages = list(native_messages("debezium/noschema_default"))
    schemas = scan_schemas(messages, protocol="debezium")
    values = [re.sub(rb"\{[^{}]*\"srid[^{}]*\}", b"null", m.value or b"") for m in messages]
    value = next(v for v in values if b'"op":"r"' in v and re.search(rb'"c_dt6":[0-9]', v))
    times = [1_795_214_319_224_225 + number for number in range(20)]
    times[12] = 79_026_071_387
    rows = [
        Message(None, re.sub(rb'"c_dt6":[0-9]+', b'"c_dt6":%d' % time, value)) for time in times
    ]
    options = parsed({"protocol": "debezium", "table": table_option("shop", "wide")})
    schema = inferred_schema(rows[:1], options, schemas)
    assert schema is not None
    result = check_equal(rows, schema, options, schemas=schemas)
    assert result.counts["corrupt messages and rows"] == 1
    assert (result.by_kernel, result.by_reference) == (18, 2)


MUTATED = [
    ("canal-json", "default"),
    ("canal-json", "tidb-extension"),
    ("canal-json", "content-compatible"),
    ("canal-json", "only-output-updated-columns"),
    ("canal-json", "handle-key-only"),
    ("debezium", "default"),
    ("debezium", "disable-schema"),
    ("debezium", "tidb-extension"),
    ("debezium", "no-old-value"),
    ("simple-json", "default"),
    ("simple-json", "checksum"),
    ("simple-json", "handle-key-only"),
    ("simple-json", "claim-check"),
    ("simple-json", "raw-change-event"),
    ("open", "default"),
    ("open", "delete-only-handle-key"),
    ("open", "no-old-value"),
    ("open", "only-output-updated-columns"),
    ("open", "raw-change-event"),
]


@pytest.mark.parametrize(("protocol", "name", "seed"), in_turn(MUTATED, range(2), of=4))
def test_mutated_messages(protocol: str, name: str, seed: int) -> None:
    messages, given, tables = golden(protocol, name)
    chance = random.Random(seed)
    if seed:
        given = {**given, "protocol": "auto"}
    by_kernel = 0
    for table in chance.sample(tables, min(3, len(tables))):
        extra = chance.choice(OPTIONS)
        options = parsed({**given, "table": table_option(*table), **extra})
        schema = inferred_schema(messages, options)
        assert schema is not None
        mixed: list[Message | BadLine] = []
        # Open Protocol's tables have few messages each.
        for message in messages * (4 if protocol == "open" else 2):
            if message.value is not None and chance.random() < 0.5:
                message = mutated_message(message, chance, in_frames=protocol == "open")
            mixed.append(message)
        by_kernel += check_equal(mixed, schema, options).by_kernel
        some = StructType(chance.sample(schema.fields, chance.randrange(1, len(schema.fields))))
        check_equal(mixed, some, options, inferred=False, as_lists=True)
        form = chance.choice(["json", "variant"])
        options = parsed({**given, "imageFormat": form, **chance.choice(OF_EVENTS)})
        by_kernel += check_equal(mixed, events_schema(options), options).by_kernel
    assert by_kernel > 0


def test_formats_in_turn_are_recognised() -> None:
    canal, given, _ = golden("canal-json", "tidb-extension")
    debezium, _, _ = golden("debezium", "tidb-extension-disable-schema")
    messages = canal[:200] + debezium[:200] + canal[200:] + debezium[200:]
    options = parsed({**given, "protocol": "auto", "table": table_option("golden", "txn_a")})
    schema = inferred_schema(messages, options)
    assert schema is not None
    assert check_equal(messages, schema, options).by_kernel > 50


def row(table: str, number: str = "1", **members: str) -> Message:
    text = (
        '{"id":0,"database":"shop","table":"%s","pkNames":["id"],"isDdl":false,"type":"INSERT",'
        '"es":1700000000000,"ts":%s,"sql":"","sqlType":{"id":4},"mysqlType":{"id":"int"},'
        '"old":null,"data":[{"id":"%s"}]}'
    )
    return Message(None, (text % (table, members.get("ts", "1700000000001"), number)).encode())


def test_messages_of_other_tables_are_skipped_by_their_envelope() -> None:
    options = parsed({"protocol": "canal-json", "table": "shop.orders"})
    messages = [row("orders"), *[row("other"), row("orders")] * 20]
    schema = inferred_schema(messages, options)
    assert schema is not None
    result = check_equal(messages, schema, options)
    assert (result.by_kernel, result.by_reference) == (20, 1)
    lists = check_equal(messages, schema, options, as_lists=True)
    assert lists.rows_of_messages == [1, *[0, 1] * 20]
    messages.append(row("other", ts="1e9999"))
    assert check_equal(messages, schema, options).rows.num_rows == 22


@pytest.mark.parametrize("number", ["0x10", "2147483648", "1.0", "", "+5", "007"])
def test_only_the_unsupported_record_falls_back(number: str) -> None:
    options = parsed({"protocol": "canal-json", "table": "shop.orders"})
    messages = [row("orders", str(at)) for at in range(100)]
    messages[50] = row("orders", number)
    schema = inferred_schema(messages[:10], options)
    assert schema is not None
    result = check_equal(messages, schema, options)
    # 007 and +5 are integers, which the column tells cell by cell.
    fell_back = 0 if number in ("007", "+5") else 1
    assert (result.by_kernel, result.by_reference) == (99 - fell_back, 1 + fell_back)
