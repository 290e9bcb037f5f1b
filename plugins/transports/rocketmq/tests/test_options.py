"""Options and addresses: parsed and rejected values."""

from __future__ import annotations

import pytest

from cdcfmt_core import default_registry
from cdcfmt_core.errors import OptionError
from cdcfmt_rocketmq.settings import ConnectionSettings
from cdcfmt_rocketmq.source import options_of_url
from cdcfmt_toolkit.transport_opening import open_sink, open_source, split_options

SPEC = default_registry().get_transport("rocketmq")


def problem(**given: str) -> str:
    """The error of a source with these options, in which ``_`` stands for a dot."""
    named = {name.replace("_", "."): value for name, value in given.items()}
    with pytest.raises(OptionError) as caught:
        open_source(SPEC, *split_options(SPEC, {"subscribe": "t", **named}))
    return str(caught.value)


def test_name_servers_by_any_of_their_names() -> None:
    for name in ("namesrv.addr", "namesrvaddr", "name-server"):
        settings = ConnectionSettings.of({name: "a:9876; b:9876"})
        assert settings.name_servers == ("a:9876", "b:9876")
    assert ConnectionSettings.of({"namesrv.addr": "http://a:1,b:2"}).address == "http://a:1;b:2"


def test_errors_name_the_option() -> None:
    assert "option rocketmq.namesrv.addr is missing" in problem(rocketmq_brokers="a")
    assert "did you mean rocketmq.accessKey" in problem(rocketmq_acceskey="x")
    assert "rocketmq.accessKey and rocketmq.secretKey" in problem(
        rocketmq_namesrv_addr="a:1", rocketmq_accesskey="x"
    )
    assert "'a' is not host:port" in problem(rocketmq_namesrv_addr="a")
    assert "'a:x' is not host:port" in problem(rocketmq_namesrv_addr="a:x")
    assert "option topic" in _sink_problem({})


def _sink_problem(given: dict[str, str]) -> str:
    options = split_options(SPEC, {"rocketmq.namesrv.addr": "a:1", **given}, writing=True)
    with pytest.raises(OptionError) as caught:
        open_sink(SPEC, *options)
    return str(caught.value)


def test_secrets_are_never_printed() -> None:
    given = {
        "namesrv.addr": "a:1",
        "accesskey": "reader",
        "secretkey": "s3cret",
        "securitytoken": "t0ken",
        "tls.enable": "true",
        "tls.client.keypassword": "pa55",
    }
    settings = ConnectionSettings.of(given)
    assert settings.tls is not None
    for text in (repr(settings), str(settings)):
        assert not [secret for secret in ("s3cret", "t0ken", "pa55") if secret in text]


def test_missing_certificate_files() -> None:
    settings = ConnectionSettings.of(
        {"namesrv.addr": "a:1", "tls.enable": "true", "tls.client.trustcertpath": "/nowhere"}
    )
    assert settings.tls is not None
    with pytest.raises(OptionError, match=r"rocketmq\.tls\.client.*trustCertPath"):
        settings.tls.context()


def test_addresses() -> None:
    assert options_of_url("rocketmq://a:9876/t,u?startingOffsets=latest") == {
        "rocketmq.namesrv.addr": "a:9876",
        "subscribe": "t,u",
        "startingOffsets": "latest",
    }
    with pytest.raises(OptionError, match="cannot hold user and password"):
        options_of_url("rocketmq://me:secret@a:9876/t")
    with pytest.raises(OptionError, match="rocketmq://host:port/topic"):
        options_of_url("rocketmq:///t")
