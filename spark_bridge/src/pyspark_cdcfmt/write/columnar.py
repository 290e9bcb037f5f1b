"""The compiled kernel's way from rows to messages: whole batches, without an object per row.

The kernel writes rows in order until it refuses one.  The reference encoder writes that row in
its place, and the kernel goes on behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import attrs
import pyarrow as pa

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import RowChange
from cdcfmt_core.toolkit.row_messages import RowRules
from pyspark_cdcfmt.rows.changes_to_events import FIRST_TSO, ChangeInput
from pyspark_cdcfmt.rows.rows_to_events import EventInput
from pyspark_cdcfmt.write.kernel_writer import KernelWriter, Taken
from pyspark_cdcfmt.write_options import WriteOptions

ENOUGH: Final = 64
"""So many rows in a row are worth the kernel's while."""
MOST_AT_ONCE: Final = 4_096
"""Rows that the reference is given where the kernel refuses one after the other."""


@attrs.define
class RowWriter:
    """Writes the rows of one task; ``rows_by`` counts those by the kernel and by the reference."""

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
        """None where the reference writes everything; ``line_format`` is that of files."""
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
        """The rows of a batch in order, with their messages; None: the reference writes these."""
        if not self.kernel.begin(batch):
            yield self._of_reference(batch)
            return
        at, step = 0, 1
        while at < batch.num_rows:
            start = at
            # A preimage that waits may belong to any of the rows.
            if not (isinstance(self._rows, ChangeInput) and self._rows.waiting):
                at = self.kernel.write(at)
                if at > start:
                    self._count(at - start, 0)
                    yield batch.slice(start, at - start), self.kernel.take()
                if self.kernel.goes_on(partial(self._learn, batch, at)):
                    continue
            step = 1 if at - start >= ENOUGH else min(2 * step, MOST_AT_ONCE)
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
        """Whether the table of a row could be made known."""
        try:
            (read,) = self._rows.events([batch.slice(at, 1)])
        except EncodeError:
            return False
        if not isinstance(read.event, RowChange):
            return False
        self.kernel.add(read.event.table, at)
        return True
