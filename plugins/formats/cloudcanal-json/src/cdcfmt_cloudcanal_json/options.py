"""The options of cloudcanal-json."""

from __future__ import annotations

from cdcfmt_cloudcanal_json.binary import BINARY_ENCODINGS
from cdcfmt_core import Option

_HOW = (
    "Encoding of binary values, which CloudCanal does not document: one character per byte, "
    "base64 or hexadecimal."
)

OPTIONS = (
    Option(
        name="sourceDatabase",
        type="choice",
        choices=("auto", "mysql", "other"),
        default="auto",
        help="Database of the type names in `dbValType`. `mysql`: MySQL. `other`: another "
        "database; without its `typeMap` only types with the same meaning everywhere are read, "
        "other values stay unchanged. `auto`: MySQL if `schema` is empty or equals `db`.",
    ),
    Option(
        name="binaryEncoding",
        type="choice",
        choices=("auto", *BINARY_ENCODINGS),
        default="auto",
        help=f"{_HOW} `auto`: detected by each value and its column's length; an ambiguous text "
        "is an error.",
    ),
)

ENCODE_OPTIONS = (
    Option(
        name="binaryEncoding", type="choice", choices=BINARY_ENCODINGS, default="latin1", help=_HOW
    ),
)
