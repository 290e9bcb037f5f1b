"""Encoding of events that no golden message has, and rejected events."""

from __future__ import annotations

import struct
from collections import Counter
from typing import Any

import pytest
from support import naive_open_protocol
from support.golden_encoding import open_encoder

from cdcfmt_core.errors import EncodeError, UnsupportedEventError
from cdcfmt_core.events import Column, Image, Message, RowChange, SchemaChange, TableSchema
from cdcfmt_core.types import Geometry, Int, LogicalType, Text, Unknown
from cdcfmt_toolkit.go_quote import quote, unquote
from cdcfmt_toolkit.row_rules import row_rules


def table(*columns: tuple[str, str, LogicalType], key: tuple[str, ...] = ()) -> TableSchema:
    return TableSchema("shop", "t", tuple(Column(*c, key=c[0] in key) for c in columns), key)


ID = ("id", "int", Int(32))
NAME = ("name", "varchar(20)", Text())
ORDERS = table(ID, NAME, key=("id",))


def row(op: Any, before: Any, after: Any, schema: TableSchema = ORDERS, **more: Any) -> RowChange:
    images = [None if values is None else Image(values) for values in (before, after)]
    return RowChange(op, schema, *images, commit_ts=7, **more)


def encode(event: Any, **options: Any) -> dict[str, Any]:
    encoder = open_encoder("open-protocol", **options)
    (message,) = encoder.encode(event) + encoder.flush()
    (read,) = naive_open_protocol.read_message(message.key or b"", message.value or b"")
    return read


@pytest.mark.parametrize(
    "data",
    [b"plain", b'"\\', bytes(range(256)), "中文😀\u200b\u00a0\U000e0001".encode(), b"\xed\xa0\x80"],
)
def test_quoting_is_undone_by_unquoting(data: bytes) -> None:
    assert unquote(quote(data)) == data


def test_quoting_is_gos() -> None:
    # strconv.Quote of Go, the quotes around left out.
    assert quote(b"\x00\x07\x1f\x7f\xff") == r"\x00\a\x1f\x7f\xff"
    assert quote("中\u200b\U000e0001é".encode()) == r"中\u200b\U000e0001é"


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("create database x", 1),
        ("DROP TABLE IF EXISTS `a`.`b`", 4),
        ("ALTER TABLE `a b`.`c``d` ADD COLUMN x int", 5),
        ("alter table t add unique key (a)", 7),
        ("alter table t add primary key (a)", 32),
        ("alter table t drop foreign key f", 10),
        ("alter table t modify a bigint", 12),
        ("/* c */ create  unique\nindex i on t (a)", 7),
        ("rename table a to b", 14),
        ("create or replace view v as select 1", 21),
        ("alter table t order by a", 61),
    ],
)
def test_type_codes_of_statements(statement: str, code: int) -> None:
    assert encode(SchemaChange(statement, "QUERY", "shop", "t", commit_ts=1))["code"] == code


def test_original_type_code_is_kept() -> None:
    for word, code in (("Set Default Value", 15), (71, 71)):
        event = SchemaChange("alter table t x", "ALTER", commit_ts=1, extra={"ddl_type": word})
        assert encode(event)["code"] == code
    with pytest.raises(UnsupportedEventError, match=r"no type code.*got 'grant all'"):
        encode(SchemaChange("grant all", "QUERY", commit_ts=1))


def test_updates_without_old_values() -> None:
    update = row("update", None, {"id": 1, "name": "a"})
    with pytest.raises(UnsupportedEventError, match="outputOldValue=false"):
        encode(update)
    assert "p" not in encode(update, outputOldValue=False)
    upsert = row("upsert", None, {"id": 1, "name": "a"})
    assert encode(upsert, outputOldValue=False)["u"] == {"id": 1, "name": "a"}
    with pytest.raises(UnsupportedEventError, match="set upsertAs"):
        encode(upsert)


def test_update_without_changes_stays_an_update() -> None:
    values = {"id": 1, "name": "a"}
    assert encode(row("update", values, values), onlyOutputUpdatedColumns=True)["p"] == {"id": 1}


def test_incomplete_rows() -> None:
    event = row("insert", None, {"id": 1})
    assert event.after is not None
    event.after.complete = False
    encoder = open_encoder("open-protocol")
    encoder.encode(event)
    (message,) = encoder.flush()
    assert b'"ohk":true' in (message.key or b"")
    with pytest.raises(UnsupportedEventError, match="lacks columns"):
        encode(row("update", {"id": 1}, {"id": 1, "name": "a"}))


def test_inexpressible_values_are_rejected() -> None:
    with pytest.raises(EncodeError, match=r"column g.*no point"):
        encode(row("insert", None, {"g": None}, table(("g", "point", Geometry()))))
    with pytest.raises(EncodeError, match=r"column u.*not known"):
        encode(row("insert", None, {"u": 1}, table(("u", "", Unknown()))))
    with pytest.raises(EncodeError, match=r"column id.*got '1'"):
        encode(row("insert", None, {"id": "1", "name": "a"}))
    with pytest.raises(EncodeError, match=r"column x.*no such column"):
        encode(row("insert", None, {"id": 1, "name": "a", "x": 1}))


def test_invalid_utf8_text() -> None:
    counts: Counter[str] = Counter()
    event = row("insert", None, {"id": 1, "name": "a\udcff"})
    assert encode(event, counts=counts)["u"]["name"] == "a\ufffd"
    assert sum(counts.values()) == 1
    with pytest.raises(EncodeError, match="column name"):
        encode(event, invalidText="fail")
    long_text = table(("t", "text", Text()))
    (message,) = _messages(row("insert", None, {"t": "a\udcff"}, long_text))
    assert b'"v":"Yf8="' in (message.value or b"")


def _messages(event: Any) -> list[Message]:
    encoder = open_encoder("open-protocol")
    return encoder.encode(event) + encoder.flush()


def test_column_flags_of_other_formats_are_dropped() -> None:
    attributes = ("default 5", "charset utf8mb4")
    column = Column("n", "int unsigned", Int(32, signed=False), key=True, flags=attributes)
    event = row("insert", None, {"n": 2**32 - 1}, TableSchema("shop", "t", (column,), ("n",)))
    (message,) = _messages(event)
    assert b'"n":{"t":3,"h":true,"f":139,"v":4294967295}' in (message.value or b"")


def test_batches() -> None:
    events = [row("insert", None, {"id": n, "name": "x" * 100}) for n in range(10)]

    def sizes(**options: Any) -> list[int]:
        encoder = open_encoder("open-protocol", **options)
        messages = [message for event in events for message in encoder.encode(event)]
        messages += encoder.flush()
        return [
            len(naive_open_protocol.read_message(m.key or b"", m.value or b""))
            for m in messages
            if len(m.key or b"") + len(m.value or b"") + 36 <= options.get("maxMessageBytes", 1e9)
        ]

    assert sizes(maxBatchSize=1) == [1] * 10
    assert sizes(maxBatchSize=3) == [3, 3, 3, 1]
    by_bytes = sizes(maxMessageBytes=1000)
    assert sum(by_bytes) == 10
    assert 1 < max(by_bytes) < 10
    with pytest.raises(EncodeError, match="set largeMessageHandleOption"):
        sizes(maxMessageBytes=100)


def test_batches_hold_one_partition() -> None:
    encoder = open_encoder("open-protocol", partitions=4)
    messages = []
    for n in range(40):
        messages += encoder.encode(row("insert", None, {"id": n, "name": "a"}))
    messages += encoder.flush()
    partition_of = {}
    for message in messages:
        assert struct.unpack(">q", (message.key or b"")[:8]) == (1,)
        for event in naive_open_protocol.read_message(message.key or b"", message.value or b""):
            partition_of[event["u"]["id"]] = message.partition
    assert len(partition_of) == 40
    assert set(partition_of.values()) == {0, 1, 2, 3}


def test_a_limit_below_the_overhead_of_a_message() -> None:
    batches = row_rules(open_encoder("open-protocol", maxMessageBytes=10)).rows.row_batches
    assert batches is not None
    # The kernel accepts no negative number.
    assert batches.max_bytes == 0
