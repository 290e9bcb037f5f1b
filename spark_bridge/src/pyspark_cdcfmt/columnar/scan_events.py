"""What was scanned to the columns of the events shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark_cdcfmt.columnar.changes import CHANGE_TYPES
from pyspark_cdcfmt.columnar.event_rows import EventColumns
from pyspark_cdcfmt.columnar.origins import Origins
from pyspark_cdcfmt.columnar.scan_plans import ScanPlan
from pyspark_cdcfmt.columnar.scan_rows import rows_of_other_keys
from pyspark_cdcfmt.columnar.scanned import Scanned

_INSERT, _PREIMAGE, _POSTIMAGE, _DELETE = range(len(CHANGE_TYPES))
_OPS: Final = ("insert", "update", "update", "delete")
"""By kinds of rows."""


class GatheredScanEvents(EventColumns):
    """Events of the messages of one plan; as :class:`~pyspark_cdcfmt.columnar.rows.Gathered`."""

    def __init__(self, plan: ScanPlan) -> None:
        super().__init__(plan.tokens, plan.event, plan.unit, ("commit_ts", "other_time"))
        self._plan = plan

    def add(
        self,
        scanned: Scanned,
        documents: Sequence[int],
        owners: Sequence[int],
        origins: Origins,
    ) -> None:
        """Events of some of the documents that were scanned, with their messages' numbers."""
        places, kinds, columns = scanned.of(documents)
        of_rows = places.tolist()
        base = len(self._image_owners)
        befores: list[int | None] = [None] * len(documents)
        afters: list[int | None] = [None] * len(documents)
        ops = [""] * len(documents)
        for row, (place, kind) in enumerate(zip(of_rows, kinds.tolist(), strict=True), base):
            ops[place] = _OPS[kind]
            if kind == _DELETE or (kind == _PREIMAGE and self._plan.before_updates):
                befores[place] = row
            elif kind != _PREIMAGE:
                afters[place] = row
        unusual = []
        for name, tokens in self._plan.tokens.items():
            array, bad = tokens.gather(columns[name].to_pylist())
            self._tokens[name].append(array)
            unusual += bad
        keys = [columns[name] for name in self._plan.keys]
        unusual += rows_of_other_keys(kinds, keys).tolist()
        self._befores += befores
        self._afters += afters
        self._ops += ops
        self._index += [0] * len(documents)
        self._times["commit_ts"] += scanned.times[documents].tolist()
        self._times["other_time"] += scanned.other_times[documents].tolist()
        self._sources.add(origins)
        self._image_owners += [owners[place] for place in of_rows]
        self.owners += owners
        self.unusual.update(owners[of_rows[row]] for row in unusual)
