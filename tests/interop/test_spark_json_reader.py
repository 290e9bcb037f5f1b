"""Our envelopes, read by Spark's own ``from_json``, as users write it by hand."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from typing import Any

import attrs
from pyspark.sql import DataFrame, SparkSession
from support.golden_data import GOLDEN, open_decoder
from support.golden_encoding import open_encoder

from cdcfmt_core.events import Message, RowChange

ROWS = 200
OPS = {"c": "insert", "u": "update", "d": "delete"}
OPTIONS: dict[str, dict[str, Any]] = {
    "canal-json": {"enableTidbExtension": True},
    "cloudcanal-json": {},
    "debezium": {},
    "simple": {},
}

TEXTS = "MAP<STRING, STRING>"
TYPED = (
    "STRUCT<id BIGINT, order_no STRING, amount DECIMAL(16,2), quantity INT, weight DOUBLE, "
    "payload STRING, attrs STRING, created_at BIGINT, updated_at STRING>"
)
# The envelope, its operation, the row in it, and how BINARY, DATETIME and TIMESTAMP are read.
READING = {
    "canal-json": (
        f"type STRING, data ARRAY<{TEXTS}>",
        "lower(wire.type)",
        "wire.data[0]",
        "encode(row.payload, 'ISO-8859-1')",
        "row.created_at",
        "to_utc_timestamp(row.updated_at, 'Asia/Shanghai')",
    ),
    "cloudcanal-json": (
        f"action STRING, data ARRAY<{TEXTS}>",
        "lower(wire.action)",
        "wire.data[0]",
        "encode(row.payload, 'ISO-8859-1')",
        "row.created_at",
        "to_utc_timestamp(row.updated_at, 'Asia/Shanghai')",
    ),
    "debezium": (
        f"payload STRUCT<op STRING, before {TYPED}, after {TYPED}>",
        "wire.payload.op",
        "coalesce(wire.payload.after, wire.payload.before)",
        "unbase64(row.payload)",
        "timestamp_millis(row.created_at)",
        "row.updated_at",
    ),
    "simple": (
        f"type STRING, data {TEXTS}, old {TEXTS}",
        "lower(wire.type)",
        "coalesce(wire.data, wire.old)",
        "unbase64(row.payload)",
        "row.created_at",
        "to_utc_timestamp(get_json_object(row.updated_at, '$.value'), 'Asia/Shanghai')",
    ),
}


def orders() -> list[RowChange]:
    """Rows of TiCDC's, with whole types."""
    decoder = open_decoder(protocol="simple", sourceTimeZone="Asia/Shanghai")
    events: list[RowChange] = []
    with gzip.open(GOLDEN / "bench/simple-json.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            for event in decoder.decode(Message(None, b64decode(json.loads(line)["value_b64"]))):
                if isinstance(event, RowChange):
                    events.append(attrs.evolve(event, source_time=1_700_000_000_000_000))
    # Inserts come first: some of all operations.
    return events[:: len(events) // ROWS]


def test_spark_reads_written_messages(spark: SparkSession) -> None:
    events = orders()
    assert {event.op for event in events} == {"insert", "update", "delete"}
    written = []
    for protocol, options in OPTIONS.items():
        encoder = open_encoder(protocol, sourceTimeZone="Asia/Shanghai", **options)
        for number, event in enumerate(events):
            # Simple sends the schema before its first row.
            value = encoder.encode(event)[-1].value
            written.append((protocol, number, (value or b"").decode()))
    messages = spark.createDataFrame(written, "protocol STRING, number INT, value STRING")
    found: dict[str, list[tuple[Any, ...]]] = {protocol: [] for protocol in OPTIONS}
    for row in read(messages).orderBy("number").collect():
        protocol, _, op, *values = row
        found[protocol].append((OPS.get(op, op), *values))
    expected = [expected_row(event) for event in events]
    for protocol, rows in found.items():
        assert rows == expected, protocol


def read(messages: DataFrame) -> DataFrame:
    parts = []
    for protocol, (schema, op, row, binary, date_time, instant) in READING.items():
        parts.append(
            messages.where(f"protocol = '{protocol}'")
            .selectExpr("*", f"from_json(value, '{schema}', map('mode', 'FAILFAST')) wire")
            .selectExpr("protocol", "number", f"{op} op", f"{row} row")
            .selectExpr(
                "protocol",
                "number",
                "op",
                "CAST(row.id AS BIGINT) id",
                "row.order_no",
                "CAST(row.amount AS DECIMAL(16,2)) amount",
                "CAST(row.quantity AS INT) quantity",
                "CAST(row.weight AS DOUBLE) weight",
                f"{binary} payload",
                "row.attrs",
                f"CAST({date_time} AS TIMESTAMP_NTZ) created_at",
                f"CAST({instant} AS TIMESTAMP) updated_at",
            )
        )
    union = parts[0]
    for part in parts[1:]:
        union = union.unionAll(part)
    return union


def expected_row(event: RowChange) -> tuple[Any, ...]:
    image = event.after or event.before
    assert image is not None
    values = image.values
    names = ("id", "order_no", "amount", "quantity", "weight", "payload", "attrs", "created_at")
    # Spark gives instants as wall clocks of this process, whose zone is UTC.
    return (event.op, *(values[name] for name in names), values["updated_at"].replace(tzinfo=None))
