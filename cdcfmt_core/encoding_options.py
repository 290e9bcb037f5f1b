"""The options for writing any format, with TiCDC's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cdcfmt_core.errors import OptionError
from cdcfmt_core.options import Option

PRODUCER_MAX_MESSAGE_BYTES: Final = 10 << 20
"""TiCDC's default of ``max-message-bytes``."""

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
        help="Largest message, including a broker's overhead; batches stay below it, and "
        "`largeMessageHandleOption` decides how to write a larger row.",
    ),
    Option(
        name="largeMessageHandleOption",
        type="choice",
        choices=("none", "claim-check", "handle-key-only"),
        default="none",
        help="How to write a row whose message is too large: an error, a claim check that refers "
        "to a file, or only the handle key.",
    ),
    Option(
        name="largeMessageHandleCompression",
        type="choice",
        choices=("none", "lz4", "snappy"),
        default="none",
        help="Compression of each message, as TiCDC's `large-message-handle-compression`.",
    ),
    Option(name="claimCheckStorageUri", help="Folder for the files of claim checks."),
    Option(
        name="claimCheckRawValue",
        type="bool",
        default=False,
        help="Claim-check files hold only the value, without the key.",
    ),
    Option(
        name="synthesizeCommitTs",
        type="bool",
        default=True,
        help="If the format needs a commit_ts, make a missing one from the source time, and count.",
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
        help="Events that the format cannot express: an error, or skipped and counted.",
    ),
    Option(
        name="unsupportedValues",
        type="choice",
        choices=("fail", "skip"),
        default="fail",
        help="Events with a value that the format cannot express: as `unsupportedEvents`.",
    ),
    Option(
        name="upsertAs",
        type="choice",
        choices=("fail", "insert", "update"),
        default="fail",
        help="How to write a row that was either inserted or updated (`upsert`), if the "
        "format has no such operation; `fail`: as `unsupportedEvents` says.",
    ),
    Option(
        name="invalidText",
        type="choice",
        choices=("replace", "fail"),
        default="replace",
        help="Text that is not UTF-8, if the format cannot carry its bytes: U+FFFD (counted), "
        "or an error.",
    ),
    Option(
        name="partitioner",
        type="choice",
        choices=("index-value", "table", "ts", "columns"),
        default="index-value",
        help="What determines a row's partition: the values of its key, its table, its commit_ts, "
        "or `partitionColumns`.",
    ),
    Option(
        name="partitionColumns",
        type="list",
        default=(),
        help="The columns of `partitioner=columns`.",
    ),
)
"""Options with the same meaning for every format that can be written."""


def check_unpartitioned(options: Mapping[str, Any], why: str) -> None:
    """:raises OptionError: for an option of partitions; ``why``: the reason why there are none."""
    for name in ("partitioner", "partitionColumns"):
        if options[name] not in ("index-value", ()):
            raise OptionError(f"option {name} would have no effect, as {why}: leave it out")


def check_claim_options(options: Mapping[str, Any], *, has_folder: bool) -> None:
    """:raises OptionError: unless claim checks and their folder are set together."""
    if options["largeMessageHandleOption"] == "claim-check":
        if not has_folder:
            raise OptionError(
                "option largeMessageHandleOption: claim-check needs claimCheckStorageUri"
            )
        return
    for name in ("claimCheckStorageUri", "claimCheckRawValue"):
        if options[name]:
            raise OptionError(
                f"option {name} would have no effect: set largeMessageHandleOption=claim-check, "
                "too, or leave it out"
            )
