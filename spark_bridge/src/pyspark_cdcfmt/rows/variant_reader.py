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
from itertools import pairwise
from typing import Any

from cdcfmt_core.errors import EncodeError
from pyspark_cdcfmt.rows.variant_scalars import READ_UINT32, READERS


def decode_variant(value: bytes, metadata: bytes) -> Any:
    """The Python value of a variant.

    :raises EncodeError: if the bytes are no variant, or of a later version of the encoding.
    """
    try:
        # Every value has a byte of its own, unless offsets lead to one twice.
        return _value(value, 0, _field_names(metadata), [len(value)])
    except EncodeError:
        raise
    except (LookupError, struct.error, ValueError, ArithmeticError, RecursionError) as error:
        raise EncodeError(f"the bytes are not a readable variant ({error!r})") from error


# Rows of one table share their metadata.
@functools.lru_cache(maxsize=512)
def _field_names(metadata: bytes) -> tuple[str, ...]:
    """The dictionary of field names."""
    header = metadata[0]
    if header & 0x0F != 1:
        raise EncodeError(f"version {header & 0x0F} of the variant encoding is not known")
    width = (header >> 6) + 1
    size = int.from_bytes(metadata[1 : 1 + width], "little")
    offsets = _numbers(metadata, 1 + width, size + 1, width)
    start = 1 + width * (size + 2)
    return tuple(metadata[start + begin : start + end].decode() for begin, end in pairwise(offsets))


def _numbers(data: bytes, start: int, count: int, width: int) -> tuple[int, ...] | bytes:
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


def _value(data: bytes, at: int, names: tuple[str, ...], budget: list[int]) -> Any:
    header = data[at]
    read = READERS[header]
    if read is not None:
        return read(data, at + 1)
    basic, info = header & 3, header >> 2
    if basic == 0:
        raise EncodeError(f"a variant of type {info} cannot be written to any format")
    if basic == 2:
        return _object(data, at + 1, info, names, budget)
    large, width = info >> 2 & 1, (info & 3) + 1
    count, at = _count(data, at + 1, large, budget)
    offsets = _numbers(data, at, count + 1, width)
    start = at + (count + 1) * width
    return [_value(data, start + offset, names, budget) for offset in offsets[:count]]


def _object(
    data: bytes, at: int, info: int, names: tuple[str, ...], budget: list[int]
) -> dict[str, Any]:
    large, id_width, width = info >> 4 & 1, (info >> 2 & 3) + 1, (info & 3) + 1
    count, at = _count(data, at, large, budget)
    ids = _numbers(data, at, count, id_width)
    at += count * id_width
    offsets = _numbers(data, at, count + 1, width)
    start = at + (count + 1) * width
    fields = {}
    for field, offset in zip(ids, offsets, strict=False):
        place = start + offset
        # Most are scalars: spare them a call.
        read = READERS[data[place]]
        fields[names[field]] = (
            read(data, place + 1) if read is not None else _value(data, place, names, budget)
        )
    return fields


def _count(data: bytes, at: int, large: int, budget: list[int]) -> tuple[int, int]:
    count, end = (READ_UINT32(data, at)[0], at + 4) if large else (data[at], at + 1)
    budget[0] -= count
    if budget[0] < 0:
        raise IndexError("more values than bytes")
    return count, end
