"""What was scanned to the columns of the changes shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_cdcfmt.columnar.changes import CHANGE_TYPES
from pyspark_cdcfmt.columnar.metadata import Metadata
from pyspark_cdcfmt.columnar.origins import Origins, Sources
from pyspark_cdcfmt.columnar.scan_plans import ScanPlan
from pyspark_cdcfmt.columnar.scanned import Scanned

_PREIMAGE = CHANGE_TYPES.index("update_preimage")


class GatheredScans:
    """Rows of the messages of one plan, as :class:`~.rows.Gathered` has them."""

    def __init__(self, plan: ScanPlan) -> None:
        self.owners: list[int] = []
        self.unusual: set[int] = set()
        self.noted: list[tuple[int, str]] = []
        self._plan = plan
        self._columns: list[Mapping[str, pa.Array]] = []
        self._kinds: list[npt.NDArray[np.int32]] = []
        self._times: list[npt.NDArray[np.int64]] = []
        self._sources = Sources(plan.source)
        self._owners: list[npt.NDArray[np.int64]] = []

    def add(
        self,
        scanned: Scanned,
        documents: Sequence[int],
        owners: Sequence[int],
        origins: Origins,
    ) -> None:
        """Rows of some of the documents that were scanned, with the numbers of their messages."""
        of_rows, kinds, columns = scanned.of(documents)
        self._columns.append(columns)
        self._kinds.append(kinds)
        self._times.append(scanned.times[documents][of_rows])
        self._sources.add(origins, of_rows.tolist())
        self._owners.append(np.array(owners, np.int64)[of_rows])

    def finish(self, metadata: Mapping[str, tuple[str, pa.DataType]]) -> dict[str, pa.Array]:
        """The columns of all rows, by name."""
        plan = self._plan
        owners, kinds = np.concatenate(self._owners), np.concatenate(self._kinds)
        unusual = [np.zeros(0, np.int64)]
        columns: dict[str, pa.Array] = {}
        for name, convert in plan.columns.items():
            columns[name], bad = convert(self._wire(name))
            unusual.append(bad)
        for name, check in plan.checked.items():
            unusual.append(check(self._wire(name))[1])
        for name in plan.surplus:
            unusual.append(_rows_where(pc.is_valid(self._wire(name))))
        unusual.append(rows_of_other_keys(kinds, map(self._wire, plan.keys)))
        self.unusual.update(owners[np.concatenate(unusual)].tolist())
        times = pa.array(np.concatenate(self._times))
        index = pa.array(np.zeros(len(kinds), np.int32))
        told = Metadata(
            kinds=pa.array(kinds),
            times=times,
            offsets=self._sources.offsets,
            index=index,
            absent=plan.absent,
            keyed=plan.keyed,
            has_commit_ts=True,
        )
        for name, (plain, type_) in metadata.items():
            if plain == "source":
                columns[name] = self._sources.column(type_, index)
            else:
                columns[name] = told.column(plain, type_)
        if not plan.before_updates:
            (rows,) = np.nonzero(kinds != _PREIMAGE)
            owners = owners[rows]
            columns = {name: array.take(pa.array(rows)) for name, array in columns.items()}
        self.owners = owners.tolist()
        return columns

    def _wire(self, name: str) -> pa.Array:
        arrays = [columns[name] for columns in self._columns]
        return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def _rows_where(flags: pa.Array) -> npt.NDArray[np.int64]:
    (rows,) = np.nonzero(flags.to_numpy(zero_copy_only=False))
    return rows


def rows_of_other_keys(
    kinds: npt.NDArray[np.int32], keys: Iterable[pa.Array]
) -> npt.NDArray[np.int64]:
    """The preimages of updates that changed the key, of which these are the columns."""
    (before,) = np.nonzero(kinds == _PREIMAGE)
    other = np.zeros(len(before), np.bool_)
    for array in keys:
        old, new = array.take(pa.array(before)), array.take(pa.array(before + 1))
        both_null = pc.and_(pc.is_null(old), pc.is_null(new))
        same = pc.fill_null(pc.equal(old, new), both_null)
        other |= ~same.to_numpy(zero_copy_only=False)
    return before[other]
