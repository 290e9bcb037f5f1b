"""Errors of the writers on the driver, before any task runs."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)
from support.golden_data import read_files
from support.schema_registry import OfflineRegistry, offline_registry

from cdcfmt_core import open_decoder
from cdcfmt_core.errors import EncodeError, OptionError, SinkError
from cdcfmt_core.events import RowChange
from cdcfmt_files.sinks import CommitId, FileSink
from cdcfmt_toolkit import avro_output
from pyspark_cdcfmt import DefaultSource
from pyspark_cdcfmt.write.encoding import check_rows, open_input
from pyspark_cdcfmt.write.writers import CdcBatchWriter
from pyspark_cdcfmt.write_options import parse_write_options


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, type_) for name, type_ in columns.items()])


EVENTS = schema(kind=StringType(), commit_ts=LongType())
CHANGES = schema(id=LongType(), _change_type=StringType())
NAMED = schema(name=StringType())
TEXT = StringType()


def source(folder: Path, **options: Any) -> DefaultSource:
    given = {"protocol": "canal-json", "path": str(folder / "out"), **options}
    return DefaultSource({name: str(value) for name, value in given.items() if value is not None})


WRONG_EVENTS: list[tuple[StructType, str]] = [
    (schema(op=TEXT), "column kind is missing"),
    (schema(kind=LongType()), "column kind is bigint; it must be string"),
    (schema(kind=TEXT, opp=TEXT), "column opp is unknown.*did you mean op"),
    (schema(kind=TEXT, OP=TEXT), "column OP is unknown.*did you mean op"),
    (schema(kind=TEXT, after=TEXT), "column after is string.*imageFormat=variant"),
    (schema(kind=TEXT, _source=schema(offset=TEXT)), "column _source is struct"),
    (schema(kind=TEXT, columns=ArrayType(NAMED)), "column columns has no field source_type"),
    (schema(kind=TEXT, ddl=schema(query=TEXT)), "column ddl has no field type"),
    (
        schema(kind=TEXT, table_schema=schema(table=TEXT, columns=ArrayType(NAMED))),
        "column table_schema.columns has no field source_type",
    ),
    (StructType([*EVENTS.fields, EVENTS.fields[0]]), "have column kind twice"),
]
WRONG_CHANGES: list[tuple[StructType, dict[str, str], str]] = [
    (schema(id=LongType()), {}, "column _change_type is missing"),
    (schema(_CHANGE_TYPE=TEXT), {}, "_CHANGE_TYPE differs from _change_type only in case"),
    (schema(id=TEXT, _change_type=BinaryType()), {}, "column _change_type is binary"),
    (StructType([*CHANGES.fields, CHANGES.fields[0]]), {}, "have column id twice: rename"),
    (schema(id=NullType(), _change_type=TEXT), {}, "column id: void"),
    (CHANGES, {"keyColumns": "key"}, "option keyColumns: there is no column key"),
    (CHANGES, {"columnTypes": '{"id": "biggint"}'}, "'biggint' of id is not a known type"),
    (
        schema(id=LongType(), ID=LongType(), _change_type=TEXT),
        {"keyColumns": "Id"},
        "option keyColumns: 'Id' is ambiguous: id or ID",
    ),
]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("to", ["files", "kafka"])
def test_unwritable_columns(tmp_path: Path, to: str, streaming: bool) -> None:
    """No broker listens at the address, so nothing was sent either."""
    kafka = {"path": None, "topic": "x", "kafka.bootstrap.servers": "127.0.0.1:1"}
    table = {"table": "shop.orders", "keyColumns": "id"}
    cases = [(wrong, {}, reason) for wrong, reason in WRONG_EVENTS]
    cases += [(wrong, {**table, **more}, reason) for wrong, more, reason in WRONG_CHANGES]
    for wrong, options, reason in cases:
        made = source(tmp_path, **options, **(kafka if to == "kafka" else {}))
        open_writer = made.streamWriter if streaming else made.writer
        with pytest.raises(OptionError, match=reason):
            open_writer(wrong, overwrite=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("to", ["canal-json", "open-protocol", "simple", "cloudcanal-json"])
def test_columns_that_the_format_lacks(to: str, streaming: bool, tmp_path: Path) -> None:
    """All of them, before anything is made."""
    rows = schema(id=LongType(), more=ArrayType(TEXT), tags=NAMED, _commit_version=LongType())
    rows = rows.add("_change_type", TEXT)
    given = {"protocol": to, "table": "shop.orders", "keyColumns": "id"}

    def open_writer(**more: str) -> object:
        made = source(tmp_path, **given, **more)
        return (made.streamWriter if streaming else made.writer)(rows, overwrite=False)

    reason = "its type is array, which the format lacks; .*; unsupportedValues=skip leaves it out"
    with pytest.raises(EncodeError, match=f"^{to} table shop.orders, column more: {reason}") as e:
        open_writer()
    assert str(e.value).endswith(". Also: shop.orders.tags")
    assert list(tmp_path.iterdir()) == []
    open_writer(unsupportedValues="skip")


def test_rows_without_a_time_for_a_format_that_needs_one(tmp_path: Path) -> None:
    debezium = {"protocol": "debezium"}
    table = {**debezium, "table": "shop.orders", "keyColumns": "id"}
    own = {"synthesizeCommitTs": "false"}
    for rows, given, reason in (
        (schema(kind=TEXT), debezium, "no column commit_ts, nor source_time to make one from"),
        (CHANGES, table, "no column _commit_version, nor _commit_timestamp to make one from"),
        (schema(kind=TEXT, source_time=TimestampType()), debezium | own, "synthesizeCommitTs=true"),
    ):
        with pytest.raises(OptionError, match=reason):
            source(tmp_path, **given).writer(rows, overwrite=False)
    source(tmp_path, **debezium).writer(EVENTS, overwrite=False)
    source(tmp_path).writer(schema(kind=TEXT), overwrite=False)


def test_names_of_options_match_without_case(tmp_path: Path) -> None:
    """As when reading."""
    given = {"table": "shop.orders", "keyColumns": "ID", "columnTypes": '{"Id": "int unsigned"}'}
    options = parse_write_options({"protocol": "canal-json", "path": str(tmp_path), **given})
    check_rows(CHANGES, options)
    table = open_input(CHANGES, options).table  # type: ignore[union-attr]
    assert table.key_columns == ("id",)
    assert table.columns[0].key
    assert table.columns[0].source_type == "int unsigned"


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"metadataPrefix": "x_"}, "metadataPrefix goes with the option table"),
        ({"table": "a.b", "typesFrom": "values"}, "typesFrom is for events"),
    ],
)
def test_options_of_the_other_shape(tmp_path: Path, given: dict[str, str], error: str) -> None:
    with pytest.raises(OptionError, match=error):
        parse_write_options({"protocol": "canal-json", "path": str(tmp_path), **given})


def test_subjects_have_the_topic_that_is_written(tmp_path: Path) -> None:
    given = {"protocol": "debezium", "encodingFormat": "avro"}
    given["schema.registry.url"] = "http://localhost:1"
    topic = {"kafka.bootstrap.servers": "localhost:1", "topic": "orders"}
    assert parse_write_options(given | topic)["schema.registry.topic"] == "orders"
    named = given | {"schema.registry.topic": "shop"}
    assert parse_write_options(named | topic)["schema.registry.topic"] == "shop"
    files = {"path": str(tmp_path)}
    assert parse_write_options(named | files)["schema.registry.topic"] == "shop"
    assert parse_write_options(given | files)["schema.registry.topic"] is None


def test_contradictory_options(tmp_path: Path) -> None:
    kafka = {"path": None, "topic": "x", "kafka.bootstrap.servers": "127.0.0.1:1"}
    batch: list[tuple[dict[str, Any], bool, str]] = [
        (kafka, True, "a topic cannot be overwritten: use mode append"),
        ({**kafka, "ifExists": "error"}, False, "option ifExists is for files"),
        ({"ifExists": "error"}, True, "ifExists goes with mode append; overwrite replaces files"),
        ({"ifExists": "never"}, False, "ifExists"),
        ({"path": None}, False, r"needs a path: use save\(path\)"),
        ({"singleTask": "true"}, False, "singleTask is for topics"),
        ({"partitioner": "table"}, False, "option partitioner .*, as files have no partitions"),
        ({"txnAppId": "x"}, False, "txnAppId and txnVersion go together"),
    ]
    for options, overwrite, reason in batch:
        with pytest.raises(OptionError, match=reason):
            source(tmp_path, **options).writer(EVENTS, overwrite=overwrite)
    streams: list[tuple[dict[str, Any], bool, str]] = [
        (kafka, True, "a topic cannot be overwritten: use mode append"),
        ({}, True, "output mode complete would write all events again in every batch"),
        ({"ifExists": "error"}, False, "ifExists is for batch writes"),
        ({"txnAppId": "x", "txnVersion": "1"}, False, "txnAppId is for batch writes"),
    ]
    for options, overwrite, reason in streams:
        with pytest.raises(OptionError, match=reason):
            source(tmp_path, **options).streamWriter(EVENTS, overwrite=overwrite)
    assert list(tmp_path.iterdir()) == []


def test_if_exists_is_decided_on_the_driver(tmp_path: Path) -> None:
    sink = FileSink(str(tmp_path / "out"))
    sink.prepare()
    # No visible files.
    (tmp_path / "out" / "_hidden").write_bytes(b"x")
    source(tmp_path, ifExists="error").writer(EVENTS, overwrite=False)
    files = sink.open_task(CommitId.of("query"), 0)
    files.write(b"x")
    sink.commit(CommitId.of("query"), files.close())
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OptionError, match=r"has files \(ifExists=error\)"):
        source(tmp_path, ifExists="error").writer(EVENTS, overwrite=False)
    writer = source(tmp_path, ifExists="ignore").writer(EVENTS, overwrite=False)
    writer.commit([writer.write(iter(()))])
    assert sorted(tmp_path.rglob("*")) == before


AVRO = {
    "protocol": "debezium",
    "encodingFormat": "avro",
    "schema.registry.topic": "orders",
    "schema.registry.max.retries": "0",
    "table": "shop.orders",
    "keyColumns": "id",
}


def of_table(server: OfflineRegistry, folder: Path, name_type: DataType) -> CdcBatchWriter:
    given = AVRO | {"schema.registry.url": server.url, "path": str(folder)}
    columns = schema(
        _change_type=TEXT, _commit_version=LongType(), id=IntegerType(), name=name_type
    )
    return CdcBatchWriter.open(columns, parse_write_options(given), overwrite=False)


def test_the_driver_registers_the_schemas_of_a_table(tmp_path: Path) -> None:
    with offline_registry() as server:
        writer = pickle.dumps(of_table(server, tmp_path, TEXT))
        assert sorted(server.subjects) == ["orders-key", "orders-value"]
        # In the process of a task; its registry is not needed.
        avro_output.forget()
        server.status = 503
        opened: CdcBatchWriter = pickle.loads(writer)
        row = {"_change_type": "insert", "_commit_version": 450_000_000_000_000_000}
        batch = pa.RecordBatch.from_pylist([row | {"id": 1, "name": "a"}])
        opened.commit([opened.write(iter([batch]))])
        assert len(server.requests) == 2
        server.status = None
        (written,) = read_files(sorted(tmp_path.glob("*.jsonl")))
        (event,) = open_decoder("debezium", {"schema.registry.url": server.url}).decode(written)
        assert isinstance(event, RowChange)
        assert event.after is not None
        assert event.after.values == {"id": 1, "name": "a"}


def test_the_driver_refuses_a_table_before_anything_is_written(tmp_path: Path) -> None:
    with offline_registry() as server:
        of_table(server, tmp_path, TEXT)
        server.compatible = False
        text = rf"{server.url}, subject orders-value: the schema is incompatible .*no row with it"
        with pytest.raises(SinkError, match=text):
            of_table(server, tmp_path, IntegerType())
        server.status = 503
        with pytest.raises(SinkError, match=r"does not answer \(HTTP 503.*start the write again"):
            of_table(server, tmp_path, LongType())
    assert not [*tmp_path.glob("*.jsonl")]
