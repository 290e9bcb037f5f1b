"""What is made of messages: batches of rows, in the order of the input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs
import pyarrow as pa

from pyspark_cdcfmt.rows.record_batches import MAX_MESSAGE_BYTES, MAX_ROWS


@attrs.frozen
class Made:
    """The rows of some messages, the next ones in the input.

    ``size`` is the bytes of messages or rows, whichever are more; ``counts``, where they are asked
    for, the rows of each.
    """

    batch: pa.RecordBatch
    size: int
    counts: Sequence[int] = ()


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
    """Merge consecutive small batches, up to MAX_ROWS and MAX_MESSAGE_BYTES."""
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
