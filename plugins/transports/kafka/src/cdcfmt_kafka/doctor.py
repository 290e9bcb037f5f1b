"""Checks of ``doctor`` for Kafka: does a broker answer, and can its addresses be reached?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from cdcfmt_core.errors import OptionError
from cdcfmt_core.transport import Check
from cdcfmt_kafka.sink import FIRST_CONTACT_SECONDS
from cdcfmt_toolkit.topics.topic_options import port_problem

_CLIENTS = 3
"""Clients that ask a broker, one after the other."""


def diagnose(server: str) -> Iterator[Check]:
    """Check the port, the metadata, and the port of every broker in the metadata."""
    subject = f"Kafka {server}"
    host, port = split_server(server)
    if problem := port_problem(host, port):
        yield Check(
            subject, "bad", f"nothing answers: {problem}", "is the broker up, the port open?"
        )
        return
    yield Check(subject, "ok", "the port is open")
    try:
        metadata = _metadata(server)
    except Exception as error:
        remedy = "does the listener use TLS or SASL? then read with -o kafka.security.protocol=…"
        yield Check(subject, "bad", f"it gives no plain-text Kafka answer: {error}", remedy)
        return
    topics = sum(not name.startswith("__") for name in metadata.topics)
    text = f"{len(metadata.brokers)} brokers, {topics} topics"
    yield Check(subject, "ok", text)
    for broker in metadata.brokers.values():
        if problem := port_problem(broker.host, broker.port):
            yield Check(
                subject,
                "bad",
                f"broker {broker.id} advertises {broker.host}:{broker.port}, which cannot be "
                f"reached from here: {problem}",
                "set advertised.listeners of the broker to an address that clients can reach",
            )
        else:
            yield Check(subject, "ok", f"broker {broker.id} at {broker.host}:{broker.port}")


def _metadata(server: str) -> Any:
    from confluent_kafka import KafkaException

    # A client that is sent to an address without a broker may leave the one that answered before
    # its question is answered: then another client asks.
    for _ in range(_CLIENTS - 1):
        with suppress(KafkaException):
            return _ask(server)
    return _ask(server)


def _ask(server: str) -> Any:
    from confluent_kafka.admin import AdminClient

    # Without log lines of single attempts: the result is enough.
    client: Any = AdminClient({"bootstrap.servers": server, "log_level": 0})
    # A starting broker accepts connections some seconds before it answers.
    return client.list_topics(timeout=FIRST_CONTACT_SECONDS / _CLIENTS)


def split_server(server: str) -> tuple[str, int]:
    """Split ``host:port`` or ``[address]:port``.

    :raises OptionError: for anything else.
    """
    host, mark, port = server.rpartition(":")
    if not mark or not host or not port.isdecimal():
        raise OptionError(f"--kafka {server}: write it as host:port")
    return host.strip("[]"), int(port)
