"""TiCDC's Avro against the truth: every event, column, value and type."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

import attrs
import pytest
from support.framed_data import Decoder, framed_decoder, framed_messages, golden_schemas
from support.golden_data import GOLDEN, SOURCE_ZONE, Truth, python_value, read_jsonl, same
from support.golden_rows import DDL_TYPES
from support.schema_registry import offline_registry

from cdcfmt_core import open_decoder
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Event, Image, Message, RowChange, SchemaChange, Watermark
from cdcfmt_core.registry import default_registry
from cdcfmt_core.types import Bit, Decimal, Enum, Int, LogicalType, Set, Text
from cdcfmt_mysql import resolve_type
from cdcfmt_toolkit.row_checksum import COUNTED

ROOT = "ticdc_avro/avro"
VARIANTS = sorted(path.name for path in (GOLDEN / ROOT).iterdir())

# --- What the wire does not carry ------------------------------------------------------

RENAMED = {"ddl_db.t1_renamed": "t1", "ddl_db.t2_r2": "t2_renamed"}
"""In a shared topic, rows after RENAME TABLE still name the old table."""

UNSELECTED = "c"
"""The column that ``column-selector`` leaves out of every table."""


@attrs.frozen
class Wire:
    """A message, its events, and its truth."""

    message: Message
    kind: str
    truth: tuple[Truth, ...]
    events: tuple[Event, ...]
    error: DecodeError | None


@attrs.frozen
class Run:
    """A variant and the events of each of its messages."""

    name: str
    config: dict[str, Any]
    wires: tuple[Wire, ...]
    decoder: Decoder

    @property
    def has_extension(self) -> bool:
        return bool(self.config["enable-tidb-extension"])

    @property
    def has_before(self) -> bool:
        return bool(self.config["avro-include-before-value"])

    def rows(self) -> Iterator[tuple[Truth, RowChange]]:
        for wire in self.wires:
            for truth, event in zip(wire.truth, wire.events, strict=False):
                if isinstance(event, RowChange):
                    yield truth, event


def decode_variant(name: str, **options: Any) -> Run:
    folder = f"{ROOT}/{name}"
    meta = json.loads((GOLDEN / folder / "meta.json").read_text(encoding="utf-8"))
    truth = {each["seq"]: each for each in read_jsonl(f"ticdc_avro/{meta['truth']}")}
    decoder = framed_decoder(
        "ticdc-avro", folder, source_time_zone=ZoneInfo(SOURCE_ZONE), **options
    )
    wires = []
    lines = read_jsonl(f"{folder}/messages.jsonl.gz")
    for line, message in zip(lines, framed_messages(folder), strict=True):
        error, events = None, ()
        try:
            events = tuple(decoder.decode(message))
        except DecodeError as caught:
            error = caught
        true = tuple(truth[seq] for seq in line["events"])
        wires.append(Wire(message, line["type"], true, events, error))
    return Run(name, meta["config"], tuple(wires), decoder)


@pytest.fixture(scope="module", params=VARIANTS)
def run(request: pytest.FixtureRequest) -> Run:
    return decode_variant(request.param)


def own_name(name: str) -> str:
    """A name as Avro has it."""
    adjusted = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return "_" + adjusted if adjusted[:1].isdigit() else adjusted


def table_of(truth: Truth) -> str:
    return f"{truth['schema']}.{truth['table']}"


def primary_key(truth: Truth) -> list[str]:
    return [own_name(column["name"]) for column in truth["columns"] if "pk" in column["flags"]]


def test_events_equal_the_truth(run: Run) -> None:
    for wire in run.wires:
        (truth,) = wire.truth
        if wire.error is not None:
            assert truth["op"] == "delete"
            assert not primary_key(truth)
            assert not run.has_before
            assert "a delete without key" in str(wire.error)
            continue
        (event,) = wire.events
        assert event.index == 0
        if isinstance(event, RowChange):
            assert truth["kind"] == wire.kind == "row"
            table = truth["table"]
            if run.name == "single-topic" and event.table.table != own_name(table):
                table = RENAMED[table_of(truth)]
            assert event.table.database == own_name(truth["schema"])
            assert event.table.table == own_name(table)
            assert event.table.schema is None
            assert event.op == _true_op(run, truth)
        elif isinstance(event, SchemaChange):
            assert truth["kind"] == wire.kind == "ddl"
            assert (event.database, event.table) == (truth["schema"], truth["table"])
            assert event.query == truth["query"]
            assert event.ddl_type == DDL_TYPES[truth["ddl_type"]]
        else:
            assert isinstance(event, Watermark)
            assert truth["kind"] == wire.kind == "watermark"


def _true_op(run: Run, truth: Truth) -> str:
    known = run.has_extension or run.has_before or truth["op"] == "delete"
    return str(truth["op"]) if known else "upsert"


def test_positions(run: Run) -> None:
    """Rows with the extension have a commit_ts; a tombstone, or a row beside tombstones, none."""
    for wire in run.wires:
        for truth, event in zip(wire.truth, wire.events, strict=False):
            tso = (event.extra or {}).get("commit_ts") or event.commit_ts
            if wire.kind == "row":
                assert (event.commit_ts is not None) == (run.has_before and run.has_extension)
            if wire.kind == "row" and (wire.message.value is None or not run.has_extension):
                assert tso is None
                assert event.source_time is None
            else:
                assert tso == truth["commit_ts"]
                if not isinstance(event, Watermark):
                    assert event.source_time == (tso >> 18) * 1000


def test_keys_and_columns(run: Run) -> None:
    types = 0
    for truth, event in run.rows():
        keys = primary_key(truth)
        true = {own_name(column["name"]): column for column in truth["columns"]}
        assert sorted(event.table.key_columns) == sorted(keys)
        for column in event.table.columns:
            assert column.key == (column.name in keys)
            if column.name not in true:
                assert column.name in map(own_name, truth.get("virtual_columns", ()))
                continue
            flags = true[column.name]["flags"]
            assert column.nullable == ("nullable" in flags), (column, true[column.name])
            text, logical = _expected_type(run, true[column.name]["type"])
            assert (column.source_type, column.type) == (text, logical)
            types += 1
    assert types > 50


def _expected_type(run: Run, type_: str) -> tuple[str, LogicalType]:
    full = resolve_type(type_)
    base = type_.partition("(")[0].partition(" ")[0]
    if isinstance(full, Int):
        text = "bigint" if full.bits == 64 else "int"
        text += "" if full.signed else " unsigned"
    elif isinstance(full, Bit | Enum | Set):
        return type_.replace("bit(4)", "bit(4)"), full
    elif isinstance(full, Decimal):
        precise = run.config["avro-decimal-handling-mode"] == "precise"
        text = type_.partition(" ")[0] if precise else "decimal"
    elif isinstance(full, Text):
        text = "text"
    elif base.endswith(("binary", "blob")):
        text = "blob"
    else:
        text = base
    logical = resolve_type(text)
    assert logical is not None
    return text, logical


def test_images(run: Run) -> None:
    """Each value of each image, and the presence of images."""
    cells = 0
    for truth, event in run.rows():
        sides = {"old": event.before, "new": event.after}
        for side, image in sides.items():
            exists = any(side in column for column in truth["columns"])
            if side == "old" and truth["op"] == "update" and not run.has_before:
                exists = False
            assert (image is not None) == exists
            if image is not None:
                cells += _check_image(run, truth, side, image, event)
    assert cells > 50


def _check_image(run: Run, truth: Truth, side: str, image: Image, event: RowChange) -> int:
    tombstone = truth["op"] == "delete" and not run.has_before
    assert image.complete == (not tombstone)
    assert not image.completed
    hidden = UNSELECTED if run.name == "column-selector" else ""
    true = {own_name(c["name"]): c for c in truth["columns"] if c["name"] != hidden}
    virtual = set(map(own_name, truth.get("virtual_columns", ())))
    if tombstone:
        assert list(image.values) == list(event.table.key_columns)
    else:
        assert true.keys() | virtual == image.values.keys()
    for name, value in image.values.items():
        if name in true:
            expected = python_value(true[name][side])
            assert same(expected, value), (truth["seq"], table_of(truth), true[name], value)
        else:
            # A virtual generated column is always null, and nothing marks it.
            assert value is None
    return len(image.values)


def test_every_message_and_schema_is_recognised(run: Run) -> None:
    codec = default_registry().get_codec("ticdc-avro")
    for wire in run.wires:
        value = wire.message.value
        is_delete = value is not None and value[:1] == b"\x03" and len(value) == 9
        if wire.kind != "row" or (is_delete and wire.message.key is not None):
            assert codec.sniff(wire.message) >= 0.5
        else:
            assert codec.sniff(wire.message) == 0
    assert codec.sniff_schema is not None
    for schema in golden_schemas(f"{ROOT}/{run.name}").by_id.values():
        assert codec.sniff_schema(schema) >= 0.5


# --- Checksums ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def verified() -> Run:
    return decode_variant("checksum", verifyChecksum="true")


def test_checksums_equal_the_truth(verified: Run) -> None:
    seen = 0
    for truth, event in verified.rows():
        if truth["op"] == "delete":
            assert event.extra is None
            continue
        true = truth["checksum"]
        assert event.extra is not None
        assert event.extra["checksum"] == {
            "version": true["version"],
            "corrupted": true["corrupted"],
            "current": true["current"],
        }
        mismatch = event.extra.get("checksum_mismatch")
        ids = [column["id"] for column in truth["columns"]]
        # A column that was added with FIRST or AFTER: TiCDC sums in another order.
        assert (mismatch is None) == (ids == sorted(ids)), table_of(truth)
        seen += mismatch is not None
    assert 0 < seen == verified.decoder.counts[COUNTED]


def test_a_changed_byte_is_found() -> None:
    folder = f"{ROOT}/checksum"
    decoder = framed_decoder(
        "ticdc-avro", folder, source_time_zone=ZoneInfo(SOURCE_ZONE), verifyChecksum="fail"
    )
    message = next(m for m in framed_messages(folder) if m.value and "bytes_t" in str(m.topic))
    assert list(decoder.decode(message))
    assert message.value is not None
    # The id of the row is the first byte after the header.
    changed = message.value[:5] + bytes([message.value[5] + 2]) + message.value[6:]
    with pytest.raises(DecodeError, match="FIRST or AFTER"):
        decoder.decode(attrs.evolve(message, value=changed))


@pytest.mark.parametrize("name", ["default", "tidb-extension"])
def test_a_delete_may_be_the_first_message_under_auto(name: str) -> None:
    """It has no value: the writer schema of its key shows the format."""
    folder = f"ticdc_avro/avro/{name}"
    deletes = [each for each in framed_messages(folder) if each.value is None and each.key]
    assert len(deletes) > 20
    with offline_registry(folder) as server:
        given = {"schema.registry.url": server.url, "sourceTimeZone": "UTC"}
        for message in deletes:
            (event,) = open_decoder("auto", given).decode(message)
            (named,) = open_decoder("ticdc-avro", given).decode(message)
            assert repr(event) == repr(named)
            assert isinstance(event, RowChange)
            assert event.op == "delete"
