"""Options with the same meaning for every topic source."""

from __future__ import annotations

from datetime import timedelta

from cdcfmt_core.options import Option

SUBSCRIBE = Option(name="subscribe", type="list", default=(), help="Topics to read.")

SUBSCRIBE_PATTERN = Option(
    name="subscribePattern", help="Topics to read: a regular expression for the whole name."
)

ASSIGN = Option(name="assign", help='Partitions to read: `{"topicA": [0, 1]}`.')

OFFSET_OPTIONS = (
    Option(
        name="startingOffsets",
        help="Where to begin: `earliest` (default in batch), `latest` (default in streams), or "
        '`{"topicA": {"0": 23, "1": -2}}` for every partition (-2: earliest, -1: latest). A stream '
        "with a checkpoint continues from there; partitions found later begin at earliest.",
    ),
    Option(
        name="startingTimestamp",
        type="int",
        minimum=0,
        help="Begin with the first messages at or after this time (milliseconds since the epoch; "
        "a number that is seconds or microseconds is an error).",
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
        help="For a partition without a message at or after the time: an error, or begin at its "
        "end.",
    ),
    Option(
        name="endingOffsets",
        help="Batch: where to end (exclusive): `latest` (default), or as in `startingOffsets`.",
    ),
    Option(
        name="endingTimestamp",
        type="int",
        minimum=0,
        help="Batch: end before the first messages at or after this time.",
    ),
    Option(name="endingOffsetsByTimestamp", help="Batch: the same by partition."),
    Option(
        name="failOnDataLoss",
        type="bool",
        default=True,
        help="If offsets no longer exist (retention, a deleted or recreated topic): an error; "
        "`false`: a warning, and the query continues with the remaining messages.",
    ),
)
"""Where reading begins and ends, and how to handle lost offsets."""

INCLUDE_HEADERS = Option(
    name="includeHeaders",
    type="bool",
    default=False,
    help="Events: add `headers`, the message's headers.",
)
"""For files of whole messages, too."""

TOPIC_OPTIONS = (
    Option(
        name="maxOffsetsPerTrigger",
        type="int",
        minimum=1,
        help="Streams: maximum number of offsets in a batch, shared in proportion to the size of "
        "the partitions.",
    ),
    Option(
        name="minOffsetsPerTrigger",
        type="int",
        minimum=1,
        help="Streams: wait for this number of offsets, but not longer than `maxTriggerDelay`.",
    ),
    Option(
        name="maxTriggerDelay",
        type="duration",
        default=timedelta(minutes=15),
        help="Streams: the longest wait for `minOffsetsPerTrigger`.",
    ),
    Option(
        name="maxRecordsPerPartition",
        type="int",
        minimum=1,
        help="Maximum number of offsets in one Spark partition.",
    ),
    INCLUDE_HEADERS,
)
"""How Spark splits the offsets into batches and tasks."""
