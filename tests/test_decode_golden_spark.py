"""Golden messages of every format in a bronze table: ``decode`` gives what the files give."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest
from golden_data import load_variant, native_messages, reading_options
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import VariantVal

from cdcfmt_core.events import Message
from cdcfmt_core.sources import wrap_line
from pyspark_cdcfmt import KAFKA_COLUMNS, decode

COLUMNS = (
    "key binary, value binary, headers array<struct<key:string,value:binary>>, topic string, "
    "partition int, offset long, timestamp timestamp"
)
NAMED = KAFKA_COLUMNS | {"headers": "headers"}


@attrs.frozen
class Case:
    """Golden messages, the options that read them, and some of their tables."""

    messages: list[Message]
    options: dict[str, Any]
    tables: tuple[str, ...]


def _ticdc(protocol: str, name: str) -> Callable[[], Case]:
    def load() -> Case:
        variant = load_variant(protocol, name)
        messages = [golden.message for golden in variant.messages]
        tables = ("golden.bytes_t", "golden.pk_change")
        return Case(messages, dict(reading_options(variant)), tables)

    return load


def _native(path: str, table: str) -> Callable[[], Case]:
    return lambda: Case(list(native_messages(path)), {"sourceTimeZone": "UTC"}, (table,))


CASES = {
    "canal-json": _ticdc("canal-json", "tidb-extension"),
    "canal-json, keys only": _ticdc("canal-json", "handle-key-only"),
    "canal": _native("canal/canal_flat", "shop.wide"),
    "open-protocol": _ticdc("open", "batched"),
    "debezium of TiCDC": _ticdc("debezium", "tidb-extension"),
    "debezium": _native("debezium/schema_default", "shop.wide"),
    "dts-avro": _native("dts/dts", "shop.wide"),
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


@pytest.mark.parametrize("name", CASES)
def test_bronze_table(spark: SparkSession, tmp_path: Path, name: str) -> None:
    case = CASES[name]()
    messages = [
        attrs.evolve(message, topic="t", partition=1, offset=offset, timestamp=1_700_000_000_123)
        for offset, message in enumerate(case.messages)
    ]
    lines = [wrap_line(message) + b"\n" for message in messages]
    (tmp_path / "messages.jsonl").write_bytes(b"".join(lines))
    arrived = datetime.fromtimestamp(1_700_000_000, UTC) + timedelta(milliseconds=123)
    rows = [(m.key, m.value, m.headers, "t", 1, m.offset, arrived) for m in messages]
    spark.createDataFrame(rows, COLUMNS).coalesce(1).write.parquet(str(tmp_path / "bronze"))
    bronze = spark.read.parquet(str(tmp_path / "bronze"))

    reader = spark.read.format("cdc").options(**case.options)
    # One task each: Debezium's decoder learns from the DDL that its task meets.
    reader = reader.option("scanSchemas", "false").option("minPartitions", "1")
    reader = reader.option("incompleteRows", "emit")
    files = reader.load(str(tmp_path / "messages.jsonl"))
    expected = shown(files.drop("_corrupt_record"))
    actual = shown(decode(bronze, **NAMED, **case.options).drop("_corrupt_record"))
    assert len(actual) >= len(case.messages) / 2
    assert actual == expected
    for table in case.tables:
        files = reader.option("table", table).load(str(tmp_path / "messages.jsonl"))
        changes = decode(
            bronze,
            **NAMED,
            **case.options,
            table=table,
            incompleteRows="emit",
            schema=files.schema,
        )
        expected = shown(files.where("_corrupt_record is null"))
        assert len(expected) > 1
        assert shown(changes.where("_corrupt_record is null")) == expected
