"""The same messages through Spark: both shapes against the truth, by value and type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from brokers.test_simple_offsets import parsed, schema_of_row, schemas_in
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructField
from support.golden_data import GoldenMessage, Truth, Variant, load_variant, variant_names
from support.golden_rows import handle_of
from support.golden_spark import (
    Input,
    Place,
    check_changes,
    check_events,
    check_permissive,
    some_tables,
    suite_and_thorough,
    types_of_rows,
    write_wrapped,
)

IN_SUITE = (
    ("simple-avro", "default"),
    ("simple-avro", "handle-key-only"),
    ("simple-json", "checksum"),
    ("simple-json", "claim-check"),
)
VARIANTS = suite_and_thorough(
    [
        (protocol, name)
        for protocol in ("simple-avro", "simple-json")
        for name in variant_names(protocol)
    ],
    IN_SUITE,
)
ONLY_IN_SCHEMAS = {
    ("golden", "gen_cols"): {"jv", "v"},
    ("golden", "virt_mid"): {"v1", "v2"},
}
"""Columns that a table's schema has and no row: virtual ones."""

ALTERED = {("ddl_db", "t1")}
"""Tables whose columns change in DDL between rows."""


class SimpleInput(Input):
    codec = "simple"
    full = True
    has_source_time = False
    has_schemas = True

    def names(self, truth: Truth) -> tuple[str | None, str | None]:
        # A database's DDL has no name on the wire.
        return ("", "") if truth.get("table") == "" else super().names(truth)

    def column_types(
        self, table: tuple[str, str], places: list[Place], fields: list[StructField]
    ) -> dict[str, DataType]:
        """Those of rows; and columns that only schemas tell, in the order of ids."""
        types = {field.name: field.dataType for field in fields}
        of_rows = types_of_rows(self, places, table)
        assert of_rows.items() <= types.items() or table in ALTERED, table
        assert types.keys() - of_rows.keys() == ONLY_IN_SCHEMAS.get(table, set()), table
        return types

    def key_columns(self, truth: Truth) -> list[str]:
        return handle_of(truth)

    def source_type(self, column: Truth) -> str:
        true: str = column["type"]
        return true.partition("(")[0] if true.startswith(("float(", "double(")) else true

    def nullable(self, column: Truth) -> bool | None:
        return "nullable" in column["flags"]

    def sent(self, place: Place) -> list[Truth]:
        return sorted(super().sent(place), key=lambda column: column["id"])

    def check_extra(self, extra: dict[str, Any], place: Place) -> None:
        truth = place.truth
        if truth["kind"] == "row":
            assert extra.pop("table_id") == truth["physical_table_id"]
            assert extra.pop("schema_version") == truth["schema_version"]
            assert extra.pop("only_handle_key", False) == place.reduced
            if self.variant.claims is not None:
                extra.pop("claim_check", None)
            if self.variant.name == "checksum":
                assert extra.pop("checksum")["current"] >= 0
            assert extra == {}
        elif truth["kind"] == "ddl":
            known = {"table_id", "schema_version", "indexes", "previous_table", "hidden_columns"}
            assert extra.keys() <= known
        else:
            assert extra == {}


@pytest.fixture(scope="module", params=VARIANTS, ids=lambda param: "-".join(param))
def given(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Input:
    return write_input(*request.param, tmp_path_factory.mktemp("simple"))


def write_input(protocol: str, name: str, folder: Path) -> Input:
    variant = load_variant(protocol, name)
    path = folder / "messages.jsonl"
    return SimpleInput(variant, str(path), write_wrapped(variant, path, _reduced(variant)))


def _reduced(variant: Variant) -> Any:
    def is_reduced(golden: GoldenMessage) -> bool:
        if variant.name != "handle-key-only" or golden.value is None:
            return False
        return bool(parsed(golden.value).get("handleKeyOnly"))

    return is_reduced


def test_events(spark: SparkSession, given: Input) -> None:
    check_events(spark, given)
    bootstraps = given.read(spark).where("kind = 'schema'").collect()
    assert len(bootstraps) == sum(m.kind == "bootstrap" for m in given.variant.messages)
    for row in bootstraps:
        assert (row.commit_ts, row.commit_time, row.ddl, row.before, row.after) == (None,) * 5
        assert row.table_schema is not None
        assert row.table
    assert bootstraps


def test_changes(spark: SparkSession, given: Input) -> None:
    every = given.variant.name == "default"
    check_changes(spark, given, given.variant.tables if every else some_tables(given))


def test_permissive_equals_failfast(spark: SparkSession, tmp_path: Path) -> None:
    check_permissive(spark, write_input("simple-avro", "default", tmp_path))


def test_incomplete_rows_fail(spark: SparkSession, tmp_path: Path) -> None:
    given = write_input("simple-json", "handle-key-only", tmp_path)
    with pytest.raises(PySparkException, match="only part of the row"):
        given.read(spark, table="golden.bytes_t", mode="PERMISSIVE").collect()
    corrupt = {"incompleteRows": "corrupt", "mode": "PERMISSIVE"}
    rows = given.read(spark, table="golden.bytes_t", **corrupt).collect()
    bad = [row for row in rows if row._change_type is None]
    reduced = [
        place
        for place in given.places
        if place.reduced and place.truth["table"] == "bytes_t" and place.truth["op"] != "delete"
    ]
    assert len(bad) == len(reduced) > 0
    assert all("only part of the row" in row._corrupt_record.reason for row in bad)


# --- Schemas that stand elsewhere --------------------------------------------------------


def write_lines(path: Path, given: Input, start: int, stop: int | None = None) -> None:
    lines = Path(given.path).read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[start:stop]))


@pytest.mark.parametrize("protocol", ["simple-avro", "simple-json"])
def test_starting_in_the_middle(spark: SparkSession, protocol: str, tmp_path: Path) -> None:
    """Only rows whose schema is missing in the input are corrupt, with their bytes."""
    given = write_input(protocol, "default", tmp_path)
    messages = given.variant.messages
    total = len(messages)
    losing = 0
    for start in (1, 10, 150, 300, 400, total - 30):
        values = [message.value for message in messages[start:] if message.value is not None]
        known = {schema for value in values for schema in schemas_in(value)}
        schemas = {value: schema_of_row(value) for value in values}
        lost = [v for v in values if schemas[v] is not None and schemas[v] not in known]
        part = tmp_path / f"from-{start}.jsonl"
        write_lines(part, given, start)
        reader = spark.read.format("cdc").option("sourceTimeZone", "Asia/Shanghai")
        rows = reader.load(str(part)).collect()
        assert len(rows) == len(values)
        corrupt = [row for row in rows if row.kind == "corrupt"]
        assert [bytes(row._corrupt_record.value) for row in corrupt] == lost
        for row, value in zip(corrupt, lost, strict=True):
            schema = schemas[value]
            assert schema is not None
            database, table, version = schema
            reason = f"schema {database}.{table}@{version} not seen"
            assert row._corrupt_record.reason.endswith(reason)
        losing += bool(lost)
        if lost:
            with pytest.raises(PySparkException, match="not seen"):
                reader.option("mode", "FAILFAST").load(str(part)).collect()
    assert 2 <= losing < 6


@pytest.mark.parametrize("protocol", ["simple-avro", "simple-json"])
def test_schemas_in_another_file(spark: SparkSession, protocol: str, tmp_path: Path) -> None:
    """As partitions other than the first have it, if bootstraps go to the first one only."""
    given = write_input(protocol, "raw-change-event", tmp_path)
    kinds = [message.kind for message in given.variant.messages]
    lines = Path(given.path).read_bytes().splitlines(keepends=True)
    rows = b"".join(line for line, kind in zip(lines, kinds, strict=True) if kind == "row")
    others = b"".join(line for line, kind in zip(lines, kinds, strict=True) if kind != "row")
    dump = tmp_path / "dump"
    dump.mkdir()
    (dump / "1-rows.jsonl").write_bytes(rows)
    (dump / "2-schemas.jsonl").write_bytes(others)
    reader = spark.read.format("cdc").option("sourceTimeZone", "Asia/Shanghai")
    counted = {
        row.kind: row["count"] for row in reader.load(str(dump)).groupBy("kind").count().collect()
    }
    assert counted == {kind.replace("bootstrap", "schema"): kinds.count(kind) for kind in kinds}
    frame = reader.option("table", "golden.composite_pk").load(str(dump))
    assert frame.where("_corrupt_record is null").count() == frame.count() > 0
    alone = spark.read.format("cdc").load(str(dump / "1-rows.jsonl"))
    assert {row.kind for row in alone.collect()} == {"corrupt"}
