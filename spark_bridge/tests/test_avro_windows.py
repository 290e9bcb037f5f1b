"""What reads many messages at once finds what the plain readers find."""

from __future__ import annotations

import math
import struct

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from cdcfmt_core.avro_output import write_long
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.wire_avro import read_long, shortest_double
from pyspark_cdcfmt.columnar.avro_cells import doubles_of
from pyspark_cdcfmt.columnar.avro_windows import Windows

LONGS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**14), 2**14),
    st.builds(lambda bits, sign: sign * 2**bits, st.integers(0, 62), st.sampled_from([-1, 1])),
)
VARINTS = st.one_of(LONGS.map(write_long), st.binary(min_size=1, max_size=12))


@given(st.lists(VARINTS, min_size=1))
@example([b"\xff" * 9 + b"\x01", b"\xff" * 9 + b"\x02", b"\xff" * 10, b"\x80" * 9 + b"\x00"])
def test_longs(encoded: list[bytes]) -> None:
    windows = Windows(encoded)
    values, ends, bad = windows.longs(windows.starts)
    for at, (start, value, end) in enumerate(zip(windows.starts, values, ends, strict=True)):
        try:
            expected = read_long(windows.data, int(start))
        except DecodeError:
            assert bad[at]
        else:
            assert not bad[at]
            assert (value, end) == expected


@given(st.lists(st.binary(max_size=30), min_size=1), st.binary(min_size=1, max_size=20))
def test_differ(values: list[bytes], expected: bytes) -> None:
    values += [expected, expected + b"more", expected[:-1]]
    windows = Windows(values)
    found = windows.differ(windows.starts, expected)
    for start, differs in zip(windows.starts, found, strict=True):
        assert differs != windows.data.startswith(expected, start)


BITS = st.one_of(
    st.integers(0, 2**32 - 1),
    # As people write them: with few digits.
    st.builds(lambda n, e: float_bits(n / 10**e), st.integers(-(10**7), 10**7), st.integers(0, 12)),
    st.integers(-45, 38).map(lambda e: float_bits(10.0**e)),
    st.integers(-149, 127).map(lambda e: float_bits(2.0**e)),
)


def float_bits(value: float) -> int:
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return int(bits)


@given(st.lists(BITS, min_size=1))
def test_floats(bits: list[int]) -> None:
    floats = np.array(bits, np.uint32).view(np.float32)
    doubles = doubles_of(floats, np.zeros(len(bits), np.bool_)).to_pylist()
    for value, double in zip(floats, doubles, strict=True):
        expected = shortest_double(float(value), value.tobytes())
        assert repr(double) == repr(expected) or (math.isnan(double) and math.isnan(expected))
