"""Checksum of a row: CRC-32 over its columns, in the order of their ids.

Source: TiCDC's ``common/verify_checksum.go``, which follows TiDB's ``rowcodec``:

- NULL adds nothing
- numbers: eight bytes, little-endian; FLOAT as a double, values that are not finite as 0
- VECTOR: the number of elements in four bytes, then each element as a float
- others: the length in four bytes, then the text or bytes; TIMESTAMP as text in UTC

The columns of ``tableSchema`` are in the order of their ids.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.types import InvalidValue
from cdcfmt_mysql import parse_column_type
from cdcfmt_mysql.numbers import parse_vector
from cdcfmt_simple.instants import Zones
from cdcfmt_simple.message import Wire
from cdcfmt_toolkit.wire_json import object_of, parse_base64

_UINT64: Final = (1 << 64) - 1
_LENGTH: Final = struct.Struct("<I").pack
_NUMBER: Final = struct.Struct("<Q").pack
_DOUBLE: Final = struct.Struct("<d").pack
_FLOAT: Final = struct.Struct("<f")
INTEGERS: Final = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "bigint", "year", "enum", "set", "bit"}
)
BYTES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_WITHOUT: Final = frozenset({"geometry", "null"})
COUNTED: Final = "rows with another checksum"


class Verifier:
    """Recomputes checksums.

    ``fails``: a row with a different checksum is corrupt.
    """

    def __init__(self, zones: Zones, counts: Counter[str], *, fails: bool) -> None:
        self._zones = zones
        self._counts = counts
        self._fails = fails

    def verify(
        self,
        wire: Wire,
        schema: TableSchema,
        data: Mapping[str, Any] | None,
        old: Mapping[str, Any] | None,
    ) -> dict[str, int] | None:
        """The computed checksums that differ (None if there are none) for undecoded images.

        A checksum of 0 in the message means that there is none.

        :raises DecodeError: if a checksum differs, with ``fails``.
        """
        checksum = object_of(wire, "checksum") or {}
        mismatch = {}
        for field, image in (("current", data), ("previous", old)):
            expected = checksum.get(field)
            if type(expected) is not int:
                raise DecodeError("is not a number", field=f"checksum.{field}", sample=expected)
            if expected and image is not None:
                computed = self.compute(schema, image)
                if computed != expected & 0xFFFF_FFFF:
                    mismatch[field] = computed
        if mismatch:
            self._counts[COUNTED] += 1
            if self._fails:
                field, computed = next(iter(mismatch.items()))
                raise DecodeError(
                    f"the row's columns give {computed}; the row was modified in transit, or it "
                    "is a false alarm of TiCDC (verifyChecksum=true accepts it)",
                    field=f"checksum.{field}",
                    sample=checksum[field],
                )
        return mismatch or None

    def compute(self, schema: TableSchema, image: Mapping[str, Any]) -> int:
        """The checksum of an undecoded image.

        :raises DecodeError: for an invalid value.
        """
        return checksum_of(schema, image, self._in_utc)

    def _in_utc(self, value: Any, schema: TableSchema) -> str:
        location, text = ("", value) if type(value) is str else (value["location"], value["value"])
        instant = self._zones.opener(schema)(location)(text)
        if isinstance(instant, InvalidValue):
            return str(text)
        assert isinstance(instant, datetime)
        whole = instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        _, point, digits = text.partition(".")
        return whole + point + digits


def checksum_of(
    schema: TableSchema, image: Mapping[str, Any], in_utc: Callable[[Any, TableSchema], str]
) -> int:
    """The checksum of an image in JSON form; binary values may also be bytes.

    ``in_utc`` returns the text of a TIMESTAMP in UTC.

    :raises DecodeError: for a value that its column cannot have.
    """
    crc = 0
    for column in schema.columns:
        value = image.get(column.name)
        if value is not None:
            try:
                crc = zlib.crc32(_bytes(column, value, schema, in_utc), crc)
            except (LookupError, OverflowError, TypeError, ValueError, struct.error) as error:
                raise DecodeError(
                    f"has no checksum ({error})", field=column.name, sample=value
                ) from error
    return crc


def _bytes(
    column: Column, value: Any, schema: TableSchema, in_utc: Callable[[Any, TableSchema], str]
) -> bytes:
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
        value = in_utc(value, schema)
    elif base in BYTES and type(value) is str:
        value = parse_base64(value)
    if type(value) is str:
        value = value.encode("utf-8", "surrogateescape")
    return _LENGTH(len(value)) + bytes(value)
