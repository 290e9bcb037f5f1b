"""Queries by hand for messages in Avro, with ``from_avro`` of Spark's own Avro reader.

The same columns as in ``spark_queries.py``.  Spark reads a union as a struct of its members by
their place: ``member0`` is the first one that is not null.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from samples import Sample
from spark_queries import COLUMNS, NAMED

_SIMPLE_MEMBERS = {
    "id": "member6.value",
    "order_no": "member3",
    "customer_id": "member0",
    "status": "member0",
    "amount": "member3",
    "discount": "member3",
    "quantity": "member0",
    "is_gift": "member0",
    "weight": "member2",
    "score": "member1",
    "address": "member3",
    "remark": "member3",
    "payload": "member4",
    "attrs": "member3",
    "created_at": "member3",
}
"""Column → where its value is: of long, float, double, text, bytes, Timestamp, UnsignedBigint."""


def _simple(frame: DataFrame) -> DataFrame:
    # Message is the twelfth of the schema's types, a row the fourth of its payloads.
    rows = frame.select("m.member11.payload.member3.*")
    columns: list[Any] = []
    for wire, image in (("data", "after"), ("old", "before")):
        for name, type_ in COLUMNS.items():
            cell = F.element_at(wire, F.lit(name))
            if name == "updated_at":
                zoned = cell["member5"]
                value = F.to_utc_timestamp(zoned["value"], zoned["location"])
            else:
                value = cell
                for member in _SIMPLE_MEMBERS[name].split("."):
                    value = value[member]
                value = value.cast(type_)
            columns.append(value.alias(f"{image}_{name}"))
    return rows.select("type", F.col("commitTs").alias("commit_ts"), *columns)


def _dts_value(cell: Any, name: str, type_: str) -> Any:
    """Members are Integer, Character, Decimal, Float, Timestamp, DateTime, and so on."""
    if name == "created_at":
        at = cell["member5"]
        # The part that is named millis holds microseconds.
        seconds = at["second"] + at["millis"].cast("decimal(16,6)") / 1_000_000
        return F.make_timestamp_ntz(
            at["year"],
            at["month"],
            at["day"],
            at["hour"],
            at["minute"],
            seconds.cast("decimal(16,6)"),
        )
    if name == "updated_at":
        instant = cell["member4"]
        return F.timestamp_micros(instant["timestamp"] * 1_000_000 + instant["millis"])
    if name in ("amount", "discount"):
        member = "member2"
    elif name == "payload":
        member = "member9"
    elif name in ("status", "attrs"):
        member = "member10"
    elif type_ == "string":
        member = "member1"
    elif type_ in ("double", "float"):
        member = "member3"
    else:
        member = "member0"
    return cell[member]["value"].cast(type_)


def _dts(frame: DataFrame) -> DataFrame:
    rows = frame.select("m.*")
    columns = [
        # The table's columns are known, so their places are.
        _dts_value(F.get(f"{wire}.member1", F.lit(place)), name, type_).alias(f"{image}_{name}")
        for wire, image in (("afterImages", "after"), ("beforeImages", "before"))
        for place, (name, type_) in enumerate(NAMED.items())
    ]
    return rows.select("operation", "sourceTimestamp", *columns)


AVRO_QUERIES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "simple-avro": _simple,
    "dts-avro": _dts,
}
"""Sample → the columns behind its messages."""


def read_avro(spark: SparkSession, path: str, sample: Sample) -> DataFrame:
    """Typed columns of both images, from a file of whole messages as JSON Lines."""
    assert sample.avsc is not None
    # Simple's schema is a union, which Spark refuses as the whole; in a record of one field it
    # has the same bytes.
    field = {"name": "m", "type": json.loads(sample.avsc.read_text("utf-8"))}
    schema = json.dumps({"type": "record", "name": "Wire", "fields": [field]})
    wires = spark.read.schema("value string").json(path)
    messages = wires.select(from_avro(F.unbase64("value"), schema).alias("wire"))
    return AVRO_QUERIES[sample.name](messages.select("wire.m"))
