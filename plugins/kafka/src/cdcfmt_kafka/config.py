"""``kafka.*`` options → settings of librdkafka, the client library.

Most names are the same as in Kafka's own (Java) client, on which Spark's source is built.
Those that differ are translated where that is exact, and else refused with the name that
does it here.  Values may be secrets: no text holds them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from cdcfmt_core.errors import OptionError
from cdcfmt_kafka.java_settings import TRANSLATED, refusal

SERVERS = "bootstrap.servers"

_OFFSETS_ARE_OURS = (
    "Spark keeps track of offsets; startingOffsets says where a new query begins, and a "
    "restarted one goes on from its checkpoint"
)
_BYTES_ARE_OURS = "keys and values are always read as bytes"

REFUSED = {
    "auto.offset.reset": _OFFSETS_ARE_OURS,
    "enable.auto.commit": _OFFSETS_ARE_OURS,
    "enable.auto.offset.store": _OFFSETS_ARE_OURS,
    "enable.partition.eof": "the source needs it for itself",
    "key.deserializer": _BYTES_ARE_OURS,
    "value.deserializer": _BYTES_ARE_OURS,
    "interceptor.classes": "interceptors are Java classes, and this client is not Java",
    "plugin.library.paths": "a plugin could change messages",
    "sasl.client.callback.handler.class": "it is a Java class, and this client is not Java",
    "sasl.login.callback.handler.class": "it is a Java class, and this client is not Java; "
    "kafka.sasl.oauthbearer.method=oidc with kafka.sasl.oauthbearer.client.id, "
    "client.secret and token.endpoint.url does OAuth",
    "ssl.engine.factory.class": "it is a Java class, and this client is not Java",
    "ssl.truststore.password": "PEM files of certificates have no password; give the "
    "certificates as kafka.ssl.ca.location (a PEM file) instead of a Java trust store",
    "ssl.protocol": "this client negotiates the newest TLS; kafka.ssl.cipher.suites narrows it",
    "ssl.enabled.protocols": "this client negotiates the newest TLS; kafka.ssl.cipher.suites "
    "narrows it",
    "ssl.keymanager.algorithm": "it concerns Java alone",
    "ssl.trustmanager.algorithm": "it concerns Java alone",
}
"""Settings that are an error, and why."""

ALLOWED_VARIABLE = "CDCFMT_ALLOWED_KAFKA_SETTINGS"
"""Environment variable of the operator: names from NATIVE, separated by commas, to allow."""

NATIVE = {
    "ssl.engine.location": "it loads a library into the process",
    "ssl.providers": "it loads a library into the process",
    "sasl.kerberos.kinit.cmd": "it runs a command in a shell",
}
"""Settings by which options would run code that the operator did not install, and how."""

_IN_A_SHELL = ("sasl.kerberos.keytab", "sasl.kerberos.principal", "sasl.kerberos.service.name")
_NO_WORD_OF_A_SHELL = re.compile(r"[^\w@./:=+, -]")

RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
"""Java's name → librdkafka's, where the values mean the same."""

IGNORED = frozenset(
    {
        "default.api.timeout.ms",
        "max.poll.records",
        "partition.assignment.strategy",
        "sasl.kerberos.ticket.renew.window.factor",
    }
)
"""Java's settings that have nothing to act on here."""

_CONSUMERS_OWN = frozenset(
    {
        "allow.auto.create.topics",
        "check.crcs",
        "fetch.error.backoff.ms",
        "fetch.max.bytes",
        "fetch.message.max.bytes",
        "fetch.min.bytes",
        "fetch.queue.backoff.ms",
        "fetch.wait.max.ms",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "heartbeat.interval.ms",
        "isolation.level",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "queued.max.messages.kbytes",
        "queued.min.messages",
        "session.timeout.ms",
    }
)


def client_config(given: Mapping[str, str]) -> dict[str, str]:
    """Settings of librdkafka from ``kafka.*`` options without their prefix.

    :raises OptionError: for a setting that has no place here; it says what to use instead
        and shows no value.
    """
    config: dict[str, str] = {}
    for name in sorted(given):
        value = given[name]
        translate = TRANSLATED.get(name)
        if name in REFUSED:
            raise refusal(name, REFUSED[name])
        _refuse_code(name, value)
        if translate is not None:
            config |= translate(value, given)
        elif name not in IGNORED:
            config[RENAMED.get(name, name)] = value
    if not config.get(SERVERS, "").strip():
        raise OptionError(
            "option kafka.bootstrap.servers is missing: the brokers to ask first, as host:port, "
            "separated by commas"
        )
    return config


def _refuse_code(name: str, value: str) -> None:
    """Refuse settings that run code: options may come from other people than the operator."""
    if name in NATIVE and name not in _allowed():
        raise refusal(
            name,
            f"{NATIVE[name]}. Where that is wanted, the operator sets the environment variable "
            f"{ALLOWED_VARIABLE}={name} on driver and executors",
        )
    if name in _IN_A_SHELL and _NO_WORD_OF_A_SHELL.search(value):
        raise refusal(
            name,
            "the client puts it into the command kinit, which a shell runs: letters, digits and "
            "_ @ . / : = + , - only",
        )


def _allowed() -> list[str]:
    return [name.strip() for name in os.environ.get(ALLOWED_VARIABLE, "").split(",")]


def reading_config(config: Mapping[str, str], group_prefix: str, messages: int) -> dict[str, Any]:
    """Settings of a consumer that reads about so many ``messages`` and commits nothing."""
    import uuid

    return {
        # Small ranges must not fetch far beyond their end, large ones not hoard memory.
        "queued.min.messages": max(1, min(messages, 100_000)),
        "queued.max.messages.kbytes": 32 * 1024,
        # The default, a second, is a pause after each full queue: four times as long in all.
        "fetch.queue.backoff.ms": 10,
        # Behind the last message of a transaction the end shows only in an empty answer.
        "fetch.wait.max.ms": 100,
        # The client demands a group; one of its own, and it joins none.
        "group.id": f"{group_prefix}-{uuid.uuid4()}",
        "isolation.level": "read_committed",
        "allow.auto.create.topics": False,
        "topic.metadata.propagation.max.ms": 10_000,
        "log_level": 0,
        **config,
        "auto.offset.reset": "error",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
    }


def admin_config(config: Mapping[str, str]) -> dict[str, Any]:
    """Settings of a client that asks for metadata, without those of consumers."""
    # It would warn of them.
    return {"log_level": 0} | {k: v for k, v in config.items() if k not in _CONSUMERS_OWN}


def open_client(make: Callable[[], Any]) -> Any:
    """What ``make`` makes; a setting that the client refuses is an OptionError.

    The client's own texts quote values, which may be secret.
    """
    import confluent_kafka

    try:
        return make()
    except confluent_kafka.KafkaException as error:
        text = error.args[0].str()
        quoted = re.findall(r'property:? "([^"]+)"', text)
        if "No such configuration property" in text and quoted:
            reason = f"option kafka.{quoted[-1]}: the client (librdkafka) has no such setting"
        elif quoted:
            reason = f"option kafka.{quoted[-1]}: the client (librdkafka) refuses the value"
        else:
            reason = f"the options kafka.* do not make a client: {_without_values(text)}"
        raise OptionError(reason) from None


def _without_values(text: str) -> str:
    return re.sub(r'"[^"]*"', '"…"', text)
