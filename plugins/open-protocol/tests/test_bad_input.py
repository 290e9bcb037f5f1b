"""No message raises, hangs or loses its neighbours; what is bad says why and where."""

from __future__ import annotations

import base64
import gc
import gzip
import json
import struct
import time
import tracemalloc
from functools import cache
from pathlib import Path
from typing import Any

import cramjam
import lz4.frame
import pytest
from bad_input import check_error, check_row, patient
from golden_data import scan_schemas
from hypothesis import given
from hypothesis import strategies as st
from open_messages import (
    DDL_KEY,
    ID,
    NAME,
    RESOLVED_KEY,
    ROW_KEY,
    TS,
    VERSION,
    cell_error,
    data_of,
    decode,
    frames,
    message,
    open_decoder,
    the_error,
)

from cdcfmt_core import types
from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.events import KIND_OF, Corrupt, Event, Image, Message, RowChange, Watermark

GOLDEN = Path(__file__).parents[3] / "tests/golden/ticdc/open/batched/messages.jsonl.gz"

INSERT = {"u": {"id": ID, "n": NAME}}
UPDATE = {"u": {"id": ID, "n": NAME}, "p": {"id": ID, "n": {**NAME, "v": "b"}}}
DDL = {"q": "drop table t1", "t": 4}


@cache
def decoder(protocol: str = "open-protocol", compression: str = "none") -> MessageDecoder:
    return open_decoder(protocol=protocol, largeMessageHandleCompression=compression)


def checked(
    key: bytes | None,
    value: bytes | None,
    protocol: str = "open-protocol",
    compression: str = "none",
) -> list[Event]:
    """The events of a message, after what must hold for all of them was checked."""
    events = decoder(protocol, compression).decode(
        Message(key, value, topic="t", partition=3, offset=99)
    )
    assert type(events) is list
    for event in events:
        assert type(event) in KIND_OF
        if isinstance(event, Corrupt):
            check_error(event.error, protocol)
        elif isinstance(event, RowChange):
            check_row(event)
    return events


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


# Any JSON in frames

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


# Frames


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
        (VERSION + b"\0" * 7, "key[0]", "cut off: 7 bytes are left where a length of 8 should be"),
        (VERSION + struct.pack(">q", 1), "key[0]", "a length of 1 where 0 bytes are left"),
        (VERSION + struct.pack(">q", -1), "key[0]", "a length of -1 where 0 bytes are left"),
        (
            VERSION + struct.pack(">Q", 1 << 63) + b"x",
            "key[0]",
            f"a length of {-(1 << 63)} where 1",
        ),
        (
            VERSION + struct.pack(">q", (1 << 63) - 1),
            "key[0]",
            f"a length of {(1 << 63) - 1} where 0",
        ),
        (VERSION + frames([ROW_KEY, b"x"])[:-1], "key[1]", "a length of 1 where 0 bytes are left"),
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


def test_very_many_events() -> None:
    start = time.process_time()
    (event,) = checked(VERSION + b"\0" * 8_000_000, b"")
    assert isinstance(event, Corrupt)
    assert event.error.field == "key"
    assert "more than 100000 events; raise maxBatchEvents" in event.error.reason
    (event,) = checked(VERSION, b"\0" * 8_000_000)
    assert isinstance(event, Corrupt)
    assert event.error.field == "value"
    # A guard against hangs, not a measure.
    assert time.process_time() - start < 10


def test_as_many_events_as_the_option_says() -> None:
    keys, values = [ROW_KEY] * 3, [INSERT] * 3
    assert len(decode(keys, values, maxBatchEvents=3)) == 3
    error = the_error(keys, values, maxBatchEvents=2)
    assert "more than 2 events" in error.reason


# Fields


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("ts", value) for value in (None, "1", 1.5, True, -1, 1 << 63, 1 << 64, 10**30, [], {})),
        *(("t", value) for value in (None, "1", 1.0, True, 0, 4, -1, [], {})),
        *(("scm", value) for value in (1, True, [], {})),
        *(("tbl", value) for value in (None, "", 1, True, [], {})),
        *(("rid", value) for value in ("1", 1.5, True, [], {}, 10**30)),
        *(("ptn", value) for value in ("1", 1.5, True, [], {})),
        *(("ohk", value) for value in ("true", 1, [], {})),
        *(("ccl", value) for value in (1, True, [], {})),
    ],
    ids=repr,
)
def test_a_field_of_a_key(field: str, value: Any) -> None:
    bad, good = decode([ROW_KEY | {field: value}, ROW_KEY], [INSERT, INSERT])
    assert isinstance(bad, Corrupt)
    assert (bad.error.field, bad.index) == (f"key[0].{field}", 0)
    assert isinstance(good, RowChange)


@pytest.mark.parametrize("ts", [0, 1, (1 << 63) - 1])
def test_a_tso_at_its_bounds(ts: int) -> None:
    assert decode([{"ts": ts, "t": 3}], [b""]) == [Watermark(ts)]


@pytest.mark.parametrize(
    ("value", "field", "reason"),
    [
        (b"", "value[1]", "is empty"),
        (b"null", "value[1]", "not a JSON object"),
        (b"[]", "value[1]", "not a JSON object"),
        (b'{"u":', "value[1]", "JSON ends at byte 5: truncated"),
        (b"{}{}", "value[1]", "not JSON"),
        (b'\x04"M\x18rest', "value[1]", "set largeMessageHandleCompression=lz4"),
        (b'{"u":{"c":{"t":5,"f":0,"v":NaN}}}', "value[1]", "NaN is not JSON"),
        (b'{"u":{"c":{"t":5,"f":0,"v":-Infinity}}}', "value[1]", "Infinity is not JSON"),
        ({}, "value[1]", "neither new nor deleted columns"),
        ({"u": {}}, "value[1]", "neither new nor deleted columns"),
        ({"p": {"id": ID}}, "value[1]", "neither new nor deleted columns"),
        ({"u": []}, "value[1].u", "is not an object"),
        ({"u": "x"}, "value[1].u", "is not an object"),
        ({"d": 1}, "value[1].d", "is not an object"),
        ({"u": {"id": ID}, "p": []}, "value[1].p", "is not an object"),
        ({"u": {"id": ID}, "d": {"id": ID}}, "value[1].d", "a row is deleted and has"),
        ({"p": {"id": ID}, "d": {"id": ID}}, "value[1].d", "a row is deleted and has"),
        ({"d": {"id": 1}}, "value[1].d.id", "is not a column"),
        ({"u": {"id": ID}, "p": {"id": [1]}}, "value[1].p.id", "is not a column"),
        ({"u": {"id": ID}, "p": {"id": {**ID, "t": 8}}}, "value[1].p.id", "has another type"),
        ({"u": {"id": ID}, "p": {"id": {**ID, "v": "x"}}}, "value[1].p.id.v", "not an integer"),
        ({"u": {"id": ID}, "p": {"x": {"t": 3}}}, "value[1].p.x.v", "has no value"),
    ],
)
def test_a_bad_row_among_good_ones(value: Any, field: str, reason: str) -> None:
    for _ in range(2):
        first, bad, last = decode([ROW_KEY] * 3, [INSERT, value, UPDATE])
        assert isinstance(first, RowChange)
        assert isinstance(last, RowChange)
        assert isinstance(bad, Corrupt)
        assert (bad.error.field, bad.index) == (field, 1)
        assert reason in bad.error.reason


@pytest.mark.parametrize(
    ("cell", "field"),
    [
        (None, "c"),
        (1, "c"),
        ("x", "c"),
        ([], "c"),
        ({}, "c.t"),
        *(
            ({"t": code, "f": 0, "v": None}, "c.t")
            for code in (None, "3", 3.0, True, -1, 1 << 40, [])
        ),
        *(
            ({"t": 3, "f": flags, "v": None}, "c.f")
            for flags in ("0", 0.0, True, -1, 1 << 40, [], {})
        ),
        *(({"t": 3, "f": 0, "h": h, "v": None}, "c.h") for h in ("true", 1, 0, [], {})),
        ({"t": 3, "f": 0}, "c.v"),
        ({"t": 3, "f": 0, "h": True}, "c.v"),
    ],
    ids=repr,
)
def test_a_cell(cell: Any, field: str) -> None:
    own = open_decoder()
    good = {"u": {"id": ID, "c": {"t": 3, "f": 0, "v": 5}}}
    handle = {"u": {"id": ID, "c": {"t": 1, "f": 1, "h": True, "v": 1}}}
    # A known table makes no difference, though 1.0 and true are equal to 1.
    for before in (None, good, handle):
        if before is not None:
            own.decode(message([ROW_KEY], [before]))
        (event,) = own.decode(message([ROW_KEY], [{"u": {"id": ID, "c": cell}}]))
        assert isinstance(event, Corrupt)
        assert event.error.field == f"value[0].u.{field}"


def test_equal_is_not_the_same() -> None:
    own = open_decoder()
    for code, flags in ((1, 1), (1.0, 1), (True, 1), (1, 1.0), (1, True)):
        (event,) = own.decode(message([ROW_KEY], [{"u": {"c": {"t": code, "f": flags, "v": 1}}}]))
        good = type(code) is int and type(flags) is int
        assert isinstance(event, RowChange if good else Corrupt)


@pytest.mark.parametrize(
    ("code", "flags", "value"),
    [
        (3, 65, "x"),
        (3, 65, 2**31),
        (3, 65, 1.5),
        (3, 65, []),
        (3, 193, -1),
        (8, 193, 2**64),
        (8, 65, 2**63),
        (8, 65, 10**400),
        (1, 0, {}),
        (4, 65, "x"),
        (5, 65, []),
        (246, 65, "1,5"),
        (246, 65, "9" * 66),
        (246, 65, True),
        (10, 65, "2024-13"),
        (12, 65, 5),
        (7, 65, "yesterday"),
        (11, 65, "25"),
        (13, 65, 3000),
        (16, 65, -1),
        (16, 65, 2**64),
        (247, 64, -1),
        (247, 64, 65_536),
        (248, 64, 2**64),
        (225, 65, "[1,x]"),
        (225, 65, [1]),
        (245, 65, {"a": 1}),
        (15, 64, 5),
        (15, 64, None),
        (15, 65, 5),
        (15, 65, r"\q"),
        (15, 65, '"'),
        (254, 65, "\x00"),
        (252, 64, "not base64"),
        (252, 65, "YQ"),
        (252, 65, "YQ=="[:3]),
        (252, 65, "YQ==\n"),
        (252, 65, "YQ==YQ=="),
        (252, 65, "中"),
        (252, 65, 5),
    ],
    ids=repr,
)
def test_a_value(code: int, flags: int, value: Any) -> None:
    if value is None:
        (event,) = decode([ROW_KEY], [{"u": {"c": {"t": code, "f": flags, "v": value}}}])
        assert isinstance(event, RowChange)
        return
    error = cell_error({"t": code, "f": flags, "v": value})
    assert error.field == "value[0].u.c.v"
    assert error.sample


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (b"", ""),
        ("x", ""),
        ([], ""),
        ({}, ".q"),
        ({"q": None, "t": 3}, ".q"),
        ({"q": "", "t": 3}, ".q"),
        ({"q": 1, "t": 3}, ".q"),
        ({"q": "drop table t", "t": 1.5}, ".t"),
        ({"q": "drop table t", "t": True}, ".t"),
        ({"q": "drop table t", "t": []}, ".t"),
        ({"q": "drop table t", "t": -1}, ".t"),
        ({"q": "drop table t", "t": 1 << 63}, ".t"),
    ],
)
def test_ddl(value: Any, field: str) -> None:
    assert the_error([DDL_KEY], [value]).field == f"value[0]{field}"


def test_a_resolved_event_with_a_value() -> None:
    error = the_error([RESOLVED_KEY], [{"u": {"id": ID}}])
    assert (error.field, error.reason) == ("value[0]", "a resolved event has no value")


# Texts and numbers


def test_bytes_that_are_not_utf8_stay() -> None:
    key = b'{"ts":1,"scm":"d\xff","tbl":"t","t":1}'
    (event,) = decode([key], [b'{"u":{"c\xfe":{"t":15,"f":64,"v":"\xc3("}}}'])
    assert isinstance(event, RowChange)
    assert event.table.database == "d\udcff"
    assert event.after == Image({"c\udcfe": "\udcc3("})
    error = cell_error(b'{"t":254,"f":65,"v":"\xff"}'.decode("latin-1"))
    assert error.field == "value[0].u.c"
    raw = b'{"u":{"c":{"t":254,"f":65,"v":"\xff"}}}'
    assert "not escaped" in the_error([ROW_KEY], [raw]).reason


@pytest.mark.parametrize("digits", [65, 66, 4_000, 1_000_000])
def test_monstrous_numbers(digits: int) -> None:
    number = "9" * digits
    for code, good in ((246, digits == 65), (8, False), (99, digits <= 1_000)):
        value = f'{{"u":{{"c":{{"t":{code},"f":65,"v":{number}}}}}}}'
        (event,) = decode([ROW_KEY], [value])
        assert isinstance(event, RowChange if good else Corrupt)


@pytest.mark.parametrize("depth", [100, 900, 1_100, 10_000, 1_000_000])
@pytest.mark.parametrize(("head", "tail"), [("[", "]"), ('{"a":', "}")])
def test_deep_nesting(depth: int, head: str, tail: str) -> None:
    nested = head * depth + "1" + tail * depth
    row = f'{{"u":{{"c":{{"t":99,"f":0,"v":{nested}}}}}}}'
    key = f'{{"ts":1,"scm":"d","tbl":"t","t":1,"x":{nested}}}'
    old = f'{{"u":{{"c":{{"t":15,"f":64,"v":null}}}},"p":{{"t":15,"f":64,"v":{nested}}}}}'
    for keys, values in (([ROW_KEY], [row]), ([key], [INSERT]), ([ROW_KEY], [old])):
        (event,) = checked(VERSION + frames(keys), frames(values))
        if depth > 1_024:
            assert isinstance(event, Corrupt)


# Sizes


def test_very_many_columns() -> None:
    """As many as fit into the bound of values."""
    cells = {f"c{i}": {"t": 3, "f": 2, "h": True, "v": i} for i in range(40_000)}
    old = {f"c{i}": {"t": 3, "f": 2, "h": True, "v": None} for i in range(0, 40_000, 2)}
    (event,) = checked(VERSION + frames([ROW_KEY]), frames([{"u": cells, "p": old}]))
    assert isinstance(event, RowChange)
    assert len(event.table.key_columns) == 40_000
    assert event.before is not None
    assert len(event.before.completed) == 20_000


def test_very_many_cells_without_a_name() -> None:
    columns = 20_000
    new = {f"c{i}": {"t": i, "f": 64, "v": None} for i in range(columns)}
    nameless = ",".join(f'"t":{i},"f":64,"v":"5"' for i in range(columns))
    value = f'{{"u":{json.dumps(new)},"p":{{{nameless}}}}}'
    start = time.process_time()
    (event,) = checked(VERSION + frames([ROW_KEY]), frames([value]))
    assert time.process_time() - start < 20
    assert event is not None


@pytest.mark.parametrize("compression", ["lz4", "snappy"])
def test_a_batch_of_bombs(compression: str) -> None:
    bomb = b'{"u":{"c":{"t":15,"f":64,"v":"' + b"x" * 1_000_000 + b'"}}}'
    packed = (
        lz4.frame.compress(bomb)
        if compression == "lz4"
        else bytes(cramjam.snappy.compress_raw(bomb))
    )
    count = 50
    events = decode(
        [ROW_KEY] * count,
        [packed] * count,
        largeMessageHandleCompression=compression,
        maxMessageBytes=5_000_000,
        oldValue="auto",
    )
    kinds = [type(event) for event in events]
    assert kinds == [RowChange] * 4 + [Corrupt] * (count - 4)
    last = events[-1]
    assert isinstance(last, Corrupt)
    assert "the batch decompresses to more than 5000000 bytes" in last.error.reason
    assert last.error.field == f"value[{count - 1}]"


@pytest.mark.parametrize("compression", ["lz4", "snappy"])
def test_what_is_not_compressed(compression: str) -> None:
    for value in (b"", b"{}", data_of(INSERT), b"\xff" * 40):
        error = the_error([ROW_KEY], [value], largeMessageHandleCompression=compression)
        assert error.field == "value[0]"
        assert compression in error.reason.lower()


def test_ever_new_tables_and_types_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdcfmt_core.caches.MAX_CACHE_BYTES", 1 << 20)
    own = open_decoder()

    def feed(start: int, end: int) -> int:
        for i in range(start, end):
            cells = {"c" * 6_000 + str(i): {"t": 1_000 + i, "f": 0, "v": 1}}
            (event,) = own.decode(message([{**ROW_KEY, "tbl": f"t{i}"}], [{"u": cells}]))
            assert isinstance(event, RowChange)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        empty = feed(0, 0)
        few = feed(0, 10)
        full = feed(10, 300)
        more = feed(300, 900)
    finally:
        tracemalloc.stop()
    assert few - empty > 10 * 6_000
    # Each of 600 more tables took as much again before there was a bound.
    assert more - full < 60 * 6_000


def test_unknown_stays_what_it_was() -> None:
    (event,) = decode([ROW_KEY], [{"u": {"c": {"t": 6, "f": 0, "v": {"a": [1, 1.5]}}}}])
    assert isinstance(event, RowChange)
    assert event.after == Image({"c": {"a": [1, 1.5]}})
    assert event.table.columns[0].type == types.Unknown("null")


@pytest.mark.parametrize("query", [["ALTER"], {"a": 1}, 7, "", None])
def test_a_statement_that_is_no_text_does_not_end_the_look_ahead(query: Any) -> None:
    bad = message([DDL_KEY], [{"q": query, "t": 3}])
    good = message([DDL_KEY], [{"q": "CREATE TABLE t1 (id decimal(10,2))", "t": 3}])
    store = scan_schemas([bad, good], protocol="open-protocol")
    assert [table.table for table in store.statements.tables()] == ["t1"]
