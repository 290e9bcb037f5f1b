"""Options that mean the same for every source with ranges of offsets; engines obey them."""

from __future__ import annotations

from datetime import timedelta

from cdcfmt_core.options import Option

TOPIC_OPTIONS = (
    Option(
        name="maxOffsetsPerTrigger",
        type="int",
        minimum=1,
        help="Streams: most offsets in a batch, shared out in proportion to the partitions' size.",
    ),
    Option(
        name="minOffsetsPerTrigger",
        type="int",
        minimum=1,
        help="Streams: wait for so many offsets, but not longer than `maxTriggerDelay`.",
    ),
    Option(
        name="maxTriggerDelay",
        type="duration",
        default=timedelta(minutes=15),
        help="Streams: how long `minOffsetsPerTrigger` may wait.",
    ),
    Option(
        name="maxRecordsPerPartition",
        type="int",
        minimum=1,
        help="Most offsets in one Spark partition.",
    ),
    Option(
        name="includeHeaders",
        type="bool",
        default=False,
        help="Events: add `headers`, the message's headers.",
    ),
)
