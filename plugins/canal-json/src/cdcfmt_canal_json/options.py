"""The options of canal-json."""

from __future__ import annotations

from cdcfmt_canal_json.dialects import DIALECTS
from cdcfmt_core import Option
from cdcfmt_core.large_messages import COMPRESSION_OPTION

OPTIONS = (
    COMPRESSION_OPTION,
    Option(
        name="dialect",
        type="choice",
        choices=tuple(DIALECTS),
        default="auto",
        help="Whose Canal-JSON it is; `auto` tells it message by message. "
        + " ".join(f"`{name}`: {dialect.summary}." for name, dialect in DIALECTS.items()),
    ),
    Option(
        name="deleteOnlyOutputHandleKeyColumns",
        type="bool",
        default=False,
        help="TiCDC's `delete-only-output-handle-key-columns` was on: deletes hold the handle key "
        "only, which the wire does not tell.",
    ),
)
