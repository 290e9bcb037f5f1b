"""Avro messages that are like an example, many at once, to columns of their cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from cdcfmt_core.avro_layout import AvroLayout, ImageField
from pyspark_cdcfmt.columnar.avro_cells import cells_of
from pyspark_cdcfmt.columnar.avro_example import Number, Same, Skipped, Step
from pyspark_cdcfmt.columnar.avro_maps import MapWalk, Walked
from pyspark_cdcfmt.columnar.avro_windows import PADDING, Flags, Places, Windows
from pyspark_cdcfmt.columnar.scanned import Scanned
from pyspark_cdcfmt.columnar.structs import Unlike

MAX_BYTES: Final = (1 << 31) - 1 - PADDING
"""Of documents that are scanned together: Arrow's offsets have 32 bits."""

_INSERT, _PREIMAGE, _POSTIMAGE, _DELETE = range(4)
_KINDS: Final[Mapping[str, Mapping[str, int]]] = {
    "insert": {"after": _INSERT},
    "update": {"before": _PREIMAGE, "after": _POSTIMAGE},
    "delete": {"before": _DELETE},
}
_THERE: Final = 2
"""The byte before what is not NULL."""


class AvroScan:
    """Reads messages with these steps one behind the other, and with the columns of ``walk``.

    ``wire`` are the types of the cells that are wanted.  Commit_ts lie ``between`` the two.

    :raises Unlike: if there is something that it cannot read.
    """

    def __init__(
        self,
        layout: AvroLayout,
        steps: Sequence[Step],
        walk: MapWalk,
        wire: Mapping[str, pa.DataType],
        between: tuple[int, int],
    ) -> None:
        self.steps = steps
        self.walk = walk
        self.between = {"commit_ts": between, "other_time": layout.times[:2]}
        self.ops = len(layout.ops)
        if any(step.form not in ("long", "boolean") for step in steps if isinstance(step, Skipped)):
            raise Unlike("it has other values in front of images")
        self.roles = [step.role for step in steps if isinstance(step, ImageField)]
        if sorted(self.roles) != ["after", "before"]:
            raise Unlike("it has other images")
        if any(len(step.expected) > PADDING // 2 for step in steps if isinstance(step, Same)):
            raise Unlike("its names are too long")
        # By operations: the kind of each image, below zero where there is none.
        self.kinds = {
            role: np.array([_KINDS.get(op, {}).get(role, -1) for op in layout.ops], np.int64)
            for role in self.roles
        }
        self._wire = wire

    def scan(self, windows: Windows, documents: Places) -> Scanned:
        """The rows of those documents that are like the example; ``MAX_BYTES`` at most.

        What is found tells their places in ``documents``, which are numbers in ``windows``.
        """
        steps = _Steps(self, windows, documents)
        bad = steps.bad
        found, owners, kinds = steps.images()
        while True:
            # A preimage lies behind its postimage.
            (rows,) = np.nonzero(~bad[owners])
            rows = rows[np.lexsort((kinds[rows], owners[rows]))]
            columns, wrong = cells_of(windows, self.walk, found, rows, self._wire)
            if not wrong.size:
                break
            bad[owners[rows[wrong]]] = True
        return Scanned(
            left=np.nonzero(bad)[0].tolist(),
            messages=owners[rows].astype(np.int32),
            kinds=kinds[rows].astype(np.int32),
            times=steps.times["commit_ts"],
            other_times=steps.times["other_time"],
            columns=columns,
        )


class _Steps:
    """One walk through all documents: ``bad`` are those that are not like the example."""

    def __init__(self, scan: AvroScan, windows: Windows, documents: Places) -> None:
        count = len(documents)
        self._scan = scan
        self._windows = windows
        self._places = windows.starts[documents]
        self._ends = windows.ends[documents]
        self._ops = np.zeros(count, np.int64)
        self.times = {role: np.zeros(count, np.int64) for role in scan.between}
        self.bad: Flags = np.zeros(count, np.bool_)

    def images(self) -> tuple[Walked, Places, Places]:
        """Where the cells of all images lie, and of each image its document and its kind."""
        scan = self._scan
        first = next(at for at, step in enumerate(scan.steps) if isinstance(step, ImageField))
        for step in scan.steps[:first]:
            self._skip(step)
        # What is known to be bad is not walked through.
        kinds = {
            role: np.where(self.bad, -1, of_ops[self._ops]) for role, of_ops in scan.kinds.items()
        }
        there = np.array([kinds[role] >= 0 for role in scan.roles])
        # One behind the other, as they lie there.
        numbers = np.cumsum(there.T.reshape(-1)).reshape(-1, len(scan.roles)).T - 1
        count = int(numbers[-1, -1]) + 1 if numbers.size else 0
        walked = scan.walk.room(count)
        owners, kinds_of_images = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for role, has, number in zip(scan.roles, there, numbers, strict=True):
            (documents,) = np.nonzero(has)
            owners[number[documents]] = documents
            kinds_of_images[number[documents]] = kinds[role][documents]
        at = 0
        for step in scan.steps[first:]:
            if isinstance(step, ImageField):
                self._walk(there[at], numbers[at], walked)
                at += 1
            else:
                self._skip(step)
        self.bad |= self._places != self._ends
        mistaken = scan.walk.mistaken(self._windows, walked)
        self.bad[owners[mistaken]] = True
        return walked, owners, kinds_of_images

    def _walk(self, there: Flags, numbers: Places, walked: Walked) -> None:
        windows = self._windows
        self.bad |= windows.bytes.take(self._places) != there * np.uint8(_THERE)
        places = np.minimum(self._places + 1, windows.limit)
        (documents,) = np.nonzero(there & ~self.bad)
        places[documents], bad = self._scan.walk.walk(
            windows, places[documents], numbers[documents], walked
        )
        self.bad[documents[bad]] = True
        self._places = places

    def _skip(self, step: Step) -> None:
        windows, places = self._windows, self._places
        if isinstance(step, Same):
            self.bad |= windows.differ(places, step.expected)
            places = places + len(step.expected)
        elif isinstance(step, Number) and step.role == "op":
            numbers = windows.bytes.take(places).astype(np.int64)
            self._ops = np.minimum(numbers >> 1, self._scan.ops - 1)
            self.bad |= numbers != self._ops << 1
            places = places + 1
        elif isinstance(step, Number | Skipped) and step.form == "long":
            numbers, places, bad = windows.longs(places)
            self.bad |= bad
            if isinstance(step, Number):
                low, high = self._scan.between[step.role]
                self.bad |= (numbers < low) | (numbers > high)
                self.times[step.role] = numbers
        else:
            self.bad |= windows.bytes.take(places) > 1
            places = places + 1
        self._places = np.minimum(places, windows.limit)
