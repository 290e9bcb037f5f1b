"""Conversion of Python values to Spark's VARIANT, and back.

The format is the Parquet project's *Variant Binary Encoding* (VariantEncoding.md;
sections are cited by name).  Where the spec allows choices, this does what Spark does:
Spark looks fields up by binary search with Java's ``String.compareTo``, so fields are
ordered by UTF-16 code units.

- None, bool, float → null, boolean, double
- int → the smallest of int8 to int64; larger: decimal; more than 38 digits: text
- Decimal → decimal4, decimal8 or decimal16 with its scale; text if decimal(38) cannot hold it
- str, bytes → string, binary
- date, naive datetime, aware datetime → date, timestamp_ntz, timestamp (microseconds)
- timedelta → text as MySQL prints TIME, always with six decimals
- list and tuple → array; dict and GeometryValue → object

:func:`decode_variant` reads variants of any writer: ids and offsets of every width, sorted
metadata or not; timestamps are datetimes in UTC.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

from cdcfmt_core.errors import EncodeError, UnsupportedTypeError, show
from cdcfmt_core.types import GeometryValue, InvalidValue
from pyspark_cdcfmt.rows.variant_scalars import (
    READ_UINT32,
    READERS,
    SURROGATE,
    WRITERS,
    check_size,
    clean_text,
)

_Ids: TypeAlias = dict[str, int]

# --- Arrays and objects (Encoding types: Array, Object) -------------------------------


def _width(largest: int) -> int:
    """Bytes per id or offset.  The spec also allows 3; no reader needs it."""
    return 1 if largest < 0x100 else 2 if largest < 0x1_0000 else 4


def _pack(numbers: list[int], width: int) -> bytes:
    return b"".join([number.to_bytes(width, "little") for number in numbers])


def _count(size: int) -> bytes:
    return bytes([size]) if size < 0x100 else struct.pack("<I", size)


def _offsets(pieces: Sequence[bytes]) -> list[int]:
    offsets = list(accumulate(map(len, pieces), initial=0))
    check_size(offsets[-1])
    return offsets


def field_order(names: Iterable[str]) -> list[str]:
    """Names in Java's order, which differs from code point order only beyond U+FFFF."""
    ordered = sorted(names)
    if "".join(ordered).isascii():
        return ordered
    return sorted(ordered, key=lambda name: name.encode("utf-16-be", "surrogatepass"))


def _array(values: Sequence[Any], ids: _Ids, extra: _Ids) -> bytes:
    pieces = _pieces(values, ids, extra)
    offsets = _offsets(pieces)
    width = _width(offsets[-1])
    header = (len(pieces) > 0xFF) << 4 | (width - 1) << 2 | 3
    return b"".join([bytes([header]), _count(len(pieces)), _pack(offsets, width), *pieces])


def _object(fields: Mapping[str, Any], ids: _Ids, extra: _Ids) -> bytes:
    """Encode an object; names that the table's dictionary ``ids`` lacks are added to ``extra``."""
    try:
        names = field_order(fields)
    except TypeError:
        raise UnsupportedTypeError("the keys of an object in a variant must be text") from None
    if SURROGATE.search("".join(names)):
        return _object({clean_text(name): fields[name] for name in names}, ids, extra)
    field_ids = []
    for name in names:
        field_id = ids.get(name)
        if field_id is None:
            field_id = extra.setdefault(name, len(ids) + len(extra))
        field_ids.append(field_id)
    pieces = _pieces([fields[name] for name in names], ids, extra)
    offsets = _offsets(pieces)
    width = _width(offsets[-1])
    id_width = _width(max(field_ids, default=0))
    header = (len(pieces) > 0xFF) << 6 | (id_width - 1) << 4 | (width - 1) << 2 | 2
    head = [bytes([header]), _count(len(pieces)), _pack(field_ids, id_width)]
    return b"".join([*head, _pack(offsets, width), *pieces])


def _pieces(values: Iterable[Any], ids: _Ids, extra: _Ids) -> list[bytes]:
    pieces = []
    for value in values:
        # In a comprehension each level of nesting would take one more frame.
        pieces.append(_value(value, type(value), ids, extra))
    return pieces


def _value(value: Any, kind: type, ids: _Ids, extra: _Ids) -> bytes:
    if kind in WRITERS:
        return WRITERS[kind](value)
    if kind is dict:
        return _object(value, ids, extra)
    if kind is list or kind is tuple:
        return _array(value, ids, extra)
    if kind is GeometryValue:
        return _object(value._asdict(), ids, extra)
    if kind is not InvalidValue:
        for base in kind.__mro__[1:-1]:
            if base in WRITERS or base in (dict, list, tuple):
                return _value(value, base, ids, extra)
    raise UnsupportedTypeError(f"a variant cannot hold {kind.__name__}: {show(value)}")


# --- Metadata (Metadata encoding) and whole variants ----------------------------------


def _metadata(names: Sequence[str]) -> bytes:
    words = [clean_text(name).encode() for name in names]
    offsets = list(accumulate(map(len, words), initial=0))
    width = _width(max(offsets[-1], len(words)))
    # The flag means sorted by bytes (the spec), but names are in UTF-16 order (Spark).
    in_order = bool(words) and all(a < b for a, b in pairwise(words))
    header = (width - 1) << 6 | in_order << 4 | 1
    numbers = _pack([len(words), *offsets], width)
    return b"".join([bytes([header]), numbers, *words])


class VariantEncoder:
    """Encodes images of one table; all share the metadata of its columns, ``names``.

    Keys of nested objects that are not columns extend only the metadata of their row.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._ordered = field_order(dict.fromkeys(names))
        self._ids = {name: index for index, name in enumerate(self._ordered)}
        self._metadata = _metadata(self._ordered)

    def encode(self, value: Any) -> tuple[bytes, bytes]:
        """Encode any value as ``(value, metadata)``; keys that an image lacks are absent."""
        extra: _Ids = {}
        try:
            encoded = _value(value, type(value), self._ids, extra)
        except RecursionError:
            raise EncodeError("the value is nested too deeply for a variant") from None
        check_size(len(encoded))
        if not extra:
            return encoded, self._metadata
        metadata = _metadata([*self._ordered, *extra])
        check_size(len(metadata), "metadata")
        return encoded, metadata


encode_variant = VariantEncoder(()).encode


# --- The way back ---------------------------------------------------------------------


def decode_variant(value: bytes, metadata: bytes) -> Any:
    """The Python value of a variant.

    :raises EncodeError: if the bytes are not a variant, or of a later version of the encoding.
    """
    try:
        # More values than bytes would mean that several offsets point to the same value.
        return _read_value(value, 0, _field_names(metadata), [len(value)])
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
        raise EncodeError(f"version {header & 0x0F} of the variant encoding is unknown")
    width = (header >> 6) + 1
    size = int.from_bytes(metadata[1 : 1 + width], "little")
    offsets = _numbers(metadata, 1 + width, size + 1, width)
    start = 1 + width * (size + 2)
    return tuple(metadata[start + begin : start + end].decode() for begin, end in pairwise(offsets))


def _numbers(data: bytes, start: int, count: int, width: int) -> list[int]:
    """Unsigned integers of ``width`` bytes each."""
    end = start + count * width
    if end > len(data):
        raise IndexError("cut off")
    if width == 1:
        return [*data[start:end]]
    return [int.from_bytes(data[at : at + width], "little") for at in range(start, end, width)]


def _read_value(data: bytes, at: int, names: tuple[str, ...], budget: list[int]) -> Any:
    basic, info = data[at] & 3, data[at] >> 2
    if basic == 1:
        return data[at + 1 : at + 1 + info].decode()
    if basic == 0:
        if info not in READERS:
            raise EncodeError(f"a variant of type {info} cannot be written to any format")
        return READERS[info](data, at + 1)
    if basic == 2:
        return _read_object(data, at + 1, info, names, budget)
    large, width = info >> 2 & 1, (info & 3) + 1
    count, at = _read_count(data, at + 1, large, budget)
    offsets = _numbers(data, at, count + 1, width)
    start = at + (count + 1) * width
    return [_read_value(data, start + offset, names, budget) for offset in offsets[:count]]


def _read_object(
    data: bytes, at: int, info: int, names: tuple[str, ...], budget: list[int]
) -> dict[str, Any]:
    large, id_width, width = info >> 4 & 1, (info >> 2 & 3) + 1, (info & 3) + 1
    count, at = _read_count(data, at, large, budget)
    ids = _numbers(data, at, count, id_width)
    at += count * id_width
    offsets = _numbers(data, at, count + 1, width)
    start = at + (count + 1) * width
    return {
        names[field]: _read_value(data, start + offset, names, budget)
        for field, offset in zip(ids, offsets, strict=False)
    }


def _read_count(data: bytes, at: int, large: int, budget: list[int]) -> tuple[int, int]:
    count, end = (READ_UINT32(data, at), at + 4) if large else (data[at], at + 1)
    budget[0] -= count
    if budget[0] < 0:
        raise IndexError("more values than bytes")
    return count, end
