"""Typed changes by Spark's own expressions are those of ``changes``: golden messages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from canal_messages import row_message, write_lines
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, StringType, StructField, StructType
from test_decode_golden_spark import CASES, Case, shown, write_both

from cdcfmt_core import default_registry
from pyspark_cdcfmt import SEQUENCE, SOURCE, changes, columns_schema
from pyspark_cdcfmt.sync.cells import ODD_VALUE, has_cells, typed_changes
from pyspark_cdcfmt.sync.expressions import is_of
from pyspark_cdcfmt.sync.looking import Report, Version, look
from pyspark_cdcfmt.sync.names import TableName, table_text

ADDED: dict[str, Any] = {
    "change_type": StringType(),
    "sequence": SEQUENCE,
    "absent": ArrayType(StringType()),
    "source": SOURCE,
}
NAMES = {name: f"_{name}" for name in ADDED}
MORE_TABLES = ("golden.all_types", "shop.pair")
TYPES = {
    *("Binary", "Date", "DateTime", "Decimal", "Enum", "Float", "Int", "Set", "Text"),
    *("Timestamp", "Year"),
}


def told(versions: Sequence[Version]) -> tuple[list[StructField], set[str]]:
    """The columns that have cells in all versions of a table, and the names of their types."""
    fields: dict[str, StructField] = {}
    types: dict[str, str] = {}
    left_out = set()
    for version in versions:
        type_map = default_registry().get_codec(version.protocol).type_map
        resolve = default_registry().get_type_map(type_map)
        own = columns_schema(version.columns, typeMap=type_map).fields
        for column, given in zip(version.columns, own, strict=True):
            type_ = resolve(column.source_type)
            field = StructField(given.name, given.dataType)
            if fields.setdefault(field.name, field) != field or not has_cells(
                type_, field.dataType, field
            ):
                left_out.add(field.name)
            types[field.name] = type(type_).__name__
    kept = [field for name, field in fields.items() if name not in left_out]
    return kept, {types[field.name] for field in kept}


def exact(rows: DataFrame, name: TableName, own: Sequence[StructField]) -> DataFrame:
    added = [StructField(f"_{name}", type_) for name, type_ in ADDED.items()]
    options = {"incompleteRows": "emit", "onSchemaChange": "corrupt", "onTruncate": "row"}
    schema = StructType([*own, *added])
    typed = changes(rows, table_text(name), schema=schema, images="after", **options)
    return typed.where("_change_type <> 'truncate'")


def test_golden_tables(spark: SparkSession, tmp_path: Path) -> None:
    seen: set[str] = set()
    for name in ("canal-json", "canal", "open-protocol", "debezium"):
        folder = tmp_path / name
        folder.mkdir()
        seen |= check_tables(spark, folder, CASES[name]())
    assert seen == TYPES


def check_tables(spark: SparkSession, folder: Path, case: Case) -> set[str]:
    """The names of the types whose cells are equal."""
    both = write_both(spark, folder, case.messages)
    reader = spark.read.format("cdc").options(**case.options, includeColumns="true")
    events = reader.option("minPartitions", "1").load(both.path).cache()
    seen: set[str] = set()
    for table, versions in look(events, Report(0)).items():
        (keys, *others) = {version.key_columns for version in versions}
        own, types = told(versions)
        if others or not own or table_text(table) not in {*case.tables, *MORE_TABLES}:
            continue
        rows = events.where(is_of(table)).where("kind = 'row'")
        actual = shown(typed_changes(rows, own, keys, NAMES, has_updates=True))
        assert actual == shown(exact(rows, table, own))
        assert actual
        seen |= types
    events.unpersist()
    return seen


def test_a_value_that_its_column_does_not_hold(spark: SparkSession, tmp_path: Path) -> None:
    row = {"id": "1", "name": "a", "price": "1.55"}
    path = write_lines(tmp_path / "a.json", row_message("INSERT", row))
    events = spark.read.format("cdc").option("includeColumns", "true").load(path)
    own = StructType.fromDDL("id INT, price DECIMAL(3,1)").fields
    with pytest.raises(PySparkException, match=f"{ODD_VALUE}: price"):
        typed_changes(events, own, ["id"], NAMES, has_updates=False).collect()
