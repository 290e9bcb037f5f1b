"""What rows of changes have besides the table's own columns."""

from __future__ import annotations

from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_cdcfmt.columnar.changes import CHANGE_TYPES

_INT32, _INT64 = pa.int32(), pa.int64()
_TSO_BITS = pa.scalar(18, _INT64)
_THOUSAND = pa.scalar(1000, _INT64)
_ZERO, _ZERO32 = pa.scalar(0, _INT64), pa.scalar(0, _INT32)
_CHANGE_TYPES = pa.array(CHANGE_TYPES, pa.string())
_PARTS = pa.array([int(not name.endswith(("preimage", "delete"))) for name in CHANGE_TYPES], _INT32)
_RANKS = pa.array([int(name != "delete") for name in CHANGE_TYPES], _INT32)


@attrs.frozen
class Metadata:
    """``kinds``, ``times``, ``offsets`` and ``index`` are of rows.

    Times are commit_ts, or source times of ``unit`` microseconds; then ``by_source_time`` tells
    that commit_ts is exactly ``time << 18``.  ``absent`` are the columns that the wire lacks.
    ``keyed``: the rows have key columns.
    """

    kinds: pa.Array
    times: pa.Array
    offsets: pa.Array
    index: pa.Array
    absent: tuple[str, ...]
    keyed: bool
    has_commit_ts: bool
    unit: int = 1
    by_source_time: bool = False

    def column(self, plain: str, type_: pa.DataType) -> pa.Array:
        """One of the columns, by its name without prefix."""
        if plain == "change_type":
            return _CHANGE_TYPES.take(self.kinds)
        if plain in ("absent", "invalid"):
            # A row with a changed value is the reference path's.
            names = self.absent if plain == "absent" else ()
            return repeated(names, len(self.kinds), type_)
        if plain == "sequence":
            return self._sequence(type_)
        if plain == "commit_version" and self.has_commit_ts:
            return self.times
        if plain == "commit_timestamp":
            if self.has_commit_ts:
                micros = pc.multiply(pc.shift_right(self.times, _TSO_BITS), _THOUSAND)
            else:
                micros = pc.multiply(self.times, pa.scalar(self.unit, _INT64))
            return pc.cast(micros, type_)
        return pa.nulls(len(self.kinds), type_)

    def _sequence(self, type_: pa.DataType) -> pa.Array:
        count = len(self.kinds)
        offsets, index = self.offsets, self.index
        if self.has_commit_ts:
            commits = self.times
            unknown = pc.equal(commits, _ZERO)
            ranks = pc.if_else(unknown, _ZERO32, _RANKS.take(self.kinds))
            if self.keyed:
                offsets = pc.if_else(unknown, offsets, _ZERO)
                index = pc.if_else(unknown, index, _ZERO32)
        else:
            commits, ranks = pa.repeat(_ZERO, count), pa.repeat(_ZERO32, count)
            if self.by_source_time:
                commits = pc.shift_left(self.times, _TSO_BITS)
        return pa.StructArray.from_arrays(
            [commits, ranks, offsets, index, _PARTS.take(self.kinds)],
            fields=list(type_),
        )


def repeated(names: tuple[str, ...], count: int, type_: pa.DataType) -> pa.Array:
    """So many lists of the names."""
    size = len(names)
    offsets: Any = range(0, size * count + 1, size) if size else [0] * (count + 1)
    return pa.ListArray.from_arrays(
        pa.array(offsets, _INT32), pa.array(names * count, pa.string()), type=type_
    )
