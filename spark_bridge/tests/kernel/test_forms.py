"""By the kernel: documents with blanks in them, times in seconds, deleted rows in ``old``."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from typing import Any

import attrs
import pyarrow as pa
import pytest
from kernel.test_canal_json import USUAL, check_events, update
from kernel.test_debezium import check, message, payload, schema_of

from cdcfmt_core.events import Message
from cdcfmt_core.types import MAX_TIMESTAMP
from cdcfmt_toolkit.layout import Layout
from cdcfmt_toolkit.zone_offsets import describe_zone
from pyspark_cdcfmt.kernel.settings import describe_layout
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

BLANKS: tuple[dict[str, Any], ...] = (
    {},  # as json.dumps writes by default
    {"indent": 2},
    {"separators": ("\t,\r\n", " : ")},
)


def rewritten(message: Message, form: dict[str, Any], **members: Any) -> Message:
    """The message with other members, in another form."""
    wire = {**json.loads(message.value or b""), **members}
    value = json.dumps(wire, ensure_ascii=False, **form).encode()
    return attrs.evolve(message, value=value)


def updates(count: int) -> list[Message]:
    types = {f"c{at}": type_ for at, type_ in enumerate(USUAL)}
    usual = {f"c{at}": value for at, value in enumerate(USUAL.values())}
    return [update(at, types, usual | {"c0": str(at)}, {"c0": "1"}) for at in range(count)]


def by_both(messages: list[Message], **options: str) -> tuple[int, int]:
    """By the kernel and by the reference, the same in both shapes."""
    read = parsed({"protocol": "canal-json", "table": "shop.orders", **options})
    schema = inferred_schema(messages, read)
    assert schema is not None
    result = check_equal(messages, schema, read)
    for form in ("json", "variant"):
        events = check_events(messages, imageFormat=form, **options)
        assert events.by_kernel == result.by_kernel
    return result.by_kernel, result.by_reference


def test_repeated_members_until_a_difference() -> None:
    dice = random.Random(1)
    other = {
        str: lambda text: text + "x",
        int: lambda number: number + 1,
        bool: lambda word: not word,
    }
    messages = []
    for number, usual in enumerate(updates(150)):
        members = list(json.loads(usual.value or b"").items())
        if number % 5 == 4:
            at = dice.randrange(len(members))
            name, value = members[at]
            change = dice.choice(["value", "order", "missing", "twice"])
            if change == "value" and type(value) in other:
                members[at] = (name, other[type(value)](value))
            elif change == "order":
                dice.shuffle(members)
            elif change == "missing":
                del members[at]
            else:
                members.append((name, value))
        texts = (f"{json.dumps(name)}:{json.dumps(value)}" for name, value in members)
        value = f"{{{','.join(texts)}}}".encode()
        messages.append(attrs.evolve(usual, value=value))
    by_kernel, _ = by_both(messages, mode="DROPMALFORMED")
    assert by_kernel > 100


@pytest.mark.parametrize("form", BLANKS)
@pytest.mark.parametrize("dialect", ["auto", "canal"])
def test_blanks_between_the_parts_of_a_document(form: dict[str, Any], dialect: str) -> None:
    messages = [rewritten(message, form) for message in updates(10)]
    assert by_both(messages, dialect=dialect) == (9, 1)
    mixed = [m for pair in zip(messages, updates(10), strict=True) for m in pair]
    # Lists of the schema key are compared as they stand.
    in_lists = "indent" in form
    assert by_both(mixed, dialect=dialect) == (19 - in_lists, 1 + in_lists)


@pytest.mark.parametrize("form", BLANKS)
@pytest.mark.parametrize("order", [("schema", "payload"), ("payload", "schema"), ("payload",)])
def test_blanks_around_a_payload_and_its_schema(
    form: dict[str, Any], order: tuple[str, ...]
) -> None:
    fields = {"id": {"type": "int32"}, "a": {"type": "string", "doc": ',"payload":'}}
    parts = {
        "schema": schema_of(fields),
        "payload": payload("u", {"id": 1, "a": "x"}, {"id": 1, "a": "y"}),
    }
    wire = {name: parts[name] for name in order}
    messages = [rewritten(message(at, wire, {"id": 1}), form) for at in range(10)]
    if "schema" in order:
        assert check(messages, {}) == (9, 1)
    else:
        check(messages, {})


@pytest.mark.parametrize(
    "odd",
    [
        '{"schema": {}, "payload" {}}',
        '{"schema": {} "payload": {}}',
        '{"schema": , "payload": {}}',
        '{"payload": {}, "schema": }',
        '{"payload": {}, "schema": {} ',
        '{"payload" : {}, "schema": {}, "more": 1 }',
        '{"schema": {"a": ", \\"payload\\": "}, "payload": {}}',
    ],
)
def test_broken_wrappers_with_blanks(odd: str) -> None:
    image = {"id": 1}
    good = json.dumps(
        {"schema": schema_of({"id": {"type": "int32"}}), "payload": payload("c", None, image)}
    )
    odd = odd.replace('"payload": {}', '"payload": ' + json.dumps(payload("c", None, image)))
    values = [good, good, odd, good]
    messages = [Message(b'{"id": 1}', value.encode(), offset=at) for at, value in enumerate(values)]
    check(messages, {})


SECONDS: dict[str, Any] = {"es": 1_700_000_000, "ts": 1_700_000_001}


@pytest.mark.parametrize("dialect", ["auto", "ckafka"])
@pytest.mark.parametrize("types", ["of MySQL", "numbers", "none"])
def test_times_in_seconds(dialect: str, types: str) -> None:
    more: dict[str, Any] = {}
    if types != "of MySQL":
        codes = {f"c{at}": 12 for at in range(len(USUAL))}
        more = {"mysqlType": None, "sqlType": codes if types == "numbers" else None}
    messages = [rewritten(m, {"separators": (",", ":")}, **SECONDS, **more) for m in updates(10)]
    assert by_both(messages, dialect=dialect) == (9, 1)


@pytest.mark.parametrize("dialect", ["auto", "ckafka", "canal", "ticdc"])
def test_times_in_any_unit_equal_the_reference(dialect: str) -> None:
    """Both units take turns, at the ends of their ranges, too."""
    most = 253_402_300_799
    times = [0, 1, -1, 1_700_000_000, 10**11 - 1, 10**11, most, most + 1, most * 1000 + 999]
    times += [1_700_000_000_000, most * 1000 + 1000, 1 << 45, None, 1.5, "7", True]
    pairs = [(es, ts) for es in times for ts in (es, 1_700_000_000, 1_700_000_000_000)]
    messages = [
        attrs.evolve(rewritten(m, {}, es=es, ts=ts, id=at % 2), offset=at)
        for at, ((es, ts), m) in enumerate(zip(pairs, updates(len(pairs)), strict=True))
    ]
    by_kernel, _ = by_both(messages, dialect=dialect)
    assert by_kernel


def test_a_change_of_unit_costs_one_message() -> None:
    some = updates(40)
    messages = [rewritten(m, {}, **SECONDS) if at % 2 else m for at, m in enumerate(some)]
    assert by_both(messages) == (38, 2)


def test_deleted_rows_in_old() -> None:
    messages = []
    for at, each in enumerate(updates(12)):
        wire = json.loads(each.value or b"")
        deleted: dict[str, Any] = {"type": "DELETE", "old": wire["data"], "data": None}
        changed: dict[str, Any] = {"type": "INSERT", "old": None}
        messages.append(rewritten(each, {}, **({}, deleted, changed)[at % 3]))
    assert by_both(messages, dialect="drs") == (11, 1)
    in_data = [rewritten(m, {}, data=[{"c0": "1"}]) for m in messages[1::3]]
    in_both = [rewritten(m, {}, old=[]) for m in messages[1::3]]
    by_both([*messages, *in_data, *in_both], dialect="drs")


ISO = Layout(
    members={"table": "table", "op": "op", "at": "source_time", "row": "after"},
    ops={"I": "insert"},
    encodings=lambda value, table: {},
    times=(0, MAX_TIMESTAMP, 1),
    iso_times=True,
)


def test_times_as_text() -> None:
    import cdcfmt_kernel

    described = {
        "layouts": [describe_layout(ISO)],
        "outputs": [{"name": "at", "content": "commit_timestamp"}],
        "zone": describe_zone(UTC),
        "low_watermark": 0,
        "before_updates": True,
        "splits_keys": False,
        "max_message_bytes": 1 << 20,
        "max_rows": 1000,
        "max_bytes": 1 << 20,
        "row_bytes": 8,
        "images": None,
        "shown": {"place": False, "headers": False},
    }
    kernel = cdcfmt_kernel.Kernel(json.dumps(described))

    def value(time: Any) -> bytes:
        return json.dumps({"table": "t", "op": "I", "at": time, "row": {}}).encode()

    rows = {"columns": [], "absent": [], "keyed": False, "event": None}
    plan = {"rows": rows, "repeats": 0, "members": 0, "shown": None}
    kernel.add_plan(value("2024-01-01T00:00:00Z"), None, json.dumps(plan))
    good = ["1970-01-01T00:00:00Z", "2024-02-29T23:59:59.5Z", "9999-12-31T23:59:59.999999Z"]
    good += ["2024-01-01 00:00:00Z", "2024-01-01T00:00:00+01:00", "2024-01-01 00:00:00.25-03"]
    refused = [
        *("1969-12-31T23:59:59Z", "2024-02-30T00:00:00Z", "2024-01-01T00:00:00.1234567Z"),
        *("2024-01-01T00:00:00+24:00", "2024-01-01T00:00:00+0100", "2024-01-01"),
        "2024-01-01 00:00:00",
        *("", "Z", 1_700_000_000, True, None, ["2024-01-01T00:00:00Z"]),
    ]
    for time in [*good, *refused]:
        kernel.read([value(time)], [], [None], 0)
    found = pa.record_batch(kernel.finish()).column("at").to_pylist()
    assert found == [datetime.fromisoformat(time) for time in good]
