"""The offsets that a batch reads."""

from __future__ import annotations

from cdcfmt_core.errors import SourceError
from cdcfmt_core.io.topics.offset_request import OffsetRequest
from cdcfmt_core.io.topics.topic_client import TopicClient
from cdcfmt_core.offsets import EARLIEST, LATEST, OffsetRange
from cdcfmt_core.texts import open_logger

logger = open_logger("cdcfmt_core")

_EARLIEST = OffsetRequest("startingOffsets", everywhere=EARLIEST)
_LATEST = OffsetRequest("endingOffsets", everywhere=LATEST)


def plan_ranges(client: TopicClient) -> list[OffsetRange]:
    """The ranges of a batch in all partitions, from ``startingOffsets`` to ``endingOffsets``.

    :raises SourceError: if a topic does not exist, or a range ends before its start
        or after the partition's end.
    """
    options = client.topic_options
    partitions = client.selected(client.complete_topics())
    latest = client.all_offsets(dict.fromkeys(partitions, LATEST))
    starting, ending = options.starting or _EARLIEST, options.ending or _LATEST
    starts = client.resolve(starting, partitions, latest)
    ends = client.resolve(ending, partitions, latest)
    ranges = []
    for topic, partition in sorted(partitions):
        start, end = starts[topic, partition], ends[topic, partition]
        last = latest[topic, partition]
        if start > end or end > last:
            place = f"topic {topic}, partition {partition}"
            if max(start, end) > last:
                text = f"{place} ends at {last}, but offsets {start} to {end} were requested"
                mend = "failOnDataLoss=false reads the remaining messages"
            else:
                text = f"{place}: {starting.option} is {start}, after {ending.option}, {end}"
                mend = "correct one of them; failOnDataLoss=false reads nothing there"
            if options["failOnDataLoss"]:
                raise SourceError(f"{text}; {mend}")
            logger.warning("%s; continuing, as failOnDataLoss is false", text)
            end = min(end, last)
        ranges.append(OffsetRange(topic, partition, start, end))
    return ranges
