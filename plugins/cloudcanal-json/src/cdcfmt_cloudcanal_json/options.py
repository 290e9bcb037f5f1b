"""The options of cloudcanal-json."""

from __future__ import annotations

from cdcfmt_cloudcanal_json.binary import BINARY_ENCODINGS
from cdcfmt_core import Option

_HOW = (
    "How binary values are written, which CloudCanal does not document: a character per byte, "
    "base64 or hexadecimal."
)

OPTIONS = (
    Option(
        name="sourceDatabase",
        type="choice",
        choices=("auto", "mysql", "other"),
        default="auto",
        help="Whose type names `dbValType` has. `mysql`: MySQL's. `other`: another database's, of "
        "which only types that mean the same everywhere are read, and all else stays as it is. "
        "`auto`: MySQL's where `schema` is empty or equals `db`.",
    ),
    Option(
        name="binaryEncoding",
        type="choice",
        choices=("auto", *BINARY_ENCODINGS),
        default="auto",
        help=f"{_HOW} `auto`: from each value and its column's length; text that could be more "
        "than one of them is a bad value.",
    ),
)

ENCODE_OPTIONS = (
    Option(
        name="binaryEncoding",
        type="choice",
        choices=BINARY_ENCODINGS,
        default="latin1",
        help=_HOW,
    ),
)
