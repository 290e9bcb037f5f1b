"""Hostile messages: texts that are not UTF-8, monstrous numbers, deep nesting, 100 MB."""

from __future__ import annotations

import decimal
import gc
import json
import subprocess
import sys
import tracemalloc

import pytest
from canal_bad_input import BATCH, DDL, MESSAGES, UPDATE, decode, decoder, text_of, the_error
from hypothesis import given
from hypothesis import strategies as st
from support.bad_input import JSON, changed, paths_of, patient

from cdcfmt_core.events import (
    KIND_OF,
    Corrupt,
    Image,
    Message,
    RowChange,
    SchemaChange,
)


def test_invalid_utf8_is_preserved_in_text() -> None:
    value = text_of(UPDATE).replace(b'"b"', b'"b\xff\xe4\xb8 \xe4\xb8\xad"')
    (event,) = decode(value)
    assert isinstance(event, RowChange)
    assert event.after is not None
    name = event.after.values["name"]
    assert name.encode("utf-8", "surrogateescape") == b"b\xff\xe4\xb8 \xe4\xb8\xad"
    assert event.after.values["price"] == decimal.Decimal("1.50")
    # In a binary column they do not stand for bytes.
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
    # Their errors can be printed and pickled.
    the_error(text_of(UPDATE).replace(b'"UPDATE"', b'"\\ud800"'))


def test_last_of_duplicate_names_counts() -> None:
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
def test_huge_numbers(number: str, good: bool) -> None:
    # As a JSON number and as text.
    for written in (number, f'"{number}"'):
        value = text_of(UPDATE).replace(b'"1.50"', written.encode())
        (event,) = decode(value)
        assert isinstance(event, RowChange if good else Corrupt)
        if isinstance(event, RowChange):
            assert event.after is not None
            assert event.after.values["price"] == decimal.Decimal(number)


def test_huge_numbers_in_columns_of_unknown_type() -> None:
    for wire_text in (b'"more": 1e999, ', b'"more": [1e-400], ', b'"id": 1e400, '):
        (event,) = decode(b"{" + wire_text + text_of(UPDATE)[1:].replace(b'"id": 0, ', b"", 1))
        assert isinstance(event, RowChange)
        assert event.extra
    # Without a column type the number would be expanded to 1 GB of digits.
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_very_many_rows() -> None:
    events = decode(text_of(BATCH | {"data": [{"id": str(i)} for i in range(100_000)]}))
    assert len(events) == 100_000
    assert len({id(event.table) for event in events if isinstance(event, RowChange)}) == 1


@pytest.mark.slow
def test_memory_is_bounded_for_endless_new_tables_and_types(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
    # Without a bound, each of 600 more tables takes as much again.
    assert more - full < 60 * 6_000


LARGE_VALUE = """
import json, resource, sys
from cdcfmt_core import open_decoder
from cdcfmt_core.events import Message

def peak():
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

decoder = open_decoder("canal-json")
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


@pytest.mark.slow
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
