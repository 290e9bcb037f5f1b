"""DTS records by the compiled kernel: byte for byte those of the reference encoder."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import attrs
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
from kernel.test_writing_simple import usual_rows
from support.examples import examples
from support.turns import in_turn
from support.written_rows import check_equal, decoded, event_rows, sent

from cdcfmt_core.events import Column, Image, Message, RowChange, TableSchema
from cdcfmt_dts_avro.types import type_of_text

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

COMMON = {**SKIP, "protocol": "dts-avro"}
OPTIONS: list[dict[str, str]] = [
    {"upsertAs": "update"},
    {"splitKeyUpdates": "true", "upsertAs": "insert"},
    {"lineFormat": "message", "maxMessageBytes": "900"},
]
GOLDEN = [
    ("native", "dts/dts"),
    ("canal-json", "tidb-extension"),
    ("simple-json", "default"),
    ("open", "default"),
    ("debezium", "tidb-extension"),
    ("native", "canal/canal_flat"),
]


@pytest.mark.parametrize(("protocol", "name"), in_turn(GOLDEN, of=2))
def test_golden_events(protocol: str, name: str) -> None:
    messages, reading = golden_messages(protocol, name)
    events, found = decoded(messages, **reading)
    rows = event_rows(events, found)
    for options in OPTIONS:
        check_equal(rows, **COMMON, **options)


@pytest.mark.parametrize(("protocol", "name"), in_turn(GOLDEN[1:], of=2))
def test_golden_changes(protocol: str, name: str) -> None:
    for place, (rows, table, typed) in enumerate(golden_changes(protocol, name)):
        options = COMMON | table | OPTIONS[place % len(OPTIONS)]
        check_equal(rows, **options)
        check_equal(rows, **options, **typed)


def golden_rows() -> tuple[list[tuple[Message, RowChange]], str]:
    """Those of a golden dump of DTS itself."""
    messages, reading = golden_messages("native", "dts/dts")
    events, found = decoded(messages, **reading)
    return [(message, event) for message, event in events if isinstance(event, RowChange)], found


def plain_rows() -> tuple[list[tuple[Message, RowChange]], str]:
    """Those with whole images, and without the geometry, which is the reference's."""
    pairs, found = golden_rows()
    whole = (
        (message, event)
        for message, event in pairs
        if all(image is None or image.complete for image in (event.before, event.after))
    )
    return [(message, without_geometry(event)) for message, event in whole], found


def without_geometry(event: RowChange) -> RowChange:
    def without(image: Image | None) -> Image | None:
        return image and Image({k: v for k, v in image.values.items() if k != "c_geom"})

    columns = (column for column in event.table.columns if column.name != "c_geom")
    table = attrs.evolve(event.table, columns=tuple(columns))
    return attrs.evolve(
        event, table=table, before=without(event.before), after=without(event.after)
    )


def check_each(pairs: Any, found: str, **options: str) -> float:
    """Check each row by itself, as the first bad one ends a write; the share of the kernel."""
    rows = list(single_rows(event_rows(pairs, found)))
    return sum(check_equal(row, **COMMON, **options)[1] for row in rows) / len(rows)


def test_ordinary_rows_use_the_kernel() -> None:
    rows = usual_rows(1_000)
    lines, by_kernel = check_equal(rows, **COMMON)
    assert by_kernel > 0.99 * lines
    # Ids are those of all partitions.
    expected, _ = sent(rows, by_kernel=False, partitions=3, **COMMON)
    assert sent(rows, by_kernel=True, partitions=3, **COMMON) == (expected, by_kernel)


def test_rows_of_dts_use_the_kernel() -> None:
    """But for impossible dates and decimals of 65 digits, of which the golden rows have many."""
    assert check_each(*plain_rows()) > 0.4


@pytest.mark.parametrize("source", ["MySQL", "DRDS", "PostgreSQL", "PPAS", "Oracle", "no", None, 7])
def test_type_numbers_equal_the_source(source: Any) -> None:
    pairs, found = plain_rows()
    extra = {} if source is None else {"source_type": source}
    events = [(message, attrs.evolve(event, extra=extra)) for message, event in pairs[::5]]
    share = check_each(events, found)
    assert (share > 0.3) == (source not in ("PostgreSQL", "PPAS", "Oracle"))


POSTGRESQL: dict[str, Any] = {
    "smallint": -1,
    "bigint": 2**63 - 1,
    "boolean": True,
    "real": 0.1,
    "double precision": -1e300,
    "numeric": Decimal("1.50"),
    "character varying": "ü",
    "uuid": "0d2e",
    "jsonb": '{"a": [1]}',
    "bytea": b"\xff",
    "date": date(2024, 2, 29),
    "time": -timedelta(hours=1, microseconds=5),
    "timestamp with time zone": datetime(2024, 2, 29, 1, tzinfo=UTC),
}


@pytest.mark.parametrize("source_type", POSTGRESQL)
def test_types_of_postgresql(source_type: str) -> None:
    column = Column("c", source_type, type_of_text(source_type), key=True)
    table = TableSchema("shop", "t", (column,), ("c",), "s")
    events: list[Any] = [
        (
            Message(None, None, offset=number),
            RowChange(
                "insert",
                table,
                None,
                Image({"c": value}),
                source_time=1_000_000,
                extra={"source_type": "PostgreSQL"},
            ),
        )
        for number, value in enumerate((POSTGRESQL[source_type], None))
    ]
    assert check_each(events, "dts-avro") == 1


EXTRA = st.fixed_dictionaries(
    {},
    optional={
        "id": st.integers(0, 3) | st.just(2**63 - 1) | st.integers() | st.booleans() | st.text(),
        "version": st.integers(-2, 70) | st.none(),
        "source_position": st.text() | st.integers(),
        "transaction_id": st.text(),
        "source_type": st.sampled_from(["MySQL", "PostgreSQL", "x"]),
        "process_timestamps": st.lists(st.integers(-(2**63), 2**63) | st.just(True), max_size=3)
        | st.just({}),
        "tags": st.dictionaries(
            st.sampled_from(["a", "pk_uk_info", "ü", ""]), st.text() | st.none() | st.integers()
        )
        | st.just([])
        | st.just({str(number): "" for number in range(65)}),
        "born_timestamp": st.integers() | st.text(),
    },
)


@settings(deadline=None, max_examples=examples(100), phases=[Phase.generate])
@given(st.data())
def test_record_metadata(data: st.DataObject) -> None:
    pairs, found = plain_rows()
    some = data.draw(st.lists(st.sampled_from(pairs[-40:]), min_size=1, max_size=4))
    events: list[Any] = [
        (message, attrs.evolve(event, extra=data.draw(EXTRA))) for message, event in some
    ]
    rows = event_rows(events, found)
    check_equal(rows, **COMMON, **data.draw(st.sampled_from(OPTIONS)))


@settings(deadline=None, max_examples=examples(60), phases=[Phase.generate])
@given(st.data())
def test_generated_events(data: st.DataObject) -> None:
    rows = drawn_events(data)
    options = data.draw(st.sampled_from(OPTIONS))
    check_equal(batches_of(rows, data.draw(st.integers(1, 10))), **COMMON, **options)


@settings(deadline=None, max_examples=examples(30), phases=[Phase.generate])
@given(st.data())
def test_generated_changes(data: st.DataObject) -> None:
    rows, keys, types = drawn_changes(data)
    for declared in ({}, {"columnTypes": json.dumps(types)}):
        cut = batches_of(rows, data.draw(st.integers(1, 10)))
        options = data.draw(st.sampled_from(OPTIONS))
        check_equal(cut, **COMMON, **keys, **declared, **options)


def test_damaged_variants() -> None:
    chance = random.Random(18)
    pairs, found = plain_rows()
    for row in single_rows(damaged(event_rows(chance.sample(pairs, 100), found), chance)):
        check_equal(row, **COMMON)
