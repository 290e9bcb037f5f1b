"""The encoder's output, read by a reader built from the protocol's document alone."""

from __future__ import annotations

from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from open_round_trips import CARRIES
from support import naive_open_protocol
from support.examples import examples
from support.golden_encoding import open_encoder
from support.naive_values import document_value

from cdcfmt_core.events import Image, RowChange
from cdcfmt_testing.strategies import row_changes


@settings(deadline=None, max_examples=examples(25), phases=[Phase.reuse, Phase.generate])
@given(events=row_changes(CARRIES, 5), batch=st.integers(1, 4))
def test_reader_built_from_the_document_alone(events: list[RowChange], batch: int) -> None:
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
    """The values of such a reader: text, bytes and numbers."""
    return {
        column.name: None
        if (value := image.values[column.name]) is None
        else document_value(column.type, value)
        for column in event.table.columns
    }
