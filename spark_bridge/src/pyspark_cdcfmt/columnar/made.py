"""What is made of messages: batches of rows, in the order of the input."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

import attrs
import pyarrow as pa

from pyspark_cdcfmt.batches import MAX_BATCH_BYTES, MAX_MESSAGE_BYTES, MAX_ROWS
from pyspark_cdcfmt.columnar.formats import Reference, Row


@attrs.frozen
class Made:
    """The rows of some messages, the next ones in the input.

    ``size`` is the bytes of messages or rows, whichever are more; ``counts``, where they are asked
    for, the rows of each.
    """

    batch: pa.RecordBatch
    size: int
    counts: Sequence[int] = ()


class Merging:
    """Rows of a pending batch: those by columns, and the reference path's between them.

    ``owners`` are the numbers of the messages of the rows by columns, of ``messages`` ones.
    A piece is made of them whenever the reference path's rows are enough for one; with ``in_lists``
    only behind a message.
    """

    def __init__(
        self,
        pieces: Sequence[pa.RecordBatch],
        owners: Sequence[int],
        reference: Reference,
        messages: int,
        *,
        in_lists: bool,
    ) -> None:
        self._reference = reference
        self._messages = messages
        self._in_lists = in_lists
        self._made, self._owners = in_order(pieces, owners)
        self._start = 0  # of the rows by columns that are left
        self._next = 0  # the first message of the next piece
        self._rows: list[Row] = []
        self._of_rows: list[int] = []
        self._size = 0

    def add(self, place: int, rows: Iterable[Row]) -> Iterator[Made]:
        """The reference path's rows of a message, behind those of all before it."""
        for row in rows:
            self._rows.append(row)
            self._of_rows.append(place)
            self._size += self._reference.weigh(row)
            if self._size >= MAX_BATCH_BYTES and not self._in_lists:
                yield from self._piece(place + 1, 0)
        if self._size >= MAX_BATCH_BYTES:
            yield from self._piece(place + 1, 0)

    def finish(self, size: int) -> Iterator[Made]:
        """The rest; ``size`` is the messages' bytes."""
        yield from self._piece(self._messages, size)

    def _piece(self, end: int, message_bytes: int) -> Iterator[Made]:
        """The rows of messages before ``end``."""
        rows, of_rows, size = self._rows, self._of_rows, max(self._size, message_bytes)
        self._rows, self._of_rows, self._size = [], [], 0
        pieces: list[pa.RecordBatch] = []
        stop = bisect_left(self._owners, end, self._start)
        owners = self._owners[self._start : stop]
        if self._made is not None and owners:
            pieces.append(self._made.slice(self._start, len(owners)))
        self._start = stop
        if rows:
            pieces.append(self._reference.batch(rows))
        counts: list[int] = []
        if self._in_lists:
            counts = [0] * (end - self._next)
            for owner in (*owners, *of_rows):
                counts[owner - self._next] += 1
            if counts and not pieces:
                pieces.append(self._reference.batch([]))
        self._next = end
        batch, _ = in_order(pieces, [*owners, *of_rows])
        if batch is not None:
            yield Made(batch, size, counts)


def in_order(
    pieces: Sequence[pa.RecordBatch], owners: Sequence[int]
) -> tuple[pa.RecordBatch | None, Sequence[int]]:
    """The rows of all pieces in the order of their messages, and these."""
    if len(pieces) < 2:
        return (pieces[0] if pieces else None), owners
    order = sorted(range(len(owners)), key=owners.__getitem__)
    batch = pa.concat_batches(pieces).take(pa.array(order, pa.int32()))
    return batch, [owners[at] for at in order]


def sized(made: Iterable[Made]) -> Iterator[Made]:
    """What is small put together."""
    held: list[Made] = []
    rows = size = 0
    for each in made:
        more = max(each.batch.num_rows, len(each.counts))
        if not held and (more >= MAX_ROWS // 2 or each.size >= MAX_MESSAGE_BYTES):
            yield each
            continue
        held.append(each)
        rows += more
        size += max(each.size, each.batch.nbytes)
        if rows >= MAX_ROWS or size >= MAX_MESSAGE_BYTES:
            yield _together(held)
            held.clear()
            rows = size = 0
    if held:
        yield _together(held)


def _together(made: Sequence[Made]) -> Made:
    return Made(
        pa.concat_batches([each.batch for each in made]),
        sum(each.size for each in made),
        [count for each in made for count in each.counts],
    )
