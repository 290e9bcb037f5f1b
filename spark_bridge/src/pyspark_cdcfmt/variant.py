"""Python values to Spark's VARIANT, and the text of JSON columns to Python values.

The layout is that of the Parquet project's *Variant Binary Encoding* (VariantEncoding.md;
sections are cited by name).  Where the spec leaves room, this does what Spark does:
Spark looks fields up by binary search with Java's ``String.compareTo``, so fields are
ordered by UTF-16 code units.

- None, bool, float → null, boolean, double
- int → the smallest of int8 to int64; beyond that decimal, and text beyond 38 digits
- Decimal → decimal4, decimal8 or decimal16 with its scale; text where decimal(38) cannot
- str, bytes → string, binary
- date, naive datetime, aware datetime → date, timestamp_ntz, timestamp (microseconds)
- timedelta → text as MySQL prints TIME, always with six decimals
- list and tuple → array; dict and GeometryValue → object
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import Any, TypeAlias

from cdcfmt_core.errors import EncodeError, UnsupportedTypeError, show
from cdcfmt_core.types import GeometryValue, InvalidValue

SIZE_LIMIT = 128 * 1024 * 1024
"""The most bytes that Spark takes for a value, and for its metadata."""

MAX_JSON_DEPTH = 250
"""The deepest JSON column that is parsed; orjson writes no deeper document than 254."""

_Ids: TypeAlias = dict[str, int]

# --- Text and numbers -----------------------------------------------------------------

_SURROGATE = re.compile("[\ud800-\udfff]")
MAX_UNSCALED = 10**38
"""The first integer that decimal(38) cannot hold."""

_MAX_PLAIN_EXPONENT = 500


def clean_text(text: str) -> str:
    """``text`` with U+FFFD for each lone surrogate: UTF-8 has no place for them."""
    return _SURROGATE.sub("\ufffd", text)


def time_text(value: timedelta) -> str:
    """As MySQL prints TIME(6): ``-838:59:59.000000``."""
    micros = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    sign = "-" if micros < 0 else ""
    seconds, micros = divmod(abs(micros), 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours:02}:{minutes:02}:{seconds:02}.{micros:06}"


def decimal_text(value: Decimal) -> str:
    """Plain digits, unless the exponent would make that thousands of characters."""
    text = str(value)
    if "E" not in text or (value and abs(value.adjusted()) > _MAX_PLAIN_EXPONENT):
        return text
    return format(value, "f") if value else "0"


def integer_text(value: int) -> str:
    """Decimal digits of any ``int``; ``str`` refuses more than 4300 of them."""
    return str(value) if abs(value) < MAX_UNSCALED else str(Decimal(value))


def unscaled(value: Decimal) -> tuple[int, int] | None:
    """Unscaled value and scale (0 to 38), or None if decimal(38) cannot hold ``value`` as it is."""
    text = decimal_text(value)
    whole, _, fraction = text.partition(".")
    try:
        # Faster than as_tuple().  Fails for NaN, infinity, exponents and > 4300 digits.
        number = int(whole + fraction)
    except ValueError:
        return None
    if len(fraction) > 38 or not -MAX_UNSCALED < number < MAX_UNSCALED:
        return None
    return number, len(fraction)


# --- Scalars (Encoding types: Primitive, Short string) --------------------------------


def _primitive(type_info: int) -> bytes:
    return bytes([type_info << 2])


_NULL, _TRUE, _FALSE = _primitive(0), _primitive(1), _primitive(2)
# Indexed by the number itself: Python counts negative indexes from the end.
_INT8 = [struct.pack("<Bb", 3 << 2, n if n < 128 else n - 256) for n in range(256)]
_INT16 = struct.Struct("<Bh").pack
_INT32 = struct.Struct("<Bi").pack
_INT64 = struct.Struct("<Bq").pack
_DOUBLE = struct.Struct("<Bd").pack
_DECIMAL4 = struct.Struct("<BBi").pack
_DECIMAL8 = struct.Struct("<BBq").pack
_SIZED = struct.Struct("<BI").pack
_SHORT = [bytes([size << 2 | 1]) for size in range(64)]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_NTZ = datetime(1970, 1, 1)
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def _bool(value: bool) -> bytes:
    return _TRUE if value else _FALSE


def _float(value: float) -> bytes:
    return _DOUBLE(7 << 2, value)


def _int(value: int) -> bytes:
    if -0x80 <= value < 0x80:
        return _INT8[value]
    if -0x8000 <= value < 0x8000:
        return _INT16(4 << 2, value)
    if -0x8000_0000 <= value < 0x8000_0000:
        return _INT32(5 << 2, value)
    if -0x8000_0000_0000_0000 <= value < 0x8000_0000_0000_0000:
        return _INT64(6 << 2, value)
    if -MAX_UNSCALED < value < MAX_UNSCALED:
        return _unscaled_decimal(value, 0)
    return _str(integer_text(value))


def _decimal(value: Decimal) -> bytes:
    exact = unscaled(value)
    return _str(decimal_text(value)) if exact is None else _unscaled_decimal(*exact)


def _unscaled_decimal(number: int, scale: int) -> bytes:
    # Spark refuses a decimal4 with more than 9 digits or a scale above 9, and so on.
    if scale <= 9 and -(10**9) < number < 10**9:
        return _DECIMAL4(8 << 2, scale, number)
    if scale <= 18 and -(10**18) < number < 10**18:
        return _DECIMAL8(9 << 2, scale, number)
    return bytes([10 << 2, scale]) + number.to_bytes(16, "little", signed=True)


def _str(value: str) -> bytes:
    try:
        data = value.encode()
    except UnicodeEncodeError:
        data = clean_text(value).encode()
    size = len(data)
    return _SHORT[size] + data if size < 64 else _sized(16, data)


def _sized(type_info: int, data: bytes) -> bytes:
    _check_size(len(data))
    return _SIZED(type_info << 2, len(data)) + data


def _bytes(value: bytes) -> bytes:
    return _sized(15, value)


def _date(value: date) -> bytes:
    return _INT32(11 << 2, value.toordinal() - _EPOCH_DAY)


def _datetime(value: datetime) -> bytes:
    if value.tzinfo is None:
        kind, since = 13 << 2, value - _EPOCH_NTZ
    else:
        kind, since = 12 << 2, value - _EPOCH
    return _INT64(kind, (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)


_SCALARS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda _: _NULL,
    bool: _bool,
    int: _int,
    float: _float,
    Decimal: _decimal,
    str: _str,
    bytes: _bytes,
    bytearray: _bytes,
    date: _date,
    datetime: _datetime,
    timedelta: lambda value: _str(time_text(value)),
}

# --- Arrays and objects (Encoding types: Array, Object) -------------------------------


def _width(largest: int) -> int:
    """Bytes for each id or offset.  The spec has 3 too; no reader needs it."""
    return 1 if largest < 0x100 else 2 if largest < 0x1_0000 else 4


def _pack(numbers: list[int], width: int) -> bytes:
    if width == 1:
        return bytes(numbers)
    return struct.pack(f"<{len(numbers)}{'H' if width == 2 else 'I'}", *numbers)


def _count(size: int) -> bytes:
    return bytes([size]) if size < 0x100 else struct.pack("<I", size)


def _check_size(size: int, what: str = "value") -> None:
    if size > SIZE_LIMIT:
        raise EncodeError(
            f"the {what} of a variant would have {size} bytes; Spark takes at most {SIZE_LIMIT}"
        )


def _offsets(pieces: list[bytes]) -> list[int]:
    offsets = list(accumulate(map(len, pieces), initial=0))
    _check_size(offsets[-1])
    return offsets


def _object_head(ids: list[int], offset_width: int) -> bytes:
    """Header, number of fields and field ids: all that stands before the offsets."""
    id_width = _width(max(ids, default=0))
    large = len(ids) > 0xFF
    header = large << 6 | (id_width - 1) << 4 | (offset_width - 1) << 2 | 2
    return bytes([header]) + _count(len(ids)) + _pack(ids, id_width)


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def _in_field_order(names: Iterable[str]) -> list[str]:
    """Names as Java orders them.  Code points give another order only beyond U+FFFF."""
    ordered = sorted(names)
    return ordered if "".join(ordered).isascii() else sorted(ordered, key=_utf16)


def _array(values: Sequence[Any], ids: _Ids, extra: _Ids) -> bytes:
    pieces = _pieces(values, ids, extra)
    offsets = _offsets(pieces)
    width = _width(offsets[-1])
    header = (len(pieces) > 0xFF) << 4 | (width - 1) << 2 | 3
    return b"".join([bytes([header]), _count(len(pieces)), _pack(offsets, width), *pieces])


def _object(fields: Mapping[str, Any], ids: _Ids, extra: _Ids) -> bytes:
    """``extra`` takes the names that the table's dictionary ``ids`` lacks."""
    try:
        names = _in_field_order(fields)
    except TypeError:
        raise UnsupportedTypeError("an object of a variant has text keys only") from None
    if _SURROGATE.search("".join(names)):
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
    return b"".join([_object_head(field_ids, width), _pack(offsets, width), *pieces])


def _pieces(values: Iterable[Any], ids: _Ids, extra: _Ids) -> list[bytes]:
    """Each value encoded; calls cost most here, so small numbers do without."""
    pieces: list[bytes] = []
    add = pieces.append
    scalar_of = _SCALARS.get
    for value in values:
        kind = type(value)
        if kind is int and -0x80 <= value < 0x80:
            add(_INT8[value])
            continue
        scalar = scalar_of(kind)
        add(scalar(value) if scalar is not None else _other(value, kind, ids, extra))
    return pieces


def _other(value: Any, kind: type, ids: _Ids, extra: _Ids) -> bytes:
    if kind is dict:
        return _object(value, ids, extra)
    if kind is list or kind is tuple:
        return _array(value, ids, extra)
    if kind is GeometryValue:
        return _object(value._asdict(), ids, extra)
    if kind is not InvalidValue:
        for base in kind.__mro__[1:-1]:
            if base in _SCALARS:
                return _SCALARS[base](value)
            if base in (dict, list, tuple):
                return _other(value, base, ids, extra)
    raise UnsupportedTypeError(f"a variant cannot hold {kind.__name__}: {show(value)}")


# --- Metadata (Metadata encoding) and whole variants ----------------------------------


def _metadata(names: Sequence[str]) -> bytes:
    words = [clean_text(name).encode() for name in names]
    offsets = list(accumulate(map(len, words), initial=0))
    width = _width(max(offsets[-1], len(words)))
    # The spec sorts by bytes, Spark by UTF-16: the flag says only what is true.
    in_order = bool(words) and all(a < b for a, b in pairwise(words))
    header = (width - 1) << 6 | in_order << 4 | 1
    numbers = _pack([len(words), *offsets], width)
    return b"".join([bytes([header]), numbers, *words])


class VariantEncoder:
    """Images of one table to ``(value, metadata)``; all share the metadata of its columns.

    ``names`` are the table's columns.  Keys of nested objects that are no column extend
    the metadata of their row only.
    """

    __slots__ = ("_extended", "_heads", "_ids", "_metadata", "_ordered", "_row")

    _CACHED_METADATA = 64
    _CACHED_METADATA_BYTES = 4096

    def __init__(self, names: Iterable[str]) -> None:
        ordered = _in_field_order(dict.fromkeys(names))
        self._ordered = tuple(ordered)
        self._ids = {name: index for index, name in enumerate(ordered)}
        self._metadata = _metadata(ordered)
        self._extended: dict[tuple[str, ...], bytes] = {}
        self._heads = {width: _object_head(list(self._ids.values()), width) for width in (1, 2, 4)}
        # With one name itemgetter gives no tuple.
        self._row = itemgetter(*ordered) if len(ordered) > 1 else None

    def encode_object(self, values: Mapping[str, Any]) -> tuple[bytes, bytes]:
        """An image.  A key that it lacks is absent from the object, which is not null."""
        if len(values) != len(self._ordered) or self._row is None:
            return self.encode(values)
        try:
            row = self._row(values)
        except KeyError:
            return self.encode(values)
        extra: _Ids = {}
        try:
            pieces = _pieces(row, self._ids, extra)
        except RecursionError:
            raise _too_deep() from None
        offsets = _offsets(pieces)
        width = _width(offsets[-1])
        value = b"".join([self._heads[width], _pack(offsets, width), *pieces])
        return self._finish(value, extra)

    def encode(self, value: Any) -> tuple[bytes, bytes]:
        """Any value."""
        extra: _Ids = {}
        try:
            (piece,) = _pieces((value,), self._ids, extra)
        except RecursionError:
            raise _too_deep() from None
        return self._finish(piece, extra)

    def _finish(self, value: bytes, extra: _Ids) -> tuple[bytes, bytes]:
        _check_size(len(value))
        return value, self._extend(tuple(extra)) if extra else self._metadata

    def _extend(self, extra: tuple[str, ...]) -> bytes:
        """The metadata with more names; rows of one shape repeat them, so a few are kept."""
        metadata = self._extended.get(extra)
        if metadata is None:
            metadata = _metadata(self._ordered + extra)
            _check_size(len(metadata), "metadata")
            if len(metadata) <= self._CACHED_METADATA_BYTES:
                if len(self._extended) >= self._CACHED_METADATA:
                    self._extended.clear()
                self._extended[extra] = metadata
        return metadata


def _too_deep() -> EncodeError:
    return EncodeError("the value is nested too deeply for a variant")


_NO_TABLE = VariantEncoder(())


def encode_variant(value: Any) -> tuple[bytes, bytes]:
    """Any value as ``(value, metadata)``."""
    return _NO_TABLE.encode(value)
