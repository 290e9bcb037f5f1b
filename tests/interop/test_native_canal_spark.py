"""Alibaba Canal's messages through Spark: the replayed changes end in the dumped rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from typing import Any, TypeAlias

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)
from support.dumped_cells import GARBLED, garbled_cell
from support.golden_data import dumped_tables, native_messages

from cdcfmt_files.sources import wrap_line

Cells: TypeAlias = dict[str, Any]

GEOMETRY = StructType(
    [
        StructField("srid", IntegerType()),
        StructField("wkb", BinaryType()),
        StructField("wkt", StringType()),
    ]
)

WIDE: dict[str, DataType] = {
    "id": DecimalType(20, 0),
    "c_bool": ByteType(),
    "c_tiny": ByteType(),
    "c_utiny": ShortType(),
    "c_small": ShortType(),
    "c_usmall": IntegerType(),
    "c_med": IntegerType(),
    "c_umed": IntegerType(),
    "c_int": IntegerType(),
    "c_uint": LongType(),
    "c_big": LongType(),
    "c_ubig": DecimalType(20, 0),
    "c_dec": StringType(),
    "c_dec2": DecimalType(10, 2),
    "c_dec0": DecimalType(20, 0),
    "c_float": FloatType(),
    "c_double": DoubleType(),
    "c_bit1": BooleanType(),
    "c_bit20": LongType(),
    "c_bit64": DecimalType(20, 0),
    "c_date": DateType(),
    "c_time": StringType(),
    "c_time3": StringType(),
    "c_time6": StringType(),
    "c_dt": TimestampNTZType(),
    "c_dt3": TimestampNTZType(),
    "c_dt6": TimestampNTZType(),
    "c_ts": TimestampType(),
    "c_ts3": TimestampType(),
    "c_ts6": TimestampType(),
    "c_year": IntegerType(),
    "c_char": StringType(),
    "c_vc": StringType(),
    "c_gbk": StringType(),
    "c_latin1": StringType(),
    "c_ascii": StringType(),
    "c_u16": StringType(),
    "c_bin": BinaryType(),
    "c_vbin": BinaryType(),
    "c_tblob": BinaryType(),
    "c_blob": BinaryType(),
    "c_mblob": BinaryType(),
    "c_lblob": BinaryType(),
    "c_ttext": StringType(),
    "c_text": StringType(),
    "c_mtext": StringType(),
    "c_ltext": StringType(),
    "c_enum": StringType(),
    "c_set": StringType(),
    "c_json": StringType(),
    "c_point": GEOMETRY,
    "c_geom": GEOMETRY,
}
ORDERS: dict[str, DataType] = {
    "编号": IntegerType(),
    "名 称": StringType(),
    "a.b": IntegerType(),
    "select": IntegerType(),
}


@pytest.fixture(scope="module")
def topic(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("canal") / "topic.jsonl"
    lines = map(wrap_line, native_messages("canal/canal_flat"))
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return str(path)


@pytest.mark.parametrize(
    ("table", "types"),
    [("wide", WIDE), ("订 单", ORDERS)],
    ids=["wide", "orders"],
)
def test_replay_equals_the_dump(
    spark: SparkSession, topic: str, table: str, types: dict[str, DataType]
) -> None:
    frame = _read(spark, topic, f"shop.`{table}`")
    own = [field for field in frame.schema.fields if not field.name.startswith("_")]
    assert {field.name: field.dataType for field in own} == types
    rows: dict[Any, Cells] = {}
    key = next(iter(types))
    for change_type, cells in _changes(frame.orderBy("_sequence"), types):
        if change_type in ("update_preimage", "delete"):
            assert rows.pop(cells[key]) == cells
        else:
            assert rows.setdefault(cells[key], cells) is cells
    dumped = dumped_tables()[table]
    expected = [
        {name: garbled_cell(name, types[name], *cell) for name, cell in row.items()}
        for row in dumped
    ]
    assert rows.keys() == {row[key] for row in expected}
    for row in expected:
        assert rows[row[key]] == row


def test_after_images_hold_the_newest_rows(spark: SparkSession, topic: str) -> None:
    """A user's query: the newest change of each key, without deletes."""
    frame = _read(spark, topic, "shop.pair", images="after")
    frame.createOrReplaceTempView("pair_changes")
    rows = spark.sql(
        "SELECT newest.* FROM (SELECT max_by(struct(*), _sequence) AS newest "
        "FROM pair_changes GROUP BY a, b) WHERE newest._change_type <> 'delete'"
    ).collect()
    expected = {
        (int(row["a"][1] or 0), row["b"][1]): (row["v"][1], int(row["n"][1] or 0))
        for row in dumped_tables()["pair"]
    }
    assert {(row.a, row.b): (row.v, row.n) for row in rows} == expected


def _read(spark: SparkSession, topic: str, table: str, **options: str) -> DataFrame:
    return (
        spark.read.format("cdc")
        .options(mode="FAILFAST", sourceTimeZone="UTC", table=table, **options)
        .load(topic)
    )


def _changes(frame: DataFrame, types: dict[str, DataType]) -> Iterator[tuple[str, Cells]]:
    for row in frame.collect():
        assert row._corrupt_record is None
        assert row._absent == []
        assert row._commit_version is None
        assert (row._sequence.commit, row._sequence.rank) == (0, 0)
        cells = {}
        for name, type_ in types.items():
            value = row[name]
            if isinstance(type_, TimestampType) and value is not None:
                # collect gives the local time of the process.
                value = value.astimezone(UTC)
            cells[name] = value
        yield row._change_type, cells


def test_dump_has_text_garbled_by_canal() -> None:
    garbled = {
        name
        for row in dumped_tables()["wide"]
        for name in GARBLED
        if row[name][1] and not str(row[name][1]).isascii()
    }
    assert garbled == GARBLED.keys()
