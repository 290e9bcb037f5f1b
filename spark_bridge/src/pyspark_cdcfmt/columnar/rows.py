"""Decoded messages to the columns of the changes shape, in two steps.

What is decoded is soon out of the processor's caches, so few messages at a time become cells
(:meth:`Gathered.add`); Arrow's kernels cost the same for few rows as for many, so they run
once over all of them (:meth:`Gathered.finish`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from msgspec import Struct

from pyspark_cdcfmt.columnar.changes import cells_of, find_changes, find_images, values_at
from pyspark_cdcfmt.columnar.converters import ColumnConverter, rows_with_values
from pyspark_cdcfmt.columnar.metadata import Metadata
from pyspark_cdcfmt.columnar.origins import Origins, Sources
from pyspark_cdcfmt.columnar.plans import Plan

_INT32, _INT64 = pa.int32(), pa.int64()


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
        self._sources = Sources(plan.source)
        self._places: list[int] = []  # of the rows' messages in these two
        paths = plan.reader.paths
        self._has_commit_ts = "commit_ts" in paths
        self._time_path = paths["commit_ts" if self._has_commit_ts else "source_time"]

    def add(
        self,
        messages: Sequence[Struct],
        owners: Sequence[int],
        origins: Origins,
        index: Sequence[int] | None = None,
    ) -> None:
        """Rows of some more messages, with their numbers.

        Or of events, with those of their messages and their places in them.
        """
        plan = self._plan
        unusual: set[int] = set()
        changes = find_changes(plan, messages, unusual, index, origins=origins)
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
        cells = cells_of(plan, images.rows)
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
        self._sources.add(origins)
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
        places = pa.array(self._places, _INT32)
        layout = self._plan.layout
        index = pa.array(self._index, _INT32)
        told = Metadata(
            kinds=pa.array(self._kinds, _INT32),
            times=pa.array(self._times, _INT64).take(places),
            offsets=self._sources.offsets.take(places),
            index=index,
            absent=self._plan.absent,
            keyed=self._plan.keyed,
            has_commit_ts=self._has_commit_ts,
            unit=layout.times[2],
            by_source_time=layout.orders_by_source_time,
        )
        for name, (plain, type_) in metadata.items():
            if plain == "source":
                columns[name] = self._sources.column(type_, index, places)
            else:
                columns[name] = told.column(plain, type_)
        return columns


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
