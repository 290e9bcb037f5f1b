"""Encoding of rows by the compiled kernel: whole batches, without a Python object per row.

The kernel writes rows in order until it refuses one.  The reference encoder writes that row, and
the kernel continues after it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import pyarrow as pa

from cdcfmt_core.encoding import MADE_COMMIT_TS
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import RowChange, TableSchema
from cdcfmt_core.types import Json
from cdcfmt_files.sinks.lines import LineOfRows, line_of_rows
from cdcfmt_toolkit.go_quote import printable_spans
from cdcfmt_toolkit.row_messages import RowMessage, RowMessages
from cdcfmt_toolkit.row_plans import describe_batches, describe_partitions, describe_table
from cdcfmt_toolkit.row_rules import Allowance, PartialMessage, RowRules
from cdcfmt_toolkit.value_printers import ROUNDED
from cdcfmt_toolkit.zone_offsets import describe_offsets
from pyspark_cdcfmt.kernel.formats import is_installed
from pyspark_cdcfmt.rows.changes_to_events import FIRST_TSO, ChangeInput
from pyspark_cdcfmt.rows.rows_to_events import EventInput
from pyspark_cdcfmt.write_options import WriteOptions

if TYPE_CHECKING:
    from cdcfmt_kernel import Reason, Writer

ENOUGH: Final = 64
"""Number of consecutive rows that makes another call of the kernel worthwhile."""
MAX_AT_ONCE: Final = 4_096
"""Maximum number of rows for the reference at once, if the kernel refuses row after row."""
_MOST: Final = (1 << 63) - 1
MAX_TABLE_BYTES: Final = 64 << 20

_NONE: Final = RowMessages({})

Taken: TypeAlias = Any
"""Messages as lines with their number, or as a record batch of key, value, optional partition."""


@attrs.define
class KernelWriter:
    """Writes rows of one table, or of events, by the rules of an encoder.

    :ivar _json_texts: whether values of JSON columns are texts.
    """

    _kernel: Writer
    _reasons: type[Reason]
    _rules: RowRules
    _line_format: str | None
    _json_texts: bool
    _table_bytes: int = 0
    _tables: list[TableSchema] = attrs.field(factory=list)
    _permits: dict[tuple[int, int, int], Allowance] = attrs.field(factory=dict)

    @classmethod
    def open(
        cls,
        shape: Any,
        rules: RowRules | None,
        *,
        ordered: bool,
        line_format: str | None,
        json_texts: bool = False,
    ) -> KernelWriter | None:
        """Open the kernel; None if the encoder must write everything.

        :param shape: the kernel's description of the rows.
        :param ordered: whether to refuse changes out of order.
        :param line_format: the format of lines in files; None for topics.
        """
        if not is_installed() or rules is None:
            return None
        from cdcfmt_kernel import Reason, Writer

        encoder, batches = rules.encoder, rules.rows.row_batches
        settings = {
            "shape": shape,
            "ops": {op: {"op": as_op, "note": note} for op, (as_op, note) in rules.ops.items()},
            "needs_commit_ts": encoder.needs_commit_ts,
            "splits": encoder.splits,
            "ordered": ordered,
            "max_bytes": rules.max_bytes,
            "zone": describe_offsets(rules.time_zone),
            "partitions": describe_partitions(encoder),
            "lines": line_format is not None,
            "rounded": ROUNDED,
            "made": None if encoder.commit_ts is None else MADE_COMMIT_TS,
            "batches": None if batches is None else describe_batches(batches),
        }
        kernel = Writer(json.dumps(settings), encoder.context.large_messages.compress)
        return cls(kernel, Reason, rules, line_format, json_texts)

    def begin(self, batch: pa.RecordBatch) -> bool:
        """Start the next rows; False if the encoder must write all of them."""
        return self._kernel.open(batch)

    def write(self, at: int) -> int:
        """Write rows from ``at`` on; returns the number of the first row not written.

        Between calls the encoder owns begun messages, the last number and the largest commit_ts.
        """
        rules, kernel = self._rules, self._kernel
        commit_ts, numbers = rules.encoder.commit_ts, rules.rows.row_numbers
        is_batched = rules.rows.row_batches is not None
        if commit_ts is not None:
            # A commit_ts of a distant year may exceed the kernel's integers.
            kernel.last_commit_ts = min(commit_ts.last, _MOST)
        if numbers is not None:
            kernel.last_number = numbers.last
        if is_batched:
            for partition, partial in rules.take_partial().items():
                kernel.restore_partial(partition, partial.rows, partial.key, partial.value)
        at = kernel.write(at, rules.encoder.context.now())
        if is_batched:
            begun = kernel.take_partial()
            rules.restore_partial(
                {number: PartialMessage(rows, key, value) for number, rows, key, value in begun}
            )
        if numbers is not None:
            numbers.last = kernel.last_number
        if commit_ts is not None:
            commit_ts.last = max(commit_ts.last, kernel.last_commit_ts)
        return at

    def take(self) -> Taken:
        """The messages since the last call."""
        is_lines, kernel = self._line_format is not None, self._kernel
        return kernel.take_lines() if is_lines else pa.record_batch(kernel.take())

    def can_continue(self, learn: Callable[[], bool]) -> bool:
        """Whether the kernel can write the row at which it stopped after all.

        :param learn: adds the row's table; returns whether that was possible.
        """
        stop, reasons = self._kernel.stop, self._reasons
        if stop is None or stop.reason == reasons.FULL:
            return True
        if stop.reason == reasons.UNKNOWN_SCHEMA:
            return learn()
        if stop.reason == reasons.NOT_PERMITTED:
            return self._permit()
        if stop.reason == reasons.PRINTABLE_UNSET:
            self._kernel.set_printable(printable_spans())
            return True
        return False

    def hand_over(self) -> None:
        """Report the written rows to the encoder; call this before the encoder writes."""
        for of_rows, count in self._kernel.take_permits():
            self._permits[of_rows].spend(count)
        self._permits.clear()

    def _permit(self) -> bool:
        """Whether the encoder permits rows like the one at which the kernel stopped."""
        number, partition, version = of_rows = self._kernel.missing_permit
        if of_rows in self._permits:
            self.hand_over()
        allowance = self._rules.allow(self._tables[number], partition, version)
        if allowance is None:
            return False
        self._permits[of_rows] = allowance
        self._kernel.permit(of_rows, allowance.rows, allowance.until)
        return True

    def add(self, table: TableSchema, row: int | None, json_texts: Container[str] = ()) -> None:
        """Add the table of a row, or of all rows (``row`` is None).

        :param json_texts: JSON columns whose values are texts.
        """
        try:
            messages = self._rules.messages(table) or _NONE
        except EncodeError:
            # The encoder raises it for each row.
            messages = _NONE
        if self._json_texts:
            json_texts = [column.name for column in table.columns if isinstance(column.type, Json)]
        described = json.dumps(describe_table(table, messages, self._line, json_texts))
        self._table_bytes += len(described)
        if self._table_bytes > MAX_TABLE_BYTES:
            self.clear_tables()
            self._table_bytes = len(described)
        self._kernel.add_table(described, row)
        self._tables.append(table)

    def clear_tables(self) -> None:
        """Forget all tables."""
        # Numbers of tables restart at 0.
        self.hand_over()
        self._tables.clear()
        self._kernel.clear_tables()

    def _line(self, message: RowMessage) -> LineOfRows:
        compresses = self._rules.encoder.context.large_messages.compress is not None
        return line_of_rows(message, self._line_format or "value", compresses=compresses)

    def remember(self, key: tuple[str, ...], order_by: Any, order: Any) -> Any:
        """``OrderCheck.remember`` by the kernel."""
        kind = order_by if isinstance(order_by, str) else "\0".join(map(str, order_by))
        position = list(order) if isinstance(order, tuple) else [order]
        name = "\0".join(key).encode("utf-8", "surrogatepass")
        last = self._kernel.check(name, kind.encode("utf-8", "surrogatepass"), position)
        if last is None:
            return None
        return tuple(last[: len(position)]) if isinstance(order, tuple) else last[0]

    def take_counts(self) -> dict[str, int]:
        """Counts of rows by note, since the last call."""
        return dict(self._kernel.take_counts())


@attrs.define
class RowWriter:
    """Writes the rows of one task.

    :ivar rows_by: numbers of rows written by the kernel and by the reference.
    """

    kernel: KernelWriter
    _rows: EventInput | ChangeInput
    _revision: int = 0
    rows_by: tuple[int, int] = (0, 0)

    @classmethod
    def open(
        cls,
        rows: EventInput | ChangeInput,
        options: WriteOptions,
        rules: RowRules | None,
        *,
        line_format: str | None,
    ) -> RowWriter | None:
        """Open a writer; None if the reference must write everything.

        :param line_format: the format of lines in files; None for topics.
        """
        shape: Any = "events"
        if isinstance(rows, ChangeInput):
            changes = {"prefix": options["metadataPrefix"], "first_commit_ts": FIRST_TSO}
            shape = {"changes": changes}
        ordered = options["ordered"]
        kernel = KernelWriter.open(shape, rules, ordered=ordered, line_format=line_format)
        if kernel is None:
            return None
        if isinstance(rows, ChangeInput):
            kernel.add(rows.table, None, rows.json_texts)
        return cls(kernel, rows)

    def write(self, batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, Taken | None]]:
        """The rows of a batch in order, with messages; None for rows left to the reference."""
        if not self.kernel.begin(batch):
            yield self._of_reference(batch)
            return
        at, step = 0, 1
        while at < batch.num_rows:
            start = at
            # A waiting preimage may belong to any of the rows.
            if not (isinstance(self._rows, ChangeInput) and self._rows.waiting):
                at = self.kernel.write(at)
                if at > start:
                    self._count(at - start, 0)
                    yield batch.slice(start, at - start), self.kernel.take()
                if self.kernel.can_continue(partial(self._learn, batch, at)):
                    continue
            step = 1 if at - start >= ENOUGH else min(2 * step, MAX_AT_ONCE)
            rows = batch.slice(at, step)
            yield self._of_reference(rows)
            at += rows.num_rows
            if isinstance(self._rows, EventInput) and self._rows.revision != self._revision:
                self._revision = self._rows.revision
                self.kernel.clear_tables()

    def _of_reference(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, None]:
        self.kernel.hand_over()
        self._count(0, rows.num_rows)
        return rows, None

    def _count(self, by_kernel: int, by_reference: int) -> None:
        self.rows_by = self.rows_by[0] + by_kernel, self.rows_by[1] + by_reference

    def _learn(self, batch: pa.RecordBatch, at: int) -> bool:
        """Add the table of a row; returns whether that was possible."""
        try:
            (read,) = self._rows.events([batch.slice(at, 1)])
        except EncodeError:
            return False
        if not isinstance(read.event, RowChange):
            return False
        self.kernel.add(read.event.table, at)
        return True
