"""Golden messages of every format in a bronze table: ``decode`` gives what the files give."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import VariantVal
from support.golden_data import load_variant, native_messages, reading_options
from support.golden_spark import suite_and_thorough

from cdcfmt_core.errors import OptionError
from cdcfmt_core.events import Message
from cdcfmt_files.sources import wrap_line
from pyspark_cdcfmt import KAFKA_COLUMNS, decode, learn_schemas

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
IN_SUITE = ("canal-json, keys only", "open-protocol", "debezium", "dts-avro")


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


@attrs.frozen
class Both:
    """The same messages as a file and as a bronze table."""

    path: str
    bronze: DataFrame


def write_both(spark: SparkSession, folder: Path, messages: list[Message]) -> Both:
    located = [
        attrs.evolve(message, topic="t", partition=1, offset=offset, timestamp=1_700_000_000_123)
        for offset, message in enumerate(messages)
    ]
    path = folder / "messages.jsonl"
    path.write_bytes(b"".join(wrap_line(message) + b"\n" for message in located))
    arrived = datetime.fromtimestamp(1_700_000_000, UTC) + timedelta(milliseconds=123)
    rows = [(m.key, m.value, m.headers, "t", 1, m.offset, arrived) for m in located]
    spark.createDataFrame(rows, COLUMNS).coalesce(1).write.parquet(str(folder / "bronze"))
    return Both(str(path), spark.read.parquet(str(folder / "bronze")))


@pytest.mark.parametrize("name", suite_and_thorough(CASES, IN_SUITE))
def test_bronze_table(spark: SparkSession, tmp_path: Path, name: str) -> None:
    case = CASES[name]()
    both = write_both(spark, tmp_path, case.messages)
    reader = spark.read.format("cdc").options(**case.options)
    # One task each: Debezium's decoder learns from the DDL that its task meets.
    reader = reader.option("scanSchemas", "false").option("minPartitions", "1")
    policies = {"incompleteRows": "emit", "onTruncate": "row"}
    reader = reader.options(**policies)
    files = reader.load(both.path)
    expected = shown(files.drop("_corrupt_record"))
    actual = shown(decode(both.bronze, **NAMED, **case.options).drop("_corrupt_record"))
    assert len(actual) >= len(case.messages) / 2
    assert actual == expected
    for table in case.tables:
        files = reader.option("table", table).load(both.path)
        changes = decode(
            both.bronze,
            **NAMED,
            **case.options,
            table=table,
            **policies,
            schema=files.schema,
        )
        expected = shown(files.where("_corrupt_record is null"))
        assert len(expected) > 1
        assert shown(changes.where("_corrupt_record is null")) == expected


def test_schemas_learned_from_the_table(spark: SparkSession, tmp_path: Path) -> None:
    """Rows whose types are only in the DDL, which other tasks read."""
    both = write_both(spark, tmp_path, list(native_messages("debezium/noschema_default")))
    bronze = both.bronze.repartition(4, "offset")
    options = {
        "protocol": "debezium",
        "includeColumns": "true",
        "timePrecisionMode": "adaptive_time_microseconds",
    }
    expected = shown(spark.read.format("cdc").options(**options).load(both.path))

    schemas = learn_schemas(bronze, protocol="debezium")
    assert len(schemas) > 3
    assert shown(decode(bronze, **NAMED, **options, schemas=schemas)) == expected
    assert shown(decode(bronze, **NAMED, **options)) != expected


def test_schemas_of_formats_that_carry_their_types(spark: SparkSession) -> None:
    assert len(learn_schemas(spark.range(1), protocol="cloudcanal-json")) == 0
    with pytest.raises(OptionError, match="decode has no option 'protokol'"):
        learn_schemas(spark.range(1), protokol="canal-json")
