"""Maps from column names to a union's values, walked through in many messages at once.

The order of a map's keys is any: Go's is random.  At each step each walk guesses its column
from the beginning of the key, by a perfect hash of the names, and goes on by that.  Whether the
guesses were right is seen afterwards, column by column, when whatever was taken for a column's
key is compared with its name.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias

import attrs
import numpy as np

from cdcfmt_core.avro_output import write_bytes, write_long
from pyspark_cdcfmt.columnar.avro_windows import FOUR_GO_ON, PADDING, Flags, Places, Windows, Words
from pyspark_cdcfmt.columnar.structs import Unlike

CellForm: TypeAlias = Literal["long", "float", "double", "bytes"]
"""How a value stands there; as ``bytes`` text, too."""

_LONGEST_NAME: Final = 63
_LONGEST_HEAD: Final = PADDING // 8
_FIXED: Final[dict[CellForm, int]] = {"float": 4, "double": 8}
_WORD: Final = 8
_MAX_SLOTS: Final = 1 << 20
_TRIES: Final = 64


@attrs.frozen
class MapCell:
    """A column's values: the number of their branch, what stands before each, and their form."""

    name: str
    branch: int
    form: CellForm
    head: bytes = b""


@attrs.frozen
class Walked:
    """Where the cells of images lie: matrices of columns and images.

    ``keys`` are the places of their keys, below zero where there is none; ``begins`` and
    ``ends`` those of their values, of text behind its length; ``nulls`` tells which are NULL.
    """

    keys: Places
    begins: Places
    ends: Places
    nulls: Flags


class MapWalk:
    """Walks through maps that have exactly these columns, each once.

    :raises Unlike: if they are too many, or their names are too long or too much alike.
    """

    def __init__(self, cells: Sequence[MapCell]) -> None:
        names = [write_bytes(cell.name.encode("utf-8", "surrogateescape")) for cell in cells]
        if any(len(name) > _LONGEST_NAME for name in names):
            raise Unlike("a column's name is too long")
        if any(len(cell.head) > _LONGEST_HEAD for cell in cells):
            raise Unlike("what stands before values is too long")
        self.cells = tuple(cells)
        self._begin = write_long(len(cells))
        self._keys = names
        self._hash = _PerfectHash(names)
        self._key_sizes = _numbers(map(len, names))
        # The last one of each is that of NULL.
        self._branches = np.array([*(cell.branch << 1 for cell in cells), 0], np.uint8)
        self._heads = _numbers([*(1 + len(cell.head) for cell in cells), 1])
        self._fixed = _numbers([*(_FIXED.get(cell.form, 0) for cell in cells), 0])
        # All bits or none.
        self._are_texts = _numbers([*(-(cell.form == "bytes") for cell in cells), 0])
        self._are_longs = _numbers([*(-(cell.form == "long") for cell in cells), 0])

    def room(self, images: int) -> Walked:
        """Where no cell was found yet; only its keys mean anything."""
        shape = (len(self.cells), images)
        return Walked(
            np.full(shape, -1, np.int64),
            np.empty(shape, np.int64),
            np.empty(shape, np.int64),
            np.empty(shape, np.bool_),
        )

    def walk(
        self, windows: Windows, places: Places, images: Places, walked: Walked
    ) -> tuple[Places, Flags]:
        """Where the maps end that begin at the places, and which are none that this can read.

        What is found is put into ``walked``, under the numbers ``images``; it is to be looked
        at by :meth:`mistaken`.
        """
        if not places.size:
            return places, np.zeros(0, np.bool_)
        data, limit = windows.bytes, windows.limit
        count = walked.keys.shape[1]
        keys, begins = walked.keys.reshape(-1), walked.begins.reshape(-1)
        ends, nulls = walked.ends.reshape(-1), walked.nulls.reshape(-1)
        bad = windows.differ(places, self._begin)
        places = np.minimum(places + len(self._begin), limit)
        odd = np.zeros(len(places), np.int64)
        for _ in self.cells:
            column = self._hash.guess(windows.words, places)
            branch_at = places + self._key_sizes.take(column)
            branch = data.take(branch_at)
            null = branch == 0
            kind = np.where(null, len(self.cells), column)
            bad |= branch != self._branches.take(kind)
            value_at = branch_at + self._heads.take(kind)
            sizes, bits, lengths = windows.varints(value_at)
            texts = self._are_texts.take(kind)
            bad |= bits & texts & FOUR_GO_ON == FOUR_GO_ON
            lengths &= texts
            odd |= lengths
            begin = value_at + (sizes & texts)
            end = begin + (lengths >> 1)
            end += self._fixed.take(kind)
            end += sizes & self._are_longs.take(kind)
            np.minimum(end, limit, out=end)
            slots = column * count + images
            keys[slots], begins[slots], ends[slots], nulls[slots] = places, begin, end, null
            places = end
        bad |= odd & 1 != 0
        bad |= data.take(places) != 0
        return np.minimum(places + 1, limit), bad

    def mistaken(self, windows: Windows, walked: Walked) -> Flags:
        """The images of which a cell is missing, or is another column's."""
        bad: Flags = np.any(walked.keys < 0, axis=0)
        for cell, key, places, nulls in zip(
            self.cells, self._keys, walked.keys, walked.nulls, strict=True
        ):
            places = np.maximum(places, 0)
            bad |= windows.differ(places, key)
            if cell.head:
                bad |= windows.differ(places + (len(key) + 1), cell.head) & ~nulls
        return bad


class _PerfectHash:
    """Guesses which of the keys stands somewhere, by as few words of it as tell them apart."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        words = -(-max(map(len, keys), default=0) // _WORD)
        for count in range(1, words + 1):
            if len({key[: count * _WORD] for key in keys}) == len(keys):
                self._find(keys, count)
                return
        raise Unlike("columns have the same name")

    def _find(self, keys: Sequence[bytes], count: int) -> None:
        # Keys of the same first byte have the same length.
        self._masks = [
            np.array(
                [_mask(1 + (first >> 1) - at * _WORD) for first in range(256)],
                np.uint64,
            )
            for at in range(count)
        ]
        parts = [
            np.array(
                [int.from_bytes(key[at * _WORD : (at + 1) * _WORD], "little") for key in keys],
                np.uint64,
            )
            for at in range(count)
        ]
        chance = random.Random(0)
        bits = max(8, (len(keys) * len(keys) // 2).bit_length())
        for _ in range(_TRIES):
            self._factors = [np.uint64(chance.getrandbits(64) | 1) for _ in parts]
            self._shift = np.uint64(64 - bits)
            slots = self._slots(parts)
            if len(set(slots.tolist())) == len(keys):
                self._columns = np.zeros(1 << bits, np.int64)
                self._columns[slots] = np.arange(len(keys))
                return
        raise Unlike("the columns' names are not to be told apart")

    def _slots(self, parts: Sequence[Words]) -> Places:
        total = parts[0] * self._factors[0]
        for part, factor in zip(parts[1:], self._factors[1:], strict=True):
            total += part * factor
        return (total >> self._shift).view(np.int64)

    def guess(self, words: Words, places: Places) -> Places:
        """The number of the only key that can stand at each place; any, if none does."""
        first = words[places]
        size = (first & np.uint64(0xFF)).view(np.int64)
        parts = [first & self._masks[0].take(size)]
        for at, masks in enumerate(self._masks[1:], 1):
            parts.append(words[places + at * _WORD] & masks.take(size))
        return self._columns.take(self._slots(parts))


def _mask(size: int) -> int:
    return (1 << 8 * min(max(size, 0), _WORD)) - 1


def _numbers(values: Iterable[int]) -> Places:
    return np.array([*values], np.int64)
