"""TiCDC's checksum of a row: CRC-32 over its columns.

Source: TiCDC's ``common/verify_checksum.go``, which follows TiDB's ``rowcodec``:

- NULL adds nothing
- numbers: eight bytes, little-endian; FLOAT as a double, values that are not finite as 0
- VECTOR: the number of elements in four bytes, then each element as a float
- others: the length in four bytes, then the text or bytes; TIMESTAMP as text in UTC
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from cdcfmt_core import Option
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Column
from cdcfmt_mysql import parse_column_type
from cdcfmt_mysql.numbers import parse_vector
from cdcfmt_toolkit.wire_json import parse_base64

VERIFY_OPTION: Final = Option(
    name="verifyChecksum",
    type="choice",
    choices=("false", "true", "fail"),
    default="false",
    help="Recompute the checksum of rows that have one. `true`: if it differs, "
    "`extra.checksum_mismatch` has the computed value, and the row is counted. `fail`: "
    "the row is corrupt.",
)
COUNTED: Final = "rows with another checksum"
INTEGERS: Final = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "bigint", "year", "enum", "set", "bit"}
)
BYTES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_WITHOUT: Final = frozenset({"geometry", "null"})
_UINT64: Final = (1 << 64) - 1
_LENGTH: Final = struct.Struct("<I").pack
_NUMBER: Final = struct.Struct("<Q").pack
_DOUBLE: Final = struct.Struct("<d").pack
_FLOAT: Final = struct.Struct("<f")


def checksum_of(
    columns: Iterable[Column], image: Mapping[str, Any], in_utc: Callable[[Any], str]
) -> int:
    """The checksum of an image in JSON form; binary values may also be bytes.

    ``in_utc`` returns the text of a TIMESTAMP in UTC.

    :raises DecodeError: for a value that its column cannot have.
    """
    crc = 0
    for column in columns:
        value = image.get(column.name)
        if value is not None:
            try:
                crc = zlib.crc32(_bytes(column, value, in_utc), crc)
            except (LookupError, OverflowError, TypeError, ValueError, struct.error) as error:
                raise DecodeError(
                    f"has no checksum ({error})", field=column.name, sample=value
                ) from error
    return crc


def text_in_utc(instant: object, text: str) -> str:
    """MySQL's text of an instant in UTC, with the fraction of ``text``; else ``text`` itself."""
    if not isinstance(instant, datetime):
        return text
    whole = instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    _, point, digits = text.partition(".")
    return whole + point + digits


def _bytes(column: Column, value: Any, in_utc: Callable[[Any], str]) -> bytes:
    base = parse_column_type(column.source_type).base
    if base in INTEGERS:
        return _NUMBER(int(value) & _UINT64)
    if base == "float":
        (value,) = _FLOAT.unpack(_FLOAT.pack(float(value)))
    if base in ("float", "double"):
        number = float(value)
        return _DOUBLE(number if math.isfinite(number) else 0.0)
    if base in _WITHOUT:
        return b""
    if base == "vector":
        elements = parse_vector(value)
        return _LENGTH(len(elements)) + b"".join(map(_FLOAT.pack, elements))
    if base == "timestamp":
        value = in_utc(value)
    elif base in BYTES and type(value) is str:
        value = parse_base64(value)
    if type(value) is str:
        value = value.encode("utf-8", "surrogateescape")
    return _LENGTH(len(value)) + bytes(value)
