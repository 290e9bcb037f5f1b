"""TiCDC's Simple Protocol against the truth, JSON and Avro: every event, column, value, type."""

from __future__ import annotations

import io
import json
from collections import Counter
from functools import cache
from typing import Any

import attrs
import fastavro
import pytest
from support.golden_data import (
    GOLDEN,
    Loss,
    Losses,
    Truth,
    load_variant,
    open_decoder,
    reading_options,
    same,
    variant_names,
)
from support.golden_rows import (
    COMPRESSED,
    HANDLE_KEY_ONLY,
    LARGE,
    RAW,
    TYPES,
    Run,
    check_ddl_events,
    check_no_event_is_missing,
    check_value,
    decode_variant,
    handle_of,
    images_of,
    outline,
    table_of,
    true_outline,
)

from cdcfmt_core.events import (
    Column,
    Corrupt,
    Image,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
    TableSchemaEvent,
)
from cdcfmt_core.types import LogicalType, Text
from cdcfmt_simple.avro.message import AvroMessage, read_message
from cdcfmt_simple.avro.rows import read_cells
from cdcfmt_toolkit.large_messages import open_decompressor
from cdcfmt_toolkit.row_checksum import COUNTED

VARIANTS = {
    "simple-avro": [
        "checksum",
        "claim-check",
        "default",
        "handle-key-only",
        "raw-change-event",
        "snappy",
    ],
    "simple-json": [
        "checksum",
        "claim-check",
        "claim-check-raw-value",
        "default",
        "handle-key-only",
        "lz4",
        "raw-change-event",
        "snappy",
    ],
}
BOTH = [(protocol, name) for protocol, names in VARIANTS.items() for name in names]
SCENARIOS = {
    "claim-check": LARGE,
    "claim-check-raw-value": LARGE,
    "handle-key-only": LARGE,
    "lz4": COMPRESSED,
    "snappy": COMPRESSED,
    "raw-change-event": RAW,
}
"""The coverage of a variant; variants not listed cover everything."""

# --- What the wire does not carry ------------------------------------------------------

REPLACED_BYTES = [
    Loss(f"golden.{table}", column, "characters", "TiCDC writes U+FFFD for what is not UTF-8")
    for table, column in (
        ("bad_utf8", "v"),
        ("bad_utf8", "c"),
        ("bad_utf8", "t"),
        ("bad_latin1", "v"),
        ("bad_latin1", "t"),
    )
]
DATABASE_DDL = Loss("*", "*", "name", "TiCDC sends no name with a database's DDL, only SQL")
DISPLAY = [
    Loss("golden.all_types", column, "source type", "of FLOAT and DOUBLE the decimals are not sent")
    for column in ("c_float_md", "c_double_md")
]
ID_ORDER = Loss("*", "*", "column order", "TiCDC writes a table's columns in the order of ids")
EVERYWHERE = [DATABASE_DDL, *DISPLAY, ID_ORDER]


def losses_of(protocol: str, name: str) -> list[Loss]:
    listed = list(EVERYWHERE)
    if protocol == "simple-json":
        listed += REPLACED_BYTES
    if name == "handle-key-only":
        listed += HANDLE_KEY_ONLY
    return listed


@cache
def decoded(protocol: str, name: str) -> Run:
    return decode_variant(load_variant(protocol, name), losses_of(protocol, name))


@pytest.fixture(scope="module", params=BOTH, ids=lambda param: "-".join(param))
def whole(request: pytest.FixtureRequest) -> Run:
    """All messages; bootstraps have no event in the truth."""
    return decoded(*request.param)


@pytest.fixture
def run(whole: Run) -> Run:
    """The messages that have events in the truth."""
    return attrs.evolve(
        whole,
        decoded=tuple((message, events) for message, events in whole.decoded if message.truth),
    )


def test_variants() -> None:
    assert {protocol: variant_names(protocol) for protocol in VARIANTS} == VARIANTS


# --- Events ----------------------------------------------------------------------------


def test_events_equal_the_truth(run: Run) -> None:
    losses = run.losses()
    for message, events in run.decoded:
        (truth,), (event,) = message.truth, events
        assert truth["kind"] == message.kind
        assert event.index == 0
        expected = true_outline(truth)
        if outline(event) != expected:
            assert losses.covers(table_of(truth), "*", "name"), truth
            assert truth["table"] == ""
            assert outline(event) == ("ddl", None, "", "")
    if run.variant.name in ("checksum", "default", "lz4", "snappy"):
        losses.assert_all_seen("name")


def test_all_events_are_present(run: Run) -> None:
    check_no_event_is_missing(run, SCENARIOS.get(run.variant.name))


def test_positions(whole: Run) -> None:
    for message, events in whole.decoded:
        (event,) = events
        assert event.source_time is None
        assert event.emit_time is not None
        if isinstance(event, TableSchemaEvent):
            assert message.kind == "bootstrap"
            assert event.commit_ts is None
        else:
            (truth,) = message.truth
            assert event.commit_ts == truth["commit_ts"]
            assert event.emit_time >= (truth["commit_ts"] >> 18) * 1000


def test_ddl(run: Run) -> None:
    """Statements, and both schemas of each."""
    check_ddl_events(run, have_schemas=True)
    losses = run.losses()
    seen = 0
    for truth, event in run.events():
        if not isinstance(event, SchemaChange):
            continue
        without_previous = {"create schema", "modify schema charset and collate", "drop schema"}
        without_previous |= {"create table", "create view", "recover table"}
        assert (event.previous_table_schema is None) == (truth["ddl_type"] in without_previous)
        if event.table_schema is None:
            assert truth["table"] == ""
            assert event.extra is None
            continue
        assert event.extra is not None
        assert event.extra["table_id"] == event.extra["table_id"] > 0
        if truth["ddl_type"] in ("create view", "drop view", "drop table"):
            continue
        seen += 1
        columns = {column["name"]: column for column in truth["table_columns"]}
        assert event.table_schema.column_names == tuple(
            name for name in event.table_schema.column_names if name in columns
        )
        assert columns.keys() == set(event.table_schema.column_names)
        for column in event.table_schema.columns:
            _check_source_type(truth, column, columns[column.name]["type"], losses)
            assert column.nullable == columns[column.name]["nullable"]
    assert seen


def test_extras(run: Run) -> None:
    """Other fields are kept: ids, versions, checksums, the transport of a large message."""
    claims, handle_keys = set[str](), 0
    for truth, event in run.rows():
        extra = dict(event.extra or {})
        assert extra.pop("table_id") == truth["physical_table_id"]
        assert extra.pop("schema_version") == truth["schema_version"]
        if run.variant.claims is not None and (location := extra.pop("claim_check", None)):
            name = location.rpartition("/")[2]
            assert (run.variant.claims / name).is_file()
            claims.add(name)
        if run.variant.name == "handle-key-only" and extra:
            assert extra.pop("only_handle_key") is True
            handle_keys += 1
        if run.variant.name == "checksum":
            assert extra.pop("checksum").keys() == {"version", "corrupted", "current", "previous"}
        assert not extra
    run.check_claim_checks(claims)
    assert (handle_keys > 5) == (run.variant.name == "handle-key-only")


# --- Rows ------------------------------------------------------------------------------


def test_images(run: Run) -> None:
    """Each value of each image, and what is absent."""
    losses = run.losses()
    for truth, event in run.rows():
        for side, image in images_of(truth, event):
            assert image is not None
            _check_columns(truth, event, image, losses)
            for column in truth["columns"]:
                if column["name"] in image.values:
                    check_value(truth, column, side, image, losses)
    losses.assert_all_seen("columns", "characters")


def _check_columns(truth: Truth, event: RowChange, image: Image, losses: Losses) -> None:
    columns, handle = [column["name"] for column in truth["columns"]], handle_of(truth)
    reduced = bool(event.extra and event.extra.get("only_handle_key"))
    sent = handle if reduced else columns
    assert sorted(image.values) == sorted(sent)
    if reduced and len(sent) < len(columns):
        assert losses.covers(table_of(truth), "*", "columns"), truth
    assert image.complete == (not reduced)
    assert image.completed == ()


def test_table_schemas(run: Run) -> None:
    """Columns, keys, source types and logical types; one object for each schema."""
    losses = run.losses()
    known: dict[Any, TableSchema] = {}
    for truth, event in run.rows():
        true = {column["name"]: column for column in truth["columns"]}
        names = event.table.column_names
        image = event.after or event.before
        assert image is not None
        assert tuple(image.values) == names
        assert list(names) == sorted(names, key=lambda name: true[name]["id"])
        if list(names) != [name for name in true if name in names]:
            assert losses.covers(table_of(truth), "*", "column order")
        handle = handle_of(truth)
        assert sorted(event.table.key_columns) == sorted(handle)
        for column in event.table.columns:
            of_column = true[column.name]
            _check_source_type(truth, column, of_column["type"], losses)
            assert column.type == expected_type(of_column), column
            assert column.key == (column.name in handle)
            assert column.nullable == ("nullable" in of_column["flags"])
        key = (event.table.database, event.table.table, truth["schema_version"], names)
        assert known.setdefault(key, event.table) is event.table
    if run.variant.name == "default":
        losses.assert_all_seen("column order", "source type")
        used = {c["type"] for truth, _ in run.rows() for c in truth["columns"]}
        assert used == TYPES.keys()


def expected_type(column: Truth) -> LogicalType:
    logical = TYPES[column["type"]][2]
    return Text(column["charset"]) if isinstance(logical, Text) else logical


def _check_source_type(truth: Truth, column: Column, true: str, losses: Losses) -> None:
    if column.source_type != true:
        assert losses.covers(table_of(truth), column.name, "source type"), (column, true)
        assert true.startswith(("float(", "double("))
        assert column.source_type == true.partition("(")[0]


def test_bootstraps(whole: Run) -> None:
    """A table's schema as its rows have it, and the columns that no row has."""
    bootstraps = [event for _, (event,) in whole.decoded if isinstance(event, TableSchemaEvent)]
    schemas = {
        (event.table_schema.database, event.table_schema.table, _version(event)): event.table_schema
        for event in bootstraps
    }
    assert len(bootstraps) == sum(message.kind == "bootstrap" for message, _ in whole.decoded)
    assert bootstraps
    lacking: dict[str, set[str]] = {}
    rows = 0
    for _, (event,) in whole.decoded:
        if not isinstance(event, RowChange) or (event.extra or {}).get("only_handle_key"):
            continue
        schema = schemas.get((event.table.database, event.table.table, _version(event)))
        if schema is not None:
            rows += 1
            columns = {column.name: column for column in schema.columns}
            assert [columns[column.name] for column in event.table.columns] == [
                *event.table.columns
            ]
            assert schema.key_columns == event.table.key_columns
            if missing := columns.keys() - set(event.table.column_names):
                lacking[event.table.table] = missing
    assert rows
    if whole.variant.name == "default":
        # Virtual columns; those of expr_idx, which TiDB hides, are not sent.
        assert lacking == {"gen_cols": {"jv", "v"}, "virt_mid": {"v1", "v2"}}
        assert any(table == "expr_idx" for _, table, _ in schemas)


def _version(event: Any) -> int:
    version: int = event.extra["schema_version"]
    return version


# --- Both encodings, and the reference reader --------------------------------------------


@pytest.mark.parametrize(
    "name", sorted(set(VARIANTS["simple-json"]) & set(VARIANTS["simple-avro"]))
)
def test_both_encodings_are_equal(name: str) -> None:
    one, other = (decoded(protocol, name) for protocol in VARIANTS)
    compared = 0
    for (message, (first,)), (_, (second,)) in zip(one.decoded, other.decoded, strict=True):
        assert type(first) is type(second)
        if isinstance(first, RowChange) and isinstance(second, RowChange):
            assert first.table.columns == second.table.columns
            for image, of_other in ((first.before, second.before), (first.after, second.after)):
                if image is not None and not _lost_bytes(message.truth[0]):
                    assert of_other is not None
                    assert list(image.values) == list(of_other.values)
                    assert same(_without_floats(image.values), _without_floats(of_other.values))
                    assert image.complete == of_other.complete
                    compared += 1
    assert compared > 50


def _lost_bytes(truth: Truth) -> bool:
    return truth["table"] in ("bad_utf8", "bad_latin1")


def _without_floats(values: dict[str, Any]) -> dict[str, Any]:
    return {name: repr(v) if isinstance(v, float) else v for name, v in values.items()}


@cache
def avro_schema() -> Any:
    text = (GOLDEN / "ticdc/simple-avro/message.avsc").read_text(encoding="utf-8")
    return fastavro.parse_schema(json.loads(text))


@pytest.mark.parametrize("name", VARIANTS["simple-avro"])
def test_fastavro_agrees(name: str) -> None:
    """With the producer's own schema: the layout that the reader has as code is the wire's."""
    variant = load_variant("simple-avro", name)
    decompress = open_decompressor(variant.compression, 1 << 20)
    for message in variant.messages:
        assert message.value is not None
        data = decompress(message.value) if decompress else message.value
        stream = io.BytesIO(data)
        expected: Any = fastavro.schemaless_reader(
            stream, avro_schema(), None, handle_unicode_errors="surrogateescape"
        )
        assert stream.tell() == len(data)
        ours = read_message(data)
        payload = expected["payload"]
        if message.kind == "row":
            assert payload.pop("data") == _raw(ours, 0)
            assert payload.pop("old") == _raw(ours, 1)
            wire = {"claimCheckLocation": None, "handleKeyOnly": None, "checksum": None}
            assert wire | ours.wire == payload
        else:
            for field in ("tableSchema", "preTableSchema"):
                if payload.get(field):
                    # The name in JSON, which readers of schemas use.
                    payload[field]["schema"] = payload[field].pop("database")
            word = {"type": expected["type"]} if message.kind in ("watermark", "bootstrap") else {}
            assert ours.wire == payload | word


def _raw(message: AvroMessage, index: int) -> dict[str, Any] | None:
    """An image as fastavro has it: records are dictionaries, of UnsignedBigint, too."""
    cells = read_cells(message)[index]
    if cells is None:
        return None
    image = {name: value for name, (_, value) in cells.items()}
    unsigned = {
        column.name
        for _, (event,) in decoded("simple-avro", "default").decoded
        if isinstance(event, RowChange) and event.table.table == message.wire["table"]
        for column in event.table.columns
        if column.source_type.startswith("bigint") and column.source_type.endswith("unsigned")
    }
    return {
        name: {"value": value} if name in unsigned and value is not None else value
        for name, value in image.items()
    }


# --- Checksums ---------------------------------------------------------------------------

FALSE_ALARMS = {
    "simple-avro": {"golden.json_t"},
    "simple-json": {"golden.json_t", "golden.bad_utf8", "golden.bad_latin1"},
}
"""TiDB computes a JSON value's checksum before it writes the value as it is then read, and
says so (``corrupted``); JSON messages have lost the bytes that are not UTF-8."""


@pytest.mark.parametrize("protocol", VARIANTS)
def test_checksums(protocol: str) -> None:
    variant = load_variant(protocol, "checksum")
    counts: Counter[str] = Counter()
    options = reading_options(variant) | {"verifyChecksum": "true"}
    decoder = open_decoder(counts, **options)
    failing = open_decoder(**(options | {"verifyChecksum": "fail"}))
    verified, alarms, found = 0, set(), 0
    for golden in variant.messages:
        (event,), (strict,) = decoder.decode(golden.message), failing.decode(golden.message)
        if not isinstance(event, RowChange):
            assert type(strict) is type(event)
            continue
        (truth,) = golden.truth
        assert event.extra is not None
        assert event.extra["checksum"] == {"version": 2} | truth["checksum"]
        mismatch = event.extra.get("checksum_mismatch")
        if mismatch:
            alarms.add(table_of(truth))
            found += 1
            assert isinstance(strict, Corrupt)
            assert strict.error.field in ("checksum.current", "checksum.previous")
            assert "false alarm" in strict.error.reason
        else:
            assert isinstance(strict, RowChange)
            verified += bool(event.extra["checksum"]["current"] or truth["checksum"]["previous"])
    assert alarms == FALSE_ALARMS[protocol]
    assert verified > 230
    assert counts[COUNTED] == found


@pytest.mark.parametrize("protocol", VARIANTS)
def test_changed_value_changes_the_checksum(protocol: str) -> None:
    """Any changed bit of a value that still decodes is detected."""
    variant = load_variant(protocol, "checksum")
    decoder = open_decoder(**(reading_options(variant) | {"verifyChecksum": "true"}))
    changed = 0
    for golden in variant.messages:
        (event,) = decoder.decode(golden.message)
        value = golden.value
        if isinstance(event, RowChange) and event.table.table == "composite_pk":
            assert value is not None
            assert event.extra is not None
            assert "checksum_mismatch" not in event.extra
            place = value.find(b"one")
            if place > 0:
                forged = value[:place] + b"0ne" + value[place + 3 :]
                (event,) = decoder.decode(Message(None, forged))
                assert isinstance(event, RowChange)
                assert event.extra is not None
                assert len(event.extra["checksum_mismatch"]) >= 1
                changed += 1
    assert changed
