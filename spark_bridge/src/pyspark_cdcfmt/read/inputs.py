"""What the bridge adds to an input: low watermarks, Arrow columns, and news of a search."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from cdcfmt_core.events import Message, Watermark
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.transport import MessageColumns
from cdcfmt_toolkit.inputs import BadLine, Input, Slice
from pyspark_cdcfmt.kernel.batches import Item
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.decoding import open_decoder
from pyspark_cdcfmt.rows.message_batch import MessageBatch

SECONDS_BETWEEN_NEWS = 10.0
"""Interval of log lines of a waiting driver or task."""


def with_progress(
    messages: Iterable[Message | BadLine], on_progress: Callable[[int], None]
) -> Iterator[Message | BadLine]:
    """The messages; ``on_progress`` is called every ten seconds with the number so far."""
    reported = time.monotonic()
    for count, message in enumerate(messages):
        if count % 1000 == 0 and time.monotonic() - reported > SECONDS_BETWEEN_NEWS:
            reported = time.monotonic()
            on_progress(count)
        yield message


def divide(source: Input, slices: Sequence[Slice], options: ReadOptions) -> list[Slice]:
    """The slices of tasks, from those of a batch, with their low watermarks."""
    if options["deduplicate"] == "watermark":
        decoder = open_decoder(options, EventFilter(kinds=frozenset({"watermark"})))

        def watermark_of(message: Message) -> int | None:
            found = [e.commit_ts for e in decoder.decode(message) if isinstance(e, Watermark)]
            return max(found, default=None)

        slices = source.with_low_watermarks(slices, watermark_of)
    return source.divide(slices)


def as_item(item: Any) -> Item:
    """An item of :meth:`Input.read_many`, with columns as Arrow columns."""
    return MessageBatch.of_columns(item) if type(item) is MessageColumns else item
