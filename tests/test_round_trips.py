"""What is encoded comes back: arbitrary events through every format that writes."""

from __future__ import annotations

from typing import Any

import attrs
from event_strategies import ALL_TYPES, Carries, row_changes, same_events, schema_changes
from golden_data import open_decoder
from golden_encoding import open_encoder
from hypothesis import given, settings
from hypothesis import strategies as st

from cdcfmt_core.events import Event, RowChange, Watermark

CANAL = Carries(ALL_TYPES, source_time=True, emit_time=True)
PLAIN = settings(deadline=None, max_examples=50)


def there_and_back(
    protocol: str, events: list[Any], reading: dict[str, str], **writing: Any
) -> list[Event]:
    encoder = open_encoder(protocol, sourceTimeZone="Asia/Shanghai", **writing)
    messages = [message for event in events for message in encoder.encode(event)]
    messages += encoder.flush()
    decoder = open_decoder(protocol=protocol, sourceTimeZone="Asia/Shanghai", **reading)
    return [event for message in messages for event in decoder.decode(message)]


class TestCanalJson:
    @PLAIN
    @given(events=row_changes(CANAL), only_updated=st.booleans())
    def test_rows(self, events: list[RowChange], only_updated: bool) -> None:
        decoded = there_and_back(
            "canal-json",
            events,
            {"dialect": "ticdc"},
            enableTidbExtension=True,
            contentCompatible=only_updated,
            onlyOutputUpdatedColumns=only_updated,
        )
        if not only_updated:
            # The types are bare, so what they do not tell is unknown.
            return
        same_events([normalised(event) for event in events], decoded)

    @PLAIN
    @given(event=schema_changes(CANAL))
    def test_ddl(self, event: Any) -> None:
        decoded = there_and_back(
            "canal-json", [event], {"dialect": "ticdc"}, enableTidbExtension=True
        )
        same_events([event], decoded)

    @PLAIN
    @given(milliseconds=st.integers(10**12, 4 * 10**12))
    def test_watermarks(self, milliseconds: int) -> None:
        event = Watermark(milliseconds << 18, source_time=milliseconds * 1000, emit_time=5_000)
        decoded = there_and_back("canal-json", [event], {}, enableTidbExtension=True)
        assert [type(other) for other in decoded] == [Watermark]


def normalised(event: RowChange) -> RowChange:
    """Unchanged columns of ``old`` come back completed, and deletes of keys alone incomplete."""
    before = event.before
    if event.op == "update" and before is not None and event.after is not None:
        completed = tuple(
            name for name, value in event.after.values.items() if before.values[name] == value
        )
        before = attrs.evolve(before, completed=completed)
    elif event.op == "delete" and before is not None:
        key_only = len(before.values) <= len(event.table.key_columns)
        before = attrs.evolve(before, complete=not key_only)
    return attrs.evolve(event, before=before)
