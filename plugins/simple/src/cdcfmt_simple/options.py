"""The options of simple."""

from __future__ import annotations

from cdcfmt_core import Option
from cdcfmt_core.toolkit.large_messages import COMPRESSION_OPTION

OPTIONS = (
    COMPRESSION_OPTION,
    Option(
        name="verifyChecksum",
        type="choice",
        choices=("false", "true", "fail"),
        default="false",
        help="Recompute the checksum of rows that carry one. `true`: where it differs, "
        "`extra.checksum_mismatch` holds what was computed, and the row is counted. `fail`: "
        "a bad row.",
    ),
)

ENCODE_OPTIONS = (
    Option(
        name="encodingFormat",
        type="choice",
        choices=("json", "avro"),
        default="json",
        help="The encoding of messages, as TiCDC's `encoding-format`.",
    ),
    Option(
        name="sendBootstrapIntervalInSec",
        type="int",
        default=120,
        minimum=0,
        help="Tell a table's schema again before its next row after so many seconds; 0: never.",
    ),
    Option(
        name="sendBootstrapInMsgCount",
        type="int",
        default=10_000,
        minimum=0,
        help="Tell a table's schema again before its next row after so many rows; 0: never.",
    ),
    Option(
        name="enableRowChecksum",
        type="bool",
        default=False,
        help="Write the checksum of each row: the one that came with it, else a computed one.",
    ),
)
