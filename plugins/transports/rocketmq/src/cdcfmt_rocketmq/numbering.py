"""Numbering of partitions by broker and queue.

A partition's number is 1000 times the index of its broker in ``rocketmq.brokers`` (from 0), plus
the queue's number.  It stays the same when queues are added or brokers are down, if brokers are
only appended to that list.  A single broker needs no list: its partitions have the numbers of its
queues.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from cdcfmt_core.errors import OptionError
from cdcfmt_rocketmq.cluster import Cluster, Queue
from cdcfmt_rocketmq.frames import NoAnswerError
from cdcfmt_rocketmq.settings import BROKERS

STRIDE: Final = 1000


def queues_of(
    cluster: Cluster, topic: str, *, writing: bool = False
) -> tuple[dict[int, Queue], bool] | None:
    """The queues of a topic by partition, and whether all brokers are registered.

    None if the topic does not exist: name servers forget a topic if all its brokers are down.

    :raises OptionError: if the order of brokers is not known.
    :raises NoAnswerError: if brokers register or leave meanwhile.
    """
    route = cluster.route(topic)
    brokers, complete = broker_order(cluster)
    if route is None and complete:
        # A broker with the topic may have registered between the two answers.
        route = cluster.route(topic)
        brokers, complete = broker_order(cluster)
    if route is None:
        return None if complete else ({}, False)
    queues = route.writable if writing else route.readable
    if not cluster.settings.brokers and {queue.broker for queue in queues} - set(brokers):
        # A broker registered between the two answers.
        raise NoAnswerError(f"the brokers of topic {topic} are changing")
    return numbered(topic, queues, brokers), complete


def broker_order(cluster: Cluster) -> tuple[tuple[str, ...], bool]:
    """The brokers in the order of their partitions, and whether all of them are registered.

    :raises OptionError: if there are several brokers, but no list of them.
    """
    listed, known = cluster.settings.brokers, tuple(cluster.masters())
    if listed:
        return listed, set(listed) <= set(known)
    if len(known) > 1:
        raise OptionError(
            f"option {BROKERS}: the name servers know {', '.join(known)}, and the order of "
            f"brokers numbers partitions: set it to {','.join(known)}; append new ones at the end"
        )
    return known, bool(known)


def numbered(topic: str, queues: Iterable[Queue], brokers: Sequence[str]) -> dict[int, Queue]:
    """Queues by partition, in order.

    :raises OptionError: for a broker that is not listed, and for more than :data:`STRIDE` queues.
    """
    found: dict[int, Queue] = {}
    for queue in queues:
        if queue.broker not in brokers:
            raise OptionError(
                f"topic {topic} has queues on the broker {queue.broker}, which is not one of "
                f"{', '.join(brokers)}: add it at the end of {BROKERS}"
            )
        if queue.number >= STRIDE and len(brokers) > 1:
            raise OptionError(f"topic {topic} has more than {STRIDE} queues on {queue.broker}")
        found[brokers.index(queue.broker) * STRIDE + queue.number] = queue
    return dict(sorted(found.items()))
