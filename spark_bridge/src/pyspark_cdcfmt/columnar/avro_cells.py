"""Cells that were found in a buffer to Arrow arrays, without a Python value of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdcfmt_core.wire_avro import shortest_double
from pyspark_cdcfmt.columnar.avro_maps import MapWalk, Walked
from pyspark_cdcfmt.columnar.avro_windows import Flags, Places, Windows

_BINARY, _STRING, _UINT64 = pa.binary(), pa.string(), pa.uint64()
_DIGITS: Final = 8
"""So many a double of fewest digits has at most; beyond that it is the float's own value."""
_MUCH_LESS_THAN_A_DIGIT: Final = 1e-3
_MANTISSA, _EXPONENT = np.uint32((1 << 23) - 1), np.uint32(0xFF << 23)


def cells_of(
    windows: Windows,
    walk: MapWalk,
    walked: Walked,
    rows: Places,
    wire: Mapping[str, pa.DataType],
) -> tuple[dict[str, pa.Array], Places]:
    """The cells of columns in some of the images that were walked, and which rows have bad ones.

    ``wire`` are the types of the columns that are wanted: numbers of 64 bits, texts or bytes.
    """
    columns: dict[str, pa.Array] = {}
    bad = np.zeros(len(rows), np.bool_)
    whole = pa.py_buffer(windows.data)
    for place, cell in enumerate(walk.cells):
        type_ = wire.get(cell.name)
        nulls = walked.nulls[place][rows]
        if cell.form == "bytes":
            if type_ is not None:
                begins, ends = walked.begins[place], walked.ends[place]
                spans = _spans(whole, begins, ends, len(windows.data))
                array = _taken(spans, rows, nulls)
                if type_ == _STRING:
                    array, wrong = _text(array)
                    bad[wrong] = True
                columns[cell.name] = array
            continue
        begins = walked.begins[place][rows]
        if cell.form == "long":
            values, _, wrong_ones = windows.longs(begins)
            bad |= wrong_ones & ~nulls
            if type_ is not None:
                numbers = values.view(np.uint64) if type_ == _UINT64 else values
                columns[cell.name] = pa.array(numbers, mask=nulls)
        elif type_ is not None:
            columns[cell.name] = (
                doubles_of(windows.floats[begins], nulls)
                if cell.form == "float"
                else pa.array(windows.doubles[begins], mask=nulls)
            )
    return columns, np.nonzero(bad)[0]


def _spans(whole: pa.Buffer, begins: Places, ends: Places, size: int) -> pa.Array:
    """All spans, and between two of them what nobody needs; the first one is at 1."""
    offsets = np.empty(2 * len(begins) + 2, np.int32)
    offsets[0], offsets[-1] = 0, size
    offsets[1:-1:2], offsets[2:-1:2] = begins, ends
    return pa.Array.from_buffers(_BINARY, len(offsets) - 1, [None, pa.py_buffer(offsets), whole])


def _taken(spans: pa.Array, rows: Places, nulls: Flags) -> pa.Array:
    return spans.take(pa.array(2 * rows + 1, mask=nulls))


def _text(array: pa.Array) -> tuple[pa.Array, Places]:
    text = array.view(_STRING)
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return text, _numbers(
            [row for row, value in enumerate(array.to_pylist()) if not _is_utf8(value)]
        )
    return text, _numbers([])


def _is_utf8(value: bytes | None) -> bool:
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False


def _numbers(values: list[int]) -> Places:
    return np.array(values, np.int64)


def doubles_of(floats: npt.NDArray[Any], nulls: Flags) -> pa.Array:
    """What :func:`shortest_double` makes of them, mostly from the digits that Arrow prints."""
    floats = np.where(nulls, np.float32(1.5), floats)
    doubles: Any = pc.cast(pc.cast(pa.array(floats), _STRING), pa.float64()).to_numpy()
    with np.errstate(all="ignore"):
        magnitudes = np.log10(np.abs(doubles))
        scaled = doubles * 10.0 ** (_DIGITS - 1 - np.floor(magnitudes))
        has_more_digits = np.abs(scaled - np.rint(scaled)) > _MUCH_LESS_THAN_A_DIGIT
        near_power_of_ten = np.abs(magnitudes - np.rint(magnitudes)) < _MUCH_LESS_THAN_A_DIGIT
        doubles = np.where(has_more_digits, floats.astype(np.float64), doubles)
    bits = floats.view(np.uint32)
    exponents = bits & _EXPONENT
    # A power of two's neighbours are not equally far away, and below the normal numbers there
    # are fewer digits than Python is asked for.
    odd = (bits & _MANTISSA == 0) | (exponents == 0) | (exponents == _EXPONENT)
    (doubtful,) = np.nonzero(odd | near_power_of_ten)
    known: dict[bytes, float] = {}
    for row in doubtful.tolist():
        raw = floats[row].tobytes()
        if raw not in known:
            known[raw] = shortest_double(float(floats[row]), raw)
        doubles[row] = known[raw]
    return pa.array(doubles, mask=nulls)
