"""Golden Open Protocol messages, decoded and encoded: the bytes that TiCDC wrote.

Compressed and reduced messages, and claim checks; the conformance kit
(plugins/formats/open-protocol/tests) has all else.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support import naive_open_protocol
from support.golden_data import GoldenMessage, Loss, Losses, Variant, load_variant
from support.golden_encoding import (
    DIGITS,
    check_none_left_out,
    decode_all,
    open_encoder,
    writing_options,
)

from cdcfmt_core.encoding import MessageEncoder
from cdcfmt_core.events import Event, Message
from cdcfmt_toolkit.large_message_output import ClaimCheckWriter
from cdcfmt_toolkit.large_messages import ClaimCheckStore, open_decompressor

# Go escapes only the U+FFFD that replaces invalid bytes; both decode to the same text.
REPLACED = [
    Loss(f"golden.{table}", column, "escape", r"TiCDC wrote \ufffd")
    for table, column in (("bad_utf8", "c"), ("bad_utf8", "v"), ("bad_latin1", "v"))
]
_FRACTION = re.compile(r"(:[0-9]{2})(?:\.([0-9]{1,6}))?$")


def open_protocol(variant: Variant, **more: Any) -> MessageEncoder:
    claims = more.pop("claim_checks", None)
    return open_encoder("open-protocol", claim_checks=claims, **writing_options(variant) | more)


def encoded(encoder: MessageEncoder, events: list[Event]) -> Message:
    messages = [message for event in events for message in encoder.encode(event)]
    (message,) = messages + encoder.flush()
    return message


def six_digits(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return _FRACTION.sub(lambda m: f"{m[1]}.{(m[2] or '').ljust(6, '0')}", value)


def check_message(
    golden: GoldenMessage | Message, message: Message, losses: Losses, compression: str = "none"
) -> None:
    """The same bytes, except for the listed differences; compressed values may differ."""
    assert message.key == golden.key
    assert golden.key is not None
    assert golden.value is not None
    assert message.value is not None
    if golden.value == message.value:
        return
    decompress = open_decompressor(compression, 1 << 30) or bytes
    theirs, ours = (naive_open_protocol.cut(value) for value in (golden.value, message.value))
    keys = naive_open_protocol.cut(golden.key[8:])
    for key, their_value, our_value in zip(keys, theirs, ours, strict=True):
        wire, written = json.loads(key), (their_value, our_value)
        if wire["t"] != 3:
            written = (decompress(their_value), decompress(our_value))
        if written[0] != written[1]:
            check_row(f"{wire['scm']}.{wire['tbl']}", *written, losses)


def check_row(table: str, expected: bytes, actual: bytes, losses: Losses) -> None:
    wire, ours = json.loads(expected), json.loads(actual)
    assert list(wire) == list(ours)
    for part in wire:
        assert list(wire[part]) == list(ours[part])
        for name, cell in wire[part].items():
            if cell == ours[part][name]:
                if "\ufffd" in str(cell["v"]):
                    assert losses.covers(table, name, "escape")
                continue
            assert losses.covers(table, name, "digits"), (cell, ours[part][name])
            assert cell | {"v": six_digits(cell["v"])} == ours[part][name] | {
                "v": six_digits(ours[part][name]["v"])
            }


CLAIMS = ["claim-check", "claim-check-snappy"]
SOME = ["lz4", "snappy"]


@pytest.mark.parametrize("name", SOME)
def test_round_trip_yields_the_producers_bytes(name: str) -> None:
    variant = load_variant("open", name)
    losses = Losses(DIGITS + REPLACED, map(".".join, variant.tables))
    # One message is one batch of TiCDC's, which also ended where it flushed.
    encoder = open_protocol(variant)
    for golden in variant.messages:
        events = decode_all(variant, [golden.message])
        check_message(golden, encoded(encoder, events), losses, variant.compression)
    losses.assert_all_seen("digits", "escape")


def test_all_variants_are_covered() -> None:
    check_none_left_out("open", *SOME, *CLAIMS)


def test_batches_end_by_count_and_size_like_the_producers() -> None:
    for name in ("batched", "batched-4k"):
        variant = load_variant("open", name)
        encoder = open_protocol(variant)
        sizes = []
        for golden in variant.messages:
            for event in decode_all(variant, [golden.message]):
                sizes += [len(m.key or b"") for m in encoder.encode(event)]
        sizes += [len(m.key or b"") for m in encoder.flush()]
        counted = [message.kind for message in variant.messages]
        # TiCDC also begins a batch at each flush; this encoder only at DDL and watermarks.
        assert len(sizes) <= len(counted)
        assert sum(sizes) <= sum(len(m.key or b"") for m in variant.messages)


def same_events(variant: Variant) -> list[tuple[GoldenMessage, list[Event]]]:
    """The messages of a variant, each with its complete events from another variant."""
    whole = load_variant("open", "default")
    by_seq = {golden.truth[0]["seq"]: golden.message for golden in whole.messages if golden.truth}
    return [
        (golden, decode_all(whole, [by_seq[truth["seq"]] for truth in golden.truth]))
        for golden in variant.messages
    ]


def test_oversized_rows_are_reduced_to_their_handle_key() -> None:
    variant = load_variant("open", "handle-key-only")
    losses = Losses(DIGITS + REPLACED, map(".".join, variant.tables))
    encoder = open_protocol(variant)
    reduced = 0
    for golden, events in same_events(variant):
        message = encoded(encoder, events)
        check_message(golden, message, losses)
        reduced += b'"ohk":true' in (message.key or b"")
    assert reduced > 5


@pytest.mark.parametrize("name", CLAIMS)
def test_oversized_rows_become_claim_checks(name: str, tmp_path: Path) -> None:
    """Event by event: locations differ in length, and so do batches."""
    variant = load_variant("open", name)
    losses = Losses(DIGITS + REPLACED, map(".".join, variant.tables))
    encoder = open_protocol(variant, claim_checks=ClaimCheckWriter(str(tmp_path)))
    assert variant.claims is not None
    theirs = ClaimCheckStore(str(variant.claims))
    ours = ClaimCheckStore(str(tmp_path))
    checks = fitting = 0
    for golden in variant.messages:
        for part, event in zip(
            events_of(golden.message), decode_all(variant, [golden.message]), strict=True
        ):
            message = encoded(encoder, [event])
            their_key, our_key = event_key(part), event_key(message)
            if "ccl" not in their_key:
                check_message(part, message, losses, variant.compression)
            elif "ccl" not in our_key:
                # Sizes differ between snappy libraries: a row at the limit may fit.
                assert variant.compression == "snappy"
                fitting += 1
            else:
                claims = (
                    theirs.read(their_key.pop("ccl"), 1 << 20),
                    ours.read(our_key.pop("ccl"), 1 << 20),
                )
                checks += 1
                assert list(our_key.items()) == list(their_key.items())
                check_message(Message(*claims[0]), Message(*claims[1]), losses, variant.compression)
                values = (Message(HEAD, part.value), Message(HEAD, message.value))
                if variant.compression == "none":
                    assert values[0] == values[1]
    assert checks == len(list(tmp_path.iterdir())) > 4
    assert fitting < 3


HEAD = (1).to_bytes(8, "big")


def events_of(message: Message) -> list[Message]:
    """One message for each event."""

    def frames(data: bytes) -> list[bytes]:
        return [len(part).to_bytes(8, "big") + part for part in naive_open_protocol.cut(data)]

    assert message.key is not None
    assert message.value is not None
    keys, values = frames(message.key[8:]), frames(message.value)
    return [Message(HEAD + key, value) for key, value in zip(keys, values, strict=True)]


def event_key(message: Message) -> dict[str, Any]:
    assert message.key is not None
    (key,) = naive_open_protocol.cut(message.key[8:])
    wire: dict[str, Any] = json.loads(key)
    return wire
