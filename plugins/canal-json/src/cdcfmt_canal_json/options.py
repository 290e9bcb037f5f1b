"""The options of canal-json."""

from __future__ import annotations

from cdcfmt_canal_json.dialects import DIALECTS
from cdcfmt_core import Option
from cdcfmt_core.large_messages import COMPRESSION_OPTION, HANDLE_KEY_DELETES_OPTION

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
    HANDLE_KEY_DELETES_OPTION,
)
