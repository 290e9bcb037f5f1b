"""The encoder: TiCDC's messages written again, their schemas, and what cannot be written."""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from typing import Any

import pytest
from support.framed_encoding import STRATEGIES, known, write_again
from support.golden_data import GOLDEN
from support.schema_registry import OfflineRegistry, offline_registry

from cdcfmt_core import opening
from cdcfmt_core.errors import EncodeError, OptionError, SinkError, UnsupportedEventError
from cdcfmt_core.events import Column, Image, Message, RowChange, TableSchema
from cdcfmt_core.types import Decimal, Geometry, Int, LogicalType, Text
from cdcfmt_toolkit.avro_output import forget

ROOT = "ticdc_avro/avro"
VARIANTS = sorted(path.name for path in (GOLDEN / ROOT).iterdir())
SETTINGS = {
    "enableTidbExtension": "enable-tidb-extension",
    "avroIncludeBeforeValue": "avro-include-before-value",
    "enableRowChecksum": "enable-row-checksum",
    "avroEnableWatermark": "avro-enable-watermark",
    "avroDecimalHandlingMode": "avro-decimal-handling-mode",
    "avroBigintUnsignedHandlingMode": "avro-bigint-unsigned-handling-mode",
}
DEFAULT = "events have no defaults of columns"
WIDTH = "INT UNSIGNED is of any width, and written as the widest"
LOST = {
    "all_types": {WIDTH},
    **{name: {DEFAULT} for name in ("defaults_t", "defaults_nobin", "default_varbinary")},
    **{name: {DEFAULT} for name in ("t1", "t1_renamed", "t2_r2", "t1_r2")},
}
"""The tables whose schemas differ from TiCDC's, and why."""


@pytest.mark.parametrize("name", VARIANTS)
def test_what_ticdc_wrote_is_written_again(name: str) -> None:
    run = write_again("ticdc-avro", f"{ROOT}/{name}", SETTINGS)
    assert len(run.rows) > 25
    for row in run.rows:
        assert known(row.back) == known(row.event)
    tables = {row.event.table.table for row in run.rows if isinstance(row.event, RowChange)}
    assert run.texts.keys() == LOST.keys() & tables
    for table, pairs in run.texts.items():
        found: set[str] = set()
        for theirs, ours in pairs:
            assert _comparable(theirs, found) == _comparable(ours, set())
        assert found == LOST[table]
    assert run.same_texts > 40
    assert run.same_bytes > 35


def _comparable(schema: Any, found: set[str]) -> Any:
    """A schema without what is lost; ``found`` gets the reasons."""
    if isinstance(schema, list):
        if "null" in schema[1:]:
            schema = sorted(schema, key=lambda each: each != "null")
        return [_comparable(each, found) for each in schema]
    if not isinstance(schema, dict):
        return schema
    schema = dict(schema)
    if schema.get("default") is not None and not schema["name"].startswith("_ti"):
        found.add(DEFAULT)
    if not schema.get("name", "").startswith("_ti"):
        schema.pop("default", None)
    if schema.get("connect.parameters") == {"tidb_type": "INT UNSIGNED"}:
        if schema["type"] == "int":
            found.add(WIDTH)
        schema["type"] = "long"
    return {name: _comparable(each, found) for name, each in schema.items()}


# --- Registration -----------------------------------------------------------------------

URL = "schema.registry.url"
TOPIC = "schema.registry.topic"
COLUMNS = (Column("id", "int", Int(32), False, True), Column("v", "text", Text(), True))
TABLE = TableSchema("shop", "t", COLUMNS, ("id",))


@pytest.fixture
def server() -> Iterator[OfflineRegistry]:
    forget()
    with offline_registry() as found:
        yield found


def row(op: Any, before: Any, after: Any, table: TableSchema = TABLE) -> RowChange:
    images = [None if values is None else Image(values) for values in (before, after)]
    return RowChange(op, table, *images, commit_ts=7 << 18)


def insert(table: TableSchema = TABLE, **more: Any) -> RowChange:
    return row("insert", None, {"id": 1, "v": "x", **more}, table)


def with_column(logical: LogicalType, name: str = "c") -> TableSchema:
    return TableSchema("shop", "t", (*COLUMNS, Column(name, "", logical, True)), ("id",))


def opened(server: OfflineRegistry, **options: Any) -> Any:
    given = {name.replace("__", "."): value for name, value in options.items()}
    return opening.open_encoder("ticdc-avro", {URL: server.url, TOPIC: "shop", **given})


def back(server: OfflineRegistry, messages: list[Message]) -> list[Any]:
    decoder = opening.open_decoder("ticdc-avro", {URL: server.url})
    return [event for message in messages for event in decoder.decode(message)]


def test_a_schema_is_registered_once_under_its_topic(server: OfflineRegistry) -> None:
    for _ in range(2):
        encoder = opened(server, enableTidbExtension=True)
        for _ in range(3):
            encoder.encode(insert())
    assert server.subjects.keys() == {"shop-key", "shop-value"}
    assert len([path for path in server.requests if "/subjects/" in path]) == 2


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        ("TopicNameStrategy", "shop-value"),
        ("RecordNameStrategy", "default.shop.t"),
        ("TopicRecordNameStrategy", "shop-default.shop.t"),
    ],
)
def test_subjects_by_the_strategies_of_confluent(
    server: OfflineRegistry, strategy: str, subject: str
) -> None:
    opened(server, schema__registry__value__subject__name__strategy=strategy).encode(insert())
    assert server.subjects.keys() == {"shop-key", subject}


def test_without_a_topic_only_the_names_of_records_name_subjects(server: OfflineRegistry) -> None:
    with pytest.raises(OptionError, match=r"option schema\.registry\.topic: .*give its name"):
        opened(server, **{TOPIC: None}).encode(insert())
    names = dict.fromkeys(STRATEGIES, "RecordNameStrategy")
    assert opened(server, **{TOPIC: None}, **names).encode(insert())


def test_an_incompatible_schema_is_an_error_before_its_first_row(server: OfflineRegistry) -> None:
    encoder = opened(server, unsupportedEvents="skip", unsupportedValues="skip")
    encoder.encode(insert())
    server.compatible = False
    with pytest.raises(SinkError, match="shop-value: the schema is incompatible") as caught:
        encoder.encode(insert(with_column(Int(32)), c=5))
    assert "subject.name.strategy" in str(caught.value)
    assert len(server.subjects["shop-value"]) == 1
    assert encoder.encode(insert())


def test_schemas_that_must_be_registered_before(server: OfflineRegistry) -> None:
    only_known = {"schema.registry.auto.register.schemas": False}
    with pytest.raises(SinkError, match=r"not registered; set schema\.registry\.auto\.register"):
        opened(server, **only_known).encode(insert())
    opened(server).encode(insert())
    forget()
    assert opened(server, **only_known).encode(insert())
    with pytest.raises(SinkError, match="latest version, 1, is another schema"):
        opened(server, **{"schema.registry.use.latest.version": True}).encode(
            insert(with_column(Int(32)), c=5)
        )


def test_a_registry_that_does_not_answer_ends_the_write(server: OfflineRegistry) -> None:
    server.status = 503
    options = {"schema.registry.max.retries": 0, "unsupportedValues": "skip"}
    with pytest.raises(SinkError, match="does not answer"):
        opened(server, **options).encode(insert())


def test_a_row_that_cannot_be_written_registers_nothing(server: OfflineRegistry) -> None:
    with pytest.raises(EncodeError, match="column v"):
        opened(server).encode(insert(v=5))
    assert not server.subjects


def test_a_registry_is_needed() -> None:
    with pytest.raises(OptionError, match=r"ticdc-avro .*set schema\.registry\.url"):
        opening.open_encoder("ticdc-avro")


# --- Rows -------------------------------------------------------------------------------


def test_an_update_of_the_key_keeps_no_old_row(server: OfflineRegistry) -> None:
    update = row("update", {"id": 1, "v": "x"}, {"id": 2, "v": "x"})
    with pytest.raises(UnsupportedEventError, match="set splitKeyUpdates=true"):
        opened(server).encode(update)
    delete, added = back(server, opened(server, splitKeyUpdates=True).encode(update))
    assert (delete.op, delete.before.values) == ("delete", {"id": 1})
    assert (added.op, added.after.values) == ("upsert", {"id": 2, "v": "x"})
    both = opened(server, avroIncludeBeforeValue=True).encode(update)
    (whole,) = back(server, both)
    assert (whole.op, whole.before.values["id"]) == ("update", 1)


def test_deletes_without_a_key(server: OfflineRegistry) -> None:
    keyless = TableSchema("shop", "t", COLUMNS)
    delete = row("delete", {"id": 1, "v": None}, None, keyless)
    with pytest.raises(UnsupportedEventError, match="set avroIncludeBeforeValue=true"):
        opened(server).encode(delete)
    (found,) = back(server, opened(server, avroIncludeBeforeValue=True).encode(delete))
    assert (found.op, found.before.values) == ("delete", {"id": 1, "v": None})


def test_operations_and_before_images_that_are_left_out_are_counted(
    server: OfflineRegistry,
) -> None:
    encoder = opened(server)
    encoder.encode(row("update", {"id": 1, "v": "x"}, {"id": 1, "v": "y"}))
    assert sorted(encoder.context.counts.values()) == [1, 1]


@pytest.mark.parametrize(
    ("logical", "value", "error"),
    [
        (Decimal(), decimal.Decimal(1), "set avroDecimalHandlingMode=string"),
        (Geometry(), None, "its type is geometry, which the format lacks"),
    ],
)
def test_types_that_avro_cannot_express(
    server: OfflineRegistry, logical: LogicalType, value: Any, error: str
) -> None:
    event = insert(with_column(logical), c=value)
    with pytest.raises(EncodeError, match=rf"column c.*{error}.*unsupportedValues=skip"):
        opened(server).encode(event)
    encoder = opened(server, unsupportedValues="skip")
    assert encoder.encode(event) == []
    assert sum(encoder.context.counts.values()) == 1


def test_columns_with_one_name_in_avro(server: OfflineRegistry) -> None:
    with pytest.raises(EncodeError, match=r"column a b, .*name is a_b, which column a\.b has"):
        opened(server).encode(
            insert(
                TableSchema(
                    "shop",
                    "t",
                    (*COLUMNS, Column("a.b", "", Int(32), True), Column("a b", "", Int(32), True)),
                    ("id",),
                ),
                **{"a.b": 1, "a b": 2},
            )
        )
    with pytest.raises(EncodeError, match="which the field _tidb_op has"):
        opened(server).encode(insert(with_column(Int(32), "_tidb_op"), _tidb_op=1))
