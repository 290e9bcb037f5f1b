"""The options of canal-json."""

from __future__ import annotations

from cdcfmt_canal_json.binary import BINARY_ENCODINGS, OPTION
from cdcfmt_canal_json.dialects import DIALECTS
from cdcfmt_core import Option
from cdcfmt_toolkit.default_table import DEFAULT_TABLE_OPTION
from cdcfmt_toolkit.large_messages import (
    COMPRESSION_OPTION,
    HANDLE_KEY_DELETES_ENCODE_OPTION,
    HANDLE_KEY_DELETES_OPTION,
)

OPTIONS = (
    COMPRESSION_OPTION,
    Option(
        name="dialect",
        type="choice",
        choices=tuple(DIALECTS),
        default="auto",
        help="Producer of the Canal-JSON. "
        + " ".join(f"`{name}`: {dialect.summary}." for name, dialect in DIALECTS.items()),
    ),
    Option(
        name=OPTION,
        type="choice",
        choices=BINARY_ENCODINGS,
        default="auto",
        help="How BINARY, VARBINARY and BLOB are written. `latin1`: one character per byte, as by "
        "TiCDC and Canal. `auto`: the same for TiCDC and under `dialect=canal`; otherwise also "
        "hexadecimal (Tencent DTS), by all bytes of the message and the column's length; text "
        "that could be both is an error.",
    ),
    HANDLE_KEY_DELETES_OPTION,
    DEFAULT_TABLE_OPTION,
)

ENCODE_OPTIONS = (
    Option(
        name="dialect",
        type="choice",
        choices=("ticdc", "canal"),
        default="ticdc",
        help="Which Canal-JSON to write: TiCDC's, or Alibaba Canal's (full column types, changed "
        "columns in `old`).",
    ),
    Option(
        name="enableTidbExtension",
        type="bool",
        default=False,
        help="Write TiCDC's extension `_tidb`, with commit_ts, and watermarks.",
    ),
    Option(
        name="contentCompatible",
        type="bool",
        default=False,
        help="Write full column types, and only changed columns in `old`, as Alibaba Canal does.",
    ),
    Option(
        name="onlyOutputUpdatedColumns",
        type="bool",
        default=False,
        help="Write only changed columns in `old`.",
    ),
    HANDLE_KEY_DELETES_ENCODE_OPTION,
)
