"""Shared parts of the golden tests: golden messages decoded, encoded and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from cdcfmt_core import opening
from cdcfmt_core.encoding import MessageEncoder
from cdcfmt_core.events import Corrupt, Event, Message
from cdcfmt_testing import Case
from cdcfmt_toolkit.large_message_output import ClaimCheckWriter
from support.golden_data import (
    CODECS,
    Loss,
    Variant,
    load_variant,
    open_decoder,
    reading_options,
    variant_names,
)
from support.schema_registry import with_registry

DIGITS = [
    Loss(table, column, "digits", "the wire has no fsp")
    for table, column in (
        ("golden.all_types", "c_datetime3"),
        ("golden.all_types", "c_datetime6"),
        ("golden.all_types", "c_timestamp3"),
        ("golden.all_types", "c_timestamp6"),
        ("golden.all_types", "c_time3"),
        ("golden.all_types", "c_time6"),
        ("golden.defaults_nobin", "dtm"),
        ("golden.defaults_t", "dtm"),
        ("golden.pk_time", "ts"),
        ("golden.upd_cols", "e"),
    )
]
"""Without parameters TIME, DATETIME and TIMESTAMP have an unknown number of digits: six are
printed, or none."""


def open_encoder(
    protocol: str,
    *,
    claim_checks: ClaimCheckWriter | None = None,
    counts: Counter[str] | None = None,
    partitions: int | None = None,
    **options: Any,
) -> MessageEncoder:
    """An encoder with these options, in the spelling that users write."""
    options = with_registry(protocol, options, writes=True)
    return opening.open_encoder(
        protocol, options, claim_checks=claim_checks, counts=counts, partitions=partitions
    )


def writing_options(variant: Variant) -> dict[str, Any]:
    """The producer's configuration as options of the encoder."""
    config = variant.config
    large = config["large-message-handle"]
    common = {
        "sourceTimeZone": "Asia/Shanghai",
        "maxMessageBytes": config["max-message-bytes"],
        "largeMessageHandleOption": large["large-message-handle-option"],
        "largeMessageHandleCompression": large["large-message-handle-compression"],
        "claimCheckRawValue": large["claim-check-raw-value"],
    }
    own = OWN_WRITING_OPTIONS[CODECS[variant.protocol]]
    return common | {option: config[name] for option, name in own.items()}


OWN_WRITING_OPTIONS = {
    "canal-json": {
        "enableTidbExtension": "enable-tidb-extension",
        "contentCompatible": "content-compatible",
        "onlyOutputUpdatedColumns": "only-output-updated-columns",
        "deleteOnlyOutputHandleKeyColumns": "delete-only-output-handle-key-columns",
    },
    "debezium": {
        "debeziumDisableSchema": "debezium-disable-schema",
        "enableTidbExtension": "enable-tidb-extension",
        "debeziumOutputOldValue": "debezium-output-old-value",
    },
    "open-protocol": {
        "maxBatchSize": "max-batch-size",
        "outputOldValue": "open-output-old-value",
        "onlyOutputUpdatedColumns": "only-output-updated-columns",
        "deleteOnlyOutputHandleKeyColumns": "delete-only-output-handle-key-columns",
    },
    "simple": {
        "encodingFormat": "encoding-format",
        "enableRowChecksum": "enable-row-checksum",
    },
}
"""Option of the encoder → TiCDC's setting, by format."""


KIT_VARIANTS = {
    "canal-json": (
        "default",
        "tidb-extension",
        "content-compatible",
        "handle-key-only",
        "delete-only-handle-key",
        "only-output-updated-columns",
        "raw-change-event",
        "lz4",
        "claim-check",
    ),
    "debezium": (
        "default",
        "disable-schema",
        "tidb-extension",
        "tidb-extension-disable-schema",
        "no-old-value",
        "raw-change-event",
        "lz4",
    ),
    "open": (
        "default",
        "batched",
        "batched-4k",
        "handle-key-only",
        "delete-only-handle-key",
        "only-output-updated-columns",
        "raw-change-event",
        "no-old-value",
        "lz4",
        "claim-check",
    ),
    "simple-avro": ("default", "handle-key-only", "checksum", "raw-change-event"),
    "simple-json": (
        "default",
        "handle-key-only",
        "checksum",
        "raw-change-event",
        "lz4",
        "claim-check",
    ),
}
"""Producer configurations that the conformance kit has as cases; encoding tests have the rest."""


def check_none_left_out(protocol: str, *elsewhere: str) -> None:
    """Every golden configuration is written by the kit or by the calling tests."""
    assert {*KIT_VARIANTS[protocol], *elsewhere} == set(variant_names(protocol))


def golden_cases(protocol: str) -> Iterator[Case]:
    """Those of :data:`KIT_VARIANTS`."""
    for name in KIT_VARIANTS[protocol]:
        yield golden_case(protocol, name)


def golden_case(protocol: str, name: str, most: int | None = None) -> Case:
    """A producer configuration as a case of the conformance kit; other tests have its truth.

    It is written again, but for what hangs on another library's compression or on made-up
    names of files.
    """
    variant = load_variant(protocol, name)
    reading = {n: value for n, value in reading_options(variant).items() if n != "protocol"}
    writing = writing_options(variant)
    exact = variant.compression == "none" and variant.claims is None
    return Case(
        f"{protocol}-{name}",
        tuple(golden.message for golden in variant.messages[:most]),
        options=reading,
        writing=writing if exact else None,
    )


def decode_all(variant: Variant, messages: Iterable[Message], **options: str) -> list[Event]:
    decoder = open_decoder(**(reading_options(variant) | options))
    events = [event for message in messages for event in decoder.decode(message)]
    for event in events:
        assert not isinstance(event, Corrupt), event.error
    return events
