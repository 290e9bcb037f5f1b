"""Choose the partition of a row; changes of one row stay in order.

The choices are TiCDC's dispatchers: by key values, table, commit_ts, or named columns.
The hash is our own, as no reader relies on which partition holds a row.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from cdcfmt_core.errors import EncodeError, OptionError, join_names
from cdcfmt_core.events import RowChange


def open_partitioner(
    name: str, columns: Sequence[str], partitions: int
) -> Callable[[RowChange], int]:
    """A function that returns the partition of a row.

    :raises OptionError: if ``columns`` are missing, or given to another partitioner.
    """
    if (name == "columns") != bool(columns):
        raise OptionError(
            "option partitionColumns: partitioner=columns needs it, and no other one has it; "
            f"partitioner is {name}"
        )
    if partitions == 1:
        return lambda event: 0
    if name == "ts":
        return lambda event: _commit_ts(event) % partitions
    if name == "index-value":
        return lambda event: _hash(event, event.table.key_columns) % partitions
    # By table: there are no columns.
    return lambda event: _hash(event, columns) % partitions


def _commit_ts(event: RowChange) -> int:
    if event.commit_ts is None:
        raise EncodeError(
            "partitioner=ts needs a commit_ts, and the event has none: set another partitioner"
        )
    return event.commit_ts


def _hash(event: RowChange, columns: Sequence[str]) -> int:
    """A hash of the table's name and the values of ``columns`` (empty: of the name only)."""
    table = event.table
    parts = [table.database, table.schema or "", table.table]
    # As TiCDC does: the new row, or the old one if there is no new row.
    image = event.after or event.before
    for name in columns:
        if image is None or name not in image.values:
            raise EncodeError(
                f"the row lacks column {name}, on which its partition depends; set another "
                f"partitioner (columns: {join_names(table.column_names)})"
            )
        parts += name, key_text(image.values[name])
    return zlib.crc32("\0".join(parts).encode("utf-8", "surrogatepass"))


def key_text(value: Any) -> str:
    """A value of a key as text, equal for equal values: 1.50 is 1.5."""
    if type(value) is not Decimal:
        return str(value)
    text = f"{value:f}"
    if "." in text:
        text = text.rstrip("0").removesuffix(".")
    return "0" if text == "-0" else text
