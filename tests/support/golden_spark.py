"""Shared parts of the golden tests on Spark: both shapes against the truth."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VariantType,
    VariantVal,
)

from cdcfmt_files.sources import wrap_line
from support.golden_data import GoldenMessage, Truth, Variant, reading_options
from support.golden_rows import DDL_TYPES
from support.golden_spark_values import (
    TYPES,
    WIDENED,
    in_column,
    in_variant,
    instant,
    same_value,
    variant_value,
)


def suite_and_thorough(names: Iterable[Any], of_suite: Collection[Any]) -> list[Any]:
    """Parameters: those of the suite, and the others for `make thorough`.

    All variants are decoded, and go by the kernel, without Spark in the suite: what only Spark
    shows are the options of a read, such as claim checks, and the types of columns.
    """
    assert set(of_suite) <= set(names)
    return [
        name if name in of_suite else pytest.param(name, marks=pytest.mark.thorough)
        for name in names
    ]


SOME_TABLES = {"all_types", "bytes_t", "large_t", "no_key", "pk_change", "uk_change", "upd_cols"}
"""The differences between variants occur in these tables."""

SOURCE = StructType(
    [
        StructField("protocol", StringType()),
        StructField("topic", StringType()),
        StructField("path", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("index", IntegerType()),
        StructField("timestamp", TimestampType()),
        StructField("epoch", IntegerType()),
    ]
)

ADDED = StructType(
    [
        StructField("_change_type", StringType()),
        StructField("_commit_version", LongType()),
        StructField("_commit_timestamp", TimestampType()),
        StructField(
            "_sequence",
            StructType(
                [
                    StructField("epoch", IntegerType()),
                    StructField("commit", LongType()),
                    StructField("rank", IntegerType()),
                    StructField("partition", IntegerType()),
                    StructField("offset", LongType()),
                    StructField("index", IntegerType()),
                    StructField("part", IntegerType()),
                    StructField("time", LongType()),
                    StructField("server", LongType()),
                    StructField("file", StringType()),
                    StructField("pos", LongType()),
                ]
            ),
        ),
        StructField("_absent", ArrayType(StringType())),
        StructField("_invalid", ArrayType(StringType())),
        StructField(
            "_corrupt_record",
            StructType(
                [
                    StructField("reason", StringType()),
                    StructField("key", BinaryType()),
                    StructField("value", BinaryType()),
                    StructField("source", SOURCE),
                ]
            ),
        ),
        StructField("_rescued", VariantType()),
    ]
)


# --- Input -----------------------------------------------------------------------------

# Statements have none, but for these two.
_DISPLAY_WIDTH = re.compile(r"^(\w+int|int|year)\((?!1\)|10\) unsigned zerofill)\d+\)")


def ddl_type(column: Truth) -> str:
    """A column's type in the CREATE TABLE statement."""
    if column["name"] == "bb":
        # A varchar to its statement, which the row contradicts.
        return "varbinary"
    return _DISPLAY_WIDTH.sub(r"\1", column["type"])


@attrs.frozen
class Place:
    """A true event and where it stands: message and place in the message.

    ``reduced``: the message holds the row's handle key only.
    """

    truth: Truth
    path: str
    offset: int
    index: int
    reduced: bool


@attrs.frozen
class Input:
    """A variant as files, and the properties of a format's wire; subclasses set them."""

    variant: Variant
    path: str
    places: tuple[Place, ...]

    codec = ""
    full = False
    """Whether column types have their parameters on the wire."""
    has_commit_ts = True
    has_source_time = True
    has_emit_time = True
    has_schemas = False
    """Whether schemas come with DDL, and as events of their own, which truth has not."""

    def names(self, truth: Truth) -> tuple[str | None, str | None]:
        """Database and table of an event."""
        return truth.get("schema"), truth.get("table")

    def column_types(
        self, table: tuple[str, str], places: list[Place], fields: list[StructField]
    ) -> dict[str, DataType]:
        """The table's columns, which are those of its rows."""
        types = types_of_rows(self, places, table)
        assert [(field.name, field.dataType) for field in fields] == list(types.items()), table
        return types

    def op(self, truth: Truth) -> str:
        op: str = truth["op"]
        return op

    def parts(self, truth: Truth) -> list[tuple[str, str]]:
        """The rows of a change: change type, and which image it has."""
        if truth["kind"] == "ddl":
            return [("truncate", "")]
        return {
            "insert": [("insert", "new")],
            "update": [("update_preimage", "old"), ("update_postimage", "new")],
            "upsert": [("update_postimage", "new")],
            "delete": [("delete", "old")],
        }[self.op(truth)]

    def key_columns(self, truth: Truth) -> list[str]:
        raise NotImplementedError

    def source_type(self, column: Truth) -> str:
        raise NotImplementedError

    def nullable(self, column: Truth) -> bool | None:
        return None

    def sent(self, place: Place) -> list[Truth]:
        """The true columns that the message holds, in its order."""
        reduced = place.reduced or self.is_reduced_delete(place.truth)
        return [
            column
            for column in place.truth["columns"]
            if "handle" in column["flags"] or not reduced
        ]

    def is_reduced_delete(self, truth: Truth) -> bool:
        """Whether this is a deleted row of a producer configured to send only keys."""
        return truth.get("op") == "delete" and self.variant.name == "delete-only-handle-key"

    def check_extra(self, extra: dict[str, Any], place: Place) -> None:
        raise NotImplementedError

    def read(self, spark: SparkSession, **options: str) -> DataFrame:
        reader = spark.read.format("cdc").options(**reading_options(self.variant))
        return reader.options(**{"mode": "FAILFAST"} | options).load(self.path)


def write_wrapped(
    variant: Variant, path: Path, is_reduced: Callable[[GoldenMessage], bool]
) -> tuple[Place, ...]:
    """All messages as JSON Lines of whole messages."""
    places: list[Place] = []
    with path.open("wb") as file:
        for golden in variant.messages:
            file.write(wrap_line(golden.message) + b"\n")
            places += (
                Place(truth, str(path), golden.seq, index, is_reduced(golden))
                for index, truth in enumerate(golden.truth)
            )
    return tuple(places)


# --- Events ----------------------------------------------------------------------------


def check_events(spark: SparkSession, given: Input) -> None:
    """The events shape: every column of every event."""
    rows = given.read(spark, includeColumns="true").where("kind <> 'schema'").collect()
    assert len(rows) == len(given.places)
    for row, place in zip(rows, given.places, strict=True):
        truth = place.truth
        about = f"seq {truth['seq']} ({truth['kind']}, {truth['scenario']})"
        for check in (_check_event, _check_ddl, _check_row):
            check(row, place, given, about)


def _check_event(row: Row, place: Place, given: Input, about: str) -> None:
    truth = place.truth
    time = datetime.fromtimestamp((truth["commit_ts"] >> 18) / 1000, UTC)
    assert row.kind == truth["kind"], about
    assert row.op == (given.op(truth) if truth["kind"] == "row" else None), about
    assert (row.database, row.schema, row.table) == (
        given.names(truth)[0],
        None,
        given.names(truth)[1],
    ), about
    assert row.commit_ts == (truth["commit_ts"] if given.has_commit_ts else None), about
    assert (row.commit_time and instant(row.commit_time)) == (
        time if given.has_commit_ts else None
    ), about
    assert (row.source_time and instant(row.source_time)) == (
        time if given.has_source_time else None
    ), about
    if given.has_emit_time:
        assert instant(row.emit_time) >= time, about
    else:
        assert row.emit_time is None, about
    assert row._source == Row(
        protocol=given.codec,
        topic=None,
        path=place.path,
        partition=None,
        offset=place.offset,
        index=place.index,
        timestamp=None,
        epoch=0,
    ), about
    assert row._corrupt_record is None, about
    assert row.table_schema is None or (given.has_schemas and truth["kind"] == "ddl"), about
    extra = row.extra.toPython() if row.extra is not None else {}
    physical = None if given.has_commit_ts else truth["commit_ts"] >> 18 << 18
    assert extra.pop("sequence_commit", None) == physical, about
    reduced = place.reduced or given.is_reduced_delete(truth)
    images = [name for name in ("before", "after") if reduced and row[name] is not None]
    assert extra.pop("partial", []) == images, about
    given.check_extra(extra, place)


def _check_ddl(row: Row, place: Place, given: Input, about: str) -> None:
    if place.truth["kind"] != "ddl":
        assert row.ddl is None, about
        return
    assert row.ddl.query == place.truth["query"], about
    assert row.ddl.type == DDL_TYPES[place.truth["ddl_type"]], about


def _check_row(row: Row, place: Place, given: Input, about: str) -> None:
    truth = place.truth
    if truth["kind"] != "row":
        assert (row.before, row.after, row.columns) == (None,) * 3, about
        assert row.key_columns is None or row.table_schema is not None, about
        return
    key_columns = given.key_columns(truth)
    assert row.key_columns == key_columns, about
    columns = given.sent(place)
    assert [column.name for column in row.columns] == [column["name"] for column in columns], about
    for column, true in zip(row.columns, columns, strict=True):
        assert column.source_type == given.source_type(true), about
        assert column.nullable == given.nullable(true), about
        assert column.key == (column.name in key_columns), about
    for side, image in (("old", row.before), ("new", row.after)):
        if side not in [image_side for _, image_side in given.parts(truth)]:
            assert image is None, about
            continue
        assert isinstance(image, VariantVal), about
        values = variant_value(image)
        assert sorted(values) == sorted(column["name"] for column in columns), about
        for column in columns:
            true, actual = column[side], values[column["name"]]
            expected = in_variant(true, column["type"], given.full)
            assert same_value(true, expected, actual), (about, side, column, actual)


# --- Changes ---------------------------------------------------------------------------


def check_changes(spark: SparkSession, given: Input, tables: list[tuple[str, str]]) -> None:
    """The changes shape of these tables: schema, every column of every row, and the order."""
    assert tables
    for table, (frame, rows) in zip(tables, read_tables(spark, given, tables), strict=True):
        _check_table(given, table, frame, rows)


def check_permissive(spark: SparkSession, given: Input) -> None:
    """Without bad input, PERMISSIVE equals FAILFAST."""
    tables = some_tables(given)
    strict = read_tables(spark, given, tables)
    lenient = read_tables(spark, given, tables, mode="PERMISSIVE")
    for (_, expected), (_, actual) in zip(strict, lenient, strict=True):
        assert [_comparable(row) for row in actual] == [_comparable(row) for row in expected]


def _comparable(row: Row) -> list[Any]:
    return [str(value) if isinstance(value, VariantVal) else value for value in row]


def some_tables(given: Input) -> list[tuple[str, str]]:
    return [table for table in given.variant.tables if table[1] in SOME_TABLES]


def read_tables(
    spark: SparkSession, given: Input, tables: list[tuple[str, str]], **options: str
) -> list[tuple[DataFrame, list[Row]]]:
    def read_table(table: tuple[str, str]) -> tuple[DataFrame, list[Row]]:
        name = ".".join(f"`{part}`" for part in table)
        frame = given.read(spark, table=name, incompleteRows="emit", onTruncate="row", **options)
        return frame, frame.collect()

    # Planning and starting a job take longer than these few rows.
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(read_table, tables))


def _check_table(given: Input, table: tuple[str, str], frame: DataFrame, rows: list[Row]) -> None:
    places = [place for place in given.places if _concerns(place.truth, table)]
    added = len(ADDED.fields)
    fields = frame.schema.fields
    types = given.column_types(table, places, fields[:-added])
    assert StructType(fields[-added:]) == ADDED, table
    assert all(field.nullable for field in fields)

    expected = [
        (place, change_type, side)
        for place in places
        for change_type, side in given.parts(place.truth)
    ]
    assert [row._change_type for row in rows] == [change_type for _, change_type, _ in expected]
    sequences = defaultdict(list)
    for row, (place, change_type, side) in zip(rows, expected, strict=True):
        about = f"seq {place.truth['seq']}, {'.'.join(table)}, {change_type}"
        _check_position(given, row, place, change_type, about)
        columns = {c["name"]: c for c in given.sent(place)} if side else {}
        if side:
            assert row._absent == [name for name in types if name not in columns], about
        for name, type_ in types.items():
            true = columns[name][side] if name in columns else None
            actual = row[name]
            if true is not None and true["t"] == "json":
                # A JSON null is a variant; SQL's NULL is none.
                assert isinstance(actual, VariantVal), about
                actual = variant_value(actual)
            elif isinstance(actual, datetime) and isinstance(type_, TimestampType):
                actual = instant(actual)
            wanted = in_column(true, type_, given.full)
            assert same_value(true, wanted, actual), (about, name, type_, true, actual)
        if side:
            keys = given.key_columns(place.truth)
            sequences[tuple(str(columns[name][side]) for name in keys)].append(row._sequence)
    for key, positions in sequences.items():
        assert positions == sorted(positions), (table, key)
        assert len(set(positions)) == len(positions), (table, key)


def _concerns(truth: Truth, table: tuple[str, str]) -> bool:
    if truth["kind"] == "ddl" and truth["ddl_type"] == "drop schema":
        return bool(truth["schema"] == table[0])
    if truth["kind"] == "ddl" and truth["ddl_type"] == "rename table":
        return (truth["pre_schema"], truth["pre_table"]) == table
    if truth["kind"] == "watermark" or (truth["schema"], truth["table"]) != table:
        return False
    return truth["kind"] == "row" or truth["ddl_type"] in ("truncate table", "drop table")


def types_of_rows(given: Input, places: list[Place], table: tuple[str, str]) -> dict[str, DataType]:
    """By the types in the truth: columns in the order in which they first come."""
    types: dict[str, DataType] = {}
    for place in places:
        if place.truth["kind"] == "row":
            for column in given.sent(place):
                name = column["name"]
                of_type = WIDENED.get((*table, name)) or TYPES[column["type"]]
                assert types.setdefault(name, of_type[given.full]) == of_type[given.full]
    return types


def _check_position(given: Input, row: Row, place: Place, change_type: str, about: str) -> None:
    keyed = given.has_commit_ts and (change_type == "truncate" or given.key_columns(place.truth))
    commit_ts = place.truth["commit_ts"]
    physical = commit_ts >> 18
    assert row._commit_version == (commit_ts if given.has_commit_ts else None), about
    assert instant(row._commit_timestamp) == datetime.fromtimestamp(physical / 1000, UTC), about
    assert row._sequence == Row(
        epoch=0,
        commit=commit_ts if given.has_commit_ts else physical << 18,
        rank=1 if given.has_commit_ts and change_type != "delete" else 0,
        partition=0,
        offset=0 if keyed else place.offset,
        index=0 if keyed else place.index,
        part=0 if change_type in ("delete", "update_preimage") else 1,
        time=None if given.has_commit_ts else physical * 1000,
        server=None,
        file=None,
        pos=None,
    ), about
    assert row._corrupt_record is None, about
