"""Any bytes, frames and JSON: never an exception, and bad frames are corrupt messages."""

from __future__ import annotations

import base64
import gzip
import json
import struct
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_bad_input import INSERT, UPDATE, checked
from open_messages import (
    DDL_KEY,
    ID,
    RESOLVED_KEY,
    ROW_KEY,
    TS,
    VERSION,
    decode,
    frames,
    message,
    the_error,
)
from support.bad_input import patient

from cdcfmt_core.events import Corrupt, RowChange

GOLDEN = Path(__file__).parents[4] / "tests/golden/ticdc/open/batched/messages.jsonl.gz"


DDL = {"q": "drop table t1", "t": 4}


def golden_messages() -> list[tuple[bytes, bytes]]:
    """One short message of each table and kind, or those above where there is no golden data."""
    own = [
        message([ROW_KEY], [INSERT]),
        message([ROW_KEY, {**ROW_KEY, "rid": 1}], [UPDATE, {"d": {"id": ID}}]),
        message([DDL_KEY, RESOLVED_KEY], [DDL, b""]),
    ]
    found = [(golden.key or b"", golden.value or b"") for golden in own]
    if GOLDEN.exists():
        seen: set[Any] = set()
        with gzip.open(GOLDEN, "rt", encoding="utf-8") as lines:
            for line in lines:
                wire = json.loads(line)
                key, value = (base64.b64decode(wire[name]) for name in ("key_b64", "value_b64"))
                first = json.loads(key[16 : 16 + struct.unpack_from(">q", key, 8)[0]])
                what = first.get("tbl"), first["t"]
                if what not in seen and len(value) < 6_000:
                    seen.add(what)
                    found.append((key, value))
    return found[:40]


MESSAGES = golden_messages()


def test_the_messages_are_good() -> None:
    assert len(MESSAGES) >= 3
    for key, value in MESSAGES:
        events = checked(key, value)
        assert events
        assert not any(isinstance(event, Corrupt) for event in events)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["1", "YWE=", r"\x00", "2024-01-02", 1 << 63, -(1 << 63), 1e300, 1.5]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(list("tfhvupdq")) | st.text(max_size=3), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("compression", ["none", "lz4", "snappy"])
@given(parts=st.lists(st.tuples(st.binary(max_size=60), st.binary(max_size=60)), max_size=4))
@patient
def test_any_frames(compression: str, parts: list[tuple[bytes, bytes]]) -> None:
    keys, values = [key for key, _ in parts], [value for _, value in parts]
    events = checked(VERSION + frames(keys), frames(values), compression=compression)
    assert len(events) == len(parts)


@given(key=JSON, value=JSON)
@patient
def test_any_json(key: Any, value: Any) -> None:
    (event,) = checked(VERSION + frames([json.dumps(key)]), frames([json.dumps(value)]))
    assert isinstance(event, Corrupt)


CELL = st.fixed_dictionaries(
    {},
    optional={
        "t": st.sampled_from([1, 3, 4, 7, 8, 11, 13, 15, 16, 245, 246, 247, 249, 254, 255]) | JSON,
        "f": st.integers(0, 255) | JSON,
        "h": st.booleans() | JSON,
        "v": JSON,
    },
)


CELLS = st.dictionaries(st.sampled_from(["a", "b", "t", "f", "v"]), CELL | JSON, max_size=4) | JSON


@given(
    key=st.fixed_dictionaries(
        {"ts": st.just(TS) | JSON, "t": st.sampled_from([1, 2, 3]) | JSON},
        optional=dict.fromkeys(("scm", "rid", "ptn", "ohk", "ccl"), JSON)
        | {"tbl": st.just("t1") | JSON},
    ),
    value=st.fixed_dictionaries({}, optional=dict.fromkeys("upd", CELLS) | {"q": JSON, "t": JSON}),
)
@patient
def test_any_event(key: dict[str, Any], value: dict[str, Any]) -> None:
    assert len(checked(VERSION + frames([json.dumps(key)]), frames([json.dumps(value)]))) == 1


@given(value=st.fixed_dictionaries({"u": CELLS}, optional={"p": CELLS}))
@patient
def test_any_row(value: dict[str, Any]) -> None:
    keys, parts = [ROW_KEY] * 3, [json.dumps(INSERT), json.dumps(value), json.dumps(UPDATE)]
    first, _, last = checked(VERSION + frames(keys), frames(parts))
    assert isinstance(first, RowChange)
    assert isinstance(last, RowChange)


@pytest.mark.parametrize(
    ("key", "field", "reason"),
    [
        (None, "key", "a required field of the message is missing"),
        (b"", "key", "too short to hold the version"),
        (b"\0" * 7, "key", "too short to hold the version"),
        (b"\0" * 8, "key", "version 0 of the Open Protocol; only 1 is known"),
        (struct.pack(">q", 2), "key", "version 2 of"),
        (struct.pack(">q", -1), "key", "version -1 of"),
        (struct.pack("<q", 1), "key", "version 72057594037927936 of"),
        (b'{"ts":1}', "key", "only 1 is known"),
        (VERSION + b"\0" * 7, "key[0]", "truncated: 7 bytes remain"),
        (VERSION + struct.pack(">q", 1), "key[0]", "a length of 1, but 0 bytes remain"),
        (VERSION + struct.pack(">q", -1), "key[0]", "a length of -1, but 0 bytes remain"),
        (
            VERSION + struct.pack(">Q", 1 << 63) + b"x",
            "key[0]",
            f"a length of {-(1 << 63)}, but 1",
        ),
        (
            VERSION + struct.pack(">q", (1 << 63) - 1),
            "key[0]",
            f"a length of {(1 << 63) - 1}, but 0",
        ),
        (VERSION + frames([ROW_KEY, b"x"])[:-1], "key[1]", "a length of 1, but 0 bytes remain"),
    ],
)
def test_bad_frames(key: bytes | None, field: str, reason: str) -> None:
    value = frames([INSERT])
    (event,) = checked(key, value)
    assert isinstance(event, Corrupt)
    assert event.error.field == field
    assert reason in event.error.reason
    if key is not None and key[:8] == VERSION:
        (event,) = checked(VERSION + frames([ROW_KEY]), key[8:])
        assert isinstance(event, Corrupt)
        assert event.error.field == field.replace("key", "value")
        assert reason in event.error.reason


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        ([ROW_KEY], []),
        ([], [INSERT]),
        ([ROW_KEY, ROW_KEY], [INSERT]),
        ([ROW_KEY], [INSERT, INSERT]),
        ([ROW_KEY, RESOLVED_KEY, RESOLVED_KEY], [INSERT, b""]),
        ([RESOLVED_KEY], [INSERT, INSERT]),
    ],
)
def test_unequal_numbers(keys: list[Any], values: list[Any]) -> None:
    error = the_error(keys, values)
    assert error.field == "value"
    assert error.reason.startswith(f"{len(keys)} event keys and {len(values)} event values")


@pytest.mark.slow
def test_very_many_events() -> None:
    start = time.process_time()
    (event,) = checked(VERSION + b"\0" * 8_000_000, b"")
    assert isinstance(event, Corrupt)
    assert event.error.field == "key"
    assert "more than 100000 events; raise maxBatchEvents" in event.error.reason
    (event,) = checked(VERSION, b"\0" * 8_000_000)
    assert isinstance(event, Corrupt)
    assert event.error.field == "value"
    # A guard against hangs, not a benchmark.
    assert time.process_time() - start < 10


def test_number_of_events_is_bounded_by_the_option() -> None:
    keys, values = [ROW_KEY] * 3, [INSERT] * 3
    assert len(decode(keys, values, maxBatchEvents=3)) == 3
    error = the_error(keys, values, maxBatchEvents=2)
    assert "more than 2 events" in error.reason
