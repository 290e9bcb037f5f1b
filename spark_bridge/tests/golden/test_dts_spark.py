"""DTS records through Spark, in both shapes."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.golden_data import native_messages, open_decoder

from cdcfmt_core.events import RowChange
from cdcfmt_files.sources import wrap_line

TYPES = {
    # INT in some hand-made records of the set, BIGINT in the others.
    "id": "decimal(20,0)",
    "c_tiny": "smallint",
    "c_small": "int",
    "c_medium": "int",
    "c_uint": "bigint",
    "c_ubig": "decimal(20,0)",
    "c_dec": "string",
    "c_float": "float",
    "c_double": "double",
    "c_ts": "timestamp",
    "c_ts6": "timestamp",
    "c_dt": "timestamp_ntz",
    "c_dt6": "timestamp_ntz",
    "c_date": "date",
    "c_time": "string",
    "c_time6": "string",
    "c_year": "int",
    "c_vc": "string",
    "c_gbk": "string",
    "c_latin1": "string",
    "c_bin": "binary",
    "c_text": "string",
    "c_blob": "binary",
    "c_json": "variant",
    "c_enum": "string",
    "c_set": "string",
    "c_bit": "decimal(20,0)",
    "c_geom": "struct<srid:int,wkb:binary,wkt:string>",
    "列.名": "string",
}


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The golden messages as JSON Lines of whole messages."""
    path = tmp_path_factory.mktemp("dts") / "dts.jsonl"
    path.write_bytes(b"".join(wrap_line(message) + b"\n" for message in native_messages("dts/dts")))
    return str(path)


def test_events(spark: SparkSession, dump: str) -> None:
    events = spark.read.format("cdc").load(dump)
    counted = {
        (row.kind, row.op): row["count"] for row in events.groupBy("kind", "op").count().collect()
    }
    assert counted == {
        ("row", "insert"): 137,
        ("row", "update"): 86,
        ("row", "delete"): 48,
        ("ddl", None): 2,
        ("transaction", None): 59,
        ("heartbeat", None): 12,
    }
    (row,) = events.where("kind = 'row' and `table` = 'tab'").selectExpr(
        "database", "schema", "key_columns", "to_json(after) image", "source_time",
        "extra:transaction_id::string transaction",
    ).collect()  # fmt: skip
    assert (row.database, row.schema, row.key_columns) == ("db", "sch", ["id"])
    assert json.loads(row.image)["id"] == -(2**63)
    assert row.source_time.replace(tzinfo=UTC) == datetime.fromtimestamp(1779001020, UTC)
    assert row.transaction == "40008b9a-5380-3cac-8e39-76bf7c08af5b:1020"


def test_changes(spark: SparkSession, dump: str) -> None:
    reader = spark.read.format("cdc").option("table", "shop.wide").option("incompleteRows", "emit")
    frame = reader.load(dump)
    types = {field.name: field.dataType.simpleString() for field in frame.schema}
    assert {name: types[name] for name in TYPES} == TYPES
    rows = [row for row in frame.collect() if row._corrupt_record is None]
    decode = open_decoder(protocol="dts-avro").decode
    expected = [
        image.values
        for message in native_messages("dts/dts")
        for event in decode(message)
        if isinstance(event, RowChange) and event.table.table == "wide"
        for image in (event.before, event.after)
        if image is not None
    ]
    assert len(rows) == len(expected)
    for column in ("id", "c_ubig", "c_uint", "c_vc", "c_gbk", "c_enum", "c_double"):
        assert [row[column] for row in rows] == [values.get(column) for values in expected]
    for column, kind in (("c_blob", bytes), ("c_bin", bytes), ("c_date", date), ("c_bit", Decimal)):
        found = [row[column] for row in rows if row[column] is not None]
        assert len(found) > 250
        assert all(isinstance(value, kind) for value in found)


def test_declared_types(spark: SparkSession, dump: str) -> None:
    reader = spark.read.format("cdc").option("table", "shop.wide").option("images", "after")
    # An update of the dump holds only part of its row.
    reader = reader.option("incompleteRows", "emit")
    frame = reader.schema("id bigint, c_uint bigint, _change_type string").load(dump)
    rows = frame.where("_change_type = 'delete'").collect()
    assert len(rows) > 40
    assert sum(row.id is not None for row in rows) > 40


def test_a_null_before_the_first_value(spark: SparkSession, tmp_path: Path) -> None:
    decode = open_decoder(protocol="dts-avro").decode
    with_null, others = [], []
    for message in native_messages("dts/dts"):
        (event,) = decode(message)
        if isinstance(event, RowChange) and event.op == "insert" and event.after is not None:
            image = event.after.values
            if "c_blob" in image:
                (with_null if image["c_blob"] is None else others).append(message)
    path = tmp_path / "nulls.jsonl"
    path.write_bytes(b"".join(wrap_line(message) + b"\n" for message in with_null[:2] + others))
    reader = spark.read.format("cdc").option("table", "shop.wide")
    assert reader.load(str(path)).schema["c_blob"].dataType.simpleString() == "binary"
    path.write_bytes(wrap_line(with_null[0]))
    assert reader.load(str(path)).schema["c_blob"].dataType.simpleString() == "string"
