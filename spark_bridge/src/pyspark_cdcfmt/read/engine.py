"""Messages to record batches: the core of every reader, on the executors."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from operator import attrgetter
from typing import Any

import pyarrow as pa

from cdcfmt_core.events import Message
from cdcfmt_core.texts import open_logger
from cdcfmt_files.sources import BadLine, Lines, one_by_one
from pyspark_cdcfmt.kernel.batches import Item, Reference, merge_small
from pyspark_cdcfmt.kernel.feeding import KernelChunks, Opening
from pyspark_cdcfmt.kernel.learning import Decoder, ObservedDecoder, Refusal
from pyspark_cdcfmt.kernel.settings import make_shape
from pyspark_cdcfmt.read.decoding import RowMaker, open_decoder
from pyspark_cdcfmt.read.schemas import MissingSchemas
from pyspark_cdcfmt.rows.change_rows import ChangeRows
from pyspark_cdcfmt.rows.event_rows import EventRows
from pyspark_cdcfmt.rows.message_batch import MessageBatch
from pyspark_cdcfmt.rows.read_task import ReadTask, TaskState
from pyspark_cdcfmt.rows.record_batches import BatchBuilder, ListBuilder

logger = open_logger("pyspark_cdcfmt")

_MAX_COUNTS = 100
"""Maximum number of counts in the log line of a task."""
_MAX_SAMPLED = 64
_MAX_SAMPLED_BYTES = 1 << 20
"""Limits of the first messages that determine the decoder: number, and total bytes."""

WORKER_LOGGING = "PYSPARK_SPARK_SESSION_UUID"
"""Set if Spark captures logs of Python workers (spark.sql.pyspark.worker.logging.enabled)."""


class Engine:
    """Decodes the messages of one task into record batches of its schema.

    :param missing: finds other table schemas than those of the task.
    :param decoder: replaces the decoder of the options, and disables the kernel.
    :param by_kernel: whether the kernel may decode messages.
    :ivar chunks: the kernel's side; None until the first messages select it.
    :ivar counts: counts of changed messages and values, by description of the change.
    """

    def __init__(
        self,
        task: ReadTask,
        missing: MissingSchemas | None = None,
        *,
        decoder: Decoder | None = None,
        by_kernel: bool = True,
    ) -> None:
        self.task = task
        state = TaskState.of(task, None if missing is None else missing.find)
        self.counts = state.counts
        self._reported: Counter[str] = Counter()
        by_kernel = by_kernel and decoder is None
        if decoder is None:
            decoder = open_decoder(
                task.options,
                state.event_filter,
                task.projection,
                state.counts,
                task.schemas,
                # For changes only the columns in the schema matter.
                on_zoneless=None if task.options.table is None else state.note_zoneless,
            )
        observed = ObservedDecoder(decoder)
        rows: EventRows | ChangeRows
        if task.options.table is None:
            rows = EventRows(task, state.policy)
        else:
            rows = ChangeRows(task, state.policy, state.zoneless)
        self._make = RowMaker(rows, observed, task, state)
        self.chunks: KernelChunks | None = None
        self._opening: Opening | None = None
        if by_kernel:
            reference = Reference(self._make, observed, BatchBuilder(task.schema).batch)
            self._opening = Opening(task.options, make_shape(task, state), reference)

    @property
    def skipped(self) -> int:
        """Number of messages with rows that the filters exclude."""
        return self._make.skipped + self._unwanted

    @property
    def refusal(self) -> str | None:
        """The reason why the kernel refused a row message for the first time."""
        if self.chunks is not None:
            return self.chunks.learner.refusal
        return None if self._opening is None else self._opening.refusal

    def watch_refusals(self) -> list[Refusal]:
        """A list that gets the messages of rows that the kernel refuses from now on."""
        refusals: list[Refusal] = []
        if self._opening is not None:
            self._opening.refusals = refusals
        return refusals

    @property
    def _unwanted(self) -> int:
        """Number of messages that the kernel skipped without decoding."""
        return self.chunks.unwanted if self.chunks is not None else 0

    def batches(
        self,
        messages: Iterable[Item],
        place: Mapping[str, object] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the messages, in order.

        Logs a line at the end: ``place`` (the source of the messages), then counts;
        ``skipped`` counts messages with rows that the filters exclude.

        :raises DecodeError: in FAILFAST mode.
        :raises PolicyError: for what an option refuses by ``fail``.
        """
        items = self._open(messages)
        if self.chunks is None:
            arrays = self._by_reference(one_by_one(items), BatchBuilder(self.task.schema))
        else:
            arrays = map(attrgetter("batch"), merge_small(self.chunks.batches(items)))
        yield from self._logged(arrays, place)

    def lists(self, messages: Iterable[Item]) -> Iterator[pa.ListArray]:
        """Like :meth:`batches`, but yields arrays of lists: one list of rows per message.

        :raises DecodeError: in FAILFAST mode.
        :raises PolicyError: for what an option refuses by ``fail``.
        """
        builder = ListBuilder(self.task.schema)
        items = self._open(messages)
        if self.chunks is None:
            arrays = self._by_reference(one_by_one(items), builder)
        else:
            batches = merge_small(self.chunks.batches(items, count_rows=True))
            arrays = (builder.of_batch(each.batch, each.counts) for each in batches)
        yield from self._logged(arrays)

    def _open(self, messages: Iterable[Item]) -> Iterable[Item]:
        """All messages, after choosing the decoder by the first ones."""
        items = iter(messages)
        held: list[Item] = []
        size = 0
        if self._opening is None or self.chunks is not None:
            return items
        for item in islice(items, _MAX_SAMPLED):
            held.append(item)
            for message in islice(one_by_one([item]), _MAX_SAMPLED):
                if isinstance(message, Message):
                    self.chunks = self._opening.open(message)
                if self.chunks is not None:
                    break
            size += _size_of(item)
            if self.chunks is not None or size > _MAX_SAMPLED_BYTES:
                break
        held.reverse()
        # Releases each message before the next one is read.
        return chain((held.pop() for _ in range(len(held))), items)

    def _by_reference(
        self, messages: Iterable[Message | BadLine], builder: BatchBuilder | ListBuilder
    ) -> Iterator[Any]:
        for message in messages:
            size = len(message.value) if message.value is not None else 0
            rows: Iterable[tuple[Any, ...]] = self._make.rows(message)
            if isinstance(builder, ListBuilder):
                rows = self._make.listed(message)
            yield from builder.add(rows, size)
            del message, rows
        yield from builder.flush()

    def _logged(
        self, arrays: Iterable[Any], place: Mapping[str, object] | None = None
    ) -> Iterator[Any]:
        rows = 0
        try:
            for array in arrays:
                rows += array.num_rows if isinstance(array, pa.RecordBatch) else len(array.values)
                held = [array]
                # A variable would keep it alive while the next one is made.
                del array
                yield held.pop()
        finally:
            self._log(place, rows)

    def _log(self, place: Mapping[str, object] | None, rows: int) -> None:
        by_kernel = 0 if self.chunks is None else self.chunks.by_kernel
        by_reference = self._make.messages
        done = {
            "messages": by_kernel + by_reference + self._unwanted,
            "rows": rows + self._reported["rows"],
            "skipped": self.skipped,
            "by kernel": by_kernel,
            "by reference": by_reference,
        }
        # An engine may run several times; log only the difference.
        since = {name: count - self._reported[name] for name, count in done.items()}
        counts = self.counts - self._reported
        self._reported = self.counts + Counter(done)
        # The number of counted columns has no limit.
        shown = dict(counts.most_common(_MAX_COUNTS))
        collected = WORKER_LOGGING in os.environ
        if not collected and self.task.options["taskLog"] == "text":
            if shown:
                logger.warning(_sentence(place or {}, since, shown))
            return
        line: dict[str, object] = {"event": "cdc task", **(place or {}), **since}
        if shown:
            line["counts"] = shown
        if logger.level == logging.NOTSET:
            # Tasks without problems log their line, too.
            logger.setLevel(logging.INFO)
        logger.log(logging.WARNING if shown else logging.INFO, json.dumps(line))


def _sentence(
    place: Mapping[str, object], done: Mapping[str, int], counts: Mapping[str, int]
) -> str:
    """``orders[3] @ 120 to 180: 60 messages, 58 rows; corrupt messages and rows: 2``."""
    where = ""
    if "topic" in place:
        where = f"{place['topic']}[{place['partition']}] @ {place['from']} to {place['to']}: "
    elif "file" in place:
        where = f"{place['file']} @ {place['from']}: "
    changed = "; ".join(f"{what}: {count}" for what, count in counts.items())
    return f"{where}{done['messages']} messages, {done['rows']} rows; {changed}"


def _size_of(item: Item) -> int:
    """The bytes of the messages' values."""
    if isinstance(item, MessageBatch):
        return item.size
    return len(item.data if isinstance(item, Lines) else item.value or b"")
