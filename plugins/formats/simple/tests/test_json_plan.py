"""Every row of a table is read alike, independent of the rows before it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from simple_messages import NAME, TEXT, bootstrap, column, decoder, row, to_json

from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.events import Corrupt, Event, Message, RowChange, TableSchemaEvent

ROWS = 40
"""Of one kind, one after the other."""

NAMES = ["'", '"', "\\", "{0}", "a\nb", "%s", "value", "__import__('os')", "列", "\u2028", "row"]


def open_with(*columns: dict[str, Any]) -> MessageDecoder:
    reader = decoder()
    bootstrapped = reader.decode(Message(None, to_json(bootstrap(*columns, indexes=[]))))
    assert isinstance(bootstrapped[0], TableSchemaEvent)
    return reader


def events_of(decode: MessageDecoder, wire: dict[str, Any]) -> Iterator[Event]:
    for _ in range(ROWS):
        yield from decode.decode(Message(None, to_json(wire)))


def test_names_are_never_code() -> None:
    decode = open_with(*(column(name, "varchar", **TEXT) for name in NAMES), NAME)
    data = {name: f"of {name}" for name in (*NAMES, "name")}
    old = data | {"value": None, "列": "before"}
    for event in events_of(decode, row("UPDATE", data, old)):
        assert isinstance(event, RowChange)
        assert event.after
        assert event.before
        assert list(event.after.values.items()) == list(data.items())
        assert list(event.before.values.items()) == list(old.items())


@pytest.mark.parametrize(
    "changes",
    [{"id": "one"}, {"id": True}, {"name": 5}, {"other": "x"}, {"id": ...}, {"id": 1.5}],
    ids=str,
)
def test_every_row_is_rejected_with_the_same_text(changes: dict[str, Any]) -> None:
    good = {"id": "1", "name": "John"}
    bad = {name: value for name, value in (good | changes).items() if value is not ...}
    decode = open_with()
    first, *_ = events_of(decode, row("UPDATE", bad, good))
    _ = list(events_of(decode, row("UPDATE", good, good)))
    for event, another in pairwise([first, *events_of(decode, row("UPDATE", bad, good))]):
        assert type(event) is type(another)
        if isinstance(event, Corrupt) and isinstance(another, Corrupt):
            assert str(event.error) == str(another.error)
        else:
            assert event == another


def test_the_same_number_in_both_images_is_not_the_same_value() -> None:
    """JSON's true, 1 and 1.0 are equal in Python."""
    decode = open_with(column("x", "geometrycollectionx"))
    for event in events_of(decode, row("UPDATE", {"x": 1}, {"x": True})):
        assert isinstance(event, RowChange)
        assert event.after
        assert event.before
        assert event.after.values["x"] is not event.before.values["x"]
