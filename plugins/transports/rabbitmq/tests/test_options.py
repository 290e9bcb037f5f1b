"""Options of RabbitMQ: rejected values, and secrets in no text."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.rabbitmq_broker import RabbitBroker
from support.rabbitmq_files import PASSWORD, USER

from cdcfmt_core.errors import OptionError
from cdcfmt_rabbitmq.broker_errors import of_certificate
from cdcfmt_rabbitmq.links import Links
from cdcfmt_rabbitmq.settings import parse_settings
from cdcfmt_rabbitmq.source import options_of_url


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "rabbitmq.hosts is missing"),
        ({"hosts": " "}, "rabbitmq.hosts is missing"),
        ({"hosts": "a:x"}, "is not host:port"),
        ({"hosts": "u:p@a:1"}, "users are rabbitmq.username"),
        ({"hosts": "a", "user": "x"}, "did you mean username"),
        ({"hosts": "a", "tls": "maybe"}, "rabbitmq.tls: the value is not one of"),
        ({"hosts": "a", "ssl.ca.location": "x"}, "needs rabbitmq.tls=true"),
        ({"hosts": "a", "sasl.mechanism": "EXTERNAL"}, "logs in with a certificate"),
        ({"hosts": "a", "sasl.mechanism": "SCRAM"}, "not one of PLAIN, EXTERNAL"),
    ],
)
def test_contradictory_settings(given: Mapping[str, str], problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        parse_settings(given)


def test_addresses() -> None:
    settings = parse_settings({"hosts": "a, b:1,[::1]:2,[::2]", "password": PASSWORD})
    hosts = [("a", 5552), ("b", 1), ("::1", 2), ("::2", 5552)]
    assert settings.addresses("streams") == hosts
    tls = parse_settings({"hosts": "a", "tls": "true"})
    assert (tls.addresses("streams"), tls.addresses("queues")) == ([("a", 5551)], [("a", 5671)])
    assert PASSWORD not in repr(settings) + repr(pickle.loads(pickle.dumps(settings)))


def test_versions_without_certificate_login() -> None:
    before = ("3.9.13", "3.10.8", "3.10.24", "3.11.18", "3.12.0")
    since = ("3.10.25", "3.11.19", "3.12.1", "3.13.0", "4.0.5", "")
    assert all(version in str(of_certificate(version)) for version in before)
    assert not any(map(of_certificate, since))


def test_unusable_certificate_files(tmp_path: Path) -> None:
    (tmp_path / "x.pem").write_text("no certificate")
    for name in (str(tmp_path / "x.pem"), str(tmp_path / "missing")):
        settings = parse_settings({"hosts": "a", "tls": "true", "ssl.ca.location": name})
        with pytest.raises(OptionError, match=r"options rabbitmq\.ssl"):
            settings.ssl_context()


def test_urls() -> None:
    assert options_of_url("rabbitmq://a:1/my%2Fhost/name?keyProperty=k") == {
        "rabbitmq.hosts": "a:1",
        "rabbitmq.virtual.host": "my/host",
        "subscribe": "name",
        "keyProperty": "k",
    }
    assert options_of_url("rabbitmq://a/name") == {"rabbitmq.hosts": "a", "subscribe": "name"}
    with pytest.raises(OptionError, match="cannot hold user and password"):
        options_of_url("rabbitmq://u:p@a/name")


def test_passwords_are_not_logged(rabbitmq: RabbitBroker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    login = {"username": USER, "password": PASSWORD}
    links = Links(parse_settings({"hosts": rabbitmq.stream_host, **login}))
    links.any()
    links.close()
    assert "Sending frame" in caplog.text
    assert PASSWORD not in caplog.text
