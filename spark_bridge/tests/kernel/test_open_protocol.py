"""Open Protocol by the kernel: messages with many events, and refused messages."""

from __future__ import annotations

import base64
import gzip
import json
import random
from collections.abc import Iterator
from itertools import islice

import attrs
import pytest
from pyspark.sql.types import StructType
from support.damaged_messages import mutated_message
from support.golden_data import GOLDEN, load_variant, reading_options

from cdcfmt_core.events import Message
from cdcfmt_open_protocol.frames import HEAD, framed, split_key, split_value
from pyspark_cdcfmt.testing import Result, check_equal, inferred_schema, parsed, table_option

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

RESOLVED = b'{"ts":470604474498940934,"t":3}'


def bench(name: str, count: int) -> list[Message]:
    """The first messages of the benchmark, behind its DDL."""
    with gzip.open(GOLDEN / f"bench/{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        wires = [json.loads(line) for line in islice(lines, 2, 2 + count)]
    return [
        Message(
            base64.b64decode(wire["key_b64"]), base64.b64decode(wire["value_b64"]), offset=offset
        )
        for offset, wire in enumerate(wires)
    ]


def compare(messages: list[Message], **given: str) -> Result:
    """The result by the kernel, which is the reference's; so are the lists of each message."""
    options = parsed(
        {"protocol": "open-protocol", "table": "bench.orders", "sourceTimeZone": "Asia/Shanghai"}
        | given
    )
    schema = inferred_schema(messages, options)
    assert schema is not None
    check_equal(messages, schema, options, as_lists=True)
    return check_equal(messages, schema, options)


@pytest.mark.parametrize(("name", "count"), [("open", 600), ("open-batched", 60)])
@pytest.mark.parametrize("images", ["both", "after"])
def test_kernel_reads_almost_all_messages(name: str, count: int, images: str) -> None:
    result = compare(bench(name, count), images=images)
    assert result.by_kernel + result.by_reference == count
    assert result.by_reference <= 3


@pytest.mark.parametrize("old_value", ["true", "false", "auto"])
def test_operation_of_inserts_depends_on_an_option(old_value: str) -> None:
    result = compare(bench("open", 60), oldValue=old_value)
    assert (result.by_kernel > 0) == (old_value != "auto")


def events_of(messages: list[Message]) -> Iterator[tuple[bytes, bytes]]:
    for message in messages:
        keys = split_key(message.key or b"", 1_000)
        values = split_value(message.value or b"", 1_000)
        if len(keys) == len(values):
            yield from zip(keys, values, strict=True)


def batch(events: list[tuple[bytes, bytes]], offset: int = 0) -> Message:
    keys, values = zip(*events, strict=True)
    return Message(HEAD + b"".join(map(framed, keys)), b"".join(map(framed, values)), offset=offset)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["default", "only-output-updated-columns", "handle-key-only"])
def test_batched_events(name: str, seed: int) -> None:
    variant = load_variant("open", name)
    chance = random.Random(seed)
    golden = list(events_of([message.message for message in variant.messages]))
    by_kernel = 0
    for table in chance.sample(variant.tables, 4):
        own = b'"scm":"%s","tbl":"%s"' % (table[0].encode(), table[1].encode())
        events = [event for event in golden if own in event[0]] * 4
        messages: list[Message] = []
        while events:
            some, events = events[: chance.randrange(1, 5)], events[4:]
            if seed:  # as the newer TiCDC, whose NULLs among old values may be something else
                some = [(_without(key, "rid"), value) for key, value in some]
            if chance.random() < 0.1:
                some.append(chance.choice([(RESOLVED, b""), chance.choice(golden)]))
            message = batch(some, len(messages))
            if chance.random() < 0.1:
                message = mutated_message(message, chance, in_frames=True)
            messages.append(message)
        given = {**reading_options(variant), "table": table_option(*table)}
        for extra in (
            {},
            {"images": "after"},
            {"splitKeyUpdates": "true", "incompleteRows": "emit"},
        ):
            options = parsed(given | extra)
            schema = inferred_schema(messages, options)
            if schema is None:
                continue
            by_kernel += check_equal(messages, schema, options).by_kernel
            check_equal(messages, schema, options, as_lists=True)
            some_fields = StructType(chance.sample(schema.fields, 3))
            check_equal(messages, some_fields, options, inferred=False)
    assert by_kernel > 0


def _without(key: bytes, member: str) -> bytes:
    wire = json.loads(key)
    wire.pop(member, None)
    return json.dumps(wire, separators=(",", ":")).encode()


def test_messages_of_other_tables_are_skipped_by_their_keys() -> None:
    rows = bench("open", 40)
    others = [attrs.evolve(row, key=(row.key or b"").replace(b"orders", b"others")) for row in rows]
    messages = [message for pair in zip(rows, others, strict=True) for message in pair]
    result = compare(messages)
    assert (result.by_kernel, result.by_reference, result.skipped) == (39, 1, 40)
    # An unwanted event whose value is missing has no row either, but no mention.
    cut = attrs.evolve(others[0], value=b"")
    assert compare([*messages, cut]).by_reference == 2


@pytest.mark.parametrize("architecture", ["auto", "classic", "new"])
@pytest.mark.parametrize(
    "key",
    [
        '"rid":false', '"rid":18446744073709551616', '"rid":null', '"rid":-0', '"ptn":"1"',
        '"ptn":1e3', '"t":2', '"t":1.0', '"t":true', '"ohk":false', '"ohk":true', '"ohk":null',
        '"ts":null', '"scm":null', '"scm":""', '"ccl":"file"', '"other":1', "", '"t":1},"u":{',
    ],
)  # fmt: skip
def test_unsupported_key_falls_back(key: str, architecture: str) -> None:
    messages = bench("open", 30)
    members = {name: json.dumps(value) for name, value in KEY.items()}
    name, _, value = key.partition(":")
    members.update({json.loads(name): value} if key else {})
    if not key:
        del members["t"]
    text = ",".join(f'"{name}":{value}' for name, value in members.items())
    ((_, image),) = events_of(messages[:1])
    for place, table in ((10, "orders"), (20, "others")):
        wire = "{" + text.replace("orders", table) + "}"
        messages[place] = batch([(wire.encode(), image)], place)
    compare(messages, ticdcArchitecture=architecture)


KEY = {"ts": 470604474498940934, "scm": "bench", "tbl": "orders", "rid": 1, "t": 1}


@pytest.mark.parametrize("strange", ["resolved", "another table", "a flag", "no row"])
def test_refused_message_is_decoded_completely_by_the_reference(strange: str) -> None:
    messages = bench("open-batched", 20)
    events = list(events_of(messages[10:11]))
    key, value = events[3]
    events[3] = {
        "resolved": (RESOLVED, b""),
        "another table": (key.replace(b"order", b"other"), value),
        "a flag": (key, value.replace(b'"h":true', b'"h":false')),
        "no row": (key, b'{"p":{}}'),
    }[strange]
    messages[10] = batch(events, 10)
    result = compare(messages)
    # The kernel leaves out an event of another table.
    by_reference = 1 if strange == "another table" else 2
    assert (result.by_kernel, result.by_reference) == (18, by_reference)


@pytest.mark.parametrize(
    ("has_row_id", "architecture"),
    [(True, "auto"), (False, "auto"), (False, "classic"), (False, "new")],
)
@pytest.mark.parametrize("images", ["both", "after"])
def test_ambiguous_old_nulls(has_row_id: bool, architecture: str, images: str) -> None:
    messages = bench("open", 40)
    if not has_row_id:
        messages = [
            attrs.evolve(each, key=HEAD + framed(_without(key, "rid")))
            for each, (key, _) in zip(messages, events_of(messages), strict=True)
        ]
    for place in (20, 30):
        ((key, value),) = events_of(messages[place : place + 1])
        new = json.loads(value)["u"]
        new["discount"]["v"] = "0.5000"
        old = {"discount": {**new["discount"], "v": None}, "amount": {**new["amount"], "v": "0.01"}}
        if place == 30:  # nothing but the key came unchanged, so NULLs are NULLs
            old["id"] = new["id"]
        text = json.dumps({"u": new, "p": old}, separators=(",", ":")).encode()
        messages[place] = batch([(key, text)], place)
    given = {"images": images, "incompleteRows": "emit", "ticdcArchitecture": architecture}
    first = compare(messages, **given)
    few = compare(messages, **given, keyColumns="id")
    doubted = not has_row_id and architecture != "classic"
    assert first.by_reference == few.by_reference == 1 + doubted
