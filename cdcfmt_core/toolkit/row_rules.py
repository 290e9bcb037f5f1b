"""How rows are written besides their messages: batches, numbers, permissions, settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import tzinfo

import attrs

from cdcfmt_core.events import Op, TableSchema
from cdcfmt_core.toolkit.row_messages import RowMessages


@attrs.frozen
class Allowance:
    """The permission to write rows of a table without the encoder.

    - ``rows``: how many more
    - ``until``: when the last one may be written, in microseconds, exclusive
    - ``spend``: takes the number of rows that were written
    """

    rows: int
    until: int
    spend: Callable[[int], None]


@attrs.frozen
class RowBatches:
    """How events of rows are put together in messages: each behind its length in eight bytes.

    - ``max_rows``, ``max_bytes``: of a message, key and value together
    - ``head``: what a key begins with
    - ``framing``: bytes that a message of one event has beside the event's key and value
    """

    max_rows: int
    max_bytes: int
    head: bytes
    framing: int


@attrs.frozen
class Held:
    """The message that an encoder has begun: how many events, and their frames."""

    rows: int
    key: bytes
    value: bytes


@attrs.define
class RowNumbers:
    """The number of the last row, or its commit_ts, which encoder and kernel keep together."""

    last: int = 0


@attrs.frozen
class RowRules:
    """The settings of one writer, and how the messages of each table are made.

    - ``ops``: the operation that a row is written as, and under what that is counted, if it is
    - ``needs_commit_ts``: a row without one is the encoder's
    - ``commit_ts``: the largest so far, where rows without one get one from their source time
    - ``splits``: an update of the key is the encoder's, which makes two rows of it
    - ``compress``: of values, if they are compressed
    - ``max_bytes``: of key and value together; what has more is the encoder's
    - ``time_zone``: of TIMESTAMP texts
    - ``now``: the time in microseconds, for rows without an emit time
    - ``partitions``: of the topic, if there is one
    - ``partitioner``: what the partition of a row depends on, and its columns
    - ``batches``: how messages of several rows are made; None: each row is one
    - ``take_held``, ``hold``: begun messages by partition, the encoder's between the kernel's runs
    - ``allow``: of a table, a partition and a version, if the next row may be the kernel's
    - ``numbers``: those of rows, where the format has them
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
    take_held: Callable[[], dict[int, Held]]
    hold: Callable[[Mapping[int, Held]], None]
    numbers: RowNumbers | None
