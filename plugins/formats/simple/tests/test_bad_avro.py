"""Bad bytes and Avro: an error, never an exception."""

from __future__ import annotations

import math
import struct
from functools import cache

import pytest
from simple_bad_input import AVRO_FULL, CHECKSUM, FULL, TOLD
from simple_messages import (
    AVRO_DATA,
    BUILD,
    ID,
    TS,
    bootstrap,
    column,
    ddl,
    row,
    table,
    the_error,
    the_row,
    to_avro,
    to_json,
)
from support.bad_input import check_error, check_row
from support.golden_data import open_decoder, scan_schemas

from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.events import KIND_OF, Corrupt, Event, Message, RowChange
from cdcfmt_core.schemas.store import SchemaStore

WATERMARK = {"version": 1, "type": "WATERMARK", "commitTs": TS, "buildTs": BUILD}


WIRES = [
    TOLD,
    ddl(tableSchema=table(version=3), preTableSchema=table(version=2)),
    ddl("QUERY", tableSchema=None, sql="create database d"),
    WATERMARK,
    row("INSERT", FULL, checksum=CHECKSUM),
    row("UPDATE", FULL, FULL | {"name": "x"}),
    row("DELETE", None, {"id": "1"}, handleKeyOnly=True),
]


AVRO_WIRES = [
    *WIRES[:4],
    row("INSERT", AVRO_FULL, checksum=CHECKSUM),
    row("UPDATE", AVRO_FULL, AVRO_FULL | {"name": ("string", "x")}),
    row("DELETE", None, {"id": ("long", 1)}, handleKeyOnly=True),
]


JSON_VALUES = [to_json(wire) for wire in WIRES]


AVRO_VALUES = [to_avro(wire) for wire in AVRO_WIRES]


VALUES = [*JSON_VALUES, *AVRO_VALUES]


@cache
def known() -> tuple[MessageDecoder, SchemaStore]:
    """A decoder with the table's schema, and that schema."""
    store = scan_schemas([Message(None, JSON_VALUES[0])], protocol="simple")
    return open_decoder(schemas=store, protocol="simple", verifyChecksum="true"), store


def checked(value: bytes | None) -> list[Event]:
    """The events of a message, after checks that hold for all messages."""
    reader, store = known()
    events = reader.decode(Message(None, value, topic="t", partition=3, offset=99))
    if store.changes != 1:
        # The table schema of a damaged message is discarded.
        known.cache_clear()
    assert type(events) is list
    for event in events:
        assert type(event) in KIND_OF
        if isinstance(event, Corrupt):
            check_error(event.error, "simple")
        elif isinstance(event, RowChange):
            check_row(event)
    # The schema scan must not fail either.
    scan_schemas([Message(None, value)], protocol="simple")
    return events


def long(number: int) -> bytes:
    """Avro's encoding, of numbers up to 64 bits."""
    number = (number << 1) ^ (number >> 63)
    number &= (1 << 64) - 1
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def test_the_messages_are_good() -> None:
    for value in VALUES:
        (event,) = checked(value)
        assert not isinstance(event, Corrupt), event


@pytest.mark.parametrize("value", AVRO_VALUES, ids=range(len(AVRO_VALUES)))
def test_bytes_after_the_end(value: bytes) -> None:
    for rest in (b"\0", b"\x02", b"\x16\0"):
        error = the_error(JSON_VALUES[0], value + rest)
        assert error.reason == f"{len(rest)} bytes follow the message"


def in_the_image(encoded: bytes) -> bytes:
    """A row with one column ``id``, whose branch and value are these bytes."""
    whole = to_avro(row("INSERT", {"id": None}))
    assert whole.endswith(b"\x02\x02\x04id\0\0\0")
    return whole[:-3] + encoded + b"\0\0"


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [
        (long(8), "branch 8 does not exist: there are 8"),
        (long(-1), "branch -1 does not exist: there are 8"),
        (long(1 << 40), "does not exist: there are 8"),
        (long(1) + long(1 << 40), "not within -2147483648 and 2147483647"),
        (long(1) + b"\xff" * 10 + b"\x01", "a number has more than 64 bits"),
        (long(4) + long(-3) + b"abc", "a length is -3"),
        (long(4) + long(1 << 40) + b"abc", "is truncated"),
        (long(4) + long(3) + b"abc", "not an integer"),
        (long(5) + long(1) + b"a", "bytes are not a value of this type"),
        (long(2) + bytes(4), "a float is not a value of this type"),
        (long(3) + bytes(8), "a float is not a value of this type"),
        (long(3) + struct.pack("<d", math.inf), "a float is not a value of this type"),
        (long(3) + bytes(3), "is truncated"),
        (long(2) + bytes(1), "is truncated"),
        (long(6) + long(3) + b"UTC" + long(1) + b"x", "not an integer"),
        (long(7) + long(-1), "not within"),
    ],
)
def test_values_in_avro(encoded: bytes, reason: str) -> None:
    error = the_error(JSON_VALUES[0], in_the_image(encoded))
    assert reason in error.reason
    assert "the decoder failed" not in error.reason
    assert error.field in ("data.id", "data", None)


def test_numbers_with_more_bytes_than_they_need() -> None:
    value = in_the_image(b"\x82\x00" + b"\x82\x80\x00")
    event = the_row(JSON_VALUES[0], value)
    assert event.after is not None
    assert event.after.values == {"id": 1}
    longer = value.replace(b"\x04id", b"\x84\x80\x00id")
    event = the_row(JSON_VALUES[0], longer)
    assert event.after is not None
    assert event.after.values == {"id": 1}


def test_columns_with_long_names() -> None:
    names = ["中" * 64, "x" * 63, "x" * 64, "y" * 200]
    schema_message = bootstrap(ID, *(column(name, "int") for name in names))
    data = {name: ("long", index) for index, name in enumerate(["id", *names])}
    event = the_row(schema_message, to_avro(row("INSERT", data)))
    assert event.after is not None
    assert event.after.values == {name: index for name, (_, index) in data.items()}


@pytest.mark.slow
def test_blocks_with_their_size() -> None:
    """Avro's maps may come in blocks, each with a count below zero and its bytes."""
    whole = to_avro(row("INSERT", {"id": ("long", 1)}))
    head, entry = whole[: -len(b"\x02\x02\x04id\x02\x02\0\0") + 1], b"\x04id\x02\x02"
    for blocks in (b"\x01\x0a" + entry + b"\0", b"\x01\x0a" + entry + b"\x02" + entry + b"\0"):
        event = the_row(JSON_VALUES[0], head + blocks + b"\0")
        assert event.after is not None
        assert event.after.values == {"id": 1}


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ((1, long(4)), "message type 4 does not exist"),
        ((1, long(-1)), "message type -1 does not exist"),
        ((2, long(2)), "the message type is DML, but it has a DDL"),
        ((2, long(9)), "payload 9 does not exist"),
    ],
)
def test_kinds_of_avro_messages(damage: tuple[int, bytes], reason: str) -> None:
    position, filling = damage
    value = to_avro(row("INSERT", AVRO_DATA))
    error = the_error(value[:position] + filling + value[position + 1 :])
    assert reason in error.reason


def test_another_avro_schema() -> None:
    """The older schema has the type as text, here an unknown one."""
    value = to_avro(WATERMARK, older=True)
    error = the_error(value.replace(b"WATERMARK", b"WATERMELN"))
    assert error.field == "type"
    assert "unknown Avro schema" in error.reason
