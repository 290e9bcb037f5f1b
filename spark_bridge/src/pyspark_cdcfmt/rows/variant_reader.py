"""Spark's VARIANT back to Python values: the way back of :mod:`pyspark_cdcfmt.rows.variant`.

Any writer's variants, not only ours: ids and offsets of every width, sorted metadata or
not.  Source: the Parquet project's *Variant Binary Encoding*, sections "Metadata
encoding" and "Encoding types".

- null, boolean, float and double → None, bool, float
- int8 to int64 → int; decimals → Decimal with their scale
- string, binary → str, bytes
- date, timestamp_ntz, timestamp → date, naive datetime, datetime in UTC
- array, object → list, dict
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from itertools import pairwise
from typing import Any

from cdcfmt_core.errors import EncodeError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_NTZ = datetime(1970, 1, 1)
_EPOCH_DAY = date(1970, 1, 1).toordinal()

_INT16 = struct.Struct("<h").unpack_from
_INT32 = struct.Struct("<i").unpack_from
_INT64 = struct.Struct("<q").unpack_from
_UINT32 = struct.Struct("<I").unpack_from
_FLOAT = struct.Struct("<f").unpack_from
_DOUBLE = struct.Struct("<d").unpack_from


def decode_variant(value: bytes, metadata: bytes) -> Any:
    """The Python value of a variant.

    :raises EncodeError: if the bytes are no variant, or of a later version of the encoding.
    """
    try:
        return read_value(value, 0, field_names(metadata))
    except EncodeError:
        raise
    except UNREADABLE as error:
        raise EncodeError(f"the bytes are no variant that can be read ({error!r})") from error


UNREADABLE = (LookupError, struct.error, ValueError, ArithmeticError, RecursionError)
"""What :func:`read_value` and :data:`SCALARS` raise for bytes that are no variant."""


def read_value(data: bytes, at: int, names: tuple[str, ...]) -> Any:
    """The value that begins at ``at``; raises one of :data:`UNREADABLE`, or EncodeError."""
    # Every value has a byte of its own, unless offsets lead to one twice.
    return _value(data, at, names, [len(data)])


# Rows of one table share their metadata.
@functools.lru_cache(maxsize=512)
def field_names(metadata: bytes) -> tuple[str, ...]:
    """The dictionary of field names."""
    header = metadata[0]
    if header & 0x0F != 1:
        raise EncodeError(f"version {header & 0x0F} of the variant encoding is not known")
    width = (header >> 6) + 1
    size = int.from_bytes(metadata[1 : 1 + width], "little")
    offsets = numbers(metadata, 1 + width, size + 1, width)
    start = 1 + width * (size + 2)
    return tuple(metadata[start + begin : start + end].decode() for begin, end in pairwise(offsets))


def numbers(data: bytes, start: int, count: int, width: int) -> tuple[int, ...] | bytes:
    """Unsigned integers of ``width`` bytes each."""
    end = start + count * width
    if end > len(data):
        raise IndexError("cut off")
    if width == 1:
        return data[start:end]
    if width == 3:
        return tuple(
            int.from_bytes(data[place : place + 3], "little") for place in range(start, end, 3)
        )
    return struct.unpack_from(f"<{count}{'H' if width == 2 else 'I'}", data, start)


def _value(data: bytes, at: int, names: tuple[str, ...], left: list[int]) -> Any:
    header = data[at]
    read = SCALARS[header]
    if read is not None:
        return read(data, at + 1)
    basic, info = header & 3, header >> 2
    if basic == 0:
        raise EncodeError(f"a variant of type {info} cannot be written to any format")
    if basic == 2:
        return _object(data, at + 1, info, names, left)
    large, width = info >> 2 & 1, (info & 3) + 1
    count, at = _count(data, at + 1, large, left)
    offsets = numbers(data, at, count + 1, width)
    start = at + (count + 1) * width
    return [_value(data, start + offset, names, left) for offset in offsets[:count]]


def _object(
    data: bytes, at: int, info: int, names: tuple[str, ...], left: list[int]
) -> dict[str, Any]:
    large, id_width, width = info >> 4 & 1, (info >> 2 & 3) + 1, (info & 3) + 1
    count, at = _count(data, at, large, left)
    ids = numbers(data, at, count, id_width)
    at += count * id_width
    offsets = numbers(data, at, count + 1, width)
    start = at + (count + 1) * width
    fields = {}
    for field, offset in zip(ids, offsets, strict=False):
        place = start + offset
        # Most are scalars: spare them a call.
        read = SCALARS[data[place]]
        fields[names[field]] = (
            read(data, place + 1) if read is not None else _value(data, place, names, left)
        )
    return fields


def _count(data: bytes, at: int, large: int, left: list[int]) -> tuple[int, int]:
    count, end = (_UINT32(data, at)[0], at + 4) if large else (data[at], at + 1)
    left[0] -= count
    if left[0] < 0:
        raise IndexError("more values than bytes")
    return count, end


def _sized(data: bytes, at: int) -> bytes:
    size = _UINT32(data, at)[0]
    if at + 4 + size > len(data):
        raise IndexError("cut off")
    return data[at + 4 : at + 4 + size]


# Wider than any variant's decimal, as Python's default would round to 28 digits.
_EXACT = Context(prec=100)


def _decimal(read: Callable[[bytes, int], int]) -> Callable[[bytes, int], Decimal]:
    def decimal(data: bytes, at: int) -> Decimal:
        return Decimal(read(data, at + 1)).scaleb(-data[at], _EXACT)

    return decimal


def _int16_byte_decimal(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 16], "little", signed=True)


def _instant(data: bytes, at: int) -> datetime:
    # Faster than microseconds alone.
    return _EPOCH + timedelta(0, *divmod(_INT64(data, at)[0], 1_000_000))


def _wall_clock(data: bytes, at: int) -> datetime:
    return _EPOCH_NTZ + timedelta(0, *divmod(_INT64(data, at)[0], 1_000_000))


_PRIMITIVES: dict[int, Callable[[bytes, int], Any]] = {
    0: lambda _data, _at: None,
    1: lambda _data, _at: True,
    2: lambda _data, _at: False,
    3: lambda data, at: data[at] - 256 if data[at] > 127 else data[at],
    4: lambda data, at: _INT16(data, at)[0],
    5: lambda data, at: _INT32(data, at)[0],
    6: lambda data, at: _INT64(data, at)[0],
    7: lambda data, at: _DOUBLE(data, at)[0],
    8: _decimal(lambda data, at: int(_INT32(data, at)[0])),
    9: _decimal(lambda data, at: int(_INT64(data, at)[0])),
    10: _decimal(_int16_byte_decimal),
    11: lambda data, at: date.fromordinal(_INT32(data, at)[0] + _EPOCH_DAY),
    12: _instant,
    13: _wall_clock,
    14: lambda data, at: _FLOAT(data, at)[0],
    15: _sized,
    16: lambda data, at: _sized(data, at).decode(),
}


def _short_string(size: int) -> Callable[[bytes, int], str]:
    return lambda data, at: data[at : at + size].decode()


SCALARS: tuple[Callable[[bytes, int], Any] | None, ...] = tuple(
    _short_string(header >> 2)
    if header & 3 == 1
    else _PRIMITIVES.get(header >> 2)
    if header & 3 == 0
    else None
    for header in range(256)
)
"""By the first byte of a value: what reads it, from the byte behind; None: no scalar."""
