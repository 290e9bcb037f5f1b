"""The options of simple."""

from __future__ import annotations

from cdcfmt_core import Option
from cdcfmt_toolkit.large_messages import COMPRESSION_OPTION
from cdcfmt_toolkit.row_checksum import VERIFY_OPTION

OPTIONS = (COMPRESSION_OPTION, VERIFY_OPTION)

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
