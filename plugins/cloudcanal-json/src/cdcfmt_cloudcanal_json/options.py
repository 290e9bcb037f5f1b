"""The options of cloudcanal-json."""

from __future__ import annotations

from cdcfmt_core import Option

_BINARY_ENCODING = Option(
    name="binaryEncoding",
    type="choice",
    choices=("latin1", "base64", "hex"),
    default="latin1",
    help="How binary values are written, which CloudCanal does not document: a character per "
    "byte, Base64 or hexadecimal.",
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
    _BINARY_ENCODING,
)

ENCODE_OPTIONS = (_BINARY_ENCODING,)
