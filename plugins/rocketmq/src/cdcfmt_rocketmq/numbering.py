"""Which queue of which broker is which partition.

A partition's number is 1000 times the place of its broker in ``rocketmq.brokers``, counted from
0, plus the queue's own number.  It changes neither with queues that are added nor with brokers
that are away, as long as that list grows at its end only.  A single broker needs no list, and
its partitions have the numbers of its queues.
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
    """The queues of a topic by partition, and whether all brokers are there that may have some.

    None if there is no such topic: name servers forget those whose brokers are all away.

    :raises OptionError: if the numbers are not known.
    :raises NoAnswerError: if brokers come or go meanwhile.
    """
    route = cluster.route(topic)
    brokers, complete = broker_order(cluster)
    if route is None and complete:
        # One may have registered between the two answers, with its topics.
        route = cluster.route(topic)
        brokers, complete = broker_order(cluster)
    if route is None:
        return None if complete else ({}, False)
    queues = route.writable if writing else route.readable
    if not cluster.settings.brokers and {queue.broker for queue in queues} - set(brokers):
        # One registers just now, between the two answers.
        raise NoAnswerError(f"the brokers of topic {topic} change just now")
    return numbered(topic, queues, brokers), complete


def broker_order(cluster: Cluster) -> tuple[tuple[str, ...], bool]:
    """The brokers in the order of their partitions, and whether all of them are there now.

    :raises OptionError: if there are several, and no list of them.
    """
    listed, known = cluster.settings.brokers, tuple(cluster.masters())
    if listed:
        return listed, set(listed) <= set(known)
    if len(known) > 1:
        raise OptionError(
            f"option {BROKERS}: the name servers know {', '.join(known)}, and the order of "
            f"brokers numbers partitions: set it to {','.join(known)}, new ones at the end"
        )
    return known, bool(known)


def numbered(topic: str, queues: Iterable[Queue], brokers: Sequence[str]) -> dict[int, Queue]:
    """Queues by partition, in order.

    :raises OptionError: for a broker that the list lacks, and for more queues than numbers.
    """
    found: dict[int, Queue] = {}
    for queue in queues:
        if queue.broker not in brokers:
            raise OptionError(
                f"topic {topic} has queues on the broker {queue.broker}, which is not among "
                f"{', '.join(brokers)}: add it at the end of {BROKERS}"
            )
        if queue.number >= STRIDE and len(brokers) > 1:
            raise OptionError(f"topic {topic} has more than {STRIDE} queues on {queue.broker}")
        found[brokers.index(queue.broker) * STRIDE + queue.number] = queue
    return dict(sorted(found.items()))
