"""The same messages through Spark: both shapes against the truth, by value and type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from support.golden_data import GoldenMessage, Truth, load_variant, variant_names
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
from support.golden_spark_values import TYPES

IN_SUITE = (
    "claim-check-lz4",
    "handle-key-only",
    "only-output-updated-columns",
    "storage-txn",
    "tidb-extension",
)
VARIANTS = suite_and_thorough(variant_names("canal-json"), IN_SUITE)
EVERY_TABLE = ("content-compatible", "default", "tidb-extension")


class CanalInput(Input):
    codec = "canal-json"

    @property
    def full(self) -> bool:
        # Rows or, but for files that have none, DDL tell it.
        return self.variant.name != "storage-txn"

    @property
    def has_commit_ts(self) -> bool:
        return bool(self.variant.config["enable-tidb-extension"])

    def key_columns(self, truth: Truth) -> list[str]:
        names: list[str] = truth["pk_names"]
        return names

    def source_type(self, column: Truth) -> str:
        type_: str = column["type"]
        if self.variant.config["content-compatible"]:
            return type_
        return ddl_type(column) if self.full else re.sub(r"\(.*\)", "", type_)

    def check_extra(self, extra: dict[str, Any], place: Place) -> None:
        assert extra.pop("only_handle_key", False) == place.reduced
        if self.variant.claims is not None:
            extra.pop("claim_check", None)
        assert extra == {}


@pytest.fixture(scope="module", params=VARIANTS)
def given(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Input:
    return write_input(request.param, tmp_path_factory.mktemp(request.param))


def write_input(name: str, folder: Path) -> Input:
    variant = load_variant("canal-json", name)
    path = folder / "messages.json"
    if name == "storage-txn":
        bodies = [
            place
            for message in variant.messages
            for place in _write_body(message, folder / f"CDC{message.seq:06}.json")
        ]
        return CanalInput(variant, str(folder), tuple(bodies))
    if variant.compression != "none":
        return CanalInput(variant, str(path), write_wrapped(variant, path, lambda *_: False))
    places, offset = [], 0
    with path.open("wb") as file:
        for message in variant.messages:
            assert message.value is not None
            file.write(message.value + b"\n")
            (truth,) = message.truth
            reduced = b'"onlyHandleKey":true' in message.value
            places.append(Place(truth, str(path), offset, 0, reduced))
            offset += len(message.value) + 1
    return CanalInput(variant, str(path), tuple(places))


def _write_body(message: GoldenMessage, path: Path) -> Iterator[Place]:
    """A file as the storage sink wrote it: documents joined by CRLF."""
    assert message.value is not None
    path.write_bytes(message.value)
    offset = 0
    for truth, line in zip(message.truth, message.value.split(b"\r\n"), strict=False):
        yield Place(truth, str(path), offset, 0, False)
        offset += len(line) + 2
    assert offset == len(message.value)


def test_events(spark: SparkSession, given: Input) -> None:
    check_events(spark, given)


def test_changes(spark: SparkSession, given: Input) -> None:
    every = given.variant.name in EVERY_TABLE
    check_changes(spark, given, given.variant.tables if every else some_tables(given))


@pytest.mark.parametrize("name", suite_and_thorough(EVERY_TABLE, EVERY_TABLE[-1:]))
def test_permissive_equals_failfast(spark: SparkSession, name: str, tmp_path: Path) -> None:
    check_permissive(spark, write_input(name, tmp_path))


# --- Requested options --------------------------------------------------------------------


def test_incomplete_rows_fail(spark: SparkSession, tmp_path: Path) -> None:
    given = write_input("handle-key-only", tmp_path)
    with pytest.raises(PySparkException, match="only part of the row"):
        given.read(spark, table="golden.bytes_t", mode="PERMISSIVE").collect()
    corrupt = {"incompleteRows": "corrupt", "mode": "PERMISSIVE"}
    rows = given.read(spark, table="golden.bytes_t", **corrupt).collect()
    places = [p for p in given.places if p.truth.get("table") == "bytes_t" and "op" in p.truth]
    expected = []
    for place in places:
        if place.truth["kind"] == "row":
            bad = place.reduced and place.truth["op"] != "delete"
            parts = [(None, "")] if bad else given.parts(place.truth)
            expected += [change_type for change_type, _ in parts]
    assert [row._change_type for row in rows] == expected
    for row in rows:
        assert (row._corrupt_record is None) == (row._change_type is not None)


def test_types_are_complete() -> None:
    """Every type of the truth has a line above, and every line is used."""
    truth = load_variant("canal-json", "tidb-extension").truth.values()
    assert TYPES.keys() == {c["type"] for t in truth if t["kind"] == "row" for c in t["columns"]}
