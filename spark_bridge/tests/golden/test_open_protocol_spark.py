"""The same messages through Spark: both shapes against the truth, by value and type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from support.golden_data import Truth, load_variant, variant_names
from support.golden_rows import handle_of
from support.golden_spark import (
    Input,
    Place,
    check_changes,
    check_events,
    check_permissive,
    ddl_type,
    some_tables,
    suite_and_thorough,
    write_wrapped,
)

IN_SUITE = ("batched", "claim-check-snappy", "default", "handle-key-only")
VARIANTS = suite_and_thorough(variant_names("open"), IN_SUITE)
EVERY_TABLE = ("default", "no-old-value")


class OpenInput(Input):
    codec = "open-protocol"
    has_source_time = False
    has_emit_time = False

    def op(self, truth: Truth) -> str:
        op = super().op(truth)
        has_old = self.variant.config["open-output-old-value"]
        return op if has_old or op == "delete" else "upsert"

    def key_columns(self, truth: Truth) -> list[str]:
        return sorted(handle_of(truth))

    full = True  # DDL tells it.

    def source_type(self, column: Truth) -> str:
        return ddl_type(column)

    def nullable(self, column: Truth) -> bool | None:
        return "nullable" in column["flags"]

    def sent(self, place: Place) -> list[Truth]:
        return sorted(super().sent(place), key=lambda column: column["name"])

    def check_extra(self, extra: dict[str, Any], place: Place) -> None:
        truth = place.truth
        if truth["kind"] == "ddl":
            assert extra.keys() == {"ddl_type"}
        elif truth["kind"] == "row":
            assert extra.pop("row_id", 0) == truth["row_id"]
            partition = truth["physical_table_id"] if truth["partitioned"] else None
            assert extra.pop("partition_id", None) == partition
            assert extra.pop("only_handle_key", False) == place.reduced
            if self.variant.claims is not None:
                extra.pop("claim_check", None)
            assert extra == {}
        else:
            assert extra == {}


@pytest.fixture(scope="module", params=VARIANTS)
def given(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Input:
    return write_input(request.param, tmp_path_factory.mktemp(request.param))


def write_input(name: str, folder: Path) -> Input:
    variant = load_variant("open", name)
    path = folder / "messages.jsonl"
    places = write_wrapped(variant, path, lambda golden: b'"ohk":true' in (golden.key or b""))
    return OpenInput(variant, str(path), places)


def test_events(spark: SparkSession, given: Input) -> None:
    check_events(spark, given)


def test_changes(spark: SparkSession, given: Input) -> None:
    every = given.variant.name in EVERY_TABLE
    check_changes(spark, given, given.variant.tables if every else some_tables(given))


@pytest.mark.parametrize("name", suite_and_thorough(EVERY_TABLE, EVERY_TABLE[:1]))
def test_permissive_equals_failfast(spark: SparkSession, name: str, tmp_path: Path) -> None:
    check_permissive(spark, write_input(name, tmp_path))


def test_incomplete_rows_fail(spark: SparkSession, tmp_path: Path) -> None:
    given = write_input("handle-key-only", tmp_path)
    with pytest.raises(PySparkException, match="only part of the row"):
        given.read(spark, table="golden.bytes_t", mode="PERMISSIVE").collect()
    corrupt = {"incompleteRows": "corrupt", "mode": "PERMISSIVE"}
    rows = given.read(spark, table="golden.bytes_t", **corrupt).collect()
    assert {row._change_type for row in rows} == {"delete", None}
    bad = [row for row in rows if row._change_type is None]
    assert len(bad) == 5
    assert all("only part of the row" in row._corrupt_record.reason for row in bad)
