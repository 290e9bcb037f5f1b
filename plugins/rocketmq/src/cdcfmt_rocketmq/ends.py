"""The first and last messages of partitions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence

import attrs

from cdcfmt_core.errors import CdcfmtError
from cdcfmt_core.events import Message
from cdcfmt_core.io.sources.ends import messages_at_end
from cdcfmt_core.offsets import OffsetRange
from cdcfmt_core.texts import open_logger
from cdcfmt_rocketmq.options import RocketOptions
from cdcfmt_rocketmq.reader import read_range

logger = open_logger("cdcfmt_rocketmq")

SECONDS = 10.0


def read_ends(
    ranges: Sequence[OffsetRange], options: RocketOptions, *, seconds: float = SECONDS
) -> Iterator[Message]:
    """Lazily read the first and last messages of ``ranges``: all starts, then all ends.

    Skips partitions that cannot be read, and stops after ``seconds``: reading the range itself
    raises the error.
    """
    ranges = [wanted for wanted in ranges if wanted.size > 0]
    each = messages_at_end(len(ranges))
    heads = [attrs.evolve(r, end=min(r.end, r.start + each)) for r in ranges]
    # Messages of the start are not read again.
    tails = [
        attrs.evolve(r, start=max(r.end - each, r.start + each)) for r in ranges if r.size > each
    ]
    patience = {**options.values, "rocketmqConsumer.pollTimeoutMs": 3000}
    lenient = attrs.evolve(options, values=patience).lenient()
    left = seconds
    for wanted in (*heads, *tails):
        # Time that the caller spends between two messages does not count.
        started = time.monotonic()
        try:
            for message in read_range(wanted, lenient, Counter()):
                left -= time.monotonic() - started
                yield message
                started = time.monotonic()
                if left < 0:
                    return
        except CdcfmtError as error:
            logger.debug("rocketmq: %s-%s: %s", wanted.topic, wanted.partition, error)
        left -= time.monotonic() - started
        if left < 0:
            return
