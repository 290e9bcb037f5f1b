"""What the golden tests of all formats share: golden messages decoded, encoded and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from golden_data import Variant, open_decoder, reading_options

from cdcfmt_core import default_registry
from cdcfmt_core.encoding import ENCODING_OPTIONS, MessageEncoder, open_message_encoder
from cdcfmt_core.events import Corrupt, Event, Message
from cdcfmt_core.large_message_output import ClaimCheckWriter
from cdcfmt_core.options import validate


def open_encoder(
    protocol: str,
    *,
    claim_checks: ClaimCheckWriter | None = None,
    counts: Counter[str] | None = None,
    partitions: int | None = None,
    **options: Any,
) -> MessageEncoder:
    """An encoder with these options, in the spelling that users write."""
    codec = default_registry().get_codec(protocol)
    own = {option.name for option in codec.encode_options}
    return open_message_encoder(
        validate(
            {"protocol": protocol} | {n: v for n, v in options.items() if n not in own},
            ENCODING_OPTIONS,
            owner="the test",
        ),
        validate(
            {n: v for n, v in options.items() if n in own}, codec.encode_options, owner="the test"
        ),
        claim_checks=claim_checks,
        counts=counts,
        partitions=partitions,
    )


def writing_options(variant: Variant) -> dict[str, Any]:
    """The producer's configuration as options of every format's encoder."""
    config = variant.config
    large = config["large-message-handle"]
    return {
        "sourceTimeZone": "Asia/Shanghai",
        "maxMessageBytes": config["max-message-bytes"],
        "largeMessageHandleOption": large["large-message-handle-option"],
        "largeMessageHandleCompression": large["large-message-handle-compression"],
        "claimCheckRawValue": large["claim-check-raw-value"],
    }


def decode_all(variant: Variant, messages: Iterable[Message], **options: str) -> list[Event]:
    decoder = open_decoder(**(reading_options(variant) | options))
    events = [event for message in messages for event in decoder.decode(message)]
    for event in events:
        assert not isinstance(event, Corrupt), event.error
    return events
