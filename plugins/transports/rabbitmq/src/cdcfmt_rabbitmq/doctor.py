"""Checks of ``cdcfmt doctor --rabbitmq host:port``."""

from __future__ import annotations

from collections.abc import Iterator

from cdcfmt_core.transport import Check
from cdcfmt_rabbitmq.broker_errors import BrokerError
from cdcfmt_rabbitmq.links import Links
from cdcfmt_rabbitmq.settings import parse_settings
from cdcfmt_toolkit.topics.topic_options import port_problem


def diagnose(address: str) -> Iterator[Check]:
    """Check the port, its stream protocol, and the address that the broker advertises."""
    subject = f"RabbitMQ {address}"
    settings = parse_settings({"hosts": address})
    if problem := port_problem(*settings.addresses("streams")[0]):
        remedy = "is the broker up, the port open?"
        yield Check(subject, "bad", f"nothing answers: {problem}", remedy)
        return
    yield Check(subject, "ok", "the port is open")
    links = Links(settings)
    try:
        link = links.any()
        properties = link.client.server_properties
        version = properties.get("version", "of an unknown version")
        yield Check(subject, "ok", f"RabbitMQ {version} speaks the stream protocol")
        yield _advertised(subject, properties)
    except BrokerError as error:
        yield Check(
            subject,
            "warn" if not error.passing else "bad",
            f"the user guest cannot log in by the stream protocol: {error}",
            "is the port that of rabbitmq_stream (5552)? read with -o rabbitmq.username=…, "
            "-o rabbitmq.password=… and -o rabbitmq.tls=…",
        )
    finally:
        links.close()


def _advertised(subject: str, properties: dict[str, str]) -> Check:
    host, port = properties.get("advertised_host", ""), properties.get("advertised_port", "")
    problem = port_problem(host, int(port)) if port.isdecimal() else "no port"
    if problem:
        return Check(
            subject,
            "bad",
            f"it advertises {host}:{port}, which cannot be reached from here: {problem}",
            "set stream.advertised_host and stream.advertised_port of the broker to an address "
            "that clients can reach, or read with -o rabbitmq.advertised=false",
        )
    return Check(subject, "ok", f"it advertises {host}:{port}")
