"""Images straight from their variants, for a table whose column types are known.

The fast way for rows that are as they should be: the fields of an image and what reads each
of them are found once for all rows with the same fields.  Where anything is unusual it
gives up, and the way through :func:`~pyspark_cdcfmt.rows.variant_reader.decode_variant` tells
what is wrong, or finds that it is well after all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from cdcfmt_core import types as logical
from cdcfmt_core.caches import Cache, text_size
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column
from cdcfmt_core.types import LogicalType
from pyspark_cdcfmt.rows.event_values import Convert, Misfit
from pyspark_cdcfmt.rows.variant_reader import SCALARS, UNREADABLE, field_names, numbers, read_value

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
    """Reads the images of one table; ``converters`` are those of its columns."""

    def __init__(self, columns: Iterable[Column], converters: dict[str, Convert]) -> None:
        self._fields: dict[str, _Field] = {
            column.name: (column.name, _readers(column.type), converters[column.name])
            for column in columns
        }
        self._plans: Cache[tuple[bytes, bytes], tuple[_Field, ...]] = Cache(_MAX_BYTES)

    def read(self, value: bytes, metadata: bytes) -> dict[str, Any] | None:
        """The values of an image by column; None if the other way has to find out."""
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
    """By the first byte of a value, what reads it where it needs no conversion."""
    # The first is null.
    readers = [SCALARS[0], *[None] * 255]
    for header in _AS_THEY_ARE.get(type(type_), ()):
        readers[header] = SCALARS[header]
    if isinstance(type_, logical.Int):
        low, high = type_.bounds
        for bits, header in _INTS.items():
            holds_all = low <= -(1 << bits - 1) and (1 << bits - 1) - 1 <= high
            read = SCALARS[header]
            readers[header] = read if holds_all else _within(read, low, high)
        for header in _DECIMALS:
            # BIGINT UNSIGNED beyond 64 bits with a sign.
            readers[header] = _within(_whole(SCALARS[header]), low, high)
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
