"""Simple's messages by the compiled kernel: byte for byte those of the reference encoder."""

from __future__ import annotations

import base64
import gzip
import json
import random
from decimal import Decimal
from itertools import islice

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from kernel.test_writing import (
    SKIP,
    batches_of,
    damaged,
    drawn_changes,
    drawn_events,
    golden_changes,
    golden_messages,
    single_rows,
)
from support.examples import examples
from support.golden_data import GOLDEN as GOLDEN_DATA
from support.golden_data import variant_names
from support.turns import in_turn
from support.written_rows import Rows, check_equal, decoded, event_rows, sent

from cdcfmt_core.events import Column, Image, Message, RowChange, TableSchema
from cdcfmt_core.opening import open_decoder, open_encoder
from cdcfmt_core.types import Decimal as DecimalType

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

FORMS: list[dict[str, str]] = [{"encodingFormat": form} for form in ("json", "avro")]
OPTIONS: list[dict[str, str]] = [
    {},
    {"sendBootstrapInMsgCount": "3", "splitKeyUpdates": "true"},
    {"sendBootstrapIntervalInSec": "0", "sourceTimeZone": "+08:00", "upsertAs": "update"},
    {"maxMessageBytes": "700", "largeMessageHandleOption": "handle-key-only", "upsertAs": "insert"},
    {"enableRowChecksum": "true"},
    {"largeMessageHandleCompression": "snappy", "maxMessageBytes": "700"},
    {"lineFormat": "value"},
]
COMMON = {**SKIP, "protocol": "simple"}
GOLDEN = [
    *(("simple-json", name) for name in variant_names("simple-json")),
    ("simple-avro", "default"),
    ("canal-json", "tidb-extension"),
    ("open", "default"),
    ("debezium", "tidb-extension"),
    ("native", "canal/canal_flat"),
]
CASES = [(*case, number) for number, case in enumerate(GOLDEN)]


def some_options(number: int) -> list[dict[str, str]]:
    """By turns, as all of them together take minutes."""
    made = {"synthesizeCommitTs": "true"} if number % 4 == 3 else {}
    return [form | OPTIONS[(number + n) % len(OPTIONS)] | made for n, form in enumerate(FORMS)]


@pytest.mark.parametrize(("protocol", "name", "number"), in_turn(CASES, of=2))
def test_golden_events(protocol: str, name: str, number: int) -> None:
    messages, reading = golden_messages(protocol, name)
    events, found = decoded(messages, **reading)
    rows = event_rows(events, found)
    for options in some_options(number):
        check_equal(rows, **COMMON, **options)


@pytest.mark.parametrize(("protocol", "name", "number"), in_turn(CASES, of=2, begin=1))
def test_golden_changes(protocol: str, name: str, number: int) -> None:
    for place, (rows, table, typed) in enumerate(golden_changes(protocol, name)):
        common = COMMON | table
        check_equal(rows, **common, **some_options(number)[place % 2])
        check_equal(rows, **common, **typed, **some_options(number + 1)[place % 2])


def usual_messages(count: int) -> list[Message]:
    """Those that are measured."""
    with gzip.open(GOLDEN_DATA / "bench" / "canal-json.jsonl.gz") as lines:
        values = (base64.b64decode(json.loads(line)["value_b64"]) for line in lines)
        return [Message(None, value) for value in islice(values, count)]


def usual_rows(count: int) -> Rows:
    messages = usual_messages(count)
    events, found = decoded(messages, sourceTimeZone="Asia/Shanghai")
    return event_rows(events, found)


@pytest.mark.parametrize(
    ("every", "least", "form", "compression"),
    in_turn([("0", 990), ("100", 900), ("7", 0)], FORMS, ["none", "lz4"], of=2),
)
def test_ordinary_rows_use_the_kernel(
    form: dict[str, str], every: str, least: int, compression: str
) -> None:
    """Each partition gets its own schemas, after a number of rows."""
    rows = usual_rows(1_000)
    options = {
        **COMMON,
        **form,
        "sendBootstrapInMsgCount": every,
        "largeMessageHandleCompression": compression,
    }
    _, by_kernel = check_equal(rows, **options)
    assert by_kernel > least
    for partitions in (1, 3):
        expected, _ = sent(rows, by_kernel=False, partitions=partitions, **options)
        found, count = sent(rows, by_kernel=True, partitions=partitions, **options)
        assert found == expected
        assert count > least


@settings(deadline=None, max_examples=examples(60), phases=[Phase.generate])
@given(st.data())
def test_generated_events(data: st.DataObject) -> None:
    rows = drawn_events(data)
    options = data.draw(st.sampled_from(FORMS)) | data.draw(st.sampled_from(OPTIONS))
    check_equal(batches_of(rows, data.draw(st.integers(1, 10))), **COMMON, **options)


@settings(deadline=None, max_examples=examples(30), phases=[Phase.generate])
@given(st.data())
def test_generated_changes(data: st.DataObject) -> None:
    rows, keys, types = drawn_changes(data)
    for declared in ({}, {"columnTypes": json.dumps(types)}):
        options = data.draw(st.sampled_from(FORMS)) | data.draw(st.sampled_from(OPTIONS))
        cut = batches_of(rows, data.draw(st.integers(1, 10)))
        check_equal(cut, **COMMON, **keys, **declared, **options)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_damaged_variants(form: dict[str, str]) -> None:
    """Each row by itself, as the first bad one ends a write."""
    chance = random.Random(18)
    messages, reading = golden_messages("simple-json", "default")
    events, found = decoded(messages, **reading)
    rows = [pair for pair in events if isinstance(pair[1], RowChange)]
    for row in single_rows(damaged(event_rows(chance.sample(rows, 100), found), chance)):
        check_equal(row, **COMMON, **form)


@pytest.mark.parametrize("by_kernel", [True, False])
@pytest.mark.parametrize("form", ["json", "avro"])
def test_zeros_keep_their_digits_as_checksums_count_them(form: str, by_kernel: bool) -> None:
    columns = (Column("d", "decimal(38,30)", DecimalType(38, 30)),)
    table = TableSchema("shop", "orders", columns)
    given = {"encodingFormat": form, "enableRowChecksum": "true"}
    change = RowChange("insert", table, None, Image({"d": Decimal("0E-30")}), commit_ts=7 << 18)
    messages = open_encoder("simple", given).encode(change)
    events, protocol = decoded(messages, protocol="simple")
    rows = event_rows((pair for pair in events if type(pair[1]) is RowChange), protocol)
    found, _ = sent(rows, by_kernel=by_kernel, partitions=1, **COMMON, **given)
    decoder = open_decoder("simple", {"verifyChecksum": "fail"})
    *_, read = (event for *_, value in found for event in decoder.decode(Message(None, value)))
    assert isinstance(read, RowChange)
    assert read.after is not None
    assert str(read.after.values["d"]) == "0E-30"
