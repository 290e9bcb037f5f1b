"""Python warnings of the planning process about missing information, once per query."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import DecimalType, IntegerType, StringType, StructType
from support.golden_data import load_variant, native_messages

from cdcfmt_core.events import Message
from cdcfmt_files.sources import wrap_line
from pyspark_cdcfmt.source import CdcDataSource


def write(folder: Path, messages: list[Message]) -> str:
    (folder / "topic.jsonl").write_bytes(b"".join(wrap_line(m) + b"\n" for m in messages))
    return str(folder)


def of_table(folder: Path, variant: str) -> str:
    """The topic of ``shop.wide`` alone, without that of the schema changes."""
    messages = native_messages(f"debezium/{variant}")
    return write(folder, [m for m in messages if m.topic and m.topic.endswith(".shop.wide")])


def warnings_of(path: str, schema: StructType | None = None, **options: Any) -> list[str]:
    """The warnings of one batch."""
    source = CdcDataSource({"path": path, "sourceTimeZone": "UTC", **options})
    wanted = schema or source.schema()
    assert isinstance(wanted, StructType)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        source.reader(wanted).partitions()
    return [str(warning.message) for warning in caught]


def test_decimals_and_enums_of_unknown_form(tmp_path: Path) -> None:
    path = write(tmp_path, [m.message for m in load_variant("canal-json", "default").messages])
    given = {"protocol": "canal-json", "table": "golden.all_types"}
    digits, names = warnings_of(path, scanSchemas="false", **given)
    assert "the digits of DECIMAL columns (c_dec, c_dec_u, c_dec_big, c_dec_int)" in digits
    assert "the names of ENUM and SET columns (c_enum, c_set), which are read as numbers" in names
    # The DDL of the input has both; and a schema selects columns.
    assert warnings_of(path, **given) == []
    schema = StructType().add("c_dec", DecimalType(10, 4)).add("c_enum", IntegerType())
    schema.add("_change_type", StringType())
    assert warnings_of(path, schema, scanSchemas="false", **given) == []


def test_updates_of_an_undeclared_key(tmp_path: Path) -> None:
    path = write(tmp_path, list(native_messages("canal/canal_flat")))
    given = {"protocol": "canal-json", "table": "shop.uk", "images": "after"}
    (keyless,) = warnings_of(path, **given)
    assert keyless.startswith("cdc: shop.uk: the messages name no key")
    assert warnings_of(path, keyColumns="u", **given) == []
    assert warnings_of(path, **given | {"images": "both"}) == []
    assert warnings_of(path, **given | {"table": "shop.nopk", "images": "both"}) == []


def test_types_in_another_topic(tmp_path: Path) -> None:
    given = {"protocol": "debezium", "table": "shop.wide"}
    unsigned = StructType().add("c_ubig", DecimalType(20, 0)).add("_change_type", StringType())
    (untyped,) = warnings_of(of_table(tmp_path, "noschema_default"), **given)
    assert "types for columns (id, c_bool, " in untyped
    (negative,) = warnings_of(of_table(tmp_path, "schema_default"), unsigned, **given)
    assert "whether columns (c_ubig) are BIGINT or BIGINT UNSIGNED" in negative
    whole = write(tmp_path, list(native_messages("debezium/schema_default")))
    assert warnings_of(whole, unsigned, **given) == []


def test_bytes_of_text_of_unknown_type(spark: SparkSession, tmp_path: Path) -> None:
    path = of_table(tmp_path, "noschema_default")
    read = spark.read.format("cdc").option("table", "shop.wide")
    for declared, value in {"c_bin BINARY": "AAAAAAAAAAA=", "c_date DATE": "19782"}.items():
        with pytest.raises(PySparkException) as failed:
            read.schema(declared).load(path).collect()
        message = str(failed.value)
        assert f"shop.wide.{declared.split()[0]}: '{value}'" in message
        assert "declare a string, or also read the messages that have the types" in message
