"""What ``doctor`` looks at of Kafka: does a broker answer, and where it sends its clients."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

from cdcfmt_core.errors import OptionError
from cdcfmt_core.transport import Check
from cdcfmt_kafka.sink import FIRST_CONTACT_SECONDS

_SECONDS = 5.0


def explain(server: str) -> Iterator[Check]:
    """The port, the metadata, and the port of every broker that the metadata names."""
    subject = f"Kafka {server}"
    host, port = split_server(server)
    if problem := _connect(host, port):
        yield Check(
            subject, "bad", f"nothing answers: {problem}", "is the broker up, the port open?"
        )
        return
    yield Check(subject, "ok", "the port is open")
    from confluent_kafka.admin import AdminClient

    # The client logs what it tries; the outcome says all there is.
    client: Any = AdminClient({"bootstrap.servers": server, "log_level": 0})
    try:
        # A broker that starts just now accepts connections seconds before it answers.
        metadata = client.list_topics(timeout=FIRST_CONTACT_SECONDS)
    except Exception as error:
        remedy = "has the listener TLS or SASL? reading takes -o kafka.security.protocol=…"
        yield Check(subject, "bad", f"it does not answer as Kafka in plain text: {error}", remedy)
        return
    topics = sum(not name.startswith("__") for name in metadata.topics)
    text = f"{len(metadata.brokers)} brokers, {topics} topics"
    yield Check(subject, "ok", text)
    for broker in metadata.brokers.values():
        if problem := _connect(broker.host, broker.port):
            yield Check(
                subject,
                "bad",
                f"broker {broker.id} names itself {broker.host}:{broker.port}, which cannot be "
                f"reached from here: {problem}",
                "set advertised.listeners of the broker to an address that clients reach",
            )
        else:
            yield Check(subject, "ok", f"broker {broker.id} at {broker.host}:{broker.port}")


def split_server(server: str) -> tuple[str, int]:
    """``host:port``, or ``[address]:port``.

    :raises OptionError: for anything else.
    """
    host, mark, port = server.rpartition(":")
    if not mark or not host or not port.isdecimal():
        raise OptionError(f"--kafka {server}: write it as host:port")
    return host.strip("[]"), int(port)


def _connect(host: str, port: int) -> str | None:
    try:
        socket.create_connection((host, port), timeout=_SECONDS).close()
    except OSError as error:
        return str(error)
    return None
