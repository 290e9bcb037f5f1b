"""``rocketmq.*`` options → the settings of a client."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final, Self

import attrs

from cdcfmt_core.errors import OptionError
from cdcfmt_core.options import Option, validate

NAME_SERVERS: Final = "rocketmq.namesrv.addr"
ACCESS_KEY, SECRET_KEY = "rocketmq.accessKey", "rocketmq.secretKey"
BROKERS: Final = "rocketmq.brokers"

SETTINGS: Final = (
    Option("rocketmq.namesrv.addr", "Name servers, as host:port, separated by semicolons."),
    Option("rocketmq.endpoints", "The gRPC proxy, as host:port, if no name server can be reached."),
    Option("rocketmq.accessKey", "The user, for brokers with ACL."),
    Option("rocketmq.secretKey", "The user's secret.", hidden=True),
    Option("rocketmq.securityToken", "The token of temporary keys.", hidden=True),
    Option(
        "rocketmq.brokers",
        "The names of all brokers, in the order of their partitions.",
        "list",
        (),
    ),
    Option("rocketmq.consumer.group", "The group with which messages are pulled or drained."),
    Option("rocketmq.producer.group", "The group with which messages are sent.", default="cdcfmt"),
    Option("rocketmq.tag", "The tag of written messages, unless they have a header `TAGS`."),
    Option("rocketmq.tls.enable", "Whether connections use TLS.", "bool", False),
    Option("rocketmq.tls.client.trustCertPath", "PEM file of the trusted authorities."),
    Option("rocketmq.tls.client.certPath", "PEM file of the client's certificate."),
    Option("rocketmq.tls.client.keyPath", "PEM file of the client's key."),
    Option("rocketmq.tls.client.keyPassword", "The password of the client's key.", hidden=True),
    Option(
        "rocketmq.tls.client.authServer",
        "Whether server certificates are checked.",
        "bool",
        True,
    ),
    Option(
        "rocketmq.tls.client.checkHost",
        "Whether server certificates must contain the server's address.",
        "bool",
        True,
    ),
)
"""Named as in RocketMQ's Java client, if it has the setting."""

_ALIASES: Final = {"namesrvaddr": "namesrv.addr", "name-server": "namesrv.addr"}
"""Other names, without prefix: of the Java client's setter, and of Spring's starter."""


@attrs.frozen(kw_only=True)
class ConnectionSettings:
    """How a client connects and logs in; secrets are never shown."""

    name_servers: tuple[str, ...]
    endpoints: str
    brokers: tuple[str, ...]
    consumer_group: str
    producer_group: str
    tag: str
    access_key: str
    secret_key: str = attrs.field(repr=False)
    security_token: str = attrs.field(repr=False)
    tls: Tls | None

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """From ``rocketmq.*`` options without their prefix, in lower case.

        :raises OptionError: for an unknown setting, and for settings that contradict each other.
        """
        named = {f"rocketmq.{_ALIASES.get(name, name)}": value for name, value in given.items()}
        values = validate(named, SETTINGS, owner="RocketMQ")
        if bool(values[ACCESS_KEY]) != bool(values[SECRET_KEY]):
            raise OptionError(f"options {ACCESS_KEY} and {SECRET_KEY} must be given together")
        servers = (values[NAME_SERVERS] or "").replace(",", ";").split(";")
        return cls(
            name_servers=tuple(filter(None, (server.strip() for server in servers))),
            endpoints=values["rocketmq.endpoints"] or "",
            brokers=tuple(values[BROKERS]),
            consumer_group=values["rocketmq.consumer.group"] or "",
            producer_group=values["rocketmq.producer.group"],
            tag=values["rocketmq.tag"] or "",
            access_key=values[ACCESS_KEY] or "",
            secret_key=values[SECRET_KEY] or "",
            security_token=values["rocketmq.securityToken"] or "",
            tls=Tls.of(values) if values["rocketmq.tls.enable"] else None,
        )

    @property
    def address(self) -> str:
        """The name servers, for error texts."""
        return ";".join(self.name_servers)

    def require_name_servers(self) -> Self:
        """:raises OptionError: without a name server."""
        if not self.name_servers:
            raise OptionError(
                f"option {NAME_SERVERS} is missing: the name servers to ask, as host:port, "
                "separated by semicolons"
            )
        for server in self.name_servers:
            split_address(server, NAME_SERVERS)
        return self


@attrs.frozen(kw_only=True)
class Tls:
    """Certificate files, and which checks are made."""

    authorities: str | None
    certificate: str | None
    key: str | None
    password: str | None = attrs.field(repr=False)
    check: bool
    check_host: bool

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Self:
        def text(name: str) -> str | None:
            value = values[f"rocketmq.tls.client.{name}"]
            return str(value) if value else None

        return cls(
            authorities=text("trustCertPath"),
            certificate=text("certPath"),
            key=text("keyPath"),
            password=text("keyPassword"),
            check=bool(values["rocketmq.tls.client.authServer"]),
            check_host=bool(values["rocketmq.tls.client.checkHost"]),
        )

    def context(self) -> ssl.SSLContext:
        """:raises OptionError: for files that cannot be read."""
        try:
            context = ssl.create_default_context(cafile=self.authorities)
            context.check_hostname = self.check and self.check_host
            if not self.check:
                context.verify_mode = ssl.CERT_NONE
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key, self.password or "")
        except (OSError, ValueError) as error:
            raise OptionError(
                "options rocketmq.tls.client.*: the certificate files cannot be used: "
                f"{error}; check trustCertPath, certPath, keyPath and keyPassword"
            ) from None
        return context


def split_address(text: str, option: str) -> tuple[str, int]:
    """Split ``host:port`` or ``[address]:port``.

    :raises OptionError: for anything else.
    """
    host, mark, port = text.removeprefix("http://").rpartition(":")
    if not mark or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise OptionError(f"option {option}: {text!r:.200} is not host:port")
    return host.strip("[]"), int(port)
