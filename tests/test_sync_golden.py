"""``sync`` over the golden messages of each format: Kafka in, Delta out, equal to the truth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pytest
from dumped_cells import cell, garbled_cell
from golden_data import (
    Truth,
    dumped_tables,
    load_variant,
    native_messages,
    reading_options,
)
from golden_spark_values import in_column, instant, same_value, variant_value
from kafka_broker import Broker
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import TimestampType, VariantVal

from cdcfmt_core.events import Message
from pyspark_cdcfmt.sync import sync

Rows: TypeAlias = dict[tuple[Any, ...], Any]


def fill(kafka: Broker, prefix: str, messages: Iterable[Message]) -> str:
    """Topics with these messages; the pattern of their names."""
    by_topic: dict[str, list[Message]] = defaultdict(list)
    for message in messages:
        by_topic[f"{prefix}.{message.topic or 'all'}"].append(message)
    for topic, sent in by_topic.items():
        partitions = 1 + max(message.partition or 0 for message in sent)
        kafka.create_topic(topic, partitions)
        kafka.produce(topic, (attrs.evolve(m, timestamp=None) for m in sent))
    return f"{prefix}\\..*"


def run(
    spark: SparkSession, kafka: Broker, pattern: str, folder: Path, **options: Any
) -> dict[str, str]:
    """Sync all that is there; the reasons of the tables that halted."""
    source = {
        "kafka.bootstrap.servers": kafka.servers,
        "subscribePattern": pattern,
        **options.pop("source", {}),
    }
    sync(
        spark,
        source=source,
        into=f"{folder}/lake/{{table}}",
        checkpoint=f"{folder}/checkpoint",
        trigger={"availableNow": True},
        **options,
    ).awaitTermination()
    log = read(spark, folder, "checkpoint/sync/log")
    return {row.source: row.detail for row in log.where("action = 'halt'").collect()}


def read(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    return spark.read.format("delta").load(f"{folder}/{name}")


@pytest.mark.parametrize("name", ["canal/canal_flat", "debezium/schema_default"])
def test_native_producers(delta: SparkSession, kafka: Broker, tmp_path: Path, name: str) -> None:
    is_canal = name.startswith("canal")
    pattern = fill(kafka, name.replace("/", "-"), native_messages(name))
    halted = run(
        delta,
        kafka,
        pattern,
        tmp_path,
        tables="shop.*",
        keys={"shop.uk": "u"},
        source={"sourceTimeZone": "UTC"},
    )
    assert {"shop.nopk", "shop.later2", "shop.tmp_drop"} == set(halted)
    expected = dumped_tables()
    for table, target in {
        "wide": "wide",
        "pair": "pair",
        "uk": "uk",
        "订 单": "____d27b2f",
    }.items():
        frame = read(delta, tmp_path, f"lake/{target}")
        types = {field.name: field.dataType for field in frame.schema.fields}
        key = {"pair": ("a", "b")}.get(table, (next(iter(types)),))
        actual = by_key(frame, key)
        true = {}
        for row in expected[table]:
            cells = {
                column: (garbled_cell if is_canal else cell)(column, types[column], *value)
                for column, value in row.items()
                if column in types and column != "renamed"
            }
            true[tuple(cells[column] for column in key)] = cells
        if table == "uk" and not is_canal:
            # Its TRUNCATE is never reported.
            assert true.keys() < actual.keys()
        else:
            assert true.keys() == actual.keys()
        for key_of_row, cells in true.items():
            row = actual[key_of_row]
            assert {column: spark_value(row[column], types[column]) for column in cells} == cells


def by_key(frame: DataFrame, key: tuple[str, ...]) -> dict[tuple[Any, ...], Row]:
    rows = {tuple(row[column] for column in key): row for row in frame.collect()}
    assert len(rows) == frame.count()
    return rows


def spark_value(value: Any, type_: Any) -> Any:
    if isinstance(type_, TimestampType) and value is not None:
        return instant(value)
    return value


TICDC = {
    ("canal-json", "tidb-extension"): False,
    ("open", "default"): False,
    ("debezium", "tidb-extension"): True,
    ("simple-avro", "default"): True,
}
"""Whether rows tell whole types."""
ROUNDED = {("debezium", "c_dec_u")}
"""TiCDC's Debezium sends DECIMAL as a double."""


@pytest.mark.parametrize(("protocol", "name"), TICDC)
def test_ticdc(
    delta: SparkSession, kafka: Broker, tmp_path: Path, protocol: str, name: str
) -> None:
    variant = load_variant(protocol, name)
    pattern = fill(kafka, f"{protocol}-{name}", (Message(m.key, m.value) for m in variant.messages))
    tables = ["all_types", "pk_change", "uk_change"]
    run(
        delta,
        kafka,
        pattern,
        tmp_path,
        tables=[f"golden.{table}" for table in tables],
        keys={"golden.uk_change": "a"},
        source=reading_options(variant),
    )
    for table in tables:
        frame = read(delta, tmp_path, f"lake/{table}")
        types = {field.name: field.dataType for field in frame.schema.fields}
        truth = final_rows(t for m in variant.messages for t in m.truth if t.get("table") == table)
        if not truth:
            assert frame.isEmpty()
            continue
        key = tuple(c["name"] for c in next(iter(truth.values())) if "handle" in c["flags"])
        actual = by_key(frame, key)
        assert len(actual) == len(truth), table
        full = TICDC[protocol, name]
        for columns in truth.values():
            wanted = {c["name"]: in_column(c.get("new"), types[c["name"]], full) for c in columns}
            row = actual[tuple(wanted[column] for column in key)]
            for column in columns:
                if (protocol, column["name"]) in ROUNDED:
                    continue
                actual_cell = row[column["name"]]
                if isinstance(actual_cell, VariantVal):
                    actual_cell = variant_value(actual_cell)
                actual_cell = spark_value(actual_cell, types[column["name"]])
                assert same_value(column.get("new"), wanted[column["name"]], actual_cell), (
                    table,
                    column,
                    actual_cell,
                )


def final_rows(events: Iterable[Truth]) -> dict[tuple[Any, ...], list[Truth]]:
    """The rows that are left, by the text of their key: the columns of the last change."""
    rows: dict[tuple[Any, ...], list[Truth]] = {}
    for event in events:
        if event["kind"] == "ddl":
            if event["ddl_type"] in ("truncate table", "drop table"):
                rows.clear()
            continue
        keys = [c for c in event["columns"] if "handle" in c["flags"]]
        for side in ("old", "new"):
            if any(side in column for column in event["columns"]):
                key = tuple(str(column[side]) for column in keys)
                rows.pop(key, None)
                if side == "new":
                    rows[key] = event["columns"]
    return rows
