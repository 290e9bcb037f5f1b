"""Layout of rows, for the compiled kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cdcfmt_core.events import TableSchema
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import MAX_TIMESTAMP
from cdcfmt_dms.decode import OPS
from cdcfmt_dms.schemas import encodings_of, place_of, time_of
from cdcfmt_toolkit.encodings import Encodings
from cdcfmt_toolkit.layout import Extra, Layout, Members

OTHERS: Final = (
    *("partition-key-type", "partition-key-value", "transaction-id", "transaction-record-id"),
    *("prev-transaction-id", "prev-transaction-record-id", "stream-position"),
)
METADATA: Final[Members] = {
    "timestamp": "other_time",
    "record-type": "row",
    "operation": "op",
    "schema-name": "database",
    "table-name": "table",
    "commit-timestamp": "source_time",
    **dict.fromkeys(OTHERS, "extra"),
}


def encodings(value: bytes, table: TableSchema) -> Encodings:
    return encodings_of(table)


def extra(envelope: Mapping[str, Any]) -> Mapping[tuple[str, ...], Extra]:
    return {("metadata", name): Extra(name, without=()) for name in OTHERS}


def limits(
    envelope: Mapping[str, Any], schemas: SchemaStore
) -> Mapping[tuple[str, ...], tuple[int, int]]:
    """A schema is valid up to the next control record of its table."""
    metadata = envelope["metadata"]
    low, high = schemas.span(*place_of(metadata), (time_of(metadata),))
    first = 0 if low is None else low[0]
    last = MAX_TIMESTAMP if high is None else high[0] - 1
    return {("metadata", "timestamp"): (first, last)}


def open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    return [
        Layout(
            members={"data": "after", "metadata": METADATA, options["beforeImageField"]: "before"},
            row_words=("data",),
            # The decoder reads deletes, since their nulls may not be NULL.
            ops={word: op for word, op in OPS.items() if op != "delete"},
            encodings=encodings,
            extra=extra,
            limits=limits,
            deleted_row="after",
            partial_before=True,
            times=(0, MAX_TIMESTAMP, 1),
            iso_times=True,
        )
    ]
