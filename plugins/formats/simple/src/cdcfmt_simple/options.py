"""The options of simple."""

from __future__ import annotations

from cdcfmt_core import Option
from cdcfmt_toolkit.large_messages import COMPRESSION_OPTION

OPTIONS = (
    COMPRESSION_OPTION,
    Option(
        name="verifyChecksum",
        type="choice",
        choices=("false", "true", "fail"),
        default="false",
        help="Recompute the checksum of rows that have one. `true`: if it differs, "
        "`extra.checksum_mismatch` has the computed value, and the row is counted. `fail`: "
        "the row is corrupt.",
    ),
)

ENCODE_OPTIONS = (
    Option(
        name="encodingFormat",
        type="choice",
        choices=("json", "avro"),
        default="json",
        help="Message encoding, as TiCDC's `encoding-format`.",
    ),
    Option(
        name="sendBootstrapIntervalInSec",
        type="int",
        default=120,
        minimum=0,
        help="Seconds after which a table's schema is sent again before its next row; 0: never.",
    ),
    Option(
        name="sendBootstrapInMsgCount",
        type="int",
        default=10_000,
        minimum=0,
        help="Rows after which a table's schema is sent again before its next row; 0: never.",
    ),
    Option(
        name="enableRowChecksum",
        type="bool",
        default=False,
        help="Write the checksum of each row: the original one if known, else a computed one.",
    ),
)
