"""The compiled kernel's way from rows to messages: whole batches, without an object per row.

The kernel writes rows in order until it refuses one.  The reference encoder writes that row in
its place, and the kernel goes on behind it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final, TypeAlias

import attrs
import pyarrow as pa

from cdcfmt_core import types as logical
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import RowChange, TableSchema
from cdcfmt_core.mysql.members import MAX_ENUM, MAX_SET, enum_index
from cdcfmt_core.row_messages import (
    Members,
    Number,
    OfExtra,
    Part,
    RowMessage,
    RowMessages,
    RowRules,
)
from cdcfmt_core.sources.lines import begins_message
from cdcfmt_core.types import LogicalType
from pyspark_cdcfmt.rows.changes_to_events import FIRST_TSO, ChangeInput
from pyspark_cdcfmt.rows.rows_to_events import EventInput
from pyspark_cdcfmt.write_options import WriteOptions

try:
    import cdcfmt_kernel
except ImportError:
    _INSTALLED = False
else:
    _INSTALLED = True

ENOUGH: Final = 64
"""So many rows in a row are worth the kernel's while."""
MOST_AT_ONCE: Final = 4_096
"""Rows that the reference is given where the kernel refuses one after the other."""
MAX_TABLE_BYTES: Final = 64 << 20

Taken: TypeAlias = Any
"""Messages as lines and how many there are, or a record batch: key, value and perhaps partition."""


@attrs.define
class KernelWriter:
    """Writes the rows of one task; ``rows_by`` counts those by the kernel and by the reference."""

    _kernel: cdcfmt_kernel.Writer
    _rows: EventInput | ChangeInput
    _rules: RowRules
    _as_lines: bool
    _revision: int = 0
    _table_bytes: int = 0
    rows_by: tuple[int, int] = (0, 0)

    @classmethod
    def open(
        cls,
        rows: EventInput | ChangeInput,
        options: WriteOptions,
        rules: RowRules | None,
        *,
        as_lines: bool,
    ) -> KernelWriter | None:
        """None where the reference writes everything."""
        if not _INSTALLED or rules is None:
            return None
        shape: Any = "events"
        if isinstance(rows, ChangeInput):
            changes = {"prefix": options["metadataPrefix"], "first_commit_ts": FIRST_TSO}
            shape = {"changes": changes}
        settings = {
            "shape": shape,
            "ops": {op: {"op": as_op, "note": note} for op, (as_op, note) in rules.ops.items()},
            "needs_commit_ts": rules.needs_commit_ts,
            "splits": rules.splits,
            "ordered": options["ordered"],
            "max_bytes": rules.max_bytes,
            "zone": describe_offsets(rules.time_zone),
            "partitions": _partitions(rules),
            "lines": as_lines,
        }
        writer = cls(cdcfmt_kernel.Writer(json.dumps(settings)), rows, rules, as_lines)
        if isinstance(rows, ChangeInput):
            writer._add(rows.table, None)
        return writer

    def write(self, batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, Taken | None]]:
        """The rows of a batch in order, with their messages; None: the reference writes these."""
        if not self._kernel.open(batch):
            self._count(0, batch.num_rows)
            yield batch, None
            return
        at, step = 0, 1
        while at < batch.num_rows:
            start = at
            # A preimage that waits may belong to any of the rows.
            if not (isinstance(self._rows, ChangeInput) and self._rows.waiting):
                at = self._kernel.write(at, self._rules.now())
                if at > start:
                    self._count(at - start, 0)
                    yield batch.slice(start, at - start), self._take()
                stop = self._kernel.stop
                if not stop or stop == "full" or (stop == "unknown" and self._learn(batch, at)):
                    continue
            step = 1 if at - start >= ENOUGH else min(2 * step, MOST_AT_ONCE)
            rows = batch.slice(at, step)
            self._count(0, rows.num_rows)
            yield rows, None
            at += rows.num_rows
            if isinstance(self._rows, EventInput) and self._rows.revision != self._revision:
                self._revision = self._rows.revision
                self._kernel.clear_tables()

    def _take(self) -> Taken:
        return self._kernel.take_lines() if self._as_lines else pa.record_batch(self._kernel.take())

    def _count(self, by_kernel: int, by_reference: int) -> None:
        self.rows_by = self.rows_by[0] + by_kernel, self.rows_by[1] + by_reference

    def _learn(self, batch: pa.RecordBatch, at: int) -> bool:
        """Whether the table of a row could be made known."""
        try:
            (read,) = self._rows.events([batch.slice(at, 1)])
        except EncodeError:
            return False
        if not isinstance(read.event, RowChange):
            return False
        self._add(read.event.table, at)
        return True

    def _add(self, table: TableSchema, row: int | None) -> None:
        try:
            messages = self._rules.messages(table) or {}
        except EncodeError:
            # The encoder says so of each row.
            messages = {}
        if self._as_lines and not all(map(_is_line, messages.values())):
            messages = {}
        described = json.dumps(describe_table(table, messages))
        self._table_bytes += len(described)
        if self._table_bytes > MAX_TABLE_BYTES:
            self._kernel.clear_tables()
            self._table_bytes = len(described)
        self._kernel.add_table(described, row)

    def remember(self, key: tuple[str, ...], order_by: Any, order: Any) -> Any:
        """The kernel's memory of positions, for :class:`OrderCheck`."""
        kind = order_by if isinstance(order_by, str) else "\0".join(map(str, order_by))
        position = list(order) if isinstance(order, tuple) else [order]
        name = "\0".join(key).encode("utf-8", "surrogatepass")
        last = self._kernel.check(name, kind.encode("utf-8", "surrogatepass"), position)
        if last is None:
            return None
        return tuple(last[: len(position)]) if isinstance(order, tuple) else last[0]

    def take_counts(self) -> dict[str, int]:
        """How many rows were counted under which notes, since the last call."""
        return dict(self._kernel.take_counts())


def _partitions(rules: RowRules) -> dict[str, Any] | None:
    if rules.partitions is None:
        return None
    name, columns = rules.partitioner
    by: Any = {"index-value": "key", "table": "table", "ts": "commit_ts"}
    return {"count": rules.partitions, "by": by.get(name, {"columns": columns})}


def _is_line(message: RowMessage) -> bool:
    """Whether the value alone is a line of which a reader gets the message back."""
    first = message.value[0]
    begins = first.encode() if isinstance(first, str) else b""
    return message.key is None and begins[:1] == b"{" and not begins_message(begins)


def describe_table(table: TableSchema, messages: RowMessages) -> dict[str, Any]:
    """A table's columns and messages, as data for the kernel."""
    places = {name: place for place, name in enumerate(table.column_names)}
    if not places.keys() >= set(table.key_columns):
        messages = {}
    return {
        "name": [table.database, table.schema or "", table.table],
        "columns": [
            {"name": column.name, "printer": _printer(column.type)} for column in table.columns
        ],
        "keys": [places[name] for name in table.key_columns if name in places],
        "messages": {
            op: {
                "key": None if message.key is None else [_part(p, places) for p in message.key],
                "value": [_part(part, places) for part in message.value],
            }
            for op, message in messages.items()
        },
    }


def _part(part: Part, places: dict[str, int]) -> dict[str, Any]:
    if isinstance(part, str):
        return {"text": part}
    if isinstance(part, Number):
        return {"number": part.name}
    if isinstance(part, OfExtra):
        is_text = part.type == "text"
        return {"extra": {"name": part.name, "default": part.default, "is_text": is_text}}
    described = attrs.asdict(part)
    if isinstance(part, Members):
        labels = described.pop("labels").items()
        members = [{"place": places[name], "label": label} for name, label in labels]
        return {"members": {**described, "members": members}}
    return {"either": {**described, "place": places[described.pop("column")]}}


_PLAIN: dict[type, str] = {
    logical.Bool: "bool",
    logical.Decimal: "decimal",
    logical.Text: "text",
    logical.Binary: "binary",
    logical.Date: "date",
    logical.Year: "year",
    logical.Json: "json",
}
_CLOCKS: dict[type, str] = {
    logical.DateTime: "date_time",
    logical.Timestamp: "timestamp",
    logical.Time: "time",
}


def _printer(type_: LogicalType) -> dict[str, Any]:
    if isinstance(type_, logical.Int):
        low, high = type_.bounds
        return {"logical": "int", "low": low, "high": high}
    if isinstance(type_, logical.Bit):
        return {"logical": "int", "low": 0, "high": (1 << (type_.bits or 64)) - 1}
    if isinstance(type_, logical.Float):
        return {"logical": "float", "bits": type_.bits}
    if isinstance(type_, logical.DateTime | logical.Timestamp | logical.Time):
        return {"logical": _CLOCKS[type(type_)], "fsp": type_.fsp}
    if isinstance(type_, logical.Enum):
        names, index = type_.names or (), enum_index(type_.names)
        members = {name: index(name) for name in ("", *names)}
        most = MAX_ENUM if type_.names is None else len(names)
        return {"logical": "enum", "members": members, "most": most}
    if isinstance(type_, logical.Set):
        names = type_.names or ()
        members = {name: 1 << bit for bit, name in enumerate(names)}
        most = MAX_SET if type_.names is None else (1 << len(names)) - 1
        return {"logical": "set", "members": members, "most": most}
    return {"logical": _PLAIN.get(type(type_), "other")}


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_DAY = datetime(2040, 1, 1, tzinfo=UTC)
"""MySQL's TIMESTAMP ends in January 2038."""
_DAY, _STEP, _MICRO = timedelta(days=1), timedelta(minutes=15), timedelta(microseconds=1)


@functools.cache
def describe_offsets(zone: tzinfo) -> dict[str, Any]:
    """The offsets of a zone by spans of instants, in microseconds; None where it changes."""
    starts: list[int] = []
    offsets: list[int | None] = []

    def add(start: datetime, end: datetime) -> bool:
        found = {at.astimezone(zone).utcoffset() for at in (start, end - _MICRO)}
        offset = found.pop() if len(found) == 1 else None
        if offset is None and end - start > _STEP:
            return False
        micros = None if offset is None else offset // _MICRO
        if not offsets or offsets[-1] != micros:
            starts.append((start - _EPOCH) // _MICRO)
            offsets.append(micros)
        return True

    day = _EPOCH
    while day < _LAST_DAY:
        if not add(day, day + _DAY):
            for number in range(_DAY // _STEP):
                add(day + _STEP * number, day + _STEP * (number + 1))
        day += _DAY
    return {"starts": [*starts, (day - _EPOCH) // _MICRO], "offsets": offsets}
