"""The options of simple."""

from __future__ import annotations

from cdcfmt_core import Option
from cdcfmt_core.large_messages import COMPRESSION_OPTION

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
