"""Golden messages of every format in a bronze table: ``decode`` gives what the files give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from golden_data import load_variant, native_messages, reading_options
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import VariantVal

from cdcfmt_core.events import Message
from cdcfmt_core.sources import wrap_line
from pyspark_cdcfmt import KAFKA_COLUMNS, decode

COLUMNS = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp"

TICDC = {
    "canal-json": ("canal-json", "tidb-extension"),
    "canal-json without positions": ("canal-json", "handle-key-only"),
    "open-protocol": ("open", "batched"),
    "debezium": ("debezium", "tidb-extension"),
}
NATIVE = {
    "canal": ("canal/flat", {}, "shop.orders"),
}


def shown(frame: DataFrame) -> list[str]:
    return sorted(map(_shown, frame.collect()))


def _shown(value: Any) -> str:
    if isinstance(value, VariantVal):
        return f"{value.toPython()!r}"
    if isinstance(value, Row):
        fields = value.asDict()
        fields.pop("path", None)
        return ", ".join(f"{name}={_shown(item)}" for name, item in fields.items())
    return repr(value)


def bronze(spark: SparkSession, messages: list[Message], path: Path) -> DataFrame:
    rows = [
        (m.key, m.value, m.topic, m.partition, m.offset, None) for m in messages
    ]
    spark.createDataFrame(rows, COLUMNS).write.parquet(str(path / "bronze"))
    return spark.read.parquet(str(path / "bronze"))


@pytest.mark.parametrize("name", TICDC)
def test_ticdc(spark: SparkSession, tmp_path: Path, name: str) -> None:
    variant = load_variant(*TICDC[name])
    messages = [golden.message for golden in variant.messages]
    options = reading_options(variant)
    compare(spark, tmp_path, messages, options, [variant.tables[0], ("golden", "all_types")])
