"""Queries by hand for the table of the golden messages: typed columns of both images.

No query filters messages without row changes: the few of them give rows of NULLs.
Spark would push the filter below ``from_json`` and ``from_avro``, and parse each message twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyspark_cdcfmt import SEQUENCE

SOURCE_TIME_ZONE = "Asia/Shanghai"

COLUMNS = {
    "id": "decimal(20,0)",
    "order_no": "string",
    "customer_id": "bigint",
    "status": "int",
    "amount": "decimal(16,2)",
    "discount": "decimal(10,4)",
    "quantity": "int",
    "is_gift": "tinyint",
    "weight": "double",
    "score": "float",
    "address": "string",
    "remark": "string",
    "payload": "binary",
    "attrs": "string",
    "created_at": "timestamp_ntz",
    "updated_at": "timestamp",
}
"""Of the table: each with its Spark type."""

NAMED = COLUMNS | {"status": "string"}
"""Of a wire that has the names of an enum, or its schema."""

_ADDED = (
    "_change_type string, _commit_version bigint, _commit_timestamp timestamp, "
    f"_sequence {SEQUENCE.simpleString()}, "
    "_absent array<string>, _corrupt_record struct<reason: string, key: binary, value: binary>"
)


def changes_schema(columns: Mapping[str, str] = COLUMNS) -> str:
    """Of changes with these columns, as DDL."""
    own = ", ".join(f"{name} {type_}" for name, type_ in columns.items())
    return f"{own}, {_ADDED}"


def _canal(frame: DataFrame) -> DataFrame:
    """Also of CloudCanal, whose members have other names."""
    kind, old, time = (
        ("type", "old", "_tidb.commitTs")
        if "type" in frame.columns
        else ("action", "before", "execTs")
    )

    def column(image: str, name: str, type_: str) -> Any:
        text = F.col(f"{image}.{name}")
        # Binary has one Latin-1 character for each byte.
        value = F.encode(text, "ISO-8859-1") if type_ == "binary" else text.cast(type_)
        if type_ == "timestamp":
            value = F.to_utc_timestamp(value, SOURCE_TIME_ZONE)
        return value.alias(f"{image}_{name}")

    rows = frame.select(
        kind,
        F.col(time),
        F.get("data", F.lit(0)).alias("after"),
        F.get(old, F.lit(0)).alias("before"),
    )
    images = [
        column(image, name, type_)
        for image in ("after", "before")
        for name, type_ in COLUMNS.items()
    ]
    return rows.select(kind, time.rpartition(".")[2], *images)


_TEXTS = ", ".join(f"{name}: string" for name in COLUMNS)
_CANAL = (
    f"type string, es bigint, data array<struct<{_TEXTS}>>, old array<struct<{_TEXTS}>>, "
    "_tidb struct<commitTs: bigint>"
)
_CLOUDCANAL = (
    f"action string, execTs bigint, data array<struct<{_TEXTS}>>, before array<struct<{_TEXTS}>>"
)


_DEBEZIUM_TYPES = {"payload": "string", "created_at": "bigint", "status": "string"}


def _debezium(frame: DataFrame) -> DataFrame:
    columns: list[Any] = []
    for image in ("after", "before"):
        for name in COLUMNS:
            value = F.col(f"payload.{image}.{name}")
            if name == "payload":
                value = F.unbase64(value)
            elif name == "created_at":
                value = F.timestamp_millis(value).cast("timestamp_ntz")
            columns.append(value.alias(f"{image}_{name}"))
    return frame.select("payload.op", "payload.source.commit_ts", *columns)


def _debezium_schema() -> str:
    image = ", ".join(f"{name}: {_DEBEZIUM_TYPES.get(name, t)}" for name, t in COLUMNS.items())
    return (
        "payload struct<op: string, source: struct<commit_ts: bigint>, "
        f"before: struct<{image}>, after: struct<{image}>>"
    )


def _simple(frame: DataFrame) -> DataFrame:
    columns: list[Any] = []
    for wire, image in (("data", "after"), ("old", "before")):
        for name, type_ in COLUMNS.items():
            value = F.col(f"{wire}.{name}")
            if name == "payload":
                value = F.unbase64(value)
            elif name == "updated_at":
                value = F.to_utc_timestamp(value["value"], value["location"])
            else:
                value = value.cast(type_)
            columns.append(value.alias(f"{image}_{name}"))
    return frame.select("type", F.col("commitTs").alias("commit_ts"), *columns)


def _simple_schema() -> str:
    zoned = {"updated_at": "struct<location: string, value: string>"}
    image = ", ".join(f"{name}: {zoned.get(name, 'string')}" for name in COLUMNS)
    return f"type string, commitTs bigint, data struct<{image}>, old struct<{image}>"


QUERIES: dict[str, tuple[str, Callable[[DataFrame], DataFrame]]] = {
    "canal-json": (_CANAL, _canal),
    "cloudcanal-json": (_CLOUDCANAL, _canal),
    "debezium": (_debezium_schema(), _debezium),
    "simple": (_simple_schema(), _simple),
}
"""Protocol → the exact schema of its messages, and the casts behind it."""
