"""Bad content spoils only its own message."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from debezium_messages import (
    column,
    ddl,
    encode,
    envelope_schema,
    error_of,
    message,
    open_decoder,
    row,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from cdcfmt_core.events import Corrupt, Message, RowChange, SchemaChange

GOOD = [
    row("u", before={"a": 1, "b": "x"}, after={"a": 2, "b": "y"}),
    {"schema": envelope_schema({"a": {"type": "int64"}}), "payload": row(after={"a": 1})},
    ddl("alter table orders", [column("a", "INT", enumValues=["x"], length=3)]),
    row("m", {"connector": "TiCDC", "commit_ts": 5}),
    row("m", {"connector": "postgresql"}, message={"prefix": "p", "content": "AA=="}),
    {"status": "BEGIN", "id": "1", "event_count": None, "data_collections": None, "ts_ms": 1},
    {"ts_ms": 5},
    {"id": 1, "__op": "c", "__table": "t", "__db": "d", "__deleted": "false"},
]

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(["c", "u", "d", "m", "t", "TiCDC", "struct", "AA==", "__op"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["op", "source", "after", "type", "fields", "field", "a"]), inner
        )
    ),
    max_leaves=8,
)


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    found = [at]
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            found += paths(inner, (*at, key))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


PLACES = [(index, path) for index, good in enumerate(GOOD) for path in paths(good)]


def check(decoder: Any, value: bytes, key: bytes | None = b'{"a":1}') -> None:
    for event in decoder.decode(Message(key, value, topic="p.d.t")):
        if isinstance(event, Corrupt):
            # A written reason, not the text of an escaped exception.
            assert "the decoder failed" not in str(event.error)


DECODERS = [open_decoder(), open_decoder(flattened="true"), open_decoder(onMissingSchema="fail")]


@pytest.mark.slow
@settings(max_examples=examples(1500), deadline=None)
@given(st.sampled_from(PLACES), JSON)
def test_any_value_in_any_place(place: tuple[int, tuple[Any, ...]], new: Any) -> None:
    index, path = place
    value = encode(replaced(GOOD[index], path, new))
    for decoder in DECODERS:
        check(decoder, value)


@settings(max_examples=examples(200), deadline=None)
@given(JSON)
def test_any_key(key: Any) -> None:
    for decoder in DECODERS:
        for good in GOOD[:2]:
            check(decoder, encode(good), encode(key))
        check(decoder, encode(row("d")), encode(key))


DEEP = b"[" * 10_000 + b"]" * 10_000

BAD = {
    b"": "empty",
    b"{": "JSON ends at byte 1: truncated",
    b"[]": "not a JSON object",
    b'\x04"M\x18abc': "largeMessageHandleCompression=lz4",
    b'{"payload":' + DEEP + b"}": "nested too deeply",
    b'{"payload":{"op":"c","source":{},"after":%s}}' % DEEP: "nested too deeply",
    b'{"payload":{"op":"c"},"schema":%s}' % DEEP: "nested too deeply",
    encode(row("x", after={"a": 1})): "op: is not an operation",
    encode(row(None, after={"a": 1})): "op: ",
    encode(row(after={"a": 1}) | {"source": None}): "source: ",
    encode(row(after={"a": 1}) | {"source": 5}): "source: ",
    encode(row(after=None)): "after: ",
    encode(row(after=[1])): "after: is not an object",
    encode(row("u", before=5, after={"a": 1})): "before: is not an object",
    encode(row(source={"table": ""}, after={"a": 1})): "source.table",
    encode(row(source={"db": 5}, after={"a": 1})): "source.db",
    encode(row(source={"ts_ms": "x"}, after={"a": 1})): "source.ts_ms",
    encode(row(source={"ts_ms": 10**15}, after={"a": 1})): "source.ts_ms",
    encode(row(source={"commit_ts": -1}, after={"a": 1})): "source.commit_ts",
    encode({"schema": {"type": "struct", "fields": 5}, "payload": row(after={"a": 1})}): "fields",
    encode({"schema": envelope_schema({}), "payload": row(after={"a": 1})}): "a: the schema lists",
    encode({"schema": envelope_schema({"a": {"type": 5}}), "payload": row(after={"a": 1})}): "type",
    encode(ddl("", None) | {"tableChanges": 5}): "tableChanges",
    encode(ddl("", None) | {"tableChanges": []}): "ddl",
    encode(ddl("", [{"name": 5}])): "is not a column",
    b'{"op":"c","source":{"db":"d","table":"t"},"after":{"a":NaN}}': "NaN is not JSON",
    b'{"op":"c","source":{"db":"d","table":"t"},"after":{"a":1%s}}'
    % (b"0" * 150_000): "a number of",
}


@pytest.mark.parametrize(("value", "reason"), BAD.items())
def test_errors_have_a_reason(value: bytes, reason: str) -> None:
    decoder = open_decoder()
    assert reason in error_of(decoder.decode(Message(None, value)))
    # The next message is not affected.
    (event,) = decoder.decode(message(row(after={"a": 1})))
    assert not isinstance(event, Corrupt)


@pytest.mark.parametrize("columns", [[{"name": 5}], [5], 5])
def test_a_statement_is_kept_without_a_schema_that_cannot_be_read(columns: Any) -> None:
    wire = ddl("alter table t add a int", [])
    wire["tableChanges"][0]["table"]["columns"] = columns
    (event,) = open_decoder().decode(message(wire))
    assert isinstance(event, SchemaChange)
    assert (event.query, event.table_schema) == ("alter table t add a int", None)
    assert event.extra is not None
    assert event.extra["schema_error"].startswith("tableChanges.table")


def test_objects_without_columns_have_no_table_schema() -> None:
    (event,) = open_decoder().decode(message(ddl("create sequence s", [])))
    assert isinstance(event, SchemaChange)
    assert (event.query, event.table_schema) == ("create sequence s", None)
    assert "schema_error" not in (event.extra or {})


def test_json_numbers_of_any_size_stay_bounded() -> None:
    for digits in ("1e999999999", "-1e400", "1e-999999999", "9" * 900):
        value = json.dumps(row(after={"a": 0})).replace('{"a": 0}', f'{{"a": {digits}}}')
        check(open_decoder(), value.encode())
    decoder = open_decoder(decimalHandlingMode="double")
    decoder.decode(message(ddl("x", [column("a", "DECIMAL", length=5, scale=2)])))
    for digits in ("1e999999999", "1e-999999999", "9" * 900, "1e300"):
        value = json.dumps(row(after={"a": 0})).replace('{"a": 0}', f'{{"a": {digits}}}')
        check(decoder, value.encode())


@pytest.mark.slow
def test_keys_of_very_many_columns() -> None:
    """Keys are looked up: a linear search per column would be quadratic."""
    names = [f"c{number}" for number in range(20_000)]
    statement = ddl("x", [column(name, "INT") for name in names])
    statement["tableChanges"][0]["table"]["primaryKeyColumnNames"] = names
    wire = row(after=dict.fromkeys(names, 1))
    decoder = open_decoder()
    start = time.process_time()
    (change,) = decoder.decode(message(statement))
    (inserted,) = decoder.decode(message(wire))
    # A guard against hangs, not a benchmark.
    assert time.process_time() - start < 10
    assert isinstance(change, SchemaChange)
    assert isinstance(inserted, RowChange)
    for table in (change.table_schema, inserted.table):
        assert table is not None
        assert table.key_columns == tuple(names)
        assert all(each.key for each in table.columns)
