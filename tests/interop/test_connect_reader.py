"""Debezium's messages as we write them, read by Kafka Connect and Debezium's own transform."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from support.connect_reader import ConnectReader
from support.framed_data import framed_decoder, framed_messages
from support.golden_data import load_variant, native_messages, open_decoder, reading_options
from support.golden_encoding import open_encoder
from support.maven import UnavailableError

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import (
    Column,
    Event,
    Image,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
)
from cdcfmt_core.types import Int

NOT_UTF8 = {"bad_utf8", "bad_latin1", "gbk_t"}
"""Tables whose bytes TiCDC writes raw, which no JSON reader accepts."""


@pytest.fixture(scope="module")
def reader(spark: SparkSession) -> ConnectReader:
    try:
        return ConnectReader(spark)
    except UnavailableError as reason:
        pytest.skip(f"Kafka Connect's readers cannot be had: {reason}")


def few_of_each(events: Iterable[Event]) -> Iterator[RowChange | SchemaChange]:
    """Two rows of each table and operation, and as many DDL of each type."""
    seen: Counter[Any] = Counter()
    for event in events:
        if isinstance(event, RowChange):
            kind: Any = (event.table.database, event.table.table, event.op)
        else:
            assert isinstance(event, SchemaChange)
            kind = event.ddl_type
        seen[kind] += 1
        if seen[kind] <= 2:
            yield event


def tidb_events() -> Iterator[Event]:
    variant = load_variant("debezium", "default")
    decoder = open_decoder(**reading_options(variant))
    for golden in variant.messages:
        yield from decoder.decode(golden.message)


def canal_events() -> Iterator[Event]:
    """With types that TiDB lacks."""
    decoder = open_decoder(protocol="canal-json", sourceTimeZone="UTC")
    for message in native_messages("canal/canal_flat"):
        yield from decoder.decode(message)


def postgres_events() -> Iterator[Event]:
    """With arrays, and the schemas of their connector."""
    decoder = framed_decoder("debezium", "postgres/schema_default")
    for message in framed_messages("postgres/schema_default"):
        for event in decoder.decode(message):
            # The converter reads the NaN that it writes as 0.
            if isinstance(event, RowChange) and event.table.table != "t_numspecial":
                yield event


@pytest.mark.parametrize("source", [tidb_events, canal_events, postgres_events])
def test_connect_reads_written_messages(reader: ConnectReader, source: Any) -> None:
    encoder = open_encoder("debezium", synthesizeCommitTs=True, sourceTimeZone="Asia/Shanghai")
    found: Counter[str] = Counter()
    refused = set()
    for event in few_of_each(source()):
        (message,) = encoder.encode(event)
        try:
            found[check(reader, message)] += 1
        except Py4JJavaError as error:
            if "Invalid UTF-8" not in str(error) or isinstance(event, SchemaChange):
                raise
            refused.add(event.table.table)
    ops = ("c", "u", "d") if source is postgres_events else ("c", "u", "d", "ddl")
    assert min(found[op] for op in ops) > 5
    assert refused <= NOT_UTF8


def test_null_in_a_required_field_is_neither_read_nor_written(reader: ConnectReader) -> None:
    columns = (Column("id", "int", Int(32), key=True), Column("n", "int", Int(32), nullable=False))
    table = TableSchema("shop", "t", columns, ("id",))

    def written(**values: int | None) -> bytes:
        event = RowChange("insert", table, None, Image(values), commit_ts=7 << 18)
        (message,) = open_encoder("debezium").encode(event)
        return message.value or b""

    value = json.loads(written(id=1, n=2))
    for name in ("id", "n"):
        value["payload"]["after"] = {"id": 1, "n": 2, name: None}
        with pytest.raises(Py4JJavaError, match="Invalid null value for required INT32 field"):
            reader.read(json.dumps(value).encode())
        with pytest.raises(EncodeError, match=f"table shop.t, column {name}.*: it is NULL"):
            written(**value["payload"]["after"])


def check(reader: ConnectReader, message: Message) -> str:
    """Their result equals the message; returns its operation."""
    assert message.key is not None
    assert message.value is not None
    key, value = reader.read(message.key, is_key=True), reader.read(message.value)
    assert key == json.loads(message.key)["payload"]
    payload = json.loads(message.value)["payload"]
    if "op" not in payload:
        assert value["ddl"] == payload["ddl"]
        return "ddl"
    for image in ("before", "after"):
        assert same(value[image], payload.get(image))
    op: str = payload["op"]
    assert (value["op"], value["source"]["table"]) == (op, payload["source"]["table"])
    row = reader.unwrapped(message.key, message.value)
    assert row.pop("__deleted") == ("true" if op == "d" else "false")
    assert row.pop("__op") == op
    assert row.pop("__source_ts_ms") == payload["source"]["ts_ms"]
    assert same(row, payload["before" if op == "d" else "after"])
    return op


def same(read: Any, written: Any) -> bool:
    """Equal; a double of the schema may be an integer with too many digits in JSON."""
    if isinstance(read, dict) and isinstance(written, dict):
        return read.keys() == written.keys() and all(
            same(value, written[name]) for name, value in read.items()
        )
    if isinstance(read, float) and isinstance(written, int | float):
        return read == float(written)
    return bool(read == written)
