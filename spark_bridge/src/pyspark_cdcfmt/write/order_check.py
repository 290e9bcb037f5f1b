"""Whether the changes of one key come in their order, within one task."""

from __future__ import annotations

from typing import Any

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import RowChange
from pyspark_cdcfmt.rows.rows_to_events import InputEvent

MAX_KEYS = 1 << 17
"""So many keys are remembered at most, half of them at least; about 50 MB.  A change that
is out of order by more keys than that is not seen."""

_ADVICE = (
    "changes of one key must come in order: repartition by the key and sortWithinPartitions by "
    "_sequence (changes) or commit_ts and _source (events), or set ordered=false"
)


class OrderCheck:
    """Remembers the last position of each key, by a hash of table and key."""

    def __init__(self, max_keys: int = MAX_KEYS) -> None:
        self._half = max_keys // 2
        # The older half is forgotten as a whole: no bookkeeping per change.
        self._recent: dict[int, tuple[Any, Any]] = {}
        self._older: dict[int, tuple[Any, Any]] = {}

    def __len__(self) -> int:
        return len(self._recent) + len(self._older)

    def check(self, read: InputEvent) -> None:
        """:raises EncodeError: if this change comes before one that is there already."""
        event = read.event
        if read.order is None or not isinstance(event, RowChange):
            return
        names = event.table.key_columns
        image = event.after or event.before
        if image is None or not names:
            return
        key = [image.values.get(name) for name in names]
        self._check(read, event, key)
        before = None if event.before is None else event.before.values
        # A change of the key moves the row: of both its places it is a change.
        if before is not None and image is event.after and before.keys() >= set(names):
            left = [before[name] for name in names]
            if left != key:
                self._check(read, event, left)

    def _check(self, read: InputEvent, event: RowChange, cells: list[Any]) -> None:
        table = event.table
        key = hash((table.database, table.schema, table.table, *map(str, cells)))
        last = self._recent.get(key) or self._older.get(key)
        position = (read.order_by, read.order)
        if last is not None and last[0] == read.order_by and read.order < last[1]:
            raise EncodeError(
                f"a change at {_show(read.order)} comes after one of the same key at "
                f"{_show(last[1])}; {_ADVICE}",
                table=f"{table.database}.{table.table}",
                commit_ts=event.commit_ts,
            )
        self._recent[key] = position
        if len(self._recent) >= self._half:
            self._older, self._recent = self._recent, {}


def _show(order: Any) -> str:
    return f"({', '.join(map(str, order))})" if isinstance(order, tuple) else str(order)
