"""Settings for writing rows: batches, numbers, permissions, options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import tzinfo

import attrs

from cdcfmt_core.events import Op, TableSchema
from cdcfmt_core.toolkit.row_messages import RowMessages


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


@attrs.define
class RowNumbers:
    """The number or commit_ts of the last row, shared by encoder and kernel."""

    last: int = 0


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
