"""Simple's Avro by the compiled kernel: the same rows as the reference for any input."""

from __future__ import annotations

import base64
import random
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from kernel.test_golden import OF_EVENTS, OPTIONS
from pyspark.sql.types import StructType
from simple_messages import TEXT, VERSION, bootstrap, column, row, timestamp, to_avro, unsigned
from support.avro_damage import in_another_order, mutated_avro
from support.examples import examples
from support.golden_data import load_variant, read_jsonl, reading_options, variant_names
from support.golden_encoding import open_encoder
from support.turns import in_turn

from cdcfmt_core.events import Message, RowChange
from cdcfmt_core.types import Geometry, Vector
from cdcfmt_files.sources import BadLine
from cdcfmt_testing import Carries, without
from cdcfmt_testing.strategies import row_changes
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed, table_option

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

VARIANTS = variant_names("simple-avro")


def golden(name: str) -> tuple[list[Message], dict[str, str], list[tuple[str, str]]]:
    variant = load_variant("simple-avro", name)
    messages = [message.message for message in variant.messages]
    return messages, reading_options(variant), variant.tables


def rows_of(messages: Sequence[Message], table: str) -> list[Message]:
    return [
        message
        for message in messages
        if message.value is not None
        and message.value[1:2] == b"\x06"
        and table.encode() in message.value
    ]


@pytest.mark.parametrize("name", in_turn(VARIANTS, of=2))
def test_golden_messages(name: str) -> None:
    messages, own, tables = golden(name)
    by_kernel = 0
    for place, table in enumerate(tables):
        if place % 3 != VARIANTS.index(name) % 3 and table[1] != "all_types":
            continue
        # Once more, so that there are plans.
        some = messages + rows_of(messages, table[1])
        for extra in (OPTIONS[0], OPTIONS[1 + place % (len(OPTIONS) - 1)]):
            options = parsed({**own, "table": table_option(*table), **extra})
            schema = inferred_schema(messages, options)
            assert schema is not None
            by_kernel += check_equal(some, schema, options).by_kernel
    assert (by_kernel > 0) != ("largeMessageHandleCompression" in own)


@pytest.mark.parametrize("name", in_turn(VARIANTS, of=2, begin=1))
def test_golden_events(name: str) -> None:
    messages, own, tables = golden(name)
    some = messages + [row for _, table in tables[:5] for row in rows_of(messages, table)]
    by_kernel = 0
    extra = OF_EVENTS[1 + VARIANTS.index(name) % (len(OF_EVENTS) - 1)]
    for each in ({"imageFormat": "json"}, {"imageFormat": "json"} | extra, extra):
        options = parsed({**own, **each})
        by_kernel += check_equal(some, events_schema(options), options).by_kernel
    assert (by_kernel > 0) == (name != "snappy")


@pytest.mark.parametrize(
    ("name", "seed"), in_turn([name for name in VARIANTS if name != "snappy"], range(2), of=3)
)
def test_mutated_messages(name: str, seed: int) -> None:
    messages, own, tables = golden(name)
    chance = random.Random(seed)
    if seed % 2:
        own = {**own, "protocol": "auto"}
    by_kernel = 0
    for table in chance.sample(tables, min(2, len(tables))):
        options = parsed({**own, "table": table_option(*table), **chance.choice(OPTIONS)})
        schema = inferred_schema(messages, options)
        assert schema is not None
        mixed: list[Message | BadLine] = list(messages)
        mixed += [
            attrs.evolve(message, value=mutated_avro(message.value or b"", chance))
            if chance.random() < 0.5
            else message
            for message in rows_of(messages, table[1]) * 30
        ]
        for message in chance.sample(messages, 20):
            spoilt = attrs.evolve(message, value=mutated_avro(message.value or b"", chance))
            mixed.insert(chance.randrange(len(mixed)), spoilt)
        by_kernel += check_equal(mixed, schema, options).by_kernel
        some = StructType(chance.sample(schema.fields, chance.randrange(1, len(schema.fields))))
        check_equal(mixed, some, options, inferred=False, as_lists=True)
        form = chance.choice(["json", "variant"])
        options = parsed({**own, "imageFormat": form, **chance.choice(OF_EVENTS)})
        by_kernel += check_equal(mixed, events_schema(options), options).by_kernel
    assert by_kernel > 0


def test_kernel_reads_almost_all_of_the_benchmark() -> None:
    messages = [
        Message(None, base64.b64decode(line["value_b64"]), offset=at)
        for at, line in enumerate(read_jsonl("bench/simple-avro.jsonl.gz"))
    ]
    for images in ("both", "after"):
        of_bench = {"table": "bench.orders", "sourceTimeZone": "Asia/Shanghai"}
        options = parsed({"protocol": "simple", **of_bench, "images": images})
        schema = inferred_schema(messages, options)
        assert schema is not None
        result = check_equal(messages, schema, options)
        # The schema's two, and the rows that plans were learned from.
        assert result.by_reference <= 6
        assert result.by_kernel == len(messages) - result.by_reference
    for form in ("json", "variant"):
        options = parsed({"protocol": "simple", "imageFormat": form})
        result = check_equal(messages[:1000], events_schema(options), options)
        assert result.by_reference <= 6


# Messages by hand

COLUMNS = (
    column("id", "int", nullable=False),
    column("name", "varchar", **TEXT),
    column("at", "timestamp"),
    column("big", "bigint", unsigned=True),
    column("d", "double"),
)
VALUES = {
    "id": ("long", 1),
    "name": ("string", "John"),
    "at": timestamp("2024-01-01 10:00:00"),
    "big": unsigned(-1),
    "d": ("double", 0.5),
}


def check(*values: bytes, **options: str) -> tuple[int, int]:
    """How many messages the kernel read, and how many the reference decoded."""
    messages = [Message(None, value, offset=at) for at, value in enumerate(values)]
    asked = parsed({"protocol": "simple", "table": "simple.user", **options})
    schema = inferred_schema(messages, asked)
    assert schema is not None
    result = check_equal(messages, schema, asked)
    return result.by_kernel, result.by_reference


def inserted(**changes: Any) -> bytes:
    return to_avro(row("INSERT", data={**VALUES, **changes}))


TOLD = to_avro(bootstrap(*COLUMNS))


def test_only_the_unsupported_record_falls_back() -> None:
    rows = [inserted(id=("long", at)) for at in range(100)]
    for odd in (
        inserted(id=("long", 1 << 40)),
        inserted(id=("string", "1")),
        inserted(at=timestamp("2024-01-01 10:00:00", "Europe/Berlin")),
        inserted(at=timestamp("0000-00-00 00:00:00")),
        inserted() + b"\0",
        inserted()[:-1],
        inserted().replace(b"John", b"Jo\xff\xfe"),
        to_avro(row("INSERT", data=VALUES, old=VALUES)),
    ):
        assert check(TOLD, *rows[:50], odd, *rows[50:]) == (99, 3)


def test_values_come_after_null() -> None:
    empty = [inserted(at=None, name=None, id=("long", at)) for at in range(10)]
    # The encoding of a TIMESTAMP is unknown before.
    assert check(TOLD, *empty, *[inserted()] * 10) == (18, 3)


def test_other_messages_come_between() -> None:
    watermark = to_avro({"version": 1, "type": "WATERMARK", "commitTs": 1, "buildTs": 2})
    some = [inserted()] * 5
    assert check(TOLD, *some, watermark, *some, watermark, *some) == (14, 4)
    assert check(TOLD, *some, TOLD, *some) == (9, 3)
    # Another schema of the same version: the schema of the rows is ambiguous.
    wider = column("id", "bigint", nullable=False)
    another = to_avro(bootstrap(wider, *COLUMNS[1:]))
    assert check(TOLD, *some, another, *some)[0] == 4
    later = to_avro(bootstrap(wider, *COLUMNS[1:], version=VERSION + 1))
    assert check(TOLD, *some, later, *some)[0] == 8


def test_recognised_messages_are_skipped() -> None:
    rows = [inserted(id=("long", at)) for at in range(20)]
    # Before the first TiDB, so that it is not TiDB's.
    odd = to_avro(row("INSERT", data=VALUES, buildTs=1000))
    assert check(TOLD, *rows, protocol="auto") == (19, 2)
    assert check(TOLD, *rows, odd, *rows, protocol="auto") == (39, 3)
    assert check(TOLD, *rows, odd, *rows) == (40, 2)


def test_messages_of_other_tables_are_skipped() -> None:
    other = to_avro({**row("INSERT", data=VALUES), "table": "other"})
    assert check(TOLD, *[inserted(), other] * 20) == (19, 2)


def test_key_updates_fall_back() -> None:
    changed = to_avro(row("UPDATE", data=VALUES, old={**VALUES, "id": ("long", 2)}))
    lone = to_avro(row("UPDATE", data=VALUES))
    same = to_avro(row("UPDATE", data=VALUES, old={**VALUES, "name": None}))
    assert check(TOLD, inserted(), same, changed, lone, same) == (4, 2)
    assert check(TOLD, inserted(), same, changed, same, images="after") == (2, 3)
    # An error in a before image counts, even if the image is not read.
    wrong = to_avro(row("UPDATE", data=VALUES, old={**VALUES, "at": timestamp("never")}))
    assert check(TOLD, inserted(), same, wrong, same, images="after") == (2, 3)


def test_the_older_schema() -> None:
    data = {
        "id": ("long", 1),
        "name": ("string", "John"),
        "at": ("string", "2024-01-01 10:00:00"),
        "big": ("long", 1),
        "d": ("double", 0.5),
    }
    rows = [
        to_avro(row("INSERT", data={**data, "id": ("long", at)}), older=True) for at in range(20)
    ]
    assert check(TOLD, *rows) == (19, 2)


@pytest.mark.parametrize(
    "names",
    [
        [f"column_{at:04}" for at in range(300)],
        [f"a_rather_long_name_of_a_column_{at}_and_so_on" for at in range(20)],
        ["a", "b", "ab", "ba", "aaaaaaa", "aaaaaaaa", "aaaaaaaaa", "\u00e9", "\u4e2d\u6587"],
        ["x" * 64, "y"],
    ],
)
def test_any_names(names: list[str]) -> None:
    bootstrapped = to_avro(
        bootstrap(column("id", "int", nullable=False), *(column(n, "int") for n in names))
    )
    chance = random.Random(0)
    rows = []
    for at in range(50):
        data = {
            "id": ("long", at),
            **{name: ("long", chance.randrange(-200, 200)) for name in names},
        }
        rows.append(
            to_avro(row("INSERT", data=dict(chance.sample(sorted(data.items()), len(data)))))
        )
    by_kernel, _ = check(bootstrapped, *rows)
    assert by_kernel == 49


# The encoder's output for arbitrary rows

CARRIES = Carries(types=without(Geometry, Vector), times=frozenset({"commit_ts", "emit_time"}))


@settings(deadline=None, max_examples=examples(40), phases=[Phase.reuse, Phase.generate])
@given(row_changes(CARRIES), st.integers(0, 100), st.sampled_from(OPTIONS))
def test_arbitrary_rows(events: list[RowChange], seed: int, extra: dict[str, str]) -> None:
    chance = random.Random(seed)
    encoder = open_encoder("simple", encodingFormat="avro", sourceTimeZone="Europe/Berlin")
    values = [message.value or b"" for event in events * 4 for message in encoder.encode(event)]
    messages = [
        Message(None, value if at < 3 else in_another_order(value, chance), offset=at)
        for at, value in enumerate(values)
    ]
    table = table_option(events[0].table.database, events[0].table.table)
    options = parsed({"protocol": "simple", "table": table, **extra})
    schema = inferred_schema(messages, options)
    assert schema is not None
    check_equal(messages, schema, options)
    for form in ("json", "variant"):
        options = parsed({"protocol": "simple", "imageFormat": form, "sourceTimeZone": "UTC"})
        check_equal(messages, events_schema(options), options)
