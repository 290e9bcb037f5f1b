"""The options of everyone who writes, whatever the format; named as TiCDC names them."""

from __future__ import annotations

from cdcfmt_core.options import Option
from cdcfmt_core.partitioning import PARTITIONERS
from cdcfmt_core.toolkit.large_message_output import PRODUCER_MAX_MESSAGE_BYTES

ENCODING_OPTIONS = (
    Option(name="protocol", help="Name of the format to write."),
    Option(
        name="sourceTimeZone",
        type="timezone",
        help="Time zone of TIMESTAMP columns where the wire has none; UTC if unset.",
    ),
    Option(
        name="maxMessageBytes",
        type="bytes",
        default=PRODUCER_MAX_MESSAGE_BYTES,
        minimum=1,
        help="Largest message, with what Kafka adds to it; batches stay below it, and "
        "`largeMessageHandleOption` says what becomes of a row beyond it.",
    ),
    Option(
        name="largeMessageHandleOption",
        type="choice",
        choices=("none", "claim-check", "handle-key-only"),
        default="none",
        help="A row whose message is too large: an error, a claim check that leads to a file, "
        "or the handle key alone.",
    ),
    Option(
        name="largeMessageHandleCompression",
        type="choice",
        choices=("none", "lz4", "snappy"),
        default="none",
        help="Compression of each message, as TiCDC's `large-message-handle-compression`.",
    ),
    Option(
        name="claimCheckStorageUri",
        help="Folder for the files of claim checks.",
    ),
    Option(
        name="claimCheckRawValue",
        type="bool",
        default=False,
        help="Claim-check files hold the bare value in place of key and value.",
    ),
    Option(
        name="synthesizeCommitTs",
        type="bool",
        default=False,
        help="Give events without a commit_ts one that is made of their source time, where the "
        "format needs it; without this they are errors.",
    ),
    Option(
        name="splitKeyUpdates",
        type="bool",
        default=False,
        help="Write an update that changes the key as a delete and an insert, in that order.",
    ),
    Option(
        name="unsupportedEvents",
        type="choice",
        choices=("fail", "skip"),
        default="fail",
        help="Events that the format has no words for: an error, or left out and counted.",
    ),
    Option(
        name="upsertAs",
        type="choice",
        choices=("fail", "insert", "update"),
        default="fail",
        help="How a row that was either inserted or updated (`upsert`) is written where the "
        "format has no word for it; `fail`: as `unsupportedEvents` says.",
    ),
    Option(
        name="invalidText",
        type="choice",
        choices=("replace", "fail"),
        default="replace",
        help="Text that is not UTF-8, where the format cannot carry its bytes: U+FFFD (counted), "
        "or an error.",
    ),
    Option(
        name="partitioner",
        type="choice",
        choices=PARTITIONERS,
        default="index-value",
        help="What a row's partition depends on: the values of its key, its table, its commit_ts, "
        "or `partitionColumns`.",
    ),
    Option(
        name="partitionColumns",
        type="list",
        default=(),
        help="The columns of `partitioner=columns`.",
    ),
)
"""Options that mean the same for every format that is written."""
