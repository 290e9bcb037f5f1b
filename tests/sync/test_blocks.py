"""Blocks equal their messages: events, counts and typed changes of golden messages."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import attrs
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, StringType, StructField, StructType
from support.canal_messages import row_message, write_lines
from support.golden_data import load_variant, native_messages, reading_options
from support.turns import in_turn
from test_decode_golden_spark import CASES, shown, write_both

from cdcfmt_core import default_registry
from cdcfmt_core import types as logical
from cdcfmt_core.types import LogicalType
from pyspark_cdcfmt import SEQUENCE, SOURCE, changes, columns_schema
from pyspark_cdcfmt.blocks import BLOCKS_OPTION, letters
from pyspark_cdcfmt.blocks.dataframes import INVALID_CHANGE, blocks_of, changes_of_blocks, events_of
from pyspark_cdcfmt.blocks.letters import Paths, named_by
from pyspark_cdcfmt.sync.expressions import is_of, sequence_commit
from pyspark_cdcfmt.sync.names import TableName, table_text
from pyspark_cdcfmt.sync.summary import Report, TableVersion, summarize

ADDED = [
    StructField("_change_type", StringType()),
    StructField("_sequence", SEQUENCE),
    StructField("_absent", ArrayType(StringType())),
    StructField("_source", SOURCE),
]
HOW: dict[str, Any] = {
    "images": "after",
    "incompleteRows": "emit",
    "onSchemaChange": "corrupt",
    "onTruncate": "row",
}


def is_otherwise(type_: LogicalType) -> bool:
    """Whether values fit no fixed type."""
    without_digits = isinstance(type_, logical.Decimal) and type_.precision is None
    return without_digits or isinstance(type_, logical.Unknown)


def streamed(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    """All rows of a stream of files."""
    name = f"t{uuid.uuid4().hex}"
    reader = spark.readStream.format("cdc").options(**options, includeColumns="true")
    stream = reader.load(path).writeStream.trigger(availableNow=True)
    stream.format("memory").queryName(name).start().awaitTermination()
    return spark.table(name)


def own_columns(versions: Sequence[TableVersion]) -> list[StructField]:
    """The columns that are alike in all versions of a table."""
    fields: dict[str, StructField | None] = {}
    for version in versions:
        type_map = default_registry().get_codec(version.protocol).type_map
        resolve = default_registry().get_type_map(type_map)
        own = columns_schema(version.columns, typeMap=type_map).fields
        for column, given in zip(version.columns, own, strict=True):
            field = StructField(given.name, given.dataType)
            same = fields.setdefault(field.name, field) == field
            if not same or is_otherwise(resolve(column.source_type)):
                fields[field.name] = None
    return [field for field in fields.values() if field is not None]


OWN = ["canal-json", "canal", "open-protocol", "debezium", "dts-avro"]
"""Cases whose messages carry their own types, or most of them."""


@attrs.frozen
class Read:
    """One run of a stream over the same messages as blocks and as events."""

    blocks: DataFrame
    events: DataFrame
    options: dict[str, Any]
    tables: dict[TableName, list[TableVersion]]

    @property
    def whole(self) -> list[TableName]:
        """The tables whose rows are all packed as messages."""
        return [
            table
            for table, versions in self.tables.items()
            if all(version.has_messages for version in versions)
        ]


def read(spark: SparkSession, path: str, options: dict[str, Any], stores: Path) -> Read:
    """Blocks and events of a run, which agree on everything but types."""
    kept = {**options, "schemaStore": str(stores / "blocks")}
    blocks = streamed(spark, path, **kept, **{BLOCKS_OPTION: "true"})
    events = streamed(spark, path, **options, schemaStore=str(stores / "events"))
    assert shown(events_of(blocks, {**kept, "includeColumns": "true"})) == shown(events)
    report = Report(0)
    tables = summarize(blocks, report)
    assert report.events == events.count()
    assert tables == {
        table: [
            # Events are packed, and not their messages.
            attrs.evolve(version, has_messages=other.has_messages)
            for version, other in zip(versions, tables[table], strict=True)
        ]
        for table, versions in summarize(blocks_of(events), Report(0)).items()
    }
    for table, versions in tables.items():
        rows = events.where(is_of(table)).where("kind = 'row' AND op <> 'truncate'")
        assert sum(version.count for version in versions) == rows.count()
        assert ends(rows) == (
            min(version.first for version in versions),
            max(version.last for version in versions),
        )
    return Read(blocks, events, kept, tables)


@pytest.mark.parametrize("name", in_turn(OWN, of=2))
def test_golden_messages(spark: SparkSession, tmp_path: Path, name: str) -> None:
    case = CASES[name]()
    path = write_both(spark, tmp_path, case.messages).path
    found = read(spark, path, case.options, tmp_path)
    compared = [table for table in found.whole if table_text(table) in case.tables]
    assert len(compared) == len(case.tables)
    for table in compared:
        check_types(found, table)


@pytest.mark.parametrize("name", ["simple-avro", "debezium"])
def test_types_out_of_other_messages(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """The schemas of a table travel with its messages."""
    if name == "debezium":
        messages = list(native_messages("debezium/noschema_default"))
        options = {"protocol": "debezium", "timePrecisionMode": "adaptive_time_microseconds"}
        tables = {"shop.wide"}
    else:
        variant = load_variant(name, "default")
        messages = [golden.message for golden in variant.messages]
        options = dict(reading_options(variant))
        tables = {"golden.bytes_t", "golden.pk_change"}
    path = write_both(spark, tmp_path, messages).path
    found = read(spark, path, options, tmp_path)
    assert found.whole == [*found.tables]
    compared = [table for table in found.whole if table_text(table) in tables]
    assert len(compared) == len(tables)
    for table in compared:
        check_types(found, table)


def check_types(found: Read, table: TableName) -> None:
    versions = found.tables[table]
    expected = exact(found.events, table, versions)
    assert typed(found.blocks, table, versions, found.options) == expected
    assert len(expected) > 0


def ends(rows: DataFrame) -> tuple[Any, Any]:
    epoch, partition, offset = (
        f.when(f.col("commit_ts").isNull(), f.coalesce(f"_source.{name}", f.lit(0))).otherwise(0)
        for name in ("epoch", "partition", "offset")
    )
    commit = f.coalesce("commit_ts", sequence_commit(), f.lit(0))
    position = f.struct(epoch.alias("epoch"), commit, partition.alias("partition"), offset)
    (row,) = rows.agg(f.min(position).alias("a"), f.max(position).alias("b")).collect()
    return tuple(row.a), tuple(row.b)


def typed(
    blocks: DataFrame, table: TableName, versions: Sequence[TableVersion], options: dict[str, Any]
) -> list[str]:
    rows = blocks.where(is_of(table)).where("kind = 'row'")
    return shown(
        changes_of_blocks(
            rows,
            table_text(table),
            options,
            schema=StructType([*own_columns(versions), *ADDED]),
            keys=versions[0].key_columns,
            read=None,
            partial=True,
            **HOW,
        )
    )


def exact(events: DataFrame, table: TableName, versions: Sequence[TableVersion]) -> list[str]:
    rows = events.where(is_of(table)).where("kind = 'row'")
    schema = StructType([*own_columns(versions), *ADDED])
    return shown(changes(rows, table_text(table), schema=schema, **HOW))


def test_value_outside_its_columns_type(spark: SparkSession, tmp_path: Path) -> None:
    row = {"id": "1", "name": "a", "price": "1.55"}
    path = write_lines(tmp_path / "a.json", row_message("INSERT", row))
    blocks = streamed(spark, path, **{BLOCKS_OPTION: "true"})
    with pytest.raises(PySparkException, match=f"{INVALID_CHANGE}: shop.orders: .*price"):
        changes_of_blocks(
            blocks,
            "shop.orders",
            {},
            schema=StructType([*StructType.fromDDL("id INT, price DECIMAL(3,1)"), *ADDED]),
            keys=["id"],
            read=None,
            partial=False,
            **HOW,
        ).collect()


PATHS: Paths = [
    ("database", ("payload", "source", "db")),
    ("database", ("source", "db")),
    ("schema", ("source", "schema")),
    ("table", ("source", "table")),
]


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (b'{"source": {"db": "d", "schema": "s", "table": "t"}}', ["d", "s", "t"]),
        (b'{"payload": {"source": {"db": "d"}}, "source": 5}', ["d"]),
        (b'{"source": {"db": "", "schema": null, "table": ["t"]}}', []),
        (b'{"source": {"table": "a\\u0000b", "db": "' + b"x" * 2000 + b'"}}', []),
        (b'{"source": {"db": "d"', []),
        (b"[" * 100_000, []),
        (b"5", []),
        (b"\xff", []),
        (None, []),
    ],
)
def test_table_of_an_undecodable_message(value: bytes | None, names: list[str]) -> None:
    assert [*named_by(value, PATHS).values()] == names


@pytest.mark.parametrize("protocol", ["auto", "canal-json"])
def test_workers_locate_the_table(monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    """By the layouts of the message's protocol, in a function that Spark can send to them."""
    sent: list[bytes] = []

    def keep(function: Any, _: Any) -> Any:
        sent.append(cloudpickle.dumps(function))
        return Mock()

    monkeypatch.setattr(letters, "to_udf", keep)
    monkeypatch.setattr(letters, "f", Mock())
    letters.with_tables(Mock(), {"path": "dump", "protocol": protocol})
    source = {"db": "d", "schema": "s", "table": "t"}
    rows = [
        ("canal-json", {"database": "d", "table": "t", "es": "x"}),
        ("debezium", {"payload": {"source": source}}),
        ("open-protocol", {"database": "d"}),
        (None, {"database": "d"}),
    ]
    batch = pa.array([{"protocol": p, "value": json.dumps(value).encode()} for p, value in rows])
    (found,) = cloudpickle.loads(sent[0])(iter([batch]))
    names = [tuple(row.values()) for row in found.to_pylist()]
    nothing = None, None, None
    of_debezium = ("d", "s", "t") if protocol == "auto" else nothing
    assert names == [("d", None, "t"), of_debezium, nothing, nothing]
