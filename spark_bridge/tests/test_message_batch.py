"""Messages in Arrow columns are read like the same messages one by one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import attrs
import pyarrow as pa
import pytest
from support.golden_data import load_variant, reading_options

from cdcfmt_core.events import Message
from cdcfmt_core.transport import MessageColumns
from pyspark_cdcfmt.options import parse_options
from pyspark_cdcfmt.read.engine import Engine
from pyspark_cdcfmt.rows.message_batch import MESSAGE, MessageBatch
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.row_schemas import events_schema

TIMES = (None, -1, 0, 1_700_000_000_123, 253_402_300_799_999, 253_402_300_800_000, 1 << 62)


def messages() -> list[Message]:
    """Golden ones at places of their own, every tenth with another value."""
    bad = (None, b"", b"{", b"{}", b"[1]")
    return [
        attrs.evolve(
            golden.message,
            value=golden.value if number % 10 else bad[number // 10 % len(bad)],
            headers=() if number % 3 else (("trace", b"\xff"), ("empty", None)),
            topic="orders" if number % 7 else None,
            partition=number % 4,
            offset=number if number % 11 else None,
            timestamp=TIMES[number % len(TIMES)],
        )
        for number, golden in enumerate(load_variant("canal-json", "tidb-extension").messages)
    ]


def rows(given: Any, *, by_kernel: bool = True) -> list[dict[str, Any]]:
    options = parse_options(
        {
            **reading_options(load_variant("canal-json", "tidb-extension")),
            "includeHeaders": "true",
        },
        of_dataframe=True,
    ).in_stream()
    engine = Engine(ReadTask(events_schema(options), options), by_kernel=by_kernel)
    return [row for batch in engine.batches(iter(given)) for row in batch.to_pylist()]


@pytest.mark.parametrize("by_kernel", [True, False])
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_rows_are_those_of_single_messages(by_kernel: bool, size: int) -> None:
    given = messages()
    batches = [MessageBatch.of(given[at : at + size]) for at in range(0, len(given), size)]
    assert rows(batches, by_kernel=by_kernel) == rows(given, by_kernel=False)


def test_messages_come_back() -> None:
    given = messages()
    batch = MessageBatch.of(given)
    assert list(batch) == given
    assert batch[17] == given[17]
    assert list(batch[3:9]) == given[3:9]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "GMT+8"])
def test_times_of_spark_are_rounded_down(zone: str) -> None:
    times = [
        datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
        datetime(2024, 1, 1, 0, 0, 0, 1, UTC),
        # In New York this hour comes twice.
        datetime(2024, 11, 3, 5, 30, 0, 1, UTC),
        datetime(2024, 11, 3, 6, 30, 0, 1, UTC),
    ]
    values = pa.array([b"x"] * len(times))
    of_spark = pa.array(times, pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone))
    structs = pa.StructArray.from_arrays([values, of_spark], ["value", "timestamp"])
    batch = MessageBatch.of_structs(structs)
    assert batch.columns.schema.equals(MESSAGE)
    expected = [-1, 1_704_067_200_000, 1_730_611_800_000, 1_730_615_400_000]
    assert [message.timestamp for message in batch] == expected


@pytest.mark.parametrize("headers", [[(), ()], [(), (("trace", b"\xff"), ("empty", None))]])
def test_columns_of_a_topic(headers: Any) -> None:
    columns = MessageColumns(
        "orders", 3, [None, b"k"], [b"v", None], headers, [5, 9], [None, 1_700_000_000_123]
    )
    expected = [
        Message(None, b"v", (), "orders", 3, 5, None),
        Message(b"k", None, headers[1], "orders", 3, 9, 1_700_000_000_123),
    ]
    assert list(columns) == expected
    assert list(MessageBatch.of_columns(columns)) == expected
