"""The compiled kernel's way from rows to messages: whole batches, without an object per row.

The kernel writes rows in order until it refuses one.  The reference encoder writes that row in
its place, and the kernel goes on behind it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, TypeAlias

import attrs
import pyarrow as pa

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import RowChange, TableSchema
from cdcfmt_core.io.sources.whole_messages import begins_message
from cdcfmt_core.toolkit.row_messages import Allowance, Held, RowMessage, RowMessages, RowRules
from cdcfmt_core.toolkit.row_plans import describe_batches, describe_offsets, describe_table
from cdcfmt_core.toolkit.value_printers import ROUNDED
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

_NONE: Final = RowMessages({})

Taken: TypeAlias = Any
"""Messages as lines and how many there are, or a record batch: key, value and perhaps partition."""


@attrs.define
class KernelWriter:
    """Writes the rows of one task; ``rows_by`` counts those by the kernel and by the reference."""

    _kernel: cdcfmt_kernel.Writer
    _rows: EventInput | ChangeInput
    _rules: RowRules
    _line_format: str | None
    _revision: int = 0
    _table_bytes: int = 0
    _tables: list[TableSchema] = attrs.field(factory=list)
    _allowed: dict[tuple[int, int, int], Allowance] = attrs.field(factory=dict)
    rows_by: tuple[int, int] = (0, 0)

    @classmethod
    def open(
        cls,
        rows: EventInput | ChangeInput,
        options: WriteOptions,
        rules: RowRules | None,
        *,
        line_format: str | None,
    ) -> KernelWriter | None:
        """None where the reference writes everything; ``line_format`` is that of files."""
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
            "lines": line_format is not None,
            "rounded": ROUNDED,
            "batches": None if rules.batches is None else describe_batches(rules.batches),
        }
        writer = cls(cdcfmt_kernel.Writer(json.dumps(settings)), rows, rules, line_format)
        if isinstance(rows, ChangeInput):
            writer._add(rows.table, None)
        return writer

    def write(self, batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, Taken | None]]:
        """The rows of a batch in order, with their messages; None: the reference writes these."""
        if not self._kernel.open(batch):
            yield self._of_reference(batch)
            return
        at, step = 0, 1
        while at < batch.num_rows:
            start = at
            # A preimage that waits may belong to any of the rows.
            if not (isinstance(self._rows, ChangeInput) and self._rows.waiting):
                at = self._write(at)
                if at > start:
                    self._count(at - start, 0)
                    yield batch.slice(start, at - start), self._take()
                stop = self._kernel.stop
                if not stop or stop == "full" or (stop == "unknown" and self._learn(batch, at)):
                    continue
                if stop == "not allowed" and self._allow():
                    continue
            step = 1 if at - start >= ENOUGH else min(2 * step, MOST_AT_ONCE)
            rows = batch.slice(at, step)
            yield self._of_reference(rows)
            at += rows.num_rows
            if isinstance(self._rows, EventInput) and self._rows.revision != self._revision:
                self._revision = self._rows.revision
                self._clear_tables()

    def _write(self, at: int) -> int:
        if self._rules.batches is None:
            return self._kernel.write(at, self._rules.now())
        # The encoder has what was begun while the kernel does not write.
        for partition, held in self._rules.take_held().items():
            self._kernel.hold(partition, held.rows, held.key, held.value)
        at = self._kernel.write(at, self._rules.now())
        begun = self._kernel.take_held()
        self._rules.hold({number: Held(rows, key, value) for number, rows, key, value in begun})
        return at

    def _take(self) -> Taken:
        if self._line_format is not None:
            return self._kernel.take_lines()
        return pa.record_batch(self._kernel.take())

    def _of_reference(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, None]:
        """Rows that the encoder writes next: it has to know what was written before them."""
        self._spend()
        self._count(0, rows.num_rows)
        return rows, None

    def _spend(self) -> None:
        for of_rows, count in self._kernel.take_allowed():
            self._allowed[of_rows].spend(count)
        self._allowed.clear()

    def _allow(self) -> bool:
        """Whether the encoder allows rows like the one at which the kernel stopped."""
        number, partition, version = of_rows = self._kernel.wanted
        if of_rows in self._allowed:
            self._spend()
        allowance = self._rules.allow(self._tables[number], partition, version)
        if allowance is None:
            return False
        self._allowed[of_rows] = allowance
        self._kernel.allow(of_rows, allowance.rows, allowance.until)
        return True

    def _count(self, by_kernel: int, by_reference: int) -> None:
        self.rows_by = self.rows_by[0] + by_kernel, self.rows_by[1] + by_reference

    def _learn(self, batch: pa.RecordBatch, at: int) -> bool:
        """Make the table of a row known to the kernel; False if it cannot be."""
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
            messages = self._rules.messages(table) or _NONE
        except EncodeError:
            # The encoder says so of each row.
            messages = _NONE
        described = json.dumps(describe_table(table, messages, partial(_line, self._line_format)))
        self._table_bytes += len(described)
        if self._table_bytes > MAX_TABLE_BYTES:
            self._clear_tables()
            self._table_bytes = len(described)
        self._kernel.add_table(described, row)
        self._tables.append(table)

    def _clear_tables(self) -> None:
        # Numbers of tables begin anew.
        self._spend()
        self._tables.clear()
        self._kernel.clear_tables()

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


def _line(line_format: str | None, message: RowMessage) -> str:
    """The part of a message that is a line (:func:`~cdcfmt_core.io.sinks.line_writer`)."""
    if line_format != "auto":
        return line_format or "value"
    first = message.value[0]
    begins = first.encode() if isinstance(first, str) else first
    is_value = (
        message.key is None
        and isinstance(begins, bytes)
        and begins[:1] == b"{"
        and not begins_message(begins)
    )
    return "value" if is_value else "message"
