"""What is read of many documents at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
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
