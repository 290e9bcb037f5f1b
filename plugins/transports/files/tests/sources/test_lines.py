"""A line is a value, or a whole message as Spark's Kafka source writes it."""

from __future__ import annotations

import base64
import json
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Message
from cdcfmt_files.sources import BadLine, lines, parse_line, wrap_line
from cdcfmt_files.sources.lines import LineFormat

EIGHT_IN_SHANGHAI = 1767225600000


def parse(line: bytes, line_format: LineFormat = "auto") -> Message | BadLine:
    return parse_line(line, offset=9, path="f", line_format=line_format)


def test_lines_written_from_sparks_kafka_source() -> None:
    line = (
        b'{"key":"azE=","value":"eyJpZCI6MH0=","topic":"orders","partition":2,"offset":815,'
        b'"timestamp":"2026-01-01T08:00:00.123+08:00","timestampType":0,'
        b'"headers":[{"key":"trace","value":"AAE="},{"key":"empty"}]}'
    )
    assert parse(line) == Message(
        b"k1",
        b'{"id":0}',
        (("trace", b"\0\1"), ("empty", None)),
        "orders",
        2,
        815,
        EIGHT_IN_SHANGHAI + 123,
        "f",
    )


def test_null_fields_are_left_out() -> None:
    tombstone = parse(b'{"key":"azE=","topic":"t","partition":0,"offset":1,"timestampType":0}')
    assert tombstone == Message(b"k1", None, (), "t", 0, 1, None, "f")
    neither = parse(b'{"topic":"t","partition":0,"offset":1}')
    assert neither == Message(None, None, (), "t", 0, 1, None, "f")


def test_headers_as_pairs_and_the_line_s_own_offset() -> None:
    line = b' { "value" : "dg==", "headers": [["a", "eA=="], ["b", null]], "timestamp": 12 }'
    assert parse(line) == Message(None, b"v", (("a", b"x"), ("b", None)), None, None, 9, 12, "f")


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("2026-01-01T08:00:00.000+08:00", EIGHT_IN_SHANGHAI),
        ("2026-01-01T00:00:00.000Z", EIGHT_IN_SHANGHAI),
        ("2026-01-01T00:00:00Z", EIGHT_IN_SHANGHAI),
        ("2026-01-01T00:00Z", EIGHT_IN_SHANGHAI),
        ("2026-01-01 00:00:00.1239Z", EIGHT_IN_SHANGHAI + 123),
        ("2025-12-31T19:00:00.5-0500", EIGHT_IN_SHANGHAI + 500),
        ("1969-12-31T23:59:59.999Z", -1),
        ("0001-01-01T00:00:00.000+18:00", -62135596800000 - 18 * 3600_000),
    ],
)
def test_timestamps(text: str, millis: int) -> None:
    line = b'{"value":"","timestamp":"%s"}' % text.encode()
    message = parse(line)
    assert isinstance(message, Message)
    assert message.timestamp == millis


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"id":0,"value":"dg=="}',
        b'{"value":"dg==","id":0}',
        b'{"value":{"a":1}}',
        b'{"key":1,"value":"dg=="}',
        b'{"topic":"t"}',
        b'{"topic":"t","partition":0}',
        b'{"value":"dg=="} trailing',
        b'{"value":"\xff"}',
        b'{"key":' + b"[" * 10_000,
        b'{"key":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001,
        b'{"offset":' + b"1" * 10_000 + b"}",
    ],
)
def test_other_lines_are_values_or_bad_lines(line: bytes) -> None:
    assert parse(line) == Message(None, line, offset=9, path="f")
    bad = parse(line, "message")
    assert isinstance(bad, BadLine)
    assert (bad.value, bad.offset, bad.path) == (line, 9, "f")
    assert str(bad.error).startswith("file f, offset 9: ")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b'{"value":"a"}', "value: not base64"),
        (b'{"value":"d\xc3\xa4=="}', "value: not base64"),
        (b'{"key":"a-_=","value":null}', "key: not base64"),
        (b'{"value":"","topic":1}', "topic: not text"),
        (b'{"value":"","topic":"\\ud800"}', "topic: not text"),
        (b'{"value":"","partition":2147483648}', "partition: not an integer of 32 bits"),
        (b'{"value":"","offset":true}', "offset: not an integer of 64 bits"),
        (b'{"value":"","offset":1.0}', "offset: not an integer of 64 bits"),
        (b'{"value":"","timestamp":1e999}', "timestamp: not an integer of 64 bits"),
        (b'{"value":"","timestamp":"2026-01-01T00:00:00"}', "timestamp: neither milliseconds nor"),
        (b'{"value":"","timestamp":"2026-13-01T00:00:00Z"}', "timestamp: month must be"),
        (b'{"value":"","headers":{}}', "headers: not a list"),
        (b'{"value":"","headers":["x"]}', "headers[0]: not an object"),
        (b'{"value":"","headers":[["a",null],{"value":""}]}', "headers[1].key: a header has no"),
        (b'{"value":"","headers":[["a",1]]}', "headers[0].value: not base64 text"),
    ],
)
def test_a_bad_field_of_a_whole_message_is_named(line: bytes, text: str) -> None:
    bad = parse(line)
    assert isinstance(bad, BadLine)
    assert text in str(bad.error)
    assert bad.value == line
    assert str(pickle.loads(pickle.dumps(bad)).error) == str(bad.error)


MESSAGES = st.builds(
    Message,
    key=st.none() | st.binary(max_size=50),
    value=st.none() | st.binary(max_size=50),
    headers=st.lists(
        st.tuples(st.text(max_size=9), st.none() | st.binary(max_size=9)), max_size=3
    ).map(tuple),
    topic=st.none() | st.text(max_size=9),
    partition=st.none() | st.integers(-(1 << 31), (1 << 31) - 1),
    offset=st.integers(-(1 << 63), (1 << 63) - 1),
    timestamp=st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
    path=st.just("f"),
)


@given(message=MESSAGES)
def test_wrap_and_parse(message: Message) -> None:
    line = wrap_line(message)
    assert b"\n" not in line
    assert parse(line) == message
    assert parse(line, "message") == message


@given(message=MESSAGES)
def test_wrapped_messages_read_as_other_json_does(message: Message) -> None:
    wrapped = json.loads(wrap_line(message))
    assert wrapped["value"] == (
        None if message.value is None else base64.b64encode(message.value).decode()
    )


def test_topic_in_invalid_unicode_is_rejected() -> None:
    with pytest.raises(EncodeError, match="not valid Unicode"):
        wrap_line(Message(None, b"", topic="\ud800"))


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["key", "value", "topic", "partition", "offset", "timestamp"])
            | st.sampled_from(["timestampType", "headers", "id"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=10,
)


@given(
    line=st.one_of(
        st.binary(),
        st.binary().map(lambda b: b'{"key":' + b),
        JSON.map(lambda value: json.dumps(value).encode()),
    ),
    line_format=st.sampled_from(["auto", "value", "message"]),
)
def test_any_line_is_parsed_without_exception(line: bytes, line_format: LineFormat) -> None:
    assert isinstance(parse(line, line_format), (Message, BadLine))


_PIECES = st.sampled_from(
    [
        b"{",
        b'"',
        b"key",
        b'"value"',
        b":",
        b" ",
        b"\n",
        b"\r\n",
        b"\x0b",
        b'"isDdl":true',
        b"[",
        b"a",
    ]
)


@given(st.lists(_PIECES, max_size=30).map(b"".join))
def test_the_kernel_looks_for_marks_as_the_reference_does(text: bytes) -> None:
    for marks in ((), (b'"isDdl":true',), (b"no such", b"a[")):
        assert lines.search()(text, marks, ()) == lines._holds_any(text, marks, ())
        # The reference does not look into whole messages.
        may_hold = lines.search()(text, marks, lines._FIRST_FIELDS)
        assert may_hold <= lines._holds_any(text, marks, lines._FIRST_FIELDS)


_VALUES = st.sampled_from(
    [b"", b"{}", b'{"ddl":1}', b'"dd"l"', b"\x16\x02", b"\x16\x06\x16\x02", b'x"ddl"']
)


@given(st.lists(st.tuples(_VALUES, st.none() | _VALUES), min_size=1))
def test_marks_in_whole_messages_are_found(pairs: list[tuple[bytes, bytes | None]]) -> None:
    text = b"".join(wrap_line(Message(key, value)) + b"\n" for value, key in pairs)
    may_hold = lines.marked_lines((b'"ddl"', b"\x16\x02"), "auto", b"\n")
    assert may_hold is not None
    is_there = any(b'"ddl"' in value or value.startswith(b"\x16\x02") for value, _ in pairs)
    if lines.search() is lines._holds_any:
        assert may_hold(text)
    else:
        assert may_hold(text) == is_there
    # Without its value only the reference reads it.
    assert may_hold(text + b'{"value":null,"key":"eA=="}\n')


def test_a_block_of_blank_lines_is_looked_through_once() -> None:
    for look in (lines.search(), lines._holds_any):
        assert not look(b"\n" * (1 << 20), (), lines._FIRST_FIELDS)


@given(
    st.lists(st.sampled_from([None, b"", b"y" * 400_000, b'{"row":1}', b'{"ddl":1}']), max_size=40),
    st.integers(0, 3),
)
@settings(max_examples=50, deadline=None)
def test_all_messages_with_marks_are_found(values: list[bytes | None], repeated: int) -> None:
    values *= repeated
    messages = [Message(None, value, offset=place) for place, value in enumerate(values)]
    found = list(lines.marked_messages(iter(messages), (b'"ddl"', b"x" * 9)))
    wanted = [each for each in messages if each.value is not None and b'"ddl"' in each.value]
    assert [each for each in messages if each in found] == found
    assert all(each in found for each in wanted)
    assert list(lines.marked_messages(iter(messages), ())) == messages
    if not wanted and sum(len(each or b"") for each in values) > 2 << 20:
        assert len(found) <= 1
