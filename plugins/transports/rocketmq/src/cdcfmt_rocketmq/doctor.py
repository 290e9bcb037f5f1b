"""Checks of ``doctor`` for RocketMQ: name servers, brokers, and the brokers' addresses."""

from __future__ import annotations

from collections.abc import Iterator

from cdcfmt_core.transport import Check
from cdcfmt_rocketmq.cluster import Cluster, RefusedError
from cdcfmt_rocketmq.frames import NoAnswerError
from cdcfmt_rocketmq.settings import ConnectionSettings, split_address
from cdcfmt_toolkit.topics.topic_options import port_problem


def diagnose(server: str) -> Iterator[Check]:
    """Check the name server's port and answers, and the port of every registered broker."""
    subject = f"RocketMQ {server}"
    if problem := port_problem(*split_address(server, "--rocketmq")):
        yield Check(
            subject, "bad", f"nothing answers: {problem}", "is the name server up, the port open?"
        )
        return
    yield Check(subject, "ok", "the port is open")
    cluster = Cluster(ConnectionSettings.of({"namesrv.addr": server}))
    try:
        masters = cluster.masters()
        topics = len(cluster.topics())
    except (NoAnswerError, RefusedError) as error:
        remedy = "is it a name server, not a broker or proxy? does it use TLS?"
        yield Check(subject, "bad", f"it does not answer as a name server: {error}", remedy)
        return
    finally:
        cluster.close()
    if not masters:
        remedy = "start a broker with this namesrvAddr; it registers within some seconds"
        yield Check(subject, "bad", "no broker is registered", remedy)
        return
    yield Check(subject, "ok", f"{len(masters)} brokers, {topics} topics")
    for name, where in masters.items():
        if where is None:
            yield Check(subject, "bad", f"broker {name} has no master", "start its master")
        elif problem := port_problem(*split_address(where, "brokerIP1")):
            yield Check(
                subject,
                "bad",
                f"broker {name} is registered at {where}, which cannot be reached from here: "
                f"{problem}",
                "set brokerIP1 of the broker to an address that clients can reach",
            )
        else:
            yield Check(subject, "ok", f"broker {name} at {where}")
