"""Arbitrary rows from every format into every other one: values common to both survive."""

from __future__ import annotations

import decimal
from typing import Any

import attrs
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.conversions import READING
from support.examples import examples
from support.golden_data import open_decoder
from support.golden_encoding import open_encoder

from cdcfmt_core.events import Event, Image, Message, RowChange
from cdcfmt_core.types import (
    Binary,
    Bit,
    Date,
    DateTime,
    Decimal,
    Enum,
    Float,
    Int,
    Json,
    LogicalType,
    Set,
    Text,
    Time,
    Timestamp,
    Year,
)
from cdcfmt_simple.message import HIDDEN_PREFIX
from cdcfmt_testing import Carries
from cdcfmt_testing.strategies import row_changes

FORMATS: dict[str, dict[str, Any]] = {
    "canal-json": {"enableTidbExtension": True, "contentCompatible": True},
    "canal-json (Canal)": {"dialect": "canal"},
    "cloudcanal-json": {},
    "debezium": {"enableTidbExtension": True},
    "dts-avro": {},
    "open-protocol": {"maxBatchSize": 2},
    "simple": {},
    "simple (Avro)": {"encodingFormat": "avro"},
}
HAVE_NO_COMMIT_TS = {"canal-json (Canal)", "cloudcanal-json", "dts-avro"}

EVERYWHERE: tuple[LogicalType, ...] = (
    *(Int(bits, signed) for bits in (8, 16, 24, 32, 64) for signed in (True, False)),
    Float(64),
    Decimal(10, 2),
    Text(),
    Binary(),
    Bit(10),
    Date(),
    *(kind(6) for kind in (DateTime, Timestamp, Time)),
    Year(),
    Json(),
)
"""Types that every format writes exactly."""

BIGINTS = (Int(64), Int(64, signed=False))

MEMBERS = (Enum(("a", "b")), Set(("x", "y")))
"""Numbers without names on some wires, and names as plain text on others."""
WITH_MEMBERS = set(FORMATS) - {"open-protocol", "dts-avro", "debezium"}

NEVER_NULL: dict[LogicalType, Any] = {
    Text(): "",
    Binary(): b"",
    Decimal(10, 2): decimal.Decimal("0.00"),
}
"""DTS has no type for a column with only NULLs: text or bytes, precision."""

PAIRS = [(source, target) for source in FORMATS for target in FORMATS]


def _has_key_and_more(events: list[RowChange]) -> bool:
    table = events[0].table
    # TiDB's own names of columns that expression indexes hide.
    hides = any(name.startswith(HIDDEN_PREFIX) for name in table.column_names)
    return 0 < len(table.key_columns) < len(table.columns) and not hides


@st.composite
def changes(draw: st.DrawFn, types: tuple[LogicalType, ...]) -> list[RowChange]:
    """Rows of a table with a key, which no update changes, and with another column."""
    carries = Carries(
        types=types, invalid_dates=False, times=frozenset({"commit_ts", "source_time"})
    )
    events: list[RowChange] = draw(row_changes(carries).filter(_has_key_and_more))
    for event in events:
        for image in (event.before, event.after):
            for column in event.table.columns:
                if image and image.values[column.name] is None and column.type in NEVER_NULL:
                    image.values[column.name] = NEVER_NULL[column.type]
        # DTS has seconds.
        event.source_time = (event.source_time or 0) // 1_000_000 * 1_000_000
        if event.before is not None and event.after is not None:
            keys = {name: event.after.values[name] for name in event.table.key_columns}
            event.before = Image(event.before.values | keys)
    return events


def write(name: str, events: list[Any]) -> list[Message]:
    encoder = open_encoder(
        name.partition(" ")[0],
        sourceTimeZone="Asia/Shanghai",
        synthesizeCommitTs=True,
        **FORMATS[name],
    )
    messages = [message for event in events for message in encoder.encode(event)]
    return messages + encoder.flush()


def read(name: str, messages: list[Message]) -> list[Event]:
    protocol = name.partition(" ")[0]
    given = READING.get(protocol, {})
    decoder = open_decoder(protocol=protocol, sourceTimeZone="Asia/Shanghai", **given)
    return [event for message in messages for event in decoder.decode(message)]


def rows(events: list[Event]) -> list[RowChange]:
    found = [event for event in events if isinstance(event, RowChange)]
    # Simple sends schemas.
    assert all(isinstance(e, RowChange) or type(e).__name__ == "TableSchemaEvent" for e in events)
    return found


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=" to ".join)
@settings(deadline=None, max_examples=examples(5), phases=[Phase.reuse, Phase.generate])
@given(data=st.data())
def test_common_values_survive_conversion(source: str, target: str, data: st.DataObject) -> None:
    types = EVERYWHERE
    if {source, target} <= WITH_MEMBERS:
        types += MEMBERS
    if (source, target) == ("dts-avro", "debezium"):
        # Unsigned BIGINT is a decimal, which Debezium writes as a double.
        types = tuple(logical for logical in types if logical not in BIGINTS)
    events = data.draw(changes(types))
    came = rows(read(source, write(source, [attrs.evolve(event) for event in events])))
    converted = rows(read(target, write(target, came)))
    assert len(converted) == len(events)
    for event, other in zip(events, converted, strict=True):
        assert (other.op, other.table.database, other.table.table) == (
            event.op,
            event.table.database,
            event.table.table,
        )
        assert set(other.table.key_columns) == set(event.table.key_columns)
        assert set(other.table.column_names) == set(event.table.column_names)
        if not {source, target} & HAVE_NO_COMMIT_TS:
            assert other.commit_ts == event.commit_ts
        for image, got in ((event.before, other.before), (event.after, other.after)):
            assert (None if image is None else image.values) == (
                None if got is None else got.values
            )
