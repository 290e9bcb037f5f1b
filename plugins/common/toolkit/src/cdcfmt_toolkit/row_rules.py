"""How the compiled kernel writes the rows of an encoder: :class:`KernelRows`, :class:`RowRules`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import get_args

import attrs

from cdcfmt_core.encoder import RowNumbers
from cdcfmt_core.encoding import MessageEncoder
from cdcfmt_core.events import Op, TableSchema
from cdcfmt_toolkit.large_message_output import RECORD_OVERHEAD
from cdcfmt_toolkit.row_messages import RowMessages


@attrs.frozen
class Allowance:
    """Permission to write rows of a table without the encoder.

    - ``rows``: maximum number of further rows
    - ``until``: end of the permission in microseconds, exclusive
    - ``spend``: called with the number of rows that were written
    """

    rows: int
    until: int
    spend: Callable[[int], None]


@attrs.frozen
class RowBatches:
    """How row events are batched into messages: each after its length in eight bytes.

    - ``max_rows``, ``max_bytes``: limits of a message, key and value together
    - ``head``: first bytes of a key
    - ``framing``: bytes of a one-event message in addition to the event's key and value
    """

    max_rows: int
    max_bytes: int
    head: bytes
    framing: int


@attrs.frozen
class PartialMessage:
    """An unfinished message of an encoder: the number of events, and their frames."""

    rows: int
    key: bytes
    value: bytes


class KernelRows:
    """How the kernel writes rows as an encoder does, to inherit from beside ``Encoder``."""

    row_numbers: RowNumbers | None = None
    """The number of the last row over all partitions, if the format numbers rows."""

    def kernel_rows(self) -> KernelRows:
        """This object: see :meth:`cdcfmt_core.Encoder.kernel_rows`."""
        return self

    def row_messages(self, table: TableSchema) -> RowMessages | None:
        """How to write the rows of a table, which has columns; None: only ``encode`` can.

        :raises EncodeError: if they cannot be written.
        """
        return None

    def row_time_zone(self) -> tzinfo | None:
        """The zone of TIMESTAMP texts of :meth:`row_messages`; None: the context's zone."""
        return None

    def allow_rows(self, table: TableSchema, version: int) -> Allowance | None:
        """Permission for the kernel to write rows of this ``version`` of a table's schema.

        None: ``encode`` must write the next row, as other messages may precede it.
        """
        return None

    @property
    def row_batches(self) -> RowBatches | None:
        """How the kernel batches rows into messages; None: one message per row."""
        return None

    def take_partial(self) -> PartialMessage | None:
        """Hand the unfinished message, if any, to the kernel, which continues it."""
        return None

    def restore_partial(self, partial: PartialMessage) -> None:
        """Take back the kernel's unfinished message, and continue it."""
        raise NotImplementedError


@attrs.frozen
class RowRules:
    """The settings of one writer, and how to write each table.

    - ``ops``: by operation, the operation that it is written as, and the name of its count, if any
    - ``needs_commit_ts``: the encoder writes rows without a commit_ts
    - ``commit_ts``: the largest so far, if rows get a missing one from their source time
    - ``splits``: the encoder writes key updates, as two rows
    - ``compress``: compresses values, if set
    - ``max_bytes``: of key and value together; the encoder writes larger rows
    - ``time_zone``: of TIMESTAMP texts
    - ``now``: returns the time in microseconds, for rows without an emit time
    - ``partitions``: number of partitions of the topic, if there is one
    - ``partitioner``: the name of the partitioner, and its columns
    - ``messages``: how the rows of a table are written; None: by the encoder
    - ``batches``: how rows are batched into messages; None: one message per row
    - ``take_partial``, ``restore_partial``: hand over unfinished messages by partition, which the
      encoder keeps between runs of the kernel
    - ``allow``: by table, partition and version, the permission for the kernel's next rows
    - ``numbers``: the number of the last row, if the format numbers rows
    """

    ops: Mapping[Op, tuple[Op, str | None]]
    needs_commit_ts: bool
    commit_ts: RowNumbers | None
    splits: bool
    compress: Callable[[bytes], bytes] | None
    max_bytes: int
    time_zone: tzinfo
    now: Callable[[], int]
    partitions: int | None
    partitioner: tuple[str, tuple[str, ...]]
    messages: Callable[[TableSchema], RowMessages | None]
    allow: Callable[[TableSchema, int, int], Allowance | None]
    batches: RowBatches | None
    take_partial: Callable[[], dict[int, PartialMessage]]
    restore_partial: Callable[[Mapping[int, PartialMessage]], None]
    numbers: RowNumbers | None


def row_rules(encoder: MessageEncoder) -> RowRules | None:
    """The settings with which the kernel writes the same messages; None: it cannot."""
    rows = encoder.kernel_rows()
    if not isinstance(rows, KernelRows):
        return None
    large = encoder.context.large_messages
    every: tuple[Op, ...] = get_args(Op)
    batches = rows.row_batches
    framing = 0 if batches is None else batches.framing

    def messages(table: TableSchema) -> RowMessages | None:
        is_named = encoder.names_schemas or not table.schema
        is_usual = is_named and table.columns and {*table.key_columns} <= {*table.column_names}
        return rows.row_messages(table) if is_usual else None

    def take_partial() -> dict[int, PartialMessage]:
        opened = encoder.opened_partitions()
        partial = {number: encoder.kernel_rows(number).take_partial() for number in opened}
        return {number: message for number, message in partial.items() if message is not None}

    def restore_partial(partial: Mapping[int, PartialMessage]) -> None:
        for partition, message in partial.items():
            encoder.kernel_rows(partition).restore_partial(message)

    return RowRules(
        ops={op: written for op in every if (written := encoder.written_as(op)) is not None},
        needs_commit_ts=encoder.needs_commit_ts,
        commit_ts=encoder.commit_ts,
        splits=encoder.splits,
        compress=large.compress,
        max_bytes=max(large.max_message_bytes - RECORD_OVERHEAD - framing, 0),
        time_zone=rows.row_time_zone() or encoder.context.time_zone,
        now=encoder.context.now,
        partitions=encoder.partitions,
        partitioner=encoder.partitioner,
        messages=messages,
        allow=lambda table, partition, version: encoder.kernel_rows(partition).allow_rows(
            table, version
        ),
        batches=batches,
        take_partial=take_partial,
        restore_partial=restore_partial,
        numbers=rows.row_numbers,
    )
