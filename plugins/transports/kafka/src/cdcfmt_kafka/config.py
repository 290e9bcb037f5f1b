"""``kafka.*`` options → settings of librdkafka, the client library.

Most names are the same as in Kafka's Java client, which Spark's own Kafka source uses.  Others
are translated if that is exact; otherwise they are rejected, with the setting to use instead.
Values may be secrets, so error texts never contain them.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from cdcfmt_core.errors import OptionError
from cdcfmt_kafka.java_settings import TRANSLATED, refusal

SERVERS = "bootstrap.servers"

_MAX_KILOBYTES = 32 << 10
"""Buffer for a task's unsent messages; librdkafka's default is a gigabyte."""
_BATCH_BYTES = 1_000_000
"""librdkafka's default, also for the largest message."""

_OFFSETS_ARE_OURS = (
    "Spark keeps track of offsets: a new query begins at startingOffsets, and a restarted one "
    "continues from its checkpoint"
)
_BYTES_ARE_OURS = "keys and values are always read as bytes"

REFUSED = {
    "auto.offset.reset": _OFFSETS_ARE_OURS,
    "enable.auto.commit": _OFFSETS_ARE_OURS,
    "enable.auto.offset.store": _OFFSETS_ARE_OURS,
    "enable.partition.eof": "the source sets it itself",
    "key.deserializer": _BYTES_ARE_OURS,
    "value.deserializer": _BYTES_ARE_OURS,
    "interceptor.classes": "interceptors are Java classes, and this client is not Java",
    "plugin.library.paths": "a plugin could change messages",
    "sasl.client.callback.handler.class": "it is a Java class, and this client is not Java",
    "sasl.login.callback.handler.class": "it is a Java class, and this client is not Java; "
    "for OAuth set kafka.sasl.oauthbearer.method=oidc and kafka.sasl.oauthbearer.client.id, "
    "client.secret and token.endpoint.url",
    "ssl.engine.factory.class": "it is a Java class, and this client is not Java",
    "ssl.truststore.password": "PEM files of certificates have no password; give the "
    "certificates as kafka.ssl.ca.location (a PEM file) instead of a Java trust store",
    "ssl.protocol": "this client negotiates the newest TLS; kafka.ssl.cipher.suites restricts it",
    "ssl.enabled.protocols": "this client negotiates the newest TLS; kafka.ssl.cipher.suites "
    "restricts it",
    "ssl.keymanager.algorithm": "it applies to Java only",
    "ssl.trustmanager.algorithm": "it applies to Java only",
}
"""Rejected settings, with the reason."""

ALLOWED_VARIABLE = "CDCFMT_ALLOWED_KAFKA_SETTINGS"
"""Environment variable of the operator: settings of NATIVE to allow, separated by commas."""

NATIVE = {
    "ssl.engine.location": "it loads a library into the process",
    "ssl.providers": "it loads a library into the process",
    "sasl.kerberos.kinit.cmd": "it runs a command in a shell",
}
"""Settings that could run code that the operator did not install, with the reason."""

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
"""Java's name → librdkafka's name, for settings with the same values."""

IGNORED = frozenset(
    {
        "default.api.timeout.ms",
        "max.poll.records",
        "partition.assignment.strategy",
        "sasl.kerberos.ticket.renew.window.factor",
    }
)
"""Java's settings that have no effect here."""

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

    :raises OptionError: for a rejected setting; names the replacement and never shows a value.
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
    """Reject settings that run code, since the operator may not be the author of the options."""
    if name in NATIVE and name not in _allowed():
        raise refusal(
            name,
            f"{NATIVE[name]}. To allow it, the operator sets the environment variable "
            f"{ALLOWED_VARIABLE}={name} on driver and executors",
        )
    if name in _IN_A_SHELL and _NO_WORD_OF_A_SHELL.search(value):
        raise refusal(
            name,
            "the client inserts it into the shell command kinit: use only letters, digits and "
            "_ @ . / : = + , -",
        )


def _allowed() -> list[str]:
    return [name.strip() for name in os.environ.get(ALLOWED_VARIABLE, "").split(",")]


def reading_config(config: Mapping[str, str], group_prefix: str, messages: int) -> dict[str, Any]:
    """Settings of a consumer that reads about ``messages`` messages and commits nothing."""
    import uuid

    return {
        # A small range must not fetch far beyond its end, a large one must not use much memory.
        "queued.min.messages": max(1, min(messages, 100_000)),
        "queued.max.messages.kbytes": 32 * 1024,
        # The client pauses so long after each full queue: 1 s, its default, makes reading take
        # four times as long.
        "fetch.queue.backoff.ms": 10,
        # After the last message of a transaction, only an empty answer shows the end.
        "fetch.wait.max.ms": 100,
        # The client requires a group name; it never joins the group.
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


def writing_config(config: Mapping[str, str], largest_batch: int | None) -> dict[str, Any]:
    """Settings of a producer; ``largest_batch``: the topic's limit for a batch in bytes."""
    settings: dict[str, Any] = {
        "enable.idempotence": True,
        "acks": "all",
        "linger.ms": 20,
        "log_level": 0,
        **config,
        "delivery.report.only.error": True,
    }
    if largest_batch is not None:
        settings.setdefault("batch.size", min(largest_batch, _BATCH_BYTES))
        most = max(min(largest_batch, _MAX_KILOBYTES << 9), _BATCH_BYTES)
        settings.setdefault("message.max.bytes", most)
    largest = str(settings.get("message.max.bytes", ""))
    # Room for two of the largest messages; the client rejects a value that is not a number.
    most = max(_MAX_KILOBYTES, int(largest) >> 9 if largest.isdecimal() else 0)
    settings.setdefault("queue.buffering.max.kbytes", most)
    # The client would count the time behind all other messages of a full queue, which a quota
    # makes long.
    settings.pop("message.timeout.ms", None)
    return settings | {"delivery.timeout.ms": 0}


def delivery_seconds(config: Mapping[str, str]) -> float:
    """How long a producer waits while no message is acknowledged.

    :raises OptionError: for a setting that is not a number.
    """
    text = config.get("message.timeout.ms") or config.get("delivery.timeout.ms") or "120000"
    if not text.isdecimal():
        raise OptionError("option kafka.delivery.timeout.ms: not a number of milliseconds")
    # For the client, 0 is without end.
    return int(text) / 1000 or math.inf


def admin_config(config: Mapping[str, str]) -> dict[str, Any]:
    """Settings of a metadata client, without consumer settings."""
    # The client would log warnings about consumer settings.
    return {"log_level": 0} | {k: v for k, v in config.items() if k not in _CONSUMERS_OWN}


def open_client(make: Callable[[], Any]) -> Any:
    """Call ``make``; if the client rejects a setting, raise an OptionError.

    The client's own error texts quote values, which may be secret.
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
            java = {ours: f" (or kafka.{name})" for name, ours in RENAMED.items()}
            allowed = re.search(r"outside allowed range (\S+)", text)
            reason = (
                f"option kafka.{quoted[-1]}{java.get(quoted[-1], '')}: the client (librdkafka) "
                f"rejects the value{f', which must be in {allowed[1]}' if allowed else ''}"
            )
        else:
            reason = (
                f"the client cannot be created from the options kafka.*: {_without_values(text)}"
            )
        raise OptionError(reason) from None


def _without_values(text: str) -> str:
    return re.sub(r'"[^"]*"', '"…"', text)
