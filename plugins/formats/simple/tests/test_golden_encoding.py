"""Golden Simple messages, decoded and encoded: TiCDC's bytes, in JSON and in Avro.

Compressed and reduced messages, claim checks, and repeated schemas; the conformance kit
(plugins/formats/simple/tests) has all else.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import pytest
from simple_wire import read_wire
from support.golden_data import (
    GoldenMessage,
    Loss,
    Losses,
    Variant,
    load_variant,
    open_decoder,
    reading_options,
    scan_schemas,
)
from support.golden_encoding import check_none_left_out, open_encoder, writing_options

from cdcfmt_core import opening, types
from cdcfmt_core.encoding import MessageEncoder
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import (
    Column,
    Corrupt,
    Event,
    Image,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
    TableSchemaEvent,
    Watermark,
)
from cdcfmt_core.types import Geometry, Int, Text, Timestamp, Unknown
from cdcfmt_simple.encode import Bootstraps
from cdcfmt_simple.table_schemas import WireTable
from cdcfmt_toolkit.large_message_output import ClaimCheckWriter
from cdcfmt_toolkit.large_messages import ClaimCheckStore, open_decompressor

# Go escapes only the U+FFFD that replaces invalid bytes; both decode to the same text.
REPLACED = [
    Loss(f"golden.{table}", column, "escape", r"TiCDC wrote \ufffd")
    for table, column in (("bad_utf8", "*"), ("bad_latin1", "*"))
]
COMPRESSED = [("simple-avro", "snappy"), ("simple-json", "lz4"), ("simple-json", "snappy")]

CLAIMS = [
    ("simple-avro", "claim-check"),
    ("simple-json", "claim-check"),
    ("simple-json", "claim-check-raw-value"),
]


def test_all_variants_are_covered() -> None:
    for protocol in ("simple-avro", "simple-json"):
        check_none_left_out(protocol, *(name for p, name in COMPRESSED + CLAIMS if p == protocol))


def simple(variant: Variant, **more: Any) -> MessageEncoder:
    claims = more.pop("claim_checks", None)
    return open_encoder("simple", claim_checks=claims, **writing_options(variant) | more)


@cache
def decoded(protocol: str, name: str) -> list[tuple[GoldenMessage, list[Event]]]:
    variant = load_variant(protocol, name)
    options = reading_options(variant)
    schemas = scan_schemas((golden.message for golden in variant.messages), **options)
    decoder = open_decoder(schemas=schemas, **options)
    result = [(golden, list(decoder.decode(golden.message))) for golden in variant.messages]
    assert not any(isinstance(event, Corrupt) for _, events in result for event in events)
    return result


def encoded(encoder: MessageEncoder, events: list[Event]) -> Message:
    (message,) = [message for event in events for message in encoder.encode(event)]
    assert message.key is None
    return message


def check_message(variant: Variant, golden: bytes, actual: bytes, losses: Losses) -> None:
    """The same bytes, or the same JSON in the same order, or the same datum; but for ``losses``."""
    if golden == actual:
        return
    decompress = open_decompressor(variant.compression, 1 << 30) or bytes
    expected, wire = (read_wire(decompress(v)) for v in (golden, actual))
    assert list(expected) == list(wire)
    for field in ("tableSchema", "preTableSchema"):
        assert list(expected.get(field) or ()) == list(wire.get(field) or ())
    if expected == wire:
        in_avro = variant.protocol == "simple-avro"
        compressed_anew = decompress(golden) == decompress(actual)
        if not in_avro and not compressed_anew and "table" in wire:
            assert losses.covers(f"{wire['database']}.{wire['table']}", "*", "escape")
            for field in ("data", "old"):
                # Go sorts them.
                assert list(expected.get(field) or ()) == list(wire.get(field) or ())
        return
    raise AssertionError((expected, wire))


@pytest.mark.parametrize(("protocol", "name"), COMPRESSED)
def test_round_trip_yields_the_producers_messages(protocol: str, name: str) -> None:
    """Schemas of DDL and bootstraps in the stream are not written again."""
    variant = load_variant(protocol, name)
    listed = REPLACED if protocol == "simple-json" else []
    losses = Losses(listed, map(".".join, variant.tables))
    encoder = simple(variant)
    for golden, events in decoded(protocol, name):
        message = encoded(encoder, events)
        assert golden.value is not None
        assert message.value is not None
        check_message(variant, golden.value, message.value, losses)
    losses.assert_all_seen("escape")


@pytest.mark.parametrize("protocol", ["simple-avro", "simple-json"])
def test_oversized_rows_are_reduced_to_their_handle_key(protocol: str) -> None:
    variant = load_variant(protocol, "handle-key-only")
    losses = Losses(REPLACED, map(".".join, variant.tables))
    encoder = simple(variant)
    whole = rows_of(protocol)
    reduced = 0
    for golden, events in decoded(protocol, "handle-key-only"):
        if golden.kind == "row":
            (truth,) = golden.truth
            (cut,) = events
            assert isinstance(cut, RowChange)
            events = [attrs.evolve(whole[truth["seq"]], emit_time=cut.emit_time)]
        message = encoded(encoder, events)
        check_message(variant, golden.value or b"", message.value or b"", losses)
        reduced += bool(read_wire(message.value or b"").get("handleKeyOnly"))
    assert reduced > 5


def rows_of(protocol: str) -> dict[int, RowChange]:
    """The whole rows by their place in the truth."""
    return {
        golden.truth[0]["seq"]: event
        for golden, (event,) in decoded(protocol, "default")
        if isinstance(event, RowChange)
    }


@pytest.mark.parametrize(("protocol", "name"), CLAIMS)
def test_oversized_rows_become_claim_checks(protocol: str, name: str, tmp_path: Path) -> None:
    variant = load_variant(protocol, name)
    losses = Losses(REPLACED, map(".".join, variant.tables))
    raw = variant.config["large-message-handle"]["claim-check-raw-value"]
    writer = ClaimCheckWriter(str(tmp_path), raw_value=raw)
    encoder = simple(variant, claim_checks=writer)
    assert variant.claims is not None
    theirs = ClaimCheckStore(str(variant.claims))
    ours = ClaimCheckStore(str(tmp_path))
    checks = 0
    for golden, events in decoded(protocol, name):
        message = encoded(encoder, events)
        assert golden.value is not None
        assert message.value is not None
        wires = [read_wire(value) for value in (golden.value, message.value)]
        if not wires[0].get("claimCheckLocation"):
            check_message(variant, golden.value, message.value, losses)
            continue
        checks += 1
        files = []
        for wire, store in zip(wires, (theirs, ours), strict=True):
            _, value = store.read(wire.pop("claimCheckLocation"), 1 << 24)
            files.append(value)
            wire.pop("buildTs")
        assert wires[0] == wires[1]
        assert wires[0]["handleKeyOnly"] is True
        check_message(variant, files[0] or b"", files[1] or b"", losses)
    assert checks == len(list(tmp_path.iterdir())) > 4


NORMALISED_LATER = {("json_t", "current")}
FALSE_ALARMS = {
    "simple-avro": NORMALISED_LATER,
    # Of text that the wire has lost.
    "simple-json": NORMALISED_LATER
    | {(table, field) for table in ("bad_utf8", "bad_latin1") for field in ("current", "previous")},
}
"""docs/formats/simple.md, "Checksums"."""


@pytest.mark.parametrize("protocol", ["simple-avro", "simple-json"])
def test_checksums_are_computed_as_the_producer_does(protocol: str) -> None:
    """Checksums are removed and computed again; the producer's false alarms are listed."""
    variant = load_variant(protocol, "checksum")
    encoder = simple(variant)
    differing = set()
    rows = 0
    for _, (event,) in decoded(protocol, "checksum"):
        if not isinstance(event, RowChange):
            continue
        extra = dict(event.extra or {})
        checksum = extra.pop("checksum", None)
        if checksum is None:
            continue
        rows += 1
        message = encoder.encode(attrs.evolve(event, extra=extra))[-1]
        wire = read_wire(message.value or b"")
        wire_checksum = wire["checksum"]
        for field in ("current", "previous"):
            if wire_checksum[field] != checksum[field] and checksum[field]:
                differing.add((event.table.table, field))
    assert rows > 100
    assert differing == FALSE_ALARMS[protocol]


# Bootstraps

COLUMNS = (Column("id", "int", Int(32), key=True), Column("name", "varchar(20)", Text()))
ORDERS = TableSchema("shop", "orders", COLUMNS, key_columns=("id",))


def order(number: int, schema: TableSchema = ORDERS, **more: Any) -> RowChange:
    values: dict[str, Any] = dict.fromkeys(schema.column_names, None) | {"id": number}
    return RowChange("insert", schema, None, Image(values), commit_ts=number << 18, **more)


def types_of(messages: list[Message]) -> list[str]:
    return [json.loads(message.value or b"")["type"] for message in messages]


def test_schema_precedes_its_first_row() -> None:
    encoder = open_encoder("simple")
    assert types_of(encoder.encode(order(1))) == ["BOOTSTRAP", "INSERT"]
    assert types_of(encoder.encode(order(2))) == ["INSERT"]
    # The same columns are the same version, as another object and after a restart, too.
    again = attrs.evolve(ORDERS)
    assert types_of(encoder.encode(order(3, again))) == ["INSERT"]
    first, _ = open_encoder("simple").encode(order(4))
    other, row = open_encoder("simple").encode(order(5, again))
    version = json.loads(row.value or b"")["schemaVersion"]
    assert 0 < version < 1 << 63
    for bootstrap in (first, other):
        assert json.loads(bootstrap.value or b"")["tableSchema"]["version"] == version
    changed = attrs.evolve(ORDERS, columns=(*COLUMNS, Column("more", "int", Int(32))))
    assert types_of(encoder.encode(order(6, changed))) == ["BOOTSTRAP", "INSERT"]
    assert types_of(encoder.encode(order(7))) == ["INSERT"]


def test_schema_of_other_messages_is_not_repeated() -> None:
    encoder = open_encoder("simple")
    ddl = SchemaChange(
        "create table orders (…)", "CREATE", "shop", "orders", table_schema=ORDERS, commit_ts=1
    )
    assert types_of(encoder.encode(ddl)) == ["CREATE"]
    assert types_of(encoder.encode(order(1))) == ["INSERT"]
    # Generated columns are in the schema and in no row.
    schema_event = TableSchemaEvent(ORDERS, extra={"schema_version": 7, "table_id": 3})
    assert types_of(encoder.encode(schema_event)) == ["BOOTSTRAP"]
    rows = attrs.evolve(ORDERS, columns=COLUMNS[:1])
    assert types_of(encoder.encode(order(2, rows, extra={"schema_version": 7}))) == ["INSERT"]
    other = attrs.evolve(ORDERS, columns=(*COLUMNS, Column("more", "int", Int(32))))
    messages = encoder.encode(order(3, other, extra={"schema_version": 7}))
    assert types_of(messages) == ["BOOTSTRAP", "INSERT"]


def test_unwritable_row_leaves_its_schema_to_the_next_row() -> None:
    encoder = open_encoder("simple")
    bad = order(1)
    bad.after = Image({"id": "one", "name": None})
    with pytest.raises(EncodeError, match="not a value of the column's type"):
        encoder.encode(bad)
    assert types_of(encoder.encode(order(2))) == ["BOOTSTRAP", "INSERT"]


def test_schemas_are_repeated_by_count_and_time() -> None:
    encoder = open_encoder("simple", sendBootstrapInMsgCount=2, sendBootstrapIntervalInSec=0)
    counts = [len(encoder.encode(order(number))) for number in range(1, 7)]
    assert counts == [2, 1, 2, 1, 2, 1]
    codec_encoder = Bootstraps(1_000_000, 0, iter([0, 999_999, 1_000_000, 1_000_000, 1]).__next__)
    state = codec_encoder.note(WireTable(ORDERS, 7))
    assert not codec_encoder.is_due(state)
    assert codec_encoder.is_due(state)


def test_each_partition_gets_the_schemas_of_its_rows() -> None:
    encoder = open_encoder("simple", partitions=3)
    messages = [m for number in range(1, 31) for m in encoder.encode(order(number))]
    for partition in range(3):
        own = [message for message in messages if message.partition == partition]
        types = types_of(own)
        assert types[0] == "BOOTSTRAP"
        assert set(types[1:]) == {"INSERT"}
    watermarks = encoder.encode(Watermark(1 << 40))
    assert [message.partition for message in watermarks] == [0, 1, 2]


# Unwritable events


@pytest.mark.parametrize("encoding", ["avro", "json"])
def test_unwritable_events_are_errors(encoding: str) -> None:
    def write(column: Column, value: Any, **options: Any) -> list[Message]:
        schema = TableSchema("shop", "t", (column,), ())
        event = RowChange("insert", schema, None, Image({column.name: value}), commit_ts=1)
        return open_encoder("simple", encodingFormat=encoding, **options).encode(event)

    with pytest.raises(EncodeError, match="has no geometry"):
        write(Column("g", "point", Geometry()), None)
    with pytest.raises(EncodeError, match="is not known"):
        write(Column("u", "money", Unknown("money")), "1")
    with pytest.raises(EncodeError, match=r"shop\.t.*column i"):
        write(Column("i", "tinyint", Int(8)), 200)
    with pytest.raises(EncodeError, match="no key columns to cut the row down to"):
        write(
            Column("t", "text", Text()),
            "x" * 2_000,
            maxMessageBytes="1000",
            largeMessageHandleOption="handle-key-only",
        )
    with pytest.raises(EncodeError, match="no commit_ts, and no source time"):
        open_encoder("simple", encodingFormat=encoding).encode(
            RowChange("insert", ORDERS, None, Image({"id": 1, "name": "a"}))
        )


@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_decimals_without_declared_digits_are_exact(encoding: str) -> None:
    """PostgreSQL's numeric has more digits than any type of MySQL."""
    columns = (Column("id", "int", Int(32), key=True), Column("n", "decimal", types.Decimal()))
    table = TableSchema("shop", "prices", columns, ("id",))
    encoder = opening.open_encoder("simple", {"encodingFormat": encoding})
    decode = opening.open_decoder("simple")
    for number in (Decimal(10) ** 80 + 1, Decimal("0." + "3" * 50), Decimal(7)):
        row = RowChange(
            *("insert", table, None, Image({"id": 1, "n": number})),
            commit_ts=446_000_000_000_000_000,
            source_time=1_700_000_000_000_000,
        )
        found = [event for message in encoder.encode(row) for event in decode.decode(message)]
        assert isinstance(found[-1], RowChange)
        assert found[-1].after == row.after


def test_zones_without_a_name_are_written_as_utc() -> None:
    column = Column("t", "timestamp", Timestamp())
    event = RowChange(
        "insert",
        TableSchema("shop", "t", (column,), ()),
        None,
        Image({"t": datetime(2024, 1, 1, tzinfo=UTC)}),
        commit_ts=1,
    )
    for zone, location in (("+08:00", "UTC"), ("Asia/Shanghai", "Asia/Shanghai")):
        _, row = open_encoder("simple", sourceTimeZone=zone).encode(event)
        cell = json.loads(row.value or b"")["data"]["t"]
        assert cell["location"] == location
        assert cell["value"] == (
            "2024-01-01 00:00:00" if location == "UTC" else "2024-01-01 08:00:00"
        )
