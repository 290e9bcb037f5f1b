"""The driver's sampling before a batch, and its minimum."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from debezium_messages import column, ddl, row
from pyspark.sql.types import IntegerType, StringType, StructType
from support.canal_messages import INSERT, ddl_message, row_message, write_lines

from pyspark_cdcfmt.read.batch_reader import plan_tasks
from pyspark_cdcfmt.read.checks import StreamCheck, check_batch
from pyspark_cdcfmt.read.rules import DeclaredNames
from pyspark_cdcfmt.read.survey import Survey
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.source import CdcDataSource
from pyspark_cdcfmt.testing import parsed

TABLE = ("shop", "orders")
OTHER = row_message("INSERT", {"id": "1"}, table="items")


def surveyed(path: str | Path, *columns: str, **options: str) -> Survey:
    schema = StructType()
    for name in dict.fromkeys((*columns, "_change_type")):
        schema.add(name, StringType())
    given = parsed({"path": str(path), "table": "shop.orders", **options})
    source = given.require_input()
    tasks = plan_tasks(source, source.plan(), given)
    task = ReadTask(schema, given)
    survey = Survey.of(given, tasks[0].schemas)
    survey.sample_ends(source, tasks, DeclaredNames(task).all_in)
    checked = check_batch(source, tasks, task)
    # Beside these the end of the last slice is looked at, for warnings.
    assert checked.messages <= survey.messages + 400
    return survey


@pytest.mark.filterwarnings("ignore:.*the table has gained columns")
def test_sampling_stops_once_all_names_are_found(tmp_path: Path) -> None:
    added = row_message("INSERT", {"id": "1", "added": "2"})
    write_lines(tmp_path / "1.json", OTHER, *[INSERT] * 5000)
    write_lines(tmp_path / "2.json", *[added] * 5000)
    survey = surveyed(tmp_path, "id", "name", "_change_type")
    assert survey.messages == 2
    assert survey.tables == [("shop", "items"), TABLE]
    (schema,) = survey.complete_schemas_of(TABLE)
    assert schema.column_names == ("id", "name", "price")
    # The first file's beginning, then the last one's end.
    assert surveyed(tmp_path, "added").messages == 201


def test_ddl_between_the_ends_has_columns(tmp_path: Path) -> None:
    """They follow the columns of rows; the wire lacks a column missing from the first row on."""
    rows = [row(after={"id": 1})] * 300
    created = ddl("create", [column("id", "INT")], pos=50)
    altered = ddl("alter", [column("note", "VARCHAR"), column("id", "INT")], pos=200)
    path = write_lines(tmp_path / "orders.json", created, *rows, altered, *rows)
    options = {"path": path, "table": "shop.orders", "inferSampleMessages": "10"}
    source = CdcDataSource(options)
    found = source.schema()
    assert found.names[:2] == ["id", "note"]
    assert found["note"].dataType == StringType()
    assert surveyed(path, "note").messages == 0
    table = "create table orders (id int, double_id int as (2 * id) virtual)"
    insert = row_message("INSERT", {"id": "1"})
    between = [ddl_message("alter table orders add column note varchar(9)", "ALTER")]
    for before in ([], [ddl_message(table, "CREATE", commit_ts=1)]):
        messages = [*before, *[insert] * 300, *between, *[insert] * 300]
        write_lines(tmp_path / "orders.json", *messages)
        found = CdcDataSource(options).schema()
        assert found.names[:3] == ["id", "note", "_change_type"]


def test_inference_scan_is_reused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "orders.json", INSERT)
    source = CdcDataSource({"path": path, "table": "shop.orders"})
    schema = source.schema()
    found: Any = source._inferred
    tasks: Any = source.reader(schema).partitions()
    assert tasks[0].value.schemas is found.schemas
    write_lines(tmp_path / "orders.json", INSERT, INSERT)
    grown: Any = source.reader(schema).partitions()
    assert grown[0].value.schemas is not found.schemas
    assert grown[0].value.splits[0].size == 2 * tasks[0].value.splits[0].size
    # A user's schema leaves nothing to infer.
    given: Any = CdcDataSource({"path": path, "table": "shop.orders"})
    planned = given.reader(
        StructType().add("id", IntegerType()).add("_change_type", "string")
    ).partitions()
    assert [each.value for each in planned] == [each.value for each in grown]


@pytest.mark.filterwarnings("ignore:.*have no types")
def test_examples_are_short(tmp_path: Path) -> None:
    source = {"db": "shop", "table": "orders"}
    for value in ("x" * 200, ["x"] * 200, {"x": [1]}):
        message = {"op": "c", "source": source, "before": None, "after": {"a": value}}
        path = write_lines(tmp_path / "orders.json", message)
        survey = surveyed(path, "a", protocol="debezium")
        ((example,),) = (each.values() for each in survey.examples.values())
        assert len(str(example)) <= 100


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "no column _change_type, so deleted rows and old images of updates look like rows"),
        ({"images": "after"}, "no column _change_type, so deleted rows look like rows that exist"),
        ({"metadataPrefix": "c_"}, r"no column c_change_type, .* add c_change_type STRING"),
    ],
)
def test_a_schema_that_does_not_mark_deleted_rows(
    tmp_path: Path, given: dict[str, str], text: str
) -> None:
    path = write_lines(tmp_path / "orders.json", INSERT)
    options = parsed({"path": path, "table": "shop.orders", **given})
    source = options.require_input()
    slices = plan_tasks(source, source.plan(), options)
    with pytest.warns(UserWarning, match=text):
        check_batch(source, slices, ReadTask(StructType().add("id", StringType()), options))
    prefix = options["metadataPrefix"].upper()
    marked = StructType().add("id", StringType()).add(f"{prefix}Change_Type", StringType())
    check_batch(source, slices, ReadTask(marked, options))
    check_batch(source, slices, ReadTask(StructType(), options, inferred=True))


def test_a_stream_warns_of_unmarked_rows_once(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "orders.json", INSERT)
    options = parsed({"path": path, "table": "shop.orders", "requireTables": "false"})
    check = StreamCheck(ReadTask(StructType().add("id", StringType()), options))
    with pytest.warns(UserWarning, match="add _change_type STRING"):
        check.check(options.require_input(), ())
    check.check(options.require_input(), ())
