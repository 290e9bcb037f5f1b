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

    def prepare(self, table: TableSchema, *, register: bool) -> None:
        """See :meth:`cdcfmt_core.Encoder.prepare`."""
        self.row_messages(table)

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
    """How the kernel writes the rows of one writer.

    - ``encoder``: the writer's encoder, which has the settings
    - ``rows``: how its format writes rows
    """

    encoder: MessageEncoder
    rows: KernelRows

    @property
    def ops(self) -> Mapping[Op, tuple[Op, str | None]]:
        """By operation, the one that it is written as, and the name of its count, if any."""
        every: tuple[Op, ...] = get_args(Op)
        return {op: written for op in every if (written := self.encoder.written_as(op)) is not None}

    @property
    def max_bytes(self) -> int:
        """Maximum of key and value together; the encoder writes larger rows."""
        batches = self.rows.row_batches
        framing = 0 if batches is None else batches.framing
        large = self.encoder.context.large_messages
        return max(large.max_message_bytes - RECORD_OVERHEAD - framing, 0)

    @property
    def time_zone(self) -> tzinfo:
        """The zone of TIMESTAMP texts."""
        return self.rows.row_time_zone() or self.encoder.context.time_zone

    def messages(self, table: TableSchema) -> RowMessages | None:
        """How the rows of a table are written; None: by the encoder."""
        is_named = self.encoder.has_schema_field or not table.schema
        is_usual = is_named and table.columns and {*table.key_columns} <= {*table.column_names}
        return self.rows.row_messages(table) if is_usual else None

    def allow(self, table: TableSchema, partition: int, version: int) -> Allowance | None:
        """The permission for the next rows of a table in a partition."""
        rows: KernelRows = self.encoder.kernel_rows(partition)
        return rows.allow_rows(table, version)

    def take_partial(self) -> dict[int, PartialMessage]:
        """Hand over the unfinished messages, by partition."""
        opened = self.encoder.opened_partitions()
        partial = {number: self.encoder.kernel_rows(number).take_partial() for number in opened}
        return {number: message for number, message in partial.items() if message is not None}

    def restore_partial(self, partial: Mapping[int, PartialMessage]) -> None:
        """Take back unfinished messages, which the encoder keeps between runs of the kernel."""
        for partition, message in partial.items():
            self.encoder.kernel_rows(partition).restore_partial(message)


def row_rules(encoder: MessageEncoder) -> RowRules | None:
    """The settings with which the kernel writes the same messages; None: it cannot."""
    rows = encoder.kernel_rows()
    return RowRules(encoder, rows) if isinstance(rows, KernelRows) else None
