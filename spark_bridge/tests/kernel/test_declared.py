"""Declared types that differ from the inferred ones: the kernel's rows are the reference's."""

from __future__ import annotations

import base64
import gzip
import json
import random

import pytest
from kernel.test_golden import VARIANTS, golden
from pyspark.sql import types as spark
from support.canal_messages import row_message
from support.golden_data import GOLDEN
from support.turns import in_turn

from cdcfmt_core.events import Message
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed, table_option

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

DECLARED = (
    spark.ByteType(),
    spark.IntegerType(),
    spark.LongType(),
    spark.DecimalType(20, 0),
    spark.DecimalType(38, 10),
    spark.DoubleType(),
    spark.BooleanType(),
    spark.StringType(),
    spark.BinaryType(),
    spark.TimestampType(),
    spark.TimestampNTZType(),
    spark.DateType(),
    spark.VariantType(),
)


@pytest.mark.parametrize(("protocol", "name"), in_turn(VARIANTS, of=2, begin=1))
def test_declared_types(protocol: str, name: str) -> None:
    messages, given, tables = golden(protocol, name)
    chance = random.Random(name)
    ways = ("rescue", "corrupt", "ignore")
    for table in chance.sample(tables, min(3, len(tables))):
        given = {**given, "table": table_option(*table), "onSchemaChange": chance.choice(ways)}
        options = parsed(given)
        schema = inferred_schema(messages, options)
        assert schema is not None
        for field in schema.fields:
            if not field.name.startswith("_") and chance.random() < 0.3:
                field.dataType = chance.choice(DECLARED)
        check_equal(messages, schema, options, inferred=False)


def test_the_largest_decimals() -> None:
    digits = "9" * 28 + "." + "9" * 10
    messages = []
    for offset, price in enumerate((digits, f"-{digits}", f"1{digits}")):
        row = row_message("INSERT", {"id": "1", "price": price}, types={"price": "decimal(38,10)"})
        messages.append(Message(b"", json.dumps(row).encode(), offset=offset))
    options = parsed({"protocol": "canal-json", "table": "shop.orders", "onSchemaChange": "rescue"})
    schema = spark.StructType().add("price", spark.DecimalType(38, 10))
    schema = schema.add("_rescued", spark.VariantType())
    rows = check_equal(messages, schema, options, inferred=False).rows
    assert [value is None for value in rows["price"].to_pylist()] == [False, False, True]


@pytest.mark.parametrize(
    ("protocol", "name"),
    [
        ("canal-json", "canal-json"),
        ("debezium", "debezium"),
        ("open-protocol", "open"),
        ("simple", "simple-json"),
        ("simple", "simple-avro"),
    ],
)
def test_declared_types_use_the_kernel(protocol: str, name: str) -> None:
    """Numbers of an ENUM whose names are known, integers for decimals, instants for clocks."""
    with gzip.open(GOLDEN / "bench" / f"{name}.jsonl.gz") as lines:
        wires = list(map(json.loads, lines))
    messages = [
        Message(
            base64.b64decode(wire["key_b64"] or "") or None, base64.b64decode(wire["value_b64"])
        )
        for wire in wires
    ]
    options = parsed(
        {"protocol": protocol, "table": "bench.orders", "sourceTimeZone": "Europe/Berlin"}
    )
    inferred = inferred_schema(messages, options)
    assert inferred is not None
    declared = {
        "id": spark.LongType(),
        "status": spark.IntegerType(),
        "created_at": spark.TimestampType(),
    }
    schema = spark.StructType(
        [spark.StructField(f.name, declared.get(f.name, f.dataType)) for f in inferred.fields]
    )
    result = check_equal(messages, schema, options, inferred=False)
    assert (result.by_kernel, result.by_reference) == (3997, 3)
