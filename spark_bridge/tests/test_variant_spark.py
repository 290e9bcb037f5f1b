"""Variants that we write, read by Spark itself."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import VariantVal
from variants import as_read, typed

from cdcfmt_core.types import GeometryValue
from pyspark_cdcfmt.rows.variant import VariantEncoder, encode_variant


@pytest.fixture
def utc(spark: SparkSession) -> Iterator[SparkSession]:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", str(zone))


def test_spark_reads_our_variants(utc: SparkSession) -> None:
    image = {
        "big": 2**64 - 1,
        "bin": b"\x00\xff",
        "day": date(2024, 2, 29),
        "dec": Decimal("12.50"),
        "wide": Decimal("-" + "9" * 30 + ".12345678"),
        "doc": {"k": [1, None, {"x": Decimal("1E+3")}]},
        "flag": True,
        "instant": datetime(2024, 1, 1, 12, 0, 0, 123456, tzinfo=UTC),
        "nan": math.nan,
        "nothing": None,
        "old": date(1, 1, 1),
        "real": 0.1,
        "small": -1,
        "text": "Köln 😀",
        "time": timedelta(hours=-838, minutes=-59, seconds=-59),
        "wall": datetime(1969, 12, 31, 23, 59, 59, 999999),
        "point": GeometryValue(4326, b"\x01\x02"),
    }
    encoder = VariantEncoder(tuple(image))
    frame = utc.createDataFrame([(VariantVal(*encoder.encode(image)),)], "v variant")
    paths = {
        "big": "decimal(20,0)", "bin": "binary", "day": "date", "dec": "decimal(10,2)",
        "wide": "decimal(38,8)", "flag": "boolean", "nothing": "string", "old": "date",
        "real": "double", "small": "tinyint", "text": "string", "wall": "timestamp_ntz",
    }  # fmt: skip
    row = frame.selectExpr(
        "to_json(v) json",
        "schema_of_variant(v) schema",
        *(f"variant_get(v, '$.{name}', '{kind}') {name}" for name, kind in paths.items()),
        "variant_get(v, '$.instant', 'timestamp') = timestamp'2024-01-01 12:00:00.123456' instant",
        "variant_get(v, '$.doc.k[2].x', 'int') nested",
        "variant_get(v, '$.time', 'string') time",
        "variant_get(v, '$.point.srid', 'int') srid",
        "is_variant_null(variant_get(v, '$.nothing')) is_null",
        "variant_get(v, '$.absent') is null is_absent",
    ).first()
    assert row is not None
    for name in paths:
        assert typed(getattr(row, name)) == typed(as_read(image[name]))
    assert row.instant
    assert row.nested == 1000
    assert row.time == "-838:59:59.000000"
    assert row.srid == 4326
    assert row.is_null
    assert row.is_absent
    assert row.schema == (
        "OBJECT<big: DECIMAL(20,0), bin: BINARY, day: DATE, dec: DECIMAL(3,1), "
        "doc: OBJECT<k: ARRAY<VARIANT>>, flag: BOOLEAN, instant: TIMESTAMP, nan: DOUBLE, "
        "nothing: VOID, old: DATE, point: OBJECT<srid: BIGINT, wkb: BINARY, wkt: VOID>, "
        "real: DOUBLE, small: BIGINT, text: STRING, time: STRING, wall: TIMESTAMP_NTZ, "
        "wide: DECIMAL(38,8)>"
    )
    assert json.loads(row.json, parse_float=Decimal)["wide"] == image["wide"]


def test_spark_finds_every_field(utc: SparkSession) -> None:
    """From 32 fields on Spark searches by bisection, so an order unlike Java's loses fields."""
    names = [f"c{n}" for n in range(300)] + ["é", "€", "\ue000", "\ufffd", "😀", "𝄞", "😀a"]
    fields = {name: index for index, name in enumerate(names)}
    variants = [VariantEncoder(names).encode(fields), encode_variant(fields)]
    frame = utc.createDataFrame([(VariantVal(*v),) for v in variants], "v variant")
    for row in frame.selectExpr(
        *(f"variant_get(v, '$[\"{name}\"]', 'int') _{i}" for i, name in enumerate(names))
    ).collect():
        assert list(row) == list(fields.values())
