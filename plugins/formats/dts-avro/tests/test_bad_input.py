"""No record raises, hangs or allocates by a claimed length; errors have reason and position."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from typing import Any

import fastavro
import pytest
from dts_records import encode, record, row, schema
from hypothesis import given
from hypothesis import strategies as st
from support.bad_input import check_error, check_row, patient
from support.golden_data import native_messages, open_decoder

from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import KIND_OF, Corrupt, Event, Heartbeat, Image, Message, RowChange
from cdcfmt_toolkit.wire_avro import read_long

INTEGER = ("Integer", {"precision": 4, "value": "7"})


@cache
def decoder() -> MessageDecoder:
    return open_decoder(protocol="dts-avro")


def decode(value: bytes | None) -> list[Event]:
    """The events of a message, after checks that hold for all messages."""
    events = decoder().decode(Message(None, value, topic="t", partition=3, offset=99))
    for event in events:
        assert type(event) in KIND_OF
        if isinstance(event, Corrupt):
            check_error(event.error, "dts-avro")
        elif isinstance(event, RowChange):
            check_row(event)
    return events


def the_error(value: bytes) -> DecodeError:
    (event,) = decode(value)
    assert isinstance(event, Corrupt), event
    return event.error


def golden() -> list[bytes]:
    values = [message.value or b"" for message in native_messages("dts/dts")]
    return [*values[:24], encode(record(**row(3, INTEGER)), born=1_700_000_000)]


GOLDEN = golden()
# Not the last: cut before bornTimestamp it is a whole record of the older schema.
SHORT = [*sorted(GOLDEN[:-1], key=len)[:6], encode(record(**row(3, INTEGER)))]


def long(number: int) -> bytes:
    """Avro's encoding, of numbers up to 64 bits."""
    number = (number << 1) ^ (number >> 63)
    number &= (1 << 64) - 1
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def test_the_records_are_good() -> None:
    for value in GOLDEN:
        assert not isinstance(decode(value)[0], Corrupt)


def in_the_image(encoded: bytes) -> bytes:
    """A row whose only value is these bytes."""
    return encode(record(**row(3, None)))[:-2] + encoded + b"\0"


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [
        (long(13), "branch 13 does not exist"),
        (long(-1), "branch -1 does not exist"),
        (long(1 << 62), "does not exist"),
        (long(12) + long(2), "symbol 2 does not exist"),
        (long(12) + long(-1), "symbol -1 does not exist"),
        (long(1) + long(4) + long(-1), "a length is -1"),
        (long(1) + long(4) + long(2) + b"\xff\xff", "not UTF-8"),
        (long(1) + b"\xff" * 12, "more than 64 bits"),
        (long(1) + b"\xff" * 9 + b"\x02", "more than 64 bits"),
        (long(1) + long(4) + long(1 << 62) + b"7", "is truncated"),
        (long(2) + long(1) + b"\xff" + long(0), "not UTF-8"),
        (long(4) + b"1234", "is truncated"),
    ],
)
def test_values_invalid_in_avro_are_corrupt(encoded: bytes, reason: str) -> None:
    assert reason in the_error(in_the_image(encoded)).reason


def test_non_minimal_integer_encodings_are_accepted() -> None:
    for encoded in (b"\x80\x00", b"\x98\x00\x80\x80\x00"):
        (event,) = decode(in_the_image(encoded))
        assert isinstance(event, RowChange)
        assert event.after == Image({"c": None})
    (event,) = decode(in_the_image(b"\x82\x00" + long(4) + long(1) + b"7"))
    assert isinstance(event, RowChange)
    assert event.after == Image({"c": 7})


def test_arrays_of_several_blocks() -> None:
    names = ["a", "b", "c"]
    fields = [{"name": name, "dataTypeNumber": 3} for name in names]
    whole = encode(record(**row(3, None) | {"fields": fields, "afterImages": [INTEGER] * 3}))
    value = long(1) + long(4) + long(1) + b"7"
    head = whole[: -len(long(3) + value * 3 + b"\0")]
    for blocks in (
        long(1) + value + long(2) + value * 2 + b"\0",
        long(-3) + long(len(value) * 3) + value * 3 + b"\0",
        (long(1) + value) * 3 + b"\0",
    ):
        (event,) = decode(head + blocks)
        assert isinstance(event, RowChange)
        assert event.after == Image(dict.fromkeys(names, 7))
    assert "values and fields" in the_error(head + long(4) + value * 4 + b"\0").reason
    assert "values and fields" in the_error(head + long(2) + value * 2 + b"\0").reason


@pytest.mark.slow
def test_very_many_fields() -> None:
    fields = [{"name": str(i), "dataTypeNumber": 3} for i in range(30_000)]
    wire = record(**row(3, None) | {"fields": fields, "afterImages": [INTEGER] * 30_000})
    assert the_error(encode(wire)).reason == "has more than 20000 fields"
    wire = record(**row(3, None) | {"fields": fields[:1] * 2, "afterImages": [INTEGER] * 2})
    assert the_error(encode(wire)).reason == "has a name twice"


@given(number=st.integers(-(1 << 63), (1 << 63) - 1))
def test_longs_are_avros(number: int) -> None:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema("long"), number)
    assert read_long(buffer.getvalue() + b"x", 0) == (number, len(buffer.getvalue()))


TEXT = st.text(max_size=8)
INT = st.integers(-(1 << 31), (1 << 31) - 1)
PARTS = st.fixed_dictionaries(
    {
        name: st.none() | st.integers(low, high)
        for name, low, high in [
            ("year", 1, 9999), ("month", 1, 12), ("day", 1, 31), ("hour", 0, 23),
            ("minute", 0, 59), ("second", 0, 59), ("millis", 0, 999_999),
        ]
    }
)  # fmt: skip
VALUES = st.one_of(
    st.none(),
    st.tuples(
        st.just("Integer"),
        st.fixed_dictionaries({"precision": INT, "value": st.integers().map(str)}),
    ),
    st.tuples(
        st.just("Character"),
        st.fixed_dictionaries(
            {"charset": st.sampled_from(["", "utf8", "gbk", "latin1", "x"]), "value": st.binary()}
        ),
    ),
    st.tuples(
        st.just("Decimal"),
        st.fixed_dictionaries({"value": st.decimals().map(str), "precision": INT, "scale": INT}),
    ),
    st.tuples(
        st.just("Float"),
        st.fixed_dictionaries({"value": st.floats(), "precision": INT, "scale": INT}),
    ),
    st.tuples(
        st.just("Timestamp"),
        st.fixed_dictionaries({"timestamp": st.integers(-(1 << 63), (1 << 63) - 1), "millis": INT}),
    ),
    st.tuples(st.just("DateTime"), PARTS),
    st.tuples(
        st.just("TimestampWithTimeZone"),
        st.fixed_dictionaries({"value": PARTS, "timezone": st.sampled_from(["+08:00", "x", ""])}),
    ),
    st.tuples(
        st.sampled_from(["BinaryGeometry", "BinaryObject"]),
        st.fixed_dictionaries({"type": TEXT, "value": st.binary()}),
    ),
    st.tuples(
        st.sampled_from(["TextGeometry", "TextObject"]),
        st.fixed_dictionaries({"type": TEXT, "value": TEXT}),
    ),
    st.tuples(st.just("EmptyObject"), st.sampled_from(["NULL", "NONE"])),
)
NUMBER = st.integers(0, 19) | st.integers(245, 255) | st.sampled_from([1184, 1700, 3802])


@given(
    columns=st.lists(st.tuples(NUMBER, VALUES, VALUES), max_size=4),
    operation=st.sampled_from(["INSERT", "UPDATE", "DELETE", "INIT", "NOOP"]),
    source=st.sampled_from(["MySQL", "PostgreSQL", "Oracle"]),
    tags=st.dictionaries(TEXT, TEXT, max_size=2),
    times=st.none() | st.lists(st.integers(0, 1 << 50), max_size=3),
    born=st.none() | st.integers(1 << 30, 1 << 50),
)
@patient
def test_any_record_written_by_fastavro(
    columns: list[tuple[int, Any, Any]],
    operation: str,
    source: str,
    tags: dict[str, str],
    times: list[int] | None,
    born: int | None,
) -> None:
    wire = record(
        operation=operation,
        objectName="d.t",
        source={"sourceType": source, "version": "1"},
        tags=tags,
        processTimestamps=times,
        fields=[{"name": f"c{i}", "dataTypeNumber": n} for i, (n, _, _) in enumerate(columns)],
        beforeImages=[value for _, value, _ in columns],
        afterImages=[value for _, _, value in columns],
    )
    (event,) = decode(encode(wire, born))
    if isinstance(event, RowChange):
        assert event.extra is not None
        assert event.extra.get("tags", {}) == tags
        assert event.extra.get("process_timestamps") == (times or None)
        assert event.extra.get("born_timestamp") == born
        assert event.table.column_names == tuple(f"c{i}" for i in range(len(columns)))
        for image, values in (
            (event.before, [value for _, value, _ in columns]),
            (event.after, [value for _, _, value in columns]),
        ):
            if image is not None:
                absent = [f"c{i}" for i, v in enumerate(values) if v == ("EmptyObject", "NONE")]
                assert [name for name in event.table.column_names if name not in image.values] == (
                    absent
                )
    elif not columns:
        assert isinstance(event, Heartbeat if operation in ("INIT", "NOOP") else Corrupt)
    else:
        # One value is bad, not the record.
        assert isinstance(event, Corrupt)
        assert event.error.field


def fastavro_reads(value: bytes, parsed: Any) -> bool:
    stream = io.BytesIO(value)
    try:
        fastavro.schemaless_reader(stream, parsed, None)
    except (EOFError, IndexError, ValueError):
        return False
    return stream.read() == b""


@given(data=st.data(), value=st.sampled_from(SHORT))
@patient
def test_valid_avro_records_are_accepted(data: st.DataObject, value: bytes) -> None:
    position = data.draw(st.integers(0, len(value) - 1))
    damaged = (
        value[:position] + data.draw(st.binary(min_size=1, max_size=1)) + value[position + 1 :]
    )
    (event,) = decode(damaged)
    if not isinstance(event, Corrupt):
        # Any accepted record has one of the two schemas.
        readers: list[Callable[[], Any]] = [schema, lambda: schema(newer=True)]
        assert any(fastavro_reads(damaged, parsed()) for parsed in readers)
