"""Reads an offset range of one partition."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import attrs

from cdcfmt_core.errors import SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.offsets import OffsetRange
from cdcfmt_rocketmq import codes
from cdcfmt_rocketmq.cluster import Cluster, Queue, RefusedError, problem
from cdcfmt_rocketmq.frames import NoAnswerError
from cdcfmt_rocketmq.numbering import queues_of
from cdcfmt_rocketmq.options import RocketOptions
from cdcfmt_rocketmq.pulling import Pulled, pull
from cdcfmt_toolkit.topics.losses import lose, range_error

AT_A_TIME = 1000
_PAUSE = 0.25
BEHIND_SECONDS = 5.0
"""How long a queue may seem to be missing, or to end before a range that the driver planned: a
broker that was just started, or has just become the master, may still build its index."""


def read_range(
    wanted: OffsetRange, options: RocketOptions, counts: Counter[str] | None = None
) -> Iterator[Message]:
    """The messages of a range, in order, without joining a group or committing.

    Without ``failOnDataLoss``, deleted offsets are counted in ``counts`` as
    ``offsets lost``.

    :raises SourceError: if offsets were deleted, or no broker answers for
        ``rocketmqConsumer.pollTimeoutMs``.
    """
    if wanted.size <= 0:
        return
    reader = RangeReader(wanted, options, Counter() if counts is None else counts)
    try:
        yield from reader.messages()
    finally:
        reader.close()


class RangeReader:
    """Pulls until the position reaches the end of the range."""

    def __init__(self, wanted: OffsetRange, options: RocketOptions, counts: Counter[str]) -> None:
        self._wanted = wanted
        self._options = options
        self._counts = counts
        self._cluster = Cluster(options.settings)
        self._queue: Queue | None = None
        self._position = wanted.start
        self._waited = 0.0
        self._behind = 0.0

    def close(self) -> None:
        self._cluster.close()

    def messages(self) -> Iterator[Message]:
        end = self._wanted.end
        while self._position < end:
            pulled = self._pull()
            if pulled is None:
                continue
            for message in pulled.messages:
                offset = message.offset or 0
                if offset < self._position:
                    # The start of a batch that is stored as one message.
                    continue
                if offset > self._position:
                    self._lose("the queue has no messages there", min(offset, end))
                if offset >= end:
                    return
                self._position = offset + 1
                yield message
            self._go_on(pulled)

    def _go_on(self, pulled: Pulled) -> None:
        """Handle a position that the messages of an answer did not reach."""
        end = self._wanted.end
        if pulled.code == codes.TOPIC_NOT_EXIST:
            self._wait_for_end("the topic no longer exists")
        elif self._position < pulled.first:
            self._lose(f"the queue begins at {pulled.first}", min(pulled.first, end))
        elif self._position >= pulled.end and self._position < end:
            self._wait_for_end(f"the queue ends at {pulled.end}")
        elif pulled.next > self._position:
            # The index had entries of deleted messages.
            self._lose("their messages are deleted", min(pulled.next, end))
        elif not pulled.messages:
            self._wait_for_end("the broker has no messages there")

    def _pull(self) -> Pulled | None:
        """An answer; None if a retry may succeed."""
        wanted = self._wanted
        place = wanted.topic, wanted.partition
        most = min(wanted.end - self._position, AT_A_TIME)
        started = time.monotonic()
        try:
            queue = self._queue or self._find()
            if queue is None:
                return Pulled(codes.TOPIC_NOT_EXIST, [])
            if queue.address is None:
                raise NoAnswerError(f"the broker {queue.broker} has no master")
            pulled = pull(
                self._cluster,
                queue.address,
                place,
                queue.number,
                self._position,
                most,
                self._counts,
            )
        except NoAnswerError as error:
            # The route may have changed.
            self._queue = None
            time.sleep(_PAUSE)
            self._waited += time.monotonic() - started
            if self._waited > self._options.poll_seconds:
                text = problem(self._options.settings, error)
                raise self._error(
                    f"no message arrived for {self._options.poll_seconds:g} s: {text}"
                ) from None
            return None
        except RefusedError as error:
            raise self._error(problem(self._options.settings, error)) from None
        self._queue, self._waited = queue, 0.0
        if pulled.messages:
            self._behind = 0.0
        return pulled

    def _find(self) -> Queue | None:
        """The queue; None if the topic does not exist."""
        found = queues_of(self._cluster, self._wanted.topic)
        if found is None:
            return None
        queue = found[0].get(self._wanted.partition)
        if queue is None:
            raise NoAnswerError("no registered broker has this partition")
        return queue

    def _wait_for_end(self, why: str) -> None:
        started = time.monotonic()
        time.sleep(_PAUSE)
        self._behind += time.monotonic() - started
        if self._behind > BEHIND_SECONDS:
            self._lose(why, self._wanted.end)

    def _lose(self, why: str, until: int) -> None:
        """Report offsets as lost, and continue after them."""
        lost = attrs.evolve(self._wanted, start=self._position, end=until)
        lose(lost, why, self._counts, fail=self._options["failOnDataLoss"])
        self._position = until

    def _error(self, text: str) -> SourceError:
        return range_error(self._wanted, text)
