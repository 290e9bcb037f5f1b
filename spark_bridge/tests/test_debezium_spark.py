"""Debezium through Spark: both shapes, in many partitions, with the schemas of the whole input."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pytest
from interop.test_native_canal_spark import ORDERS, WIDE, _changes
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import DataType, StringType, TimestampType, VariantType
from support.cli_tools import write_messages
from support.dumped_cells import garbled_cell
from support.framed_data import framed_messages
from support.golden_data import Truth, dumped_tables, load_variant, native_messages, reading_options
from support.golden_spark_values import (
    TYPES,
    in_column,
    in_variant,
    instant,
    same_value,
    variant_value,
)

from cdcfmt_files.sources import wrap_line

DOUBLES = {"c_dec_u", "c_dec_big", "c_dec_int"}
"""Decimals that do not survive a double (plugins/formats/debezium/tests/test_golden.py)."""

TABLES = ["all_types", "bytes_t", "no_key", "pk_unsigned", "upd_cols", "virt_mid"]


def write(folder: Path, variant: str) -> tuple[str, dict[str, str]]:
    golden = load_variant("debezium", variant)
    lines = (wrap_line(message.message) for message in golden.messages)
    path = folder / f"{variant}.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return str(path), reading_options(golden) | {"maxPartitionBytes": "64k", "mode": "FAILFAST"}


@pytest.mark.parametrize("name", ["disable-schema", "lz4", "tidb-extension"])
def test_events(spark: SparkSession, name: str, tmp_path: Path) -> None:
    path, options = write(tmp_path, name)
    frame = spark.read.format("cdc").options(**options, includeColumns="true").load(path)
    assert frame.rdd.getNumPartitions() > 3
    rows = frame.orderBy("_source.offset").collect()
    messages = load_variant("debezium", name).messages
    assert [row._source.offset for row in rows] == [message.seq for message in messages]
    for row, message in zip(rows, messages, strict=True):
        (truth,) = message.truth
        about = f"seq {truth['seq']}"
        assert row.kind == truth["kind"], about
        assert row.commit_ts == truth["commit_ts"], about
        assert row._source.protocol == "debezium"
        assert variant_value(row.extra)["cluster_id"] == "default"
        if row.kind == "row":
            assert (row.op, row.database, row.table) == (
                truth["op"],
                truth["schema"],
                truth["table"],
            )
            _check_images(row, truth, about)


def _check_images(row: Row, truth: Truth, about: str) -> None:
    for side, image in (("old", row.before), ("new", row.after)):
        columns = [column for column in truth["columns"] if side in column]
        assert (image is not None) == bool(columns), about
        if image is None or truth["table"] not in TABLES:
            continue
        values = variant_value(image)
        assert values.keys() == {column["name"] for column in columns}
        for column in columns:
            true = column[side]
            if true is not None and true["t"] in ("int", "uint", "str", "bytes", "date", "bit"):
                expected = in_variant(true, column["type"], full=True)
                assert values[column["name"]] == expected, (about, column["name"])


@pytest.mark.parametrize("table", TABLES)
def test_changes_without_schema_have_the_types_of_ddl(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    path, options = write(tmp_path, "disable-schema")
    frame = spark.read.format("cdc").options(**options, table=f"golden.{table}").load(path)
    changes = frame.orderBy("_sequence").collect()
    truths = [
        (truth, side)
        for message in load_variant("debezium", "disable-schema").messages
        for truth in message.truth
        if truth["kind"] == "row" and truth["table"] == table
        for side in ("old", "new")
        if any(side in column for column in truth["columns"])
    ]
    # Deletes come before other changes of their commit_ts.
    truths.sort(key=lambda item: (item[0]["commit_ts"], item[0]["op"] != "delete", item[0]["seq"]))
    assert len(changes) == len(truths) > 0
    types = {field.name: field.dataType for field in frame.schema.fields}
    for row, (truth, side) in zip(changes, truths, strict=True):
        assert row._commit_version == truth["commit_ts"]
        for column in truth["columns"]:
            name = column["name"]
            type_: DataType = TYPES[column["type"]][1]
            assert types[name] == type_, name
            if name in DOUBLES:
                continue
            wanted, actual = in_column(column[side], type_, full=True), row[name]
            if isinstance(type_, TimestampType) and actual is not None:
                actual = instant(actual)
            if isinstance(type_, VariantType) and actual is not None:
                actual = variant_value(actual)
            assert same_value(column[side], wanted, actual), (truth["seq"], name, wanted, actual)


def test_without_the_scan_a_partition_may_lack_types(spark: SparkSession, tmp_path: Path) -> None:
    path, options = write(tmp_path, "disable-schema")
    reader = spark.read.format("cdc").options(**options, includeColumns="true")
    unknown = "kind = 'row' AND exists(columns, c -> c.source_type = '')"
    assert reader.load(path).where(unknown).count() == 0
    assert reader.option("scanSchemas", "false").load(path).where(unknown).count() > 0


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("debezium") / "topics.jsonl"
    messages = native_messages("debezium/noschema_default")
    lines = (
        wrap_line(attrs.evolve(message, offset=offset)) for offset, message in enumerate(messages)
    )
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return str(path)


@pytest.mark.parametrize(("table", "types"), [("wide", WIDE), ("订 单", ORDERS)])
def test_connector_rows_equal_the_dump(
    spark: SparkSession, native: str, table: str, types: dict[str, DataType]
) -> None:
    """Schemaless, and the protocol recognised by the messages."""
    frame = (
        spark.read.format("cdc")
        # Some times of the table could be those of another unit.
        .option("timePrecisionMode", "adaptive_time_microseconds")
        .options(mode="FAILFAST", table=f"shop.`{table}`", maxPartitionBytes="64k")
        .load(native)
    )
    own = [field for field in frame.schema.fields if not field.name.startswith("_")]
    assert {field.name: field.dataType for field in own} == types
    rows: dict[Any, dict[str, Any]] = {}
    key = next(iter(types))
    seen: Counter[str] = Counter()
    for change_type, cells in _changes(frame.orderBy("_sequence"), types):
        seen[change_type] += 1
        if change_type in ("update_preimage", "delete"):
            del rows[cells[key]]
        else:
            assert rows.setdefault(cells[key], cells) is cells
    assert seen["insert"] > 0 < seen["update_postimage"]
    dumped = dumped_tables()[table]
    assert len(rows) == len(dumped)
    for row in dumped:
        expected = {name: _debezium_cell(name, types[name], *cell) for name, cell in row.items()}
        assert rows[expected[key]] == expected


def _debezium_cell(name: str, type_: DataType, source_type: str, text: str | None) -> Any:
    # Debezium sends every text as Unicode; only Canal garbles some.
    if isinstance(type_, StringType):
        return text
    return garbled_cell(name, type_, source_type, text)


def test_transactions_have_their_kind(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "transactions.jsonl"
    messages = [
        message
        for message in native_messages("debezium/noschema_strings")
        if message.topic is not None and message.topic.endswith(".transaction")
    ]
    path.write_bytes(b"".join(wrap_line(message) + b"\n" for message in messages))
    rows = (
        spark.read.format("cdc")
        .load(str(path))
        .selectExpr("kind", "extra:status::string AS status", "extra:transaction_id::string AS id")
        .groupBy("kind", "status")
        .count()
        .collect()
    )
    assert {(row.kind, row.status, row["count"]) for row in rows} == {
        ("transaction", "begin", 563),
        ("transaction", "commit", 533),
    }


def test_a_new_row_has_no_unchanged_values(spark: SparkSession, tmp_path: Path) -> None:
    """Large values of PostgreSQL that an update of the key, or another one, left as they were."""
    messages = [
        message
        for message in framed_messages("postgres/schema_default")
        if message.topic == "pg_schema_default.public.toast"
    ]
    (moved,) = (m for m in messages if any(name == "__debezium.oldkey" for name, _ in m.headers))
    assert b"unavailable_value" in (moved.value or b"")
    frame = (
        spark.read.format("cdc")
        .options(protocol="debezium", table="cdc.public.toast", incompleteRows="unchanged")
        .load(str(write_messages(tmp_path / "toast.jsonl", messages)))
    )
    (bad,) = frame.where("_corrupt_record IS NOT NULL").collect()
    assert bad._corrupt_record.source.offset == moved.offset
    assert "has no earlier values to keep; let the source log whole" in bad._corrupt_record.reason
    partial = frame.where("_change_type = 'update_postimage' AND size(_absent) > 0")
    assert partial.count() > 1
