"""Options that mean the same for every source with ranges of offsets."""

from __future__ import annotations

from datetime import timedelta

from cdcfmt_core.options import Option

SUBSCRIBE = Option(
    name="subscribe",
    type="list",
    default=(),
    help="Topics to read.",
)

SUBSCRIBE_PATTERN = Option(
    name="subscribePattern",
    help="Topics to read: a regular expression for the whole name.",
)

ASSIGN = Option(
    name="assign",
    help='Partitions to read: `{"topicA": [0, 1]}`.',
)

OFFSET_OPTIONS = (
    Option(
        name="startingOffsets",
        help="Where to begin: `earliest` (default in batch), `latest` (default in streams), or "
        '`{"topicA": {"0": 23, "1": -2}}` for every partition, -2 is earliest, -1 latest. A '
        "stream with a checkpoint goes on from there; partitions found later begin at earliest.",
    ),
    Option(
        name="startingTimestamp",
        type="int",
        minimum=0,
        help="Begin with the first messages of this time on, in milliseconds since the epoch.",
    ),
    Option(
        name="startingOffsetsByTimestamp",
        help='The same by partition: `{"topicA": {"0": 1600000000000}}`.',
    ),
    Option(
        name="startingOffsetsByTimestampStrategy",
        type="choice",
        choices=("error", "latest"),
        default="error",
        help="Of a partition without a message that late: an error, or begin at its end.",
    ),
    Option(
        name="endingOffsets",
        help="Batch: where to end, not included: `latest` (default), or as in `startingOffsets`.",
    ),
    Option(
        name="endingTimestamp",
        type="int",
        minimum=0,
        help="Batch: end before the first messages of this time.",
    ),
    Option(
        name="endingOffsetsByTimestamp",
        help="Batch: the same by partition.",
    ),
    Option(
        name="failOnDataLoss",
        type="bool",
        default=True,
        help="What becomes of a query whose offsets are gone (retention, a topic that was "
        "deleted or made anew): an error, or a warning, and it goes on with what there is.",
    ),
)
"""Where reading begins and ends, and what becomes of offsets that are gone."""

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
"""How Spark cuts batches and tasks."""
