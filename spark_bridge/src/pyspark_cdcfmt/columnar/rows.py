"""Decoded messages to the columns of the changes shape, in two steps.

What is decoded is soon out of the processor's caches, so few messages at a time become cells
(:meth:`Gathered.add`); Arrow's kernels cost the same for few rows as for many, so they run
once over all of them (:meth:`Gathered.finish`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cdcfmt_core.events import Message
from cdcfmt_core.sources import BadLine
from pyspark_cdcfmt.columnar.changes import CHANGE_TYPES, find_changes, find_images, values_at
from pyspark_cdcfmt.columnar.converters import ColumnConverter, rows_with_values
from pyspark_cdcfmt.columnar.plans import Plan

_INT32, _INT64 = pa.int32(), pa.int64()
_TSO_BITS = pa.scalar(18, _INT64)
_THOUSAND = pa.scalar(1000, _INT64)
_ZERO, _ZERO_RANK = pa.scalar(0, _INT64), pa.scalar(0, _INT32)
_CHANGE_TYPES = pa.array(CHANGE_TYPES, pa.string())
_PARTS = pa.array([int(not name.endswith(("preimage", "delete"))) for name in CHANGE_TYPES], _INT32)
_RANKS = pa.array([int(name != "delete") for name in CHANGE_TYPES], _INT32)


class Gathered:
    """Rows of the messages of one plan.

    ``owners`` are the numbers of the rows' messages; ``unusual`` are messages whose rows are
    the reference path's, whether or not there are some of theirs here; ``noted`` are the
    messages of cells that are counted, and under which text.
    """

    def __init__(self, plan: Plan) -> None:
        self.owners: list[int] = []
        self.unusual: set[int] = set()
        self.noted: list[tuple[int, str]] = []
        self._plan = plan
        self._cells: dict[str, list[pa.Array]] = {name: [] for name in plan.columns}
        self._kinds: list[int] = []
        self._index: list[int] = []
        self._times: list[int] = []  # of messages, or their commit_ts
        self._offsets: list[int | None] = []
        self._places: list[int] = []  # of the rows' messages in the two
        paths = plan.reader.paths
        self._has_commit_ts = "commit_ts" in paths
        self._time_path = paths["commit_ts" if self._has_commit_ts else "source_time"]

    def add(
        self,
        messages: Sequence[Struct],
        owners: Sequence[int],
        raw: Sequence[Message | BadLine],
        index: Sequence[int] | None = None,
    ) -> None:
        """Rows of some more messages, with their numbers.

        Or of events, with those of their messages and their places in them.
        """
        plan = self._plan
        unusual: set[int] = set()
        changes = find_changes(plan, messages, unusual, index)
        left_out: set[int] = set()
        images = find_images(plan, changes, left_out)
        places = images.changes
        if changes.messages is None or changes.index is None:
            unusual |= left_out
            self._index += [0] * len(places)
        else:
            in_message, index = changes.messages, changes.index
            unusual.update(in_message[change] for change in left_out)
            self._index += [index[change] for change in places]
            places = [in_message[change] for change in places]
        cells = list(zip(*images.rows, strict=True)) or [()] * (plan.width + len(plan.reader.flags))
        for place in plan.reader.flags:
            if False in cells[place]:
                unusual.update(places[row] for row, flag in enumerate(cells[place]) if not flag)
        for name, (place, column) in plan.columns.items():
            array, bad = column.gather(cells[place])
            self._cells[name].append(array)
            unusual.update(places[row] for row in bad)
        for place, check in plan.checked:
            unusual.update(places[row] for row in check.gather(cells[place])[1])
        for place in plan.surplus:
            unusual.update(places[row] for row in rows_with_values(cells[place]))
        for place, value, note in plan.noted:
            self.noted += [
                (owners[places[row]], note)
                for row, cell in enumerate(cells[place])
                if cell == value
            ]
        base = len(self._times)
        self._times += values_at(self._time_path, messages)
        self._offsets += [message.offset for message in raw]
        self._kinds += images.kinds
        self._places += [base + place for place in places] if base else places
        self.owners += [owners[place] for place in places]
        self.unusual.update(owners[place] for place in unusual)

    def finish(self, metadata: Mapping[str, tuple[str, pa.DataType]]) -> dict[str, pa.Array]:
        """The columns of all rows, by name.

        ``metadata`` are the wanted columns besides the table's own: their names, what those
        are without prefix, and types.
        """
        columns: dict[str, pa.Array] = {}
        for name, (_, column) in self._plan.columns.items():
            columns[name], bad = finished(column, self._cells[name])
            self.unusual.update(self.owners[row] for row in bad)
        kinds, places = pa.array(self._kinds, _INT32), pa.array(self._places, _INT32)
        times = pa.array(self._times, _INT64).take(places)
        for name, (plain, type_) in metadata.items():
            columns[name] = self._metadata(plain, type_, times, kinds, places)
        return columns

    def _metadata(
        self, plain: str, type_: pa.DataType, times: pa.Array, kinds: pa.Array, places: pa.Array
    ) -> pa.Array:
        if plain == "change_type":
            return _CHANGE_TYPES.take(kinds)
        if plain == "absent":
            return repeated(self._plan.absent, len(kinds), type_)
        if plain == "sequence":
            return self._sequence(type_, times, kinds, places)
        if plain == "commit_version" and self._has_commit_ts:
            return times
        if plain == "commit_timestamp":
            if self._has_commit_ts:
                micros = pc.multiply(pc.shift_right(times, _TSO_BITS), _THOUSAND)
            else:
                unit = pa.scalar(self._plan.layout.times[2], _INT64)
                micros = pc.multiply(times, unit)
            return pc.cast(micros, type_)
        return pa.nulls(len(kinds), type_)

    def _sequence(
        self, type_: pa.DataType, times: pa.Array, kinds: pa.Array, places: pa.Array
    ) -> pa.Array:
        count = len(kinds)
        if self._has_commit_ts:
            commits, ranks = times, _RANKS.take(kinds)
            if 0 in self._times:
                ranks = pc.if_else(pc.equal(commits, _ZERO), _ZERO_RANK, ranks)
        else:
            commits, ranks = pa.repeat(_ZERO, count), pa.repeat(_ZERO_RANK, count)
            if self._plan.layout.orders_by_source_time:
                commits = pc.shift_left(times, _TSO_BITS)
        offsets = pa.array(self._offsets, _INT64).take(places)
        index = pa.array(self._index, _INT32)
        return pa.StructArray.from_arrays(
            [commits, ranks, offsets, index, _PARTS.take(kinds)], fields=list(type_)
        )


def finished(column: ColumnConverter, arrays: Sequence[pa.Array]) -> tuple[pa.Array, list[int]]:
    """The array of a column from the gathered ones, and the rows that are unusual."""
    if len(arrays) == 1:
        return column.finish(arrays[0])
    if len({array.type for array in arrays}) == 1:
        return column.finish(pa.concat_arrays(arrays))
    # Some were gathered cell by cell.
    finished, unusual, base = [], [], 0
    for array in arrays:
        result, bad = column.finish(array)
        finished.append(result)
        unusual += [base + row for row in bad]
        base += len(array)
    return pa.concat_arrays(finished), unusual


def repeated(names: tuple[str, ...], count: int, type_: pa.DataType) -> pa.Array:
    """So many lists of the names."""
    size = len(names)
    offsets: Any = range(0, size * count + 1, size) if size else [0] * (count + 1)
    return pa.ListArray.from_arrays(
        pa.array(offsets, _INT32), pa.array(names * count, pa.string()), type=type_
    )
