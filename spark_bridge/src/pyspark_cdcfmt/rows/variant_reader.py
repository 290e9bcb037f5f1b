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
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, TypeAlias

from cdcfmt_core import types as logical
from cdcfmt_core.caches import Cache, text_size
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column
from cdcfmt_core.types import LogicalType
from pyspark_cdcfmt.rows.event_values import Convert, Misfit
from pyspark_cdcfmt.rows.variant_scalars import READ_UINT32, READERS


def decode_variant(value: bytes, metadata: bytes) -> Any:
    """The Python value of a variant.

    :raises EncodeError: if the bytes are no variant, or of a later version of the encoding.
    """
    try:
        return read_value(value, 0, field_names(metadata))
    except EncodeError:
        raise
    except UNREADABLE as error:
        raise EncodeError(f"the bytes are not a readable variant ({error!r})") from error


UNREADABLE = (LookupError, struct.error, ValueError, ArithmeticError, RecursionError)
"""What :func:`read_value` and :data:`READERS` raise for bytes that are no variant."""


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
    offsets = numbers(data, at, count + 1, width)
    start = at + (count + 1) * width
    return [_value(data, start + offset, names, budget) for offset in offsets[:count]]


def _object(
    data: bytes, at: int, info: int, names: tuple[str, ...], budget: list[int]
) -> dict[str, Any]:
    large, id_width, width = info >> 4 & 1, (info >> 2 & 3) + 1, (info & 3) + 1
    count, at = _count(data, at, large, budget)
    ids = numbers(data, at, count, id_width)
    at += count * id_width
    offsets = numbers(data, at, count + 1, width)
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


_Readers: TypeAlias = tuple[Callable[[bytes, int], Any] | None, ...]
_Field: TypeAlias = tuple[str, _Readers, Convert]

_MAX_BYTES = 8 << 20

_BOOLS = (1 << 2, 2 << 2)
_INTS = {8: 3 << 2, 16: 4 << 2, 32: 5 << 2, 64: 6 << 2}
_FLOATS = (7 << 2, 14 << 2)
_DECIMALS = (8 << 2, 9 << 2, 10 << 2)
_TEXTS = (16 << 2, *(size << 2 | 1 for size in range(64)))

_AS_THEY_ARE: dict[type, tuple[int, ...]] = {
    logical.Bool: _BOOLS,
    logical.Bit: tuple(_INTS.values()),
    logical.Year: tuple(_INTS.values()),
    logical.Float: _FLOATS,
    logical.Decimal: _DECIMALS,
    logical.Text: _TEXTS,
    logical.Binary: (15 << 2,),
    logical.Date: (11 << 2,),
    logical.Timestamp: (12 << 2,),
    logical.DateTime: (13 << 2,),
    logical.Enum: (*_TEXTS, *_INTS.values()),
    logical.Set: (*_TEXTS, *_INTS.values()),
}
"""First bytes of the values that are values of events as they are; all others are converted."""


class ImageReader:
    """Reads the images of one table straight from their variants; ``converters`` by column.

    The fast way for rows that are as they should be: the fields of an image and what reads each
    of them are found once for all rows with the same fields.  Where anything is unusual it gives
    up, and :func:`decode_variant` says what is wrong, or finds that it is well after all.
    """

    def __init__(self, columns: Iterable[Column], converters: dict[str, Convert]) -> None:
        self._fields: dict[str, _Field] = {
            column.name: (column.name, _readers(column.type), converters[column.name])
            for column in columns
        }
        self._plans: Cache[tuple[bytes, bytes], tuple[_Field, ...]] = Cache(_MAX_BYTES)

    def read(self, value: bytes, metadata: bytes) -> dict[str, Any] | None:
        """The values of an image by column; None if :func:`decode_variant` has to read it."""
        try:
            return self._read(value, metadata)
        except (EncodeError, Misfit, *UNREADABLE):
            return None

    def _read(self, value: bytes, metadata: bytes) -> dict[str, Any] | None:
        header = value[0]
        # An object with less than 256 fields, whose ids have one byte.
        if header & 0b0111_0011 != 2:
            return None
        count = value[1]
        start = 2 + count
        ids = value[2:start]
        plan = self._plans.get((metadata, ids))
        if plan is None:
            plan = self._add(metadata, ids)
        width = (header >> 2 & 3) + 1
        offsets = numbers(value, start, count + 1, width)
        start += (count + 1) * width
        values = {}
        for (name, readers, convert), offset in zip(plan, offsets, strict=False):
            at = start + offset
            read = readers[value[at]]
            if read is not None:
                values[name] = read(value, at + 1)
            else:
                values[name] = convert(read_value(value, at, field_names(metadata)))
        return values

    def _add(self, metadata: bytes, ids: bytes) -> tuple[_Field, ...]:
        names = field_names(metadata)
        plan = tuple(self._fields[names[field]] for field in ids)
        return self._plans.add((metadata, ids), plan, text_size(metadata, ids, ids * 8))


def _readers(type_: LogicalType) -> _Readers:
    """The reader of a value by its first byte, where it needs no conversion."""
    # The first is null.
    readers = [READERS[0], *[None] * 255]
    for header in _AS_THEY_ARE.get(type(type_), ()):
        readers[header] = READERS[header]
    if isinstance(type_, logical.Int):
        low, high = type_.bounds
        for bits, header in _INTS.items():
            holds_all = low <= -(1 << bits - 1) and (1 << bits - 1) - 1 <= high
            read = READERS[header]
            readers[header] = read if holds_all else _within(read, low, high)
        for header in _DECIMALS:
            # BIGINT UNSIGNED beyond 64 bits with a sign.
            readers[header] = _within(_whole(READERS[header]), low, high)
    return tuple(readers)


def _whole(read: Any) -> Callable[[bytes, int], int]:
    def whole(data: bytes, at: int) -> int:
        if data[at]:
            raise Misfit
        return int(read(data, at))

    return whole


def _within(read: Any, low: int, high: int) -> Callable[[bytes, int], int]:
    def checked(data: bytes, at: int) -> int:
        number: int = read(data, at)
        if low <= number <= high:
            return number
        raise Misfit

    return checked
