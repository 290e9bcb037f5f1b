"""What is written, to a reader that knows the protocol's document and nothing of TiCDC."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import naive_open_protocol
import pytest
from bare_types import member_number
from golden_encoding import open_encoder
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from open_round_trips import CARRIES

from cdcfmt_core.events import Image, RowChange
from cdcfmt_core.mysql import format_time
from cdcfmt_core.mysql.text_output import text_printer
from cdcfmt_core.testing.strategies import row_changes
from cdcfmt_core.types import (
    Date,
    DateTime,
    Decimal,
    Enum,
    Float,
    InvalidValue,
    LogicalType,
    Set,
    Time,
    Timestamp,
    Vector,
)


@settings(deadline=None, max_examples=25, phases=[Phase.reuse, Phase.generate])
@given(events=row_changes(CARRIES, 5), batch=st.integers(1, 4))
def test_a_reader_that_knows_only_the_document(events: list[RowChange], batch: int) -> None:
    encoder = open_encoder("open-protocol", sourceTimeZone="UTC", maxBatchSize=batch)
    messages = [message for event in events for message in encoder.encode(event)]
    messages += encoder.flush()
    read = [
        event
        for message in messages
        for event in naive_open_protocol.read_message(message.key or b"", message.value or b"")
    ]
    assert len(read) == len(events)
    for event, other in zip(events, read, strict=True):
        assert other["ts"] == event.commit_ts
        assert (other["schema"], other["table"]) == (event.table.database, event.table.table)
        assert other["handle"] == set(event.table.key_columns)
        fields = ("d",) if event.op == "delete" else ("u", "p")
        images = (event.after or event.before, event.before)
        for field, image in zip(fields, images, strict=False):
            assert other.get(field) == (None if image is None else document_values(event, image))


def document_values(event: RowChange, image: Image) -> dict[str, Any]:
    """What such a reader makes of the values: text, bytes and numbers."""
    return {
        column.name: None
        if (value := image.values[column.name]) is None
        else document_value(column.type, value)
        for column in event.table.columns
    }


def document_value(logical: LogicalType, value: Any) -> Any:
    if isinstance(value, InvalidValue):
        return value.text
    if isinstance(logical, (Enum, Set)):
        return member_number(logical, value)
    if isinstance(logical, Decimal):
        return format(value, "f")
    if isinstance(logical, Float) and logical.bits == 32:
        return pytest.approx(value, rel=1e-7, abs=1e-50)
    if isinstance(logical, (DateTime, Timestamp)):
        digits = {None: "auto", 1: "microseconds", 3: "milliseconds", 6: "microseconds"}
        text = value.replace(tzinfo=None).isoformat(" ", digits[logical.fsp])
        return text[:21] if logical.fsp == 1 else text
    if isinstance(logical, Date):
        return value.isoformat()
    if isinstance(logical, Time):
        return format_time(value, logical.fsp)
    if isinstance(logical, Vector):
        return text_printer(logical, time_zone=UTC)(value)
    return value
