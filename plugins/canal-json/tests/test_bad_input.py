"""No message raises, hangs or loses its neighbours; what is bad says why and where."""

from __future__ import annotations

import base64
import decimal
import gc
import gzip
import json
import subprocess
import sys
import tracemalloc
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from bad_input import JSON, changed, check_error, check_row, paths_of, patient
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_core import opening
from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import (
    KIND_OF,
    Corrupt,
    Event,
    Image,
    Message,
    RowChange,
    SchemaChange,
)

GOLDEN = Path(__file__).parents[3] / "tests/golden/ticdc/canal-json"


@cache
def decoder(protocol: str = "canal-json", dialect: str = "auto") -> MessageDecoder:
    return opening.open_decoder(protocol, {"dialect": dialect})


def decode(
    value: bytes | None, key: bytes | None = None, protocol: str = "canal-json"
) -> list[Event]:
    """The events of a message, after what must hold for all of them was checked."""
    message = Message(key, value, topic="t", partition=3, offset=99)
    events = decoder(protocol).decode(message)
    assert type(events) is list
    for event in events:
        assert type(event) in KIND_OF
        if isinstance(event, Corrupt):
            check_error(event.error, protocol)
        elif isinstance(event, RowChange):
            check_row(event)
    return events


def the_error(value: bytes | str | dict[str, Any]) -> DecodeError:
    """The error of a message that is corrupt as a whole."""
    data = json.dumps(value) if isinstance(value, dict) else value
    (event,) = decode(data if isinstance(data, bytes) else data.encode())
    assert isinstance(event, Corrupt), event
    return event.error


# Whole messages

UPDATE: dict[str, Any] = {
    "id": 0,
    "database": "shop",
    "table": "items",
    "pkNames": ["id"],
    "isDdl": False,
    "type": "UPDATE",
    "es": 1639633141221,
    "ts": 1639633142960,
    "sql": "",
    "sqlType": {"id": 4, "name": 12, "price": 3, "raw": 2004, "at": 93},
    "mysqlType": {
        "id": "int unsigned",
        "name": "varchar(10)",
        "price": "decimal(10,2)",
        "raw": "blob",
        "at": "timestamp",
    },
    "old": [{"name": "a"}],
    "data": [
        {"id": "1", "name": "b", "price": "1.50", "raw": "\x00ÿ", "at": "2024-01-02 03:04:05"}
    ],
    "_tidb": {"commitTs": 429918007904436226},
}
DDL = UPDATE | {
    "isDdl": True,
    "type": "ALTER",
    "sql": "alter table items add c int",
    "sqlType": None,
    "mysqlType": None,
    "pkNames": None,
    "data": None,
    "old": None,
    "tableChanges": {
        "type": "ALTER",
        "table": {
            "columns": [{"jdbcType": 4, "name": "id", "position": 0, "typeExpression": "int"}],
            "primaryKeyColumnNames": ["id"],
        },
    },
}
WATERMARK = DDL | {"isDdl": False, "type": "TIDB_WATERMARK", "_tidb": {"watermarkTs": 1}, "sql": ""}
DELETE = UPDATE | {"type": "DELETE", "old": None}
BATCH = UPDATE | {"type": "INSERT", "old": None, "data": UPDATE["data"] * 4}
CLAIM = UPDATE | {"_tidb": {"commitTs": 1, "claimCheckLocation": "s3://b/x.json"}}


def golden_messages() -> list[bytes]:
    """One message of each table and type, or those above where there is no golden data."""
    path = GOLDEN / "tidb-extension/messages.jsonl.gz"
    if not path.exists():
        own = (UPDATE, DDL, WATERMARK, DELETE, BATCH, CLAIM)
        return [json.dumps(wire).encode() for wire in own]
    found: dict[tuple[str, str], bytes] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            value = base64.b64decode(json.loads(line)["value_b64"])
            wire = json.loads(value)
            if len(value) < 20_000:
                found.setdefault((wire["table"], wire["type"]), value)
    own_kinds = [json.dumps(wire).encode() for wire in (DDL, BATCH, CLAIM)]
    return [*own_kinds, *list(found.values())[:40]]


MESSAGES = golden_messages()


def test_the_messages_are_good() -> None:
    for value in MESSAGES:
        assert decode(value)


def text_of(wire: object) -> bytes:
    return json.dumps(wire).encode()


# Any JSON


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
def test_any_field_stands_twice(data: st.DataObject, value: bytes) -> None:
    name = data.draw(st.sampled_from(sorted(json.loads(value))))
    again = data.draw(JSON)
    twice = value.rstrip()[:-1] + b"," + text_of(name) + b":" + text_of(again) + b"}"
    # The last one wins, in every parser.
    once = text_of(json.loads(value) | {name: again})
    assert list(map(essence, decode(twice))) == list(map(essence, decode(once)))


def essence(event: Event) -> str:
    # The text of a syntax error has a position.
    return f"corrupt {event.error.field}" if isinstance(event, Corrupt) else repr(event)


# Named cases


def test_a_tombstone_has_no_events() -> None:
    for protocol in ("canal-json", "auto"):
        assert decode(None, b"key", protocol) == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "the value is empty"),
        (b" \n", "not JSON"),
        (b"null", "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"1", "not a JSON object"),
        (b"{}", "is not text"),
        (b'{"type":"INSERT"', "JSON ends at byte 16: truncated"),
        (b'{"type":"INSERT"}{"type":"INSERT"}', "not JSON"),
        (b'{"type":"INSERT",}', "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"\x04\x22\x4d\x18rest", "set largeMessageHandleCompression=lz4"),
        (b'{"type":NaN}', "NaN is not JSON"),
        (b'{"type":"INSERT","es":Infinity}', "Infinity is not JSON"),
        (b'{"type":"INSERT","es":-Infinity}', "Infinity is not JSON"),
        (b'{"type":"UPSERT"}', "is not an event type of Canal-JSON"),
        (b'{"type":"insert"}', "is not an event type of Canal-JSON"),
        (b'{"type":"QUERY","isDdl":false}', "is not an event type of Canal-JSON"),
        (b'{"type":"ALTER","isDdl":true}', "a required field of a DDL event is missing"),
        (b'{"type":"TIDB_WATERMARK"}', "a required field of a watermark is missing"),
        (b'{"type":"INSERT","data":[{}]}', "a required field of a row event is missing"),
        (b'{"type":"INSERT","table":"t"}', "a row event has no rows"),
    ],
)
def test_what_is_no_message(value: bytes, reason: str) -> None:
    assert reason in str(the_error(value))


WRONG: dict[str, list[Any]] = {
    "type": [None, 1, True, [], {}],
    "isDdl": ["false", "true", 2, [], {}],
    "database": [1, True, [], {}],
    "table": [1, False, [], {}],
    "pkNames": ["id", 1, {}, [1], [None], [["id"]]],
    "es": ["1639633141221", 1.5, True, [], {}, -1, 1 << 62],
    "ts": ["1639633141221", 1.5, False, [], {}, -1, 1 << 62],
    "sqlType": ["4", 1, [], [4]],
    "mysqlType": ["int", 1, [], ["int"]],
    "data": ["x", 1, True, {"id": "1"}, {}],
    "old": ["x", 1, True, {"id": "1"}, {}],
    "_tidb": ["x", 1, [], [1]],
}


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in WRONG.items() for value in values],
    ids=repr,
)
def test_a_field_of_another_type(field: str, value: Any) -> None:
    error = the_error(UPDATE | {field: value})
    assert error.field == field
    assert (error.sample is None) == (value is None)


@pytest.mark.parametrize("field", ["commitTs", "watermarkTs"])
@pytest.mark.parametrize(
    "value", [-1, 1 << 63, 1 << 64, 10**30, "429918007904436226", 1.5, True, []]
)
def test_a_tso_that_is_none(field: str, value: Any) -> None:
    wire = UPDATE if field == "commitTs" else WATERMARK
    error = the_error(wire | {"_tidb": {field: value}})
    assert (error.field, error.reason) == (f"_tidb.{field}", "is not a TSO")


@pytest.mark.parametrize("value", [0, 1, 1 << 62, (1 << 63) - 1])
def test_a_tso_at_its_bounds(value: int) -> None:
    (event,) = decode(text_of(UPDATE | {"_tidb": {"commitTs": value}}))
    assert isinstance(event, RowChange)
    assert event.commit_ts == value


@pytest.mark.parametrize("location", [5, [], {"a": 1}, True])
def test_a_claim_check_that_is_no_text(location: Any) -> None:
    error = the_error(UPDATE | {"_tidb": {"claimCheckLocation": location}})
    assert "claim check" in error.reason


@pytest.mark.parametrize(("rows", "olds"), [(1, 2), (2, 1), (3, 1)])
def test_data_and_old_of_different_length(rows: int, olds: int) -> None:
    wire = UPDATE | {"data": UPDATE["data"] * rows, "old": UPDATE["old"] * olds}
    error = the_error(wire)
    assert error.field == "old"
    assert f"data has {rows} rows and old has {olds}" in error.reason


@pytest.mark.parametrize(
    ("row", "field"),
    [
        (None, "data[1]"),
        ("text", "data[1]"),
        ([], "data[1]"),
        ({"id": "x"}, "data[1].id"),
        ({"id": "-1"}, "data[1].id"),
        ({"id": ""}, "data[1].id"),
        ({"id": "1", "price": "NaN!"}, "data[1].price"),
        ({"price": "1" * 66}, "data[1].price"),
        ({"raw": "中"}, "data[1].raw"),
        ({"at": "yesterday"}, "data[1].at"),
        ({"name": 5}, "data[1].name"),
        ({"name": {"a": 1}}, "data[1].name"),
        ({"id": [1]}, "data[1].id"),
    ],
)
def test_one_bad_row_among_good_ones(row: Any, field: str) -> None:
    good = UPDATE["data"][0]
    events = decode(text_of(BATCH | {"data": [good, row, good, good]}))
    assert [type(event) for event in events] == [RowChange, Corrupt, RowChange, RowChange]
    assert [event.index for event in events] == [0, 1, 2, 3]
    (bad,) = (event for event in events if isinstance(event, Corrupt))
    assert bad.error.field == field
    assert f"{field}: " in str(bad.error)
    assert (bad.error.sample is None) == (row is None)


@pytest.mark.parametrize(
    ("old", "field"), [("text", "old[0]"), ([1], "old[0]"), ({"id": "x"}, "old[0].id")]
)
def test_a_bad_old_row(old: Any, field: str) -> None:
    assert the_error(UPDATE | {"old": [old]}).field == field


def test_bytes_that_are_not_utf8_stay_in_a_text() -> None:
    value = text_of(UPDATE).replace(b'"b"', b'"b\xff\xe4\xb8 \xe4\xb8\xad"')
    (event,) = decode(value)
    assert isinstance(event, RowChange)
    assert event.after is not None
    name = event.after.values["name"]
    assert name.encode("utf-8", "surrogateescape") == b"b\xff\xe4\xb8 \xe4\xb8\xad"
    assert event.after.values["price"] == decimal.Decimal("1.50")
    # In a binary column they are no characters for bytes.
    value = text_of(UPDATE).replace(b'"\\u0000\\u00ff"', b'"\xff"')
    assert the_error(value).field == "data[0].raw"


def test_halves_of_characters() -> None:
    value = text_of(UPDATE).replace(b'"b"', b'"\\ud800x\\udcff"')
    (event,) = decode(value)
    assert isinstance(event, RowChange)
    assert event.after is not None
    assert event.after.values["name"] == "\ud800x\udcff"
    value = text_of(UPDATE).replace(b'"items"', b'"\\udc00"').replace(b'"name"', b'"\\ud800"')
    (event,) = decode(value)
    assert isinstance(event, RowChange)
    assert event.table.table == "\udc00"
    # Their errors can be printed and pickled like all others.
    the_error(text_of(UPDATE).replace(b'"UPDATE"', b'"\\ud800"'))


def test_the_last_of_two_equal_names_counts() -> None:
    value = b'{"type":"DELETE",' + text_of(UPDATE)[1:-1] + b',"table":"last"}'
    for data in (value, value.replace(b'"b"', b'"\xff"')):
        (event,) = decode(data)
        assert isinstance(event, RowChange)
        assert (event.op, event.table.table) == ("update", "last")
    twice = text_of(UPDATE).replace(b'"id": "1"', b'"id": "1", "name": "x", "id": "2"')
    (event,) = decode(twice)
    assert isinstance(event, RowChange)
    assert event.after is not None
    assert (event.after.values["id"], event.after.values["name"]) == (2, "b")
    assert event.table.column_names[:2] == ("id", "name")


@pytest.mark.parametrize(
    ("number", "good"),
    [
        ("1e999999999", False),
        ("-1e999999999", False),
        ("1e-999999999", False),
        ("1e99999999999999999999", False),
        ("9" * 65, True),
        ("9" * 66, False),
        ("9" * 4_000, False),
        ("9" * 1_000_000, False),
        ("0." + "0" * 63 + "1", True),
        ("1" + "0" * 5_000 + "e-5000", False),
        ("0.10", True),
        ("1e2", True),
    ],
)
def test_monstrous_numbers(number: str, good: bool) -> None:
    # As a JSON number and as text.
    for written in (number, f'"{number}"'):
        value = text_of(UPDATE).replace(b'"1.50"', written.encode())
        (event,) = decode(value)
        assert isinstance(event, RowChange if good else Corrupt)
        if isinstance(event, RowChange):
            assert event.after is not None
            assert event.after.values["price"] == decimal.Decimal(number)


def test_monstrous_numbers_where_nobody_asks() -> None:
    for wire_text in (b'"more": 1e999, ', b'"more": [1e-400], ', b'"id": 1e400, '):
        (event,) = decode(b"{" + wire_text + text_of(UPDATE)[1:].replace(b'"id": 0, ', b"", 1))
        assert isinstance(event, RowChange)
        assert event.extra
    # Of unknown type, and a gigabyte if anyone wrote it out.
    for number in (b"1e999999999", b'{"a": [-1e999999999]}'):
        untyped = text_of(UPDATE | {"mysqlType": None, "sqlType": None})
        assert "a number out of range" in str(the_error(untyped.replace(b'"1.50"', number)))


@pytest.mark.parametrize("depth", [100, 900, 1_100, 10_000, 1_000_000])
@pytest.mark.parametrize(
    "field", ["data", "old", "pkNames", "mysqlType", "tableChanges", "_tidb", "x"]
)
@pytest.mark.parametrize("braces", ["[]", "{}"])
def test_deep_nesting(depth: int, field: str, braces: str) -> None:
    head, tail = ("[", "]") if braces == "[]" else ('{"a":', "}")
    nested = head * depth + "1" + tail * depth
    wire = (DDL if field == "tableChanges" else UPDATE) | {field: "NESTED"}
    events = decode(text_of(wire).replace(b'"NESTED"', nested.encode()))
    assert len(events) == 1
    if depth > 1_024:
        assert isinstance(events[0], Corrupt)


@pytest.mark.parametrize("keys", [["c0"], [f"c{i}" for i in range(50_000)]])
def test_very_many_columns(keys: list[str]) -> None:
    names = [f"c{i}" for i in range(50_000)]
    wire = UPDATE | {
        "pkNames": keys,
        "mysqlType": dict.fromkeys(names, "int"),
        "data": [dict.fromkeys(names, "1")],
        "old": [{}],
    }
    (event,) = decode(text_of(wire))
    assert isinstance(event, RowChange)
    assert event.after == Image(dict.fromkeys(names, 1))
    assert event.table.key_columns == tuple(keys)
    columns = [{"name": name, "position": i} for i, name in enumerate(names)]
    changes = {"table": {"columns": columns, "primaryKeyColumnNames": keys}}
    (ddl,) = decode(text_of(DDL | {"tableChanges": changes}))
    assert isinstance(ddl, SchemaChange)
    assert ddl.table_schema is not None
    assert ddl.table_schema.key_columns == tuple(keys)


def test_very_many_rows() -> None:
    events = decode(text_of(BATCH | {"data": [{"id": str(i)} for i in range(100_000)]}))
    assert len(events) == 100_000
    assert len({id(event.table) for event in events if isinstance(event, RowChange)}) == 1


def test_ever_new_tables_and_types_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdcfmt_core.caches.MAX_CACHE_BYTES", 1 << 20)
    decoder.cache_clear()

    def feed(start: int, end: int) -> int:
        for i in range(start, end):
            wire = UPDATE | {
                "table": f"t{i}",
                "mysqlType": {"a": f"enum('{i}{'x' * 3_000}')", "b": f"set('{'y' * 3_000}{i}')"},
                "data": [{"a": "1", "b": "1"}],
                "old": None,
            }
            assert isinstance(decode(text_of(wire))[0], RowChange)
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
        decoder.cache_clear()
    assert few - empty > 10 * 6_000
    # Each of 600 more tables took as much again before there was a bound.
    assert more - full < 60 * 6_000


LARGE_VALUE = """
import json, resource, sys
from cdcfmt_core import DecoderContext, Registry
from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.events import Message
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.options import validate
from cdcfmt_core.schemas.store import SchemaStore

def peak():
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

registry = Registry()
codec = registry.get_codec("canal-json")
context = DecoderContext(registry.get_type_map("mysql"), SchemaStore())
options = validate({}, codec.options, owner="the test")
decoder = MessageDecoder("canal-json", options, lambda _: context, EventFilter(), registry)
head, tail = sys.stdin.buffer.read().split(b"VALUE")
start, filling, end = (part.encode("latin-1") for part in sys.argv[1:4])
value = b"".join([head, start, filling * int(sys.argv[4]), end, tail])
before = peak()
(event,) = decoder.decode(Message(None, value, offset=1))
after = getattr(event, "after", None)
print(json.dumps({
    "more": peak() - before,
    "length": max(len(str(value)) for value in after.values.values()) if after else None,
    "error": str(event.error) if hasattr(event, "error") else None,
}))
"""


@pytest.mark.parametrize(
    ("column", "start", "filling", "end", "good"),
    [
        ("name", '"', "x", '"', True),
        ("raw", '"', "x", '"', True),
        ("name", '"', "x", '\xff"', True),
        ("name", '"', "x", "", False),
        ("price", '"', "1", '"', False),
        ("price", "", "1", "", False),
    ],
    ids=["text", "binary", "not utf-8", "no end", "digits", "number"],
)
def test_a_value_of_100_megabytes(
    column: str, start: str, filling: str, end: str, good: bool
) -> None:
    pytest.importorskip("resource")
    size = 100 << 20
    wire = UPDATE | {"old": None, "data": [UPDATE["data"][0] | {column: "VALUE"}]}
    done = subprocess.run(
        [sys.executable, "-c", LARGE_VALUE, start, filling, end, str(size)],
        input=text_of(wire).replace(b'"VALUE"', b"VALUE"),
        capture_output=True,
        timeout=300,
        check=True,
    )
    result = json.loads(done.stdout)
    # Text with undecodable bytes has two bytes a letter, once in the whole, once in the value.
    assert result["more"] < 5 * size
    if good:
        assert result["length"] >= size
    else:
        assert len(result["error"]) < 1_000


@pytest.mark.parametrize("dialect", ["ticdc", "canal", "cloudcanal", "ckafka", "drs"])
@given(data=st.data(), value=st.sampled_from(MESSAGES))
@patient
def test_every_dialect(dialect: str, data: st.DataObject, value: bytes) -> None:
    wire = json.loads(value)
    path = data.draw(st.sampled_from(paths_of(wire)))
    wire = changed(wire, path, data.draw(JSON))
    for event in decoder(dialect=dialect).decode(Message(None, text_of(wire))):
        assert type(event) in KIND_OF
        if isinstance(event, Corrupt):
            assert not event.error.reason.startswith("the decoder failed"), event.error
