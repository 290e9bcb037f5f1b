"""Translation of settings of Kafka's Java client that librdkafka has in another form."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from cdcfmt_core.errors import OptionError

_JAAS_LOGIN = re.compile(
    r"\s*([\w.]+)\s+(?:required|requisite|sufficient|optional)\b(.*)", re.DOTALL
)
_JAAS_OPTION = re.compile(
    r"""(?<![\w.])([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|(\S+))"""
)


def _from_jaas(value: str, given: Mapping[str, str]) -> dict[str, str]:
    login = _JAAS_LOGIN.fullmatch(value)
    module = login[1].rpartition(".")[2] if login else ""
    if login is None or module not in ("PlainLoginModule", "ScramLoginModule"):
        raise OptionError(
            "option kafka.sasl.jaas.config: only PlainLoginModule and ScramLoginModule can be "
            "translated. This client (librdkafka) takes kafka.sasl.username and "
            "kafka.sasl.password, for Kerberos kafka.sasl.kerberos.principal, .keytab and "
            ".service.name, for OAuth kafka.sasl.oauthbearer.*"
        )
    text = login[2].rstrip().removesuffix(";")
    options = {
        name: re.sub(r"\\(.)", r"\1", double or single) or bare
        for name, double, single, bare in _JAAS_OPTION.findall(text)
    }
    rest = _JAAS_OPTION.sub("", text).strip()
    if rest or not {"username", "password"} <= options.keys() or "tokenauth" in options:
        raise OptionError(
            "option kafka.sasl.jaas.config: only username and password can be translated, and "
            "both are needed; set kafka.sasl.username and kafka.sasl.password instead"
        )
    if not {"sasl.mechanism", "sasl.mechanisms"} & given.keys():
        raise OptionError("option kafka.sasl.jaas.config needs kafka.sasl.mechanism")
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _truststore_location(value: str, given: Mapping[str, str]) -> dict[str, str]:
    if _store_type(given, "ssl.truststore.type") == "PEM":
        return {"ssl.ca.location": value}
    raise refusal(
        "ssl.truststore.location",
        "Java's trust stores are for Java; export the certificates as PEM (keytool -exportcert "
        "-rfc) and set kafka.ssl.ca.location",
    )


def _keystore_location(value: str, given: Mapping[str, str]) -> dict[str, str]:
    kind = _store_type(given, "ssl.keystore.type")
    if kind == "PEM":
        return {"ssl.certificate.location": value, "ssl.key.location": value}
    if kind == "PKCS12":
        return {"ssl.keystore.location": value}
    raise refusal(
        "ssl.keystore.location",
        "Java's key stores are for Java; convert it to PKCS12 (keytool -importkeystore "
        "-deststoretype PKCS12) and set kafka.ssl.keystore.type=PKCS12, or to PEM and set "
        "kafka.ssl.certificate.location and kafka.ssl.key.location",
    )


def _store_of_type(name: str, *kinds: str) -> Callable[[str, Mapping[str, str]], dict[str, str]]:
    def check(value: str, given: Mapping[str, str]) -> dict[str, str]:
        if value.strip().upper() not in kinds:
            raise refusal(name, f"this client (librdkafka) reads {' and '.join(kinds)} only")
        return {}

    return check


def _buffer_memory(value: str, given: Mapping[str, str]) -> dict[str, str]:
    if not value.strip().isdecimal():
        raise refusal("buffer.memory", "a number of bytes is expected")
    return {"queue.buffering.max.kbytes": str(max(int(value) >> 10, 1))}


def _store_type(given: Mapping[str, str], name: str) -> str:
    return given.get(name, "JKS").strip().upper()


def refusal(name: str, why: str) -> OptionError:
    return OptionError(f"option kafka.{name} is not supported: {why}")


TRANSLATED: Final[dict[str, Callable[[str, Mapping[str, str]], dict[str, str]]]] = {
    "buffer.memory": _buffer_memory,
    "sasl.jaas.config": _from_jaas,
    "ssl.endpoint.identification.algorithm": lambda value, _: {
        "ssl.endpoint.identification.algorithm": value.strip() or "none"
    },
    "ssl.keystore.location": _keystore_location,
    "ssl.keystore.type": _store_of_type("ssl.keystore.type", "PEM", "PKCS12"),
    "ssl.truststore.location": _truststore_location,
    "ssl.truststore.type": _store_of_type("ssl.truststore.type", "PEM"),
}
"""Name of the setting → translation of its value, given all settings, to librdkafka's."""
