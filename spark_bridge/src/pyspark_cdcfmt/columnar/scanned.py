"""What is read of many documents at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa


@attrs.frozen
class Scanned:
    """Rows of documents.

    ``left`` are the documents that were not read, ascending.  ``messages`` are the documents that
    rows lie in, ascending, and ``kinds`` the numbers of their kinds in ``CHANGE_TYPES``.
    ``times`` are the commit_ts of documents,
    and ``other_times`` their other times.  ``columns`` are the cells of rows by column, in
    wire types, NULL where they are.
    """

    left: Sequence[int]
    messages: npt.NDArray[Any]
    kinds: npt.NDArray[Any]
    times: npt.NDArray[Any]
    other_times: npt.NDArray[Any]
    columns: Mapping[str, pa.Array]

    def of(
        self, documents: Sequence[int]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Mapping[str, pa.Array]]:
        """The rows of some documents: the place of each one's among them, kinds and columns."""
        places = np.full(len(self.times), -1, np.int64)
        places[documents] = np.arange(len(documents))
        of_rows = places[self.messages]
        (rows,) = np.nonzero(of_rows >= 0)
        if len(rows) == len(of_rows):
            return of_rows, self.kinds, self.columns
        some = pa.array(rows)
        columns = {name: array.take(some) for name, array in self.columns.items()}
        return of_rows[rows], self.kinds[rows], columns
