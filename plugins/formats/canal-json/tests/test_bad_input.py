"""Any bytes, JSON and envelopes: never an exception."""

from __future__ import annotations

import json
from typing import Any

import pytest
from canal_bad_input import MESSAGES, decode, text_of
from hypothesis import given
from hypothesis import strategies as st
from support.bad_input import JSON, patient

from cdcfmt_core.events import (
    Corrupt,
    Event,
)


def test_the_messages_are_good() -> None:
    for value in MESSAGES:
        assert decode(value)


@pytest.mark.parametrize("protocol", ["canal-json", "auto"])
@given(wire=JSON)
@patient
def test_any_json(protocol: str, wire: object) -> None:
    (event,) = decode(text_of(wire), None, protocol)
    assert isinstance(event, Corrupt)


LIKELY = {
    "type": st.sampled_from(["INSERT", "UPDATE", "DELETE", "INIT", "QUERY", "TIDB_WATERMARK"]),
    "isDdl": st.booleans(),
    "database": st.just("shop"),
    "table": st.just("items"),
    "data": st.lists(st.dictionaries(st.sampled_from(["id", "name"]), JSON), max_size=3),
    "old": st.lists(st.dictionaries(st.sampled_from(["id", "name"]), JSON), max_size=3),
    "mysqlType": st.dictionaries(
        st.sampled_from(["id", "name"]),
        st.sampled_from(
            ["int", "decimal(10,2)", "blob", "json", "date", "enum('a')", "bit(1)", "x"]
        ),
    ),
    "sqlType": st.dictionaries(st.sampled_from(["id", "name"]), st.integers(-10, 100)),
    "pkNames": st.lists(st.sampled_from(["id", "name"])),
    "es": st.integers(0, 1 << 50),
    "ts": st.integers(0, 1 << 50),
    "sql": st.just("alter table items add a int"),
    "_tidb": st.dictionaries(
        st.sampled_from(["commitTs", "watermarkTs", "onlyHandleKey", "claimCheckLocation"]), JSON
    ),
    "tableChanges": st.fixed_dictionaries(
        {"table": st.fixed_dictionaries({"columns": JSON}) | JSON}
    ),
    "id": st.integers(),
}


@given(
    wire=st.fixed_dictionaries(
        {"type": LIKELY["type"]},
        optional={name: likely | JSON for name, likely in LIKELY.items() if name != "type"},
    )
)
@patient
def test_any_envelope(wire: dict[str, Any]) -> None:
    decode(text_of(wire))


@given(data=st.data(), value=st.sampled_from(MESSAGES))
@patient
def test_duplicate_fields(data: st.DataObject, value: bytes) -> None:
    name = data.draw(st.sampled_from(sorted(json.loads(value))))
    again = data.draw(JSON)
    twice = value.rstrip()[:-1] + b"," + text_of(name) + b":" + text_of(again) + b"}"
    # The last one wins, in every parser.
    once = text_of(json.loads(value) | {name: again})
    assert list(map(essence, decode(twice))) == list(map(essence, decode(once)))


def essence(event: Event) -> str:
    # The text of a syntax error has a position.
    return f"corrupt {event.error.field}" if isinstance(event, Corrupt) else repr(event)
