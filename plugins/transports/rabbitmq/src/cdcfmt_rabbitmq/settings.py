"""``rabbitmq.*`` options: broker addresses, login and TLS.  Secrets are never shown."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final, Literal

import attrs

from cdcfmt_core.errors import OptionError
from cdcfmt_core.texts import did_you_mean

Protocol = Literal["streams", "queues"]

_PORTS: Final = {
    ("streams", False): 5552,
    ("streams", True): 5551,
    ("queues", False): 5672,
    ("queues", True): 5671,
}

_NAMES: Final = (
    "hosts", "virtual.host", "username", "password", "sasl.mechanism", "tls", "ssl.ca.location",
    "ssl.certificate.location", "ssl.key.location", "ssl.key.password", "advertised",
)  # fmt: skip

_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")


@attrs.frozen
class ConnectionSettings:
    """How to reach a broker.

    - ``hosts``: host names, with a port if the user gave one
    - ``external``: log in with the certificate
    - ``advertised``: connect to the advertised addresses; false behind a proxy or load balancer
    """

    hosts: tuple[tuple[str, int | None], ...]
    virtual_host: str = "/"
    username: str = "guest"
    password: str = attrs.field(default="guest", repr=False)
    external: bool = False
    tls: bool = False
    authority: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: str | None = attrs.field(default=None, repr=False)
    advertised: bool = True

    def addresses(self, protocol: Protocol) -> list[tuple[str, int]]:
        """Host and port of each configured broker."""
        return [(host, port or _PORTS[protocol, self.tls]) for host, port in self.hosts]

    def show(self, protocol: Protocol) -> str:
        """The brokers, for error texts."""
        return ", ".join(f"{host}:{port}" for host, port in self.addresses(protocol))

    def ssl_context(self) -> ssl.SSLContext | None:
        """A context that checks the broker's certificate and name; None without TLS.

        :raises OptionError: for a file that cannot be used.
        """
        if not self.tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.authority)
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key, self.key_password or "")
        except (OSError, ValueError) as error:
            raise OptionError(
                f"options rabbitmq.ssl.*: a certificate or key file cannot be used: {error}"
            ) from None
        return context


def parse_settings(given: Mapping[str, str]) -> ConnectionSettings:
    """From ``rabbitmq.*`` options without their prefix.

    :raises OptionError: for an unknown or missing option, or an invalid value.
    """
    for name in given:
        if name not in _NAMES:
            hint = did_you_mean(name, _NAMES) or "."
            known = ", ".join(f"rabbitmq.{known}" for known in _NAMES)
            raise OptionError(f"RabbitMQ has no option 'rabbitmq.{name}'{hint} Options: {known}")
    if not given.get("hosts", "").strip():
        raise OptionError("option rabbitmq.hosts is missing: host:port of the brokers")
    external = _choice(given, "sasl.mechanism", "PLAIN", ("PLAIN", "EXTERNAL")) == "EXTERNAL"
    tls = _truth(given, "tls", default=False)
    files = [name for name in given if name.startswith("ssl.")]
    if files and not tls:
        raise OptionError(f"option rabbitmq.{min(files)} needs rabbitmq.tls=true")
    if external and "ssl.certificate.location" not in given:
        raise OptionError(
            "option rabbitmq.sasl.mechanism: EXTERNAL logs in with a certificate: give "
            "rabbitmq.tls=true and rabbitmq.ssl.certificate.location"
        )
    return ConnectionSettings(
        tuple(_host(text.strip()) for text in given["hosts"].split(",") if text.strip()),
        virtual_host=given.get("virtual.host", "/"),
        username=given.get("username", "guest"),
        password=given.get("password", "guest"),
        external=external,
        tls=tls,
        authority=given.get("ssl.ca.location"),
        certificate=given.get("ssl.certificate.location"),
        key=given.get("ssl.key.location"),
        key_password=given.get("ssl.key.password"),
        advertised=_truth(given, "advertised", default=True),
    )


def _host(text: str) -> tuple[str, int | None]:
    host, mark, port = text.rpartition(":")
    if "@" in text or "/" in text:
        raise OptionError(
            "option rabbitmq.hosts: write host:port; users are rabbitmq.username and "
            "rabbitmq.password, the virtual host is rabbitmq.virtual.host"
        )
    if not mark or host.endswith(":") or text.endswith("]"):
        return text.strip("[]"), None
    if not port.isdecimal() or not 0 < int(port) < 65536 or not host:
        raise OptionError(f"option rabbitmq.hosts: {text!r} is not host:port")
    return host.strip("[]"), int(port)


def _truth(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    value = given.get(name)
    if value is None:
        return default
    return _choice(given, name, "", (*_YES, *_NO)) in _YES


def _choice(given: Mapping[str, str], name: str, default: str, choices: tuple[str, ...]) -> str:
    value = given.get(name, default).strip()
    for choice in choices:
        if value.lower() == choice.lower():
            return choice
    raise OptionError(f"option rabbitmq.{name}: the value is not one of {', '.join(choices)}")
