"""Avro is written as TiCDC's ``debezium-avro``, and holds what JSON holds."""

from __future__ import annotations

import decimal
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.framed_encoding import STRATEGIES, Run, known, write_again
from support.golden_data import GOLDEN, load_variant, reading_options
from support.golden_data import open_decoder as open_golden_decoder
from support.schema_registry import OfflineRegistry, offline_registry

from cdcfmt_core import opening
from cdcfmt_core.encoding import MessageEncoder
from cdcfmt_core.errors import EncodeError, OptionError
from cdcfmt_core.events import Column, Image, Message, RowChange, TableSchema
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import (
    Bool,
    DateTime,
    Decimal,
    Geometry,
    GeometryValue,
    Int,
    InvalidValue,
    LogicalType,
    Text,
)
from cdcfmt_toolkit import message_schemas
from cdcfmt_toolkit.avro_output import forget
from cdcfmt_toolkit.row_rules import row_rules
from cdcfmt_toolkit.schema_directory import SchemaDirectory

ROOT = "ticdc_avro/debezium-avro"
VARIANTS = sorted(path.name for path in (GOLDEN / ROOT).iterdir())
SETTINGS = {
    "enableTidbExtension": "enable-tidb-extension",
    "debeziumOutputOldValue": "debezium-output-old-value",
    "avroDecimalHandlingMode": "avro-decimal-handling-mode",
    "avroBigintUnsignedHandlingMode": "avro-bigint-unsigned-handling-mode",
}
AVRO = {"encodingFormat": "avro"}

DIGITS = "the TiDB type hides how many digits a DATETIME has: microseconds hold all"
SINGLE = "the TiDB type hides that a FLOAT has digits, for which TiCDC writes a double"
LOST = {
    "all_types": {DIGITS, SINGLE},
    **{
        name: {DIGITS}
        for name in ("no_key", "upd_cols", "zero_dates", "defaults_t", "defaults_nobin")
    },
}
"""The tables whose schemas differ from TiCDC's if columns have TiDB types, and why."""


@pytest.mark.parametrize("name", VARIANTS)
def test_what_ticdc_wrote_is_written_again(name: str) -> None:
    run = write_again("debezium", f"{ROOT}/{name}", SETTINGS, **AVRO)
    assert len(run.rows) > 40
    for row in run.rows:
        if name == "watermark":
            # The types of its columns are those of DDL, which is left out.
            assert _images(row.back) == _images(row.event)
        else:
            assert known(row.back) == known(row.event)
    _check_texts(run)
    assert run.same_texts >= 68
    assert run.same_bytes >= 64


def _images(event: Any) -> str:
    return repr((event.op, event.table.name, event.commit_ts, event.before, event.after))


def _check_texts(run: Run) -> None:
    if not run.config["enable-tidb-extension"]:
        assert run.texts == {}
        return
    for table, pairs in run.texts.items():
        found: set[str] = set()
        for theirs, ours in pairs:
            assert _comparable(theirs, found) == _comparable(ours, set())
        assert found <= LOST[table]


def _comparable(schema: Any, found: set[str]) -> Any:
    """A schema without what is lost; ``found`` gets the reasons."""
    if isinstance(schema, list):
        return [_comparable(each, found) for each in schema]
    if not isinstance(schema, dict):
        return schema
    schema = dict(schema)
    if schema.get("connect.name") == "io.debezium.time.Timestamp":
        found.add(DIGITS)
        schema["connect.name"] = "io.debezium.time.MicroTimestamp"
    if schema.get("tidb_type") == "float" and schema["type"] == ["null", "double"]:
        found.add(SINGLE)
        schema["type"] = ["null", "float"]
    return {name: _comparable(each, found) for name, each in schema.items()}


# --- JSON to Avro to JSON ---------------------------------------------------------------

URL = "schema.registry.url"


@pytest.fixture
def server() -> Iterator[OfflineRegistry]:
    forget()
    with offline_registry() as found:
        yield found


def opened(server: OfflineRegistry, **options: Any) -> MessageEncoder:
    given = {URL: server.url, "schema.registry.topic": "shop", **AVRO, **STRATEGIES}
    return opening.open_encoder("debezium", given | options)


def back(server: OfflineRegistry, messages: list[Message]) -> list[Any]:
    decoder = opening.open_decoder("debezium", {URL: server.url})
    return [event for message in messages for event in decoder.decode(message)]


def test_names_of_the_connectors(server: OfflineRegistry) -> None:
    """``avroSchemaNames``: those that Debezium's sinks and generated classes look for."""
    table = TableSchema("my shop", "t-1", (Column("id", "int", Int(32), False, True),), ("id",))
    event = RowChange("insert", table, None, Image({"id": 1}), commit_ts=7 << 18)
    encoder = opened(server, avroSchemaNames="connector", clusterId="server1")
    (message,) = encoder.encode(event)
    assert server.subjects.keys() == {"shop-server1.my_shop.t_1.Key"} | {
        "shop-server1.my_shop.t_1.Envelope"
    }
    envelope = next(text for text in server.registered if "Envelope" in text)
    names = set(re.findall(r'"connect\.name":"([^"]*)"', envelope))
    assert names == {f"server1.my_shop.t_1.{each}" for each in ("Envelope", "Value", "Source")}
    for protocol in ("debezium", "auto"):
        decoder = opening.open_decoder(protocol, {URL: server.url})
        (read,) = decoder.decode(message)
        assert isinstance(read, RowChange)
        assert (read.table.name, read.after) == (table.name, event.after)


def test_written_rows_are_read_without_the_registry(
    server: OfflineRegistry, tmp_path: Path
) -> None:
    """``schemaStore`` alone has the schemas that were read once."""
    messages = []
    for number in range(3):
        extra = [Column(f"c{each}", "int", Int(32), True) for each in range(number)]
        columns = Column("id", "int", Int(32), False, True), *extra
        table = TableSchema("shop", "orders", columns, ("id",))
        row = Image({"id": number, **{each.name: number for each in extra}})
        event = RowChange("insert", table, None, row, commit_ts=(7 + number) << 18)
        messages += opened(server).encode(event)
    store = SchemaStore(persistence=SchemaDirectory(str(tmp_path)))
    common = {URL: server.url}
    with_registry = opening.open_decoder("debezium", common, schemas=store)
    read = [with_registry.decode(message) for message in messages]
    server.away = True
    for given in (common, {}):
        for protocol in ("debezium", "auto"):
            message_schemas.forget()
            kept = SchemaStore(persistence=SchemaDirectory(str(tmp_path)))
            decoder = opening.open_decoder(protocol, given, schemas=kept)
            assert repr([decoder.decode(message) for message in messages]) == repr(read)
    assert [len(event.after.values) for (event,) in read] == [1, 2, 3]


@pytest.mark.parametrize("name", ["tidb-extension", "default", "no-old-value"])
def test_json_to_avro_to_json(server: OfflineRegistry, name: str) -> None:
    variant = load_variant("debezium", name)
    decoder = open_golden_decoder(**reading_options(variant))
    options = {
        "enableTidbExtension": variant.config["enable-tidb-extension"],
        "debeziumOutputOldValue": variant.config["debezium-output-old-value"],
    }
    encoder = opened(server, **options, avroBigintUnsignedHandlingMode="string")
    to_json = opening.open_encoder("debezium", options)
    count = rounded = 0
    for golden in variant.messages:
        if b'"tableChanges"' in (golden.message.value or b""):
            # It has types that rows do not have.
            continue
        for event in decoder.decode(golden.message):
            if not isinstance(event, RowChange):
                continue
            if _is_rounded(event):
                with pytest.raises(EncodeError, match="a value that this format cannot write"):
                    encoder.encode(event)
                rounded += 1
                continue
            (read,) = back(server, encoder.encode(event))
            (direct,), (twice,) = to_json.encode(event), to_json.encode(read)
            assert direct.key == twice.key
            assert direct.value == twice.value
            count += 1
    assert count > 40
    assert rounded < 10


def _is_rounded(event: RowChange) -> bool:
    """Whether a decimal, a double in JSON, was rounded beyond its column's digits."""
    images = [image.values for image in (event.before, event.after) if image is not None]
    decimals = [column.name for column in event.table.columns if isinstance(column.type, Decimal)]
    return any(type(row.get(name)) is InvalidValue for row in images for name in decimals)


# --- Rows -------------------------------------------------------------------------------

COLUMNS = (Column("id", "int", Int(32), False, True), Column("v", "text", Text(), True))
TABLE = TableSchema("shop", "t", COLUMNS, ("id",))


def with_column(logical: LogicalType, name: str = "c", source: str = "") -> TableSchema:
    return TableSchema("shop", "t", (*COLUMNS, Column(name, source, logical, True)), ("id",))


def row(op: Any, before: Any, after: Any, table: TableSchema = TABLE) -> RowChange:
    images = [None if values is None else Image(values) for values in (before, after)]
    return RowChange(op, table, *images, commit_ts=7 << 18)


def insert(table: TableSchema = TABLE, **more: Any) -> RowChange:
    return row("insert", None, {"id": 1, "v": "x", **more}, table)


@pytest.mark.parametrize(
    "event",
    [
        insert(),
        row("read", None, {"id": 1, "v": None}),
        row("update", {"id": 1, "v": "a"}, {"id": 1, "v": "b"}),
        row("delete", {"id": 1, "v": "a"}, None),
        row("truncate", None, None),
    ],
)
def test_every_operation(server: OfflineRegistry, event: RowChange) -> None:
    (found,) = back(server, opened(server).encode(event))
    assert (found.op, found.before, found.after) == (event.op, event.before, event.after)
    if event.op != "truncate":
        assert [column.nullable for column in found.table.columns] == [False, True]
        assert found.table.key_columns == ("id",)


def test_a_deleted_key(server: OfflineRegistry) -> None:
    event = row("delete", {"id": 1}, None)
    assert event.before is not None
    event.before.complete = False
    (found,) = back(server, opened(server).encode(event))
    assert (found.op, found.before.values) == ("delete", {"id": 1})


def test_a_table_with_a_schema(server: OfflineRegistry) -> None:
    table = TableSchema("shop", "t", COLUMNS, ("id",), "public")
    (found,) = back(server, opened(server).encode(insert(table)))
    assert found.table.name == ("shop", "public", "t")
    assert "shop-default.shop.public.tEnvelope" in server.subjects


def test_names_that_avro_does_not_have(server: OfflineRegistry) -> None:
    table = TableSchema("s.h", "1 t", (*COLUMNS, Column('列 "x"', "int", Int(32), True)), ("id",))
    (found,) = back(server, opened(server).encode(insert(table, **{'列 "x"': 5})))
    assert found.table.name == ("s.h", "1 t")
    assert found.after.values == {"id": 1, "v": "x", '列 "x"': 5}
    assert "shop-default.s_h._1_tEnvelope" in server.subjects


@pytest.mark.parametrize(
    ("logical", "source", "value"),
    [
        (Bool(), "boolean", True),
        (Decimal(5, 2), "decimal(5,2)", decimal.Decimal("-1.28")),
        (Decimal(5, 2), "decimal(5,2)", decimal.Decimal("1.28")),
        (Decimal(65, 30), "decimal(65,30)", decimal.Decimal("0.000000000000000000000000000001")),
        (Decimal(), "decimal", decimal.Decimal("-1.230")),
        (Int(64, signed=False), "bigint unsigned", (1 << 63) - 1),
        (Geometry(), "geometry", GeometryValue(4326, b"\1wkb")),
    ],
)
def test_values(server: OfflineRegistry, logical: LogicalType, source: str, value: Any) -> None:
    encoder = opened(server, enableTidbExtension=True)
    event = insert(with_column(logical, source=source), c=value)
    (found,) = back(server, encoder.encode(event))
    assert found.after.values["c"] == value


def test_two_geometries_are_one_type(server: OfflineRegistry) -> None:
    columns = [Column(name, "geometry", Geometry(), True) for name in "ab"]
    table = TableSchema("shop", "t", (*COLUMNS, *columns), ("id",))
    value = GeometryValue(4326, b"\1wkb")
    (found,) = back(server, opened(server).encode(insert(table, a=value, b=None)))
    assert (found.after.values["a"], found.after.values["b"]) == (value, None)


@pytest.mark.parametrize(
    ("logical", "value", "error"),
    [
        (Decimal(), decimal.Decimal("NaN"), "not a"),
        (Decimal(5, 2), decimal.Decimal("NaN"), "not a"),
        (Int(64, signed=False), 1 << 63, "set avroBigintUnsignedHandlingMode=string"),
        (DateTime(3), "2024", "not a"),
    ],
)
def test_values_that_avro_cannot_express(
    server: OfflineRegistry, logical: LogicalType, value: Any, error: str
) -> None:
    event = insert(with_column(logical), c=value)
    with pytest.raises(EncodeError, match=rf"column c.*{error}.*unsupportedValues=skip"):
        opened(server).encode(event)
    assert not server.subjects
    encoder = opened(server, unsupportedValues="skip")
    assert encoder.encode(event) == []


def test_transactions_that_avro_leaves_out_are_counted(server: OfflineRegistry) -> None:
    encoder = opened(server)
    event = insert()
    event.extra = {"transaction": {"id": "1", "total_order": 1, "data_collection_order": 1}}
    encoder.encode(event)
    assert encoder.context.counts == {"places in transactions, left out of Avro": 1}


def test_the_kernel_leaves_avro_to_the_reference(server: OfflineRegistry) -> None:
    assert row_rules(opened(server)) is None
    assert row_rules(opening.open_encoder("debezium")) is not None


def test_a_registry_is_for_avro_and_avro_for_a_registry(server: OfflineRegistry) -> None:
    with pytest.raises(OptionError, match=r"set schema\.registry\.url"):
        opening.open_encoder("debezium", AVRO)
    with pytest.raises(OptionError, match=r"options debezium is written without .*or form"):
        opened(server, encodingFormat="json")
    with pytest.raises(OptionError, match=r"options schema\.registry"):
        opening.open_encoder("canal-json", {URL: server.url})
