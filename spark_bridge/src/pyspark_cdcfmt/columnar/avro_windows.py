"""Messages side by side in one buffer, read at many places at once.

A place is an index into the buffer.  No length is believed: whoever walks keeps the places
within ``limit``, behind which there is padding, and looks at the end whether each walk ended
where its message does.  As places only grow, one that did has never left its message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

Places: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.uint64]
Flags: TypeAlias = npt.NDArray[np.bool_]

PADDING: Final = 2048
"""So far behind a place within ``limit`` everything may be read."""

_GOES_ON: Final = np.uint64(0x8080808080808080)
_GATHER: Final = np.uint64(0x0002040810204081)
_TOP_BYTE: Final = np.uint64(56)
_ALL_GO_ON: Final = 255
FOUR_GO_ON: Final = 15
"""Of a varint's bits: it is longer than those that are read as lengths."""

# By which of eight bytes go on: how many a varint has, and the bits of it that count.
_LENGTHS: Final = np.array(
    [next((at for at in range(8) if not bits >> at & 1), 8) + 1 for bits in range(256)], np.int64
)
_COUNTING: Final = np.array(
    [int.from_bytes(b"\x7f" * min(int(length), 8), "little") for length in _LENGTHS], np.uint64
)
_COUNTING_OF_FOUR: Final = _COUNTING & np.uint64(0x7F7F7F7F)
# Neighbours put together: seven bits each, then fourteen, then twenty-eight.
_TOGETHER: Final = tuple(
    (np.uint64(low), np.uint64(low << bits), np.uint64(shift))
    for low, bits, shift in (
        (0x007F007F007F007F, 8, 1),
        (0x00003FFF00003FFF, 16, 2),
        (0x000000000FFFFFFF, 32, 4),
    )
)
_ONE: Final = np.uint64(1)
_EIGHTH, _NINTH = np.uint64(56), np.uint64(63)


class Windows:
    """The messages' bytes: ``starts`` and ``ends`` of each, and eight at a time as ``words``."""

    def __init__(self, values: Sequence[bytes]) -> None:
        self.data = b"".join([*values, bytes(PADDING)])
        sizes = np.fromiter(map(len, values), np.int64, len(values))
        self.ends: Places = np.cumsum(sizes)
        self.starts: Places = self.ends - sizes
        self.limit = len(self.data) - PADDING + 1
        self.bytes = np.frombuffer(self.data, np.uint8)
        self.words = _at_any_place(self.data, "<u8", 8)
        self.floats = _at_any_place(self.data, "<f4", 4)
        self.doubles = _at_any_place(self.data, "<f8", 8)

    @property
    def all(self) -> Places:
        """The numbers of all messages."""
        return np.arange(len(self.starts))

    def differ(self, places: Places, expected: bytes) -> Flags:
        """Where something else stands than ``expected``."""
        result = np.zeros(len(places), np.bool_)
        for at in range(0, len(expected), 8):
            part = expected[at : at + 8]
            words = self.words[places + at if at else places]
            if len(part) < 8:
                words &= np.uint64((1 << 8 * len(part)) - 1)
            result |= words != np.uint64(int.from_bytes(part, "little"))
        return result

    def varints(self, places: Places) -> tuple[Places, Places, Places]:
        """How many bytes each varint has, which of the first eight go on, and its value.

        The value is without sign and of at most four bytes.  One of more than ten bytes has
        ten here.
        """
        words = self.words[places]
        sizes, bits = self._sizes(words, places)
        words &= _COUNTING_OF_FOUR.take(bits)
        for low, high, shift in _TOGETHER[:2]:
            words = (words & low) | ((words & high) >> shift)
        return sizes, bits, words.view(np.int64)

    def spans(self, places: Places) -> tuple[Places, Places, Flags]:
        """Bytes, or text: where each begins and ends, and which are too long to be there."""
        sizes, bits, lengths = self.varints(places)
        begins = places + sizes
        bad = (lengths & 1 != 0) | (bits & FOUR_GO_ON == FOUR_GO_ON)
        return begins, np.minimum(begins + (lengths >> 1), self.limit), bad

    def longs(self, places: Places) -> tuple[Places, Places, Flags]:
        """Longs: their values, where each ends, and which are none: of more than 64 bits."""
        words = self.words[places]
        sizes, bits = self._sizes(words, places)
        raw = words & _COUNTING.take(bits)
        for low, high, shift in _TOGETHER:
            raw = (raw & low) | ((raw & high) >> shift)
        bad = np.zeros(len(places), np.bool_)
        (long,) = np.nonzero(sizes > 8)
        if long.size:
            more = self.bytes[places[long] + 8].astype(np.uint64)
            most = self.bytes[places[long] + 9].astype(np.uint64)
            tenth = sizes[long] == 10
            raw[long] |= (more & np.uint64(0x7F)) << _EIGHTH
            raw[long] |= np.where(tenth, most << _NINTH, np.uint64(0))
            bad[long] = tenth & (most > _ONE)
        values = (raw >> _ONE) ^ (np.uint64(0) - (raw & _ONE))
        return values.view(np.int64), places + sizes, bad

    def _sizes(self, words: Words, places: Places) -> tuple[Places, Places]:
        bits = (((words & _GOES_ON) * _GATHER) >> _TOP_BYTE).view(np.int64)
        sizes = _LENGTHS.take(bits)
        if bits.size and bits.max() == _ALL_GO_ON:
            (long,) = np.nonzero(bits == _ALL_GO_ON)
            sizes[long] += self.bytes[places[long] + 8] >> 7
        return sizes, bits


def _at_any_place(data: bytes, type_: str, size: int) -> npt.NDArray[Any]:
    return np.ndarray((len(data) - size + 1,), type_, data, strides=(1,))
