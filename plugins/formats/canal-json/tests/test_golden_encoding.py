"""Golden Canal-JSON messages, decoded and encoded: the bytes that TiCDC wrote.

Compressed and reduced messages, claim checks and files; the conformance kit
(plugins/formats/canal-json/tests) has all else.  Listed differences apart, a message is byte for
byte what the producer made of the event; only ``mysqlType``, whose order is random there, is
put into the order of the columns first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.golden_data import (
    GoldenMessage,
    Losses,
    Variant,
    load_variant,
    native_messages,
    open_decoder,
)
from support.golden_encoding import (
    DIGITS,
    check_none_left_out,
    decode_all,
    open_encoder,
    writing_options,
)

from cdcfmt_core.encoding import MessageEncoder
from cdcfmt_core.events import Event, Message, RowChange
from cdcfmt_toolkit.large_message_output import ClaimCheckWriter
from cdcfmt_toolkit.large_messages import ClaimCheckStore, open_decompressor

SOME = ["lz4", "snappy", "storage-txn"]
CLAIMS = ["claim-check", "claim-check-raw-value", "claim-check-lz4"]

_FRACTION = re.compile(r"(:[0-9]{2})(?:\.([0-9]{1,6}))?$")


def open_canal(variant: Variant, **more: Any) -> MessageEncoder:
    claims = more.pop("claim_checks", None)
    return open_encoder("canal-json", claim_checks=claims, **writing_options(variant) | more)


def documents(variant: Variant, golden: GoldenMessage) -> list[bytes]:
    """The JSON documents of a message, uncompressed."""
    value = golden.value
    assert value is not None
    decompress = open_decompressor(variant.compression, 1 << 30)
    if decompress is not None:
        value = decompress(value)
    return [value] if variant.name != "storage-txn" else value.rstrip(b"\r\n").split(b"\r\n")


def in_column_order(document: bytes) -> bytes:
    """The document with ``mysqlType`` in the order of ``sqlType``, the order of the columns."""
    wire = json.loads(document)
    types = wire["mysqlType"]
    if not types:
        return document

    def dumped(names: Any) -> bytes:
        return go_dumps({name: types[name] for name in names})

    assert document.count(dumped(types)) == 1
    return document.replace(dumped(types), dumped(wire["sqlType"]))


def go_dumps(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode()


def six_digits(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    return _FRACTION.sub(lambda m: f"{m[1]}.{(m[2] or '').ljust(6, '0')}", text)


def check_document(expected: bytes, actual: bytes, losses: Losses) -> None:
    expected = in_column_order(expected)
    if expected == actual:
        return
    wire, ours = json.loads(expected), json.loads(actual)
    table = f"{wire['database']}.{wire['table']}"
    for rows in ("data", "old"):
        for row, our_row in zip(wire[rows] or [], ours[rows] or [], strict=True):
            for name in row.keys() & our_row.keys():
                if row[name] != our_row[name]:
                    assert losses.covers(table, name, "digits"), (row[name], our_row[name])
                    assert six_digits(row[name]) == six_digits(our_row[name])
                    row[name] = our_row[name]
    assert go_dumps(wire) == go_dumps(ours)


def encoded(encoder: MessageEncoder, event: Event) -> bytes:
    (message,) = encoder.encode(event)
    assert message.key is None
    assert message.value is not None
    return message.value


@pytest.mark.parametrize("name", SOME)
def test_round_trip_yields_the_producers_bytes(name: str) -> None:
    variant = load_variant("canal-json", name)
    losses = Losses(DIGITS, map(".".join, variant.tables))
    encoder = open_canal(variant)
    decompress = open_decompressor(variant.compression, 1 << 30)
    count = 0
    for golden in variant.messages:
        expected = documents(variant, golden)
        parts = [golden.message] if len(expected) == 1 else [Message(None, d) for d in expected]
        for document, event in zip(expected, decode_all(variant, parts), strict=True):
            value = encoded(encoder, event)
            check_document(document, decompress(value) if decompress else value, losses)
            count += 1
    assert count >= len(variant.messages) > 10
    losses.assert_all_seen("digits")


def same_events(variant: Variant) -> Iterator[tuple[GoldenMessage, Event]]:
    """The messages of a variant, each with its complete event from another variant."""
    whole = load_variant("canal-json", "tidb-extension")
    by_seq = {golden.truth[0]["seq"]: golden.message for golden in whole.messages if golden.truth}
    for golden in variant.messages:
        (event,) = decode_all(whole, [by_seq[golden.truth[0]["seq"]]])
        yield golden, event


@pytest.mark.parametrize("name", ["handle-key-only"])
def test_oversized_rows_are_reduced_to_their_handle_key(name: str) -> None:
    variant = load_variant("canal-json", name)
    losses = Losses(DIGITS, map(".".join, variant.tables))
    encoder = open_canal(variant)
    reduced = 0
    for golden, event in same_events(variant):
        (document,) = documents(variant, golden)
        written = json.loads(document)["ts"] * 1000
        event.emit_time = written  # type: ignore[union-attr]
        value = encoded(encoder, event)
        check_document(document, value, losses)
        reduced += b'"onlyHandleKey":true' in value
    assert reduced > 5


@pytest.mark.parametrize("name", CLAIMS)
def test_oversized_rows_become_claim_checks(name: str, tmp_path: Path) -> None:
    variant = load_variant("canal-json", name)
    losses = Losses(DIGITS, map(".".join, variant.tables))
    raw = variant.config["large-message-handle"]["claim-check-raw-value"]
    writer = ClaimCheckWriter(str(tmp_path), raw_value=raw)
    encoder = open_canal(variant, claim_checks=writer)
    decompress = open_decompressor(variant.compression, 1 << 30) or bytes
    assert variant.claims is not None
    theirs, ours = (
        ClaimCheckStore(str(variant.claims)),
        ClaimCheckStore(str(tmp_path)),
    )
    checks = 0
    for golden in variant.messages:
        (event,) = decode_all(variant, [golden.message])
        (document,) = documents(variant, golden)
        value = decompress(encoded(encoder, event))
        location = json.loads(document).get("_tidb", {}).get("claimCheckLocation")
        if location is not None and b'"claimCheckLocation"' not in value:
            # Sizes differ between LZ4 libraries: a row at the limit may fit.
            assert variant.compression == "lz4"
            limit = variant.config["max-message-bytes"]
            assert len(encoded(encoder, event)) > 0.9 * limit
            continue
        if location is not None:
            checks += 1
            our_location = json.loads(value)["_tidb"]["claimCheckLocation"]
            value = value.replace(go_dumps(our_location), go_dumps(location))
            expected, actual = theirs.read(location, 1 << 20), ours.read(our_location, 1 << 20)
            assert expected[0] == actual[0] is None
            check_document(decompress(expected[1]), decompress(actual[1]), losses)
            # A claim check was written later than its file.
            value = re.sub(rb'"ts":[0-9]+', b'"ts":%d' % json.loads(document)["ts"], value, count=1)
        check_document(document, value, losses)
    assert checks == len(list(tmp_path.iterdir())) > 4


def test_all_variants_are_covered() -> None:
    check_none_left_out("canal-json", *SOME, *CLAIMS)


@pytest.mark.parametrize("name", ["canal_flat", "canal_flat_hash"])
def test_alibaba_canal(name: str) -> None:
    """Row by row, as Canal batches rows; the fields are in Canal's order."""
    encoder = open_encoder("canal-json", dialect="canal", sourceTimeZone="UTC")
    decoder = open_decoder(protocol="canal-json", sourceTimeZone="UTC")
    kinds: set[str] = set()
    for message in native_messages(f"canal/{name}"):
        if message.value is None:
            continue
        wire = json.loads(message.value)
        events = decoder.decode(message)
        for index, event in enumerate(events):
            if wire["data"] is not None:
                wire_row = wire | {"data": [wire["data"][index]]}
                wire_row["old"] = wire["old"] and [wire["old"][index]]
            else:
                wire_row = wire
            ours = json.loads(encoded(encoder, event))
            assert list(ours) == list(wire_row)
            if isinstance(event, RowChange):
                check_canal_row(wire_row, ours)
            assert ours == wire_row
            kinds.add(wire["type"])
    assert kinds >= {"INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "ERASE", "QUERY"}


def check_canal_row(wire: dict[str, Any], ours: dict[str, Any]) -> None:
    """Copy known differences, and assert that they have the same meaning."""
    for name, code in wire["sqlType"].items():
        if ours["sqlType"][name] != code:
            # One code serves all rows of Canal's message, whatever their values; that of a
            # SET's NULL is BLOB's.
            assert "unsigned" in wire["mysqlType"][name] or code == 2004
            ours["sqlType"][name] = code
    for rows in ("data", "old"):
        for row, our_row in zip(wire[rows] or [], ours[rows] or [], strict=True):
            for name in list(row):
                if rows == "old" and name not in our_row:
                    # Canal's updateSet also holds the columns changed by earlier rows.
                    assert row[name] == wire["data"][0][name]
                    del row[name]
                    continue
                theirs, mine, type_ = row[name], our_row[name], wire["mysqlType"][name]
                if theirs == mine:
                    continue
                if type_.startswith("binary"):
                    assert mine.rstrip("\0") == theirs
                elif type_ in ("float", "double"):
                    assert float(mine) == float(theirs)
                else:
                    assert (type_, theirs) == ("year(4)", "0000")
                row[name] = mine
