"""``decode``: messages that are already in a DataFrame, in batch and in streams."""

from __future__ import annotations

import json
import warnings
from datetime import datetime
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from support.canal_messages import COMMIT_TS, DELETE, INSERT, KEY_UPDATE, UPDATE, row_message

from cdcfmt_core.errors import OptionError
from pyspark_cdcfmt import KAFKA_COLUMNS, SEQUENCE, decode
from pyspark_cdcfmt.rows.record_batches import MAX_ROWS

KAFKA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
    "headers array<struct<key:string,value:binary>>"
)
ARRIVED = datetime(2026, 1, 2, 3, 4, 5, 678000)


def kafka_row(message: dict[str, Any] | bytes | None, offset: int) -> tuple[Any, ...]:
    value = json.dumps(message).encode() if isinstance(message, dict) else message
    return (b"k", value, "orders", 3, offset, ARRIVED, [("h", b"1")])


def bronze(spark: SparkSession, *messages: dict[str, Any] | bytes | None) -> DataFrame:
    """Messages as Spark's Kafka source gives them."""
    rows = [kafka_row(message, 40 + place) for place, message in enumerate(messages)]
    return spark.createDataFrame(rows, KAFKA)


@pytest.mark.smoke
def test_events_with_their_places(spark: SparkSession) -> None:
    frame = decode(bronze(spark, INSERT, None, UPDATE, b"{", DELETE), **KAFKA_COLUMNS)
    assert frame.schema == spark.read.format("cdc").load(__file__).schema
    rows = frame.collect()
    assert [(r.kind, r.op, r._source.offset) for r in rows] == [
        ("row", "insert", 40),
        ("row", "update", 42),
        ("corrupt", None, 43),
        ("row", "delete", 44),
    ]
    source = rows[0]._source
    assert (source.protocol, source.topic, source.partition) == ("canal-json", "orders", 3)
    assert (source.timestamp, source.path) == (ARRIVED, None)
    assert rows[1].after.toPython()["name"] == "b"
    assert "topic orders, partition 3, offset 43" in rows[2]._corrupt_record.reason
    assert rows[2]._corrupt_record[1:] == (b"k", b"{", rows[2]._source)


@pytest.mark.smoke
def test_changes(spark: SparkSession) -> None:
    schema = f"id int, name string, _change_type string, _sequence {SEQUENCE.simpleString()}"
    frame = decode(
        bronze(spark, INSERT, UPDATE, KEY_UPDATE, DELETE),
        **KAFKA_COLUMNS,
        table="shop.orders",
        images="after",
        schema=schema,
    )
    assert [(*row[:3], row._sequence.commit, row._sequence.offset) for row in frame.collect()] == [
        (1, "a", "insert", COMMIT_TS, 0),
        (1, "b", "update_postimage", COMMIT_TS + 1, 0),
        (1, "b", "delete", COMMIT_TS + 2, 0),
        (2, "b", "insert", COMMIT_TS + 2, 0),
        (2, "b", "delete", COMMIT_TS + 3, 0),
    ]


def test_columns_by_name_or_expression_of_any_fitting_type(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(json.dumps(INSERT), "7")], "body string, place string")
    (row,) = decode(frame, value="body", offset=frame.place, includeColumns=True).collect()
    assert (row.kind, row._source.offset, row.columns[0].source_type) == ("row", 7, "int")
    assert (row._source.topic, row._source.timestamp) == (None, None)


@pytest.mark.filterwarnings("ignore:.*has no column _change_type")
def test_not_null_columns_stay_so(spark: SparkSession) -> None:
    frame = decode(
        bronze(spark, INSERT), table="shop.orders", mode="FAILFAST", schema="id int not null"
    )
    assert frame.schema.simpleString() == "struct<id:int>"
    assert not frame.schema["id"].nullable
    assert frame.collect() == [(1,)]


def test_timestamps_under_another_default_type(spark: SparkSession) -> None:
    """A cast to the text ``timestamp`` took the zone off, and moved the time by it."""
    messages = bronze(spark, INSERT)
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = decode(messages, **KAFKA_COLUMNS).selectExpr("unix_micros(_source.timestamp)")
        assert frame.first() == messages.selectExpr("unix_micros(timestamp)").first()
    finally:
        spark.conf.unset("spark.sql.timestampType")
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_null_variants_under_large_types(spark: SparkSession) -> None:
    """Spark casts the rows to its large types then, and refuses a NULL in a field of a variant."""
    messages = bronze(spark, INSERT, INSERT, INSERT)
    with pytest.warns(UserWarning, match="has no column _change_type, so deleted rows"):
        frame = decode(messages, table="shop.orders", schema="name string, _rescued variant")
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        assert frame.collect() == 3 * [("a", None)]
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")


def test_modes(spark: SparkSession) -> None:
    messages = bronze(spark, INSERT, b"{", DELETE)
    assert decode(messages, mode="DROPMALFORMED").count() == 2
    with pytest.raises(PySparkException, match=r"canal-json topic orders.* offset 41: JSON ends"):
        decode(messages, **KAFKA_COLUMNS, protocol="canal-json", mode="FAILFAST").collect()


def test_sequence_without_offsets_is_reported(spark: SparkSession) -> None:
    """Without a commit_ts its offset was NULL, and comparisons were never true."""
    messages = bronze(spark, row_message("INSERT", {"id": "1"}, commit_ts=None))
    schema = f"id INT, _change_type STRING, _sequence {SEQUENCE.simpleString()}"
    given = {"table": "shop.orders", "schema": schema, "mode": "FAILFAST"}
    with pytest.warns(UserWarning, match="no offset column, so _sequence orders neither"):
        decode(messages, **given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decode(messages, **given, offset="offset")
        decode(messages, **given | {"schema": "id INT, _change_type STRING"})


def test_options_are_checked_immediately(spark: SparkSession) -> None:
    messages = bronze(spark)
    with pytest.raises(OptionError, match=r"decode has no option 'tabel'; did you mean table\?"):
        decode(messages, tabel="shop.orders")
    with pytest.raises(OptionError, match="pathGlobFilter is of format"):
        decode(messages, pathglobfilter="*")
    with pytest.raises(OptionError, match="needs schema="):
        decode(messages, table="shop.orders")
    with pytest.raises(OptionError, match="remove NOT NULL"):
        decode(messages, schema="kind string not null")
    with pytest.raises(OptionError, match="must be a struct"):
        decode(messages, schema="int")
    with pytest.raises(PySparkException, match="UNRESOLVED_COLUMN"):
        decode(messages, value="payload").collect()


def test_many_messages_keep_their_order_and_count(spark: SparkSession) -> None:
    """More than an Arrow batch, messages of many rows, of none, and none at all."""
    count = MAX_ROWS + 500
    many = row_message("INSERT", [{"id": str(place)} for place in range(20)])
    rows = [
        kafka_row(many if place % 100 == 0 else None if place % 100 == 1 else INSERT, place)
        for place in range(count)
    ]
    frame = decode(spark.createDataFrame(rows, KAFKA).coalesce(1), offset="offset")
    places = [tuple(row) for row in frame.select("_source.offset", "_source.index").collect()]
    assert places == [
        (place, index)
        for place in range(count)
        for index in range(20 if place % 100 == 0 else 0 if place % 100 == 1 else 1)
    ]
    assert decode(spark.createDataFrame([], KAFKA)).collect() == []


def test_one_decoder_run_whatever_is_selected(spark: SparkSession) -> None:
    frame = decode(bronze(spark, INSERT, DELETE), **KAFKA_COLUMNS).where("kind = 'row'")
    plan = frame.select("op", "_source.offset")._jdf.queryExecution().executedPlan().toString()
    assert plan.count("ArrowEvalPython") == 1
    assert plan.count("cdc_decode(struct(") == 1
    assert frame.groupBy("op").count().count() == 2


def test_names_of_the_module() -> None:
    import pyspark_cdcfmt

    assert set(pyspark_cdcfmt.__all__) >= {"decode", "register", "DefaultSource"}
    for name in pyspark_cdcfmt.__all__:
        assert getattr(pyspark_cdcfmt, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pyspark_cdcfmt.nothing
