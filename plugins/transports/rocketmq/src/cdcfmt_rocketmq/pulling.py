"""The pull request: messages of a queue, from an offset on."""

from __future__ import annotations

from collections import Counter
from typing import Final

import attrs

from cdcfmt_core.events import Message
from cdcfmt_core.offsets import TopicPartition
from cdcfmt_rocketmq import codes
from cdcfmt_rocketmq.cluster import Cluster
from cdcfmt_rocketmq.messages import read_stored

_WITH_SUBSCRIPTION: Final = 4
"""Flag of a request that includes its subscription: no group is joined, nothing committed."""

_GROUP: Final = "TOOLS_CONSUMER"
"""The group of RocketMQ's tools, which exists on every broker."""

_EXPECTED: Final = frozenset(
    {codes.PULL_NOT_FOUND, codes.PULL_RETRY, codes.PULL_OFFSET_MOVED, codes.TOPIC_NOT_EXIST}
)
_ANSWER_BYTES: Final = 4 << 20


@attrs.frozen
class Pulled:
    """Answer to a pull; with the code ``TOPIC_NOT_EXIST`` only ``code`` is valid.

    - ``next``: offset of the next pull
    - ``first``, ``end``: offset range of the queue
    """

    code: int
    messages: list[Message]
    next: int = 0
    first: int = 0
    end: int = 0


def queue_fields(topic: str, queue: int) -> dict[str, str]:
    """Fields of a request that identify a queue."""
    return {"topic": topic, "queueId": str(queue)}


def pull(
    cluster: Cluster,
    address: str,
    place: TopicPartition,
    queue: int,
    offset: int,
    most: int,
    counts: Counter[str],
) -> Pulled:
    """At most ``most`` messages of the partition ``place`` from ``offset`` on.

    :raises NoAnswerError: also for an answer that cannot be parsed.
    :raises RefusedError: if the broker rejects the request.
    """
    topic, partition = place
    fields = {
        **queue_fields(topic, queue),
        "consumerGroup": cluster.settings.consumer_group or _GROUP,
        "queueOffset": str(offset),
        "maxMsgNums": str(most),
        "maxMsgBytes": str(_ANSWER_BYTES),
        "sysFlag": str(_WITH_SUBSCRIPTION),
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subscription": "*",
        "expressionType": "TAG",
        "subVersion": "0",
    }
    answer = cluster.ask(address, codes.PULL_MESSAGE, fields, expected=_EXPECTED)
    if answer.code == codes.TOPIC_NOT_EXIST:
        return Pulled(answer.code, [])
    messages = []
    if answer.code == codes.SUCCESS:
        messages = list(read_stored(answer.body, topic, partition, counts))
    next_offset, first, end = map(answer.number, ("nextBeginOffset", "minOffset", "maxOffset"))
    return Pulled(answer.code, messages, next_offset, first, end)
