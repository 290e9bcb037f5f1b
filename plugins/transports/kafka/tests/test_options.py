"""Options of Kafka, without a broker."""

from __future__ import annotations

import time
from typing import Any

import pytest

from cdcfmt_core.errors import OptionError
from cdcfmt_core.options import validate
from cdcfmt_kafka.config import (
    ALLOWED_VARIABLE,
    NATIVE,
    client_config,
    open_client,
    reading_config,
)
from cdcfmt_kafka.options import KAFKA_OPTIONS, KafkaOptions, parse_kafka_options
from cdcfmt_kafka.source import KafkaSource
from cdcfmt_toolkit.topics.offset_request import OffsetRequest

SERVERS = {"bootstrap.servers": "a:9092"}
SECRET = "hush-hush"


def parse(client: dict[str, str] | None = None, **options: str) -> KafkaOptions:
    values = validate(options, KAFKA_OPTIONS, owner="the test")
    return parse_kafka_options(values, SERVERS if client is None else client)


def config(**given: str) -> dict[str, str]:
    named = {name.replace("_", "."): value for name, value in given.items()}
    found = client_config(SERVERS | named)
    del found["bootstrap.servers"]
    return found


def test_one_way_to_select_topics() -> None:
    assert parse(subscribe="a, b").topics.names == {"a", "b"}
    assert parse(subscribePattern="a.*").topics.pattern == "a.*"
    assert parse(assign='{"a": [0, 2]}').topics.assigned == {("a", 0), ("a", 2)}
    with pytest.raises(OptionError, match="given: none"):
        parse()
    with pytest.raises(OptionError, match="given: subscribe and assign"):
        parse(subscribe="a", assign='{"a": [0]}')
    for text in ("a", "{}", '{"a": 0}', '{"a": [-1]}', '{"a": ["0"]}', "[]"):
        with pytest.raises(OptionError, match="option assign"):
            parse(assign=text)
    with pytest.raises(OptionError, match="not a regular expression"):
        parse(subscribePattern="a(")


def test_the_names_of_groups() -> None:
    for given, begins in (({}, "cdcfmt-source"), ({"groupIdPrefix": "mine"}, "mine")):
        options = parse(subscribe="a", **given)
        group = reading_config(options.config, options.group_prefix, 1)["group.id"]
        assert group.startswith(f"{begins}-")


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("startingOffsets", "first"),
        ("startingOffsets", "[]"),
        ("startingOffsets", '{"a": {"0": -3}}'),
        ("endingOffsets", '{"a": {"x": 1}}'),
        ("endingOffsets", '{"a": {"0": true}}'),
        ("startingOffsetsByTimestamp", '{"a": {"0": -1}}'),
        ("startingTimestamp", "yesterday"),
        ("startingTimestamp", "1700000000"),
        ("endingTimestamp", "1700000000000000"),
        ("endingOffsetsByTimestamp", '{"a": {"0": 1700000000}}'),
        ("maxTriggerDelay", "soon"),
        ("maxOffsetsPerTrigger", "0"),
    ],
)
def test_empty_texts_are_rejected(option: str, text: str) -> None:
    with pytest.raises(OptionError, match=f"option {option}"):
        parse(subscribe="a", **{option: text})


def test_precedence_of_offset_options() -> None:
    both = parse(
        subscribe="a",
        startingOffsets="latest",
        startingOffsetsByTimestamp='{"a": {"0": 5}}',
    )
    assert both.starting is not None
    assert both.starting.is_time
    assert both.starting.each == {("a", 0): 5}
    assert both.starting.missing_time == "error"
    all_ = parse(subscribe="a", startingOffsetsByTimestamp='{"a": {"0": 5}}', startingTimestamp="7")
    assert all_.starting is not None
    assert (all_.starting.everywhere, all_.starting.each) == (7, None)
    with pytest.raises(OptionError, match="more than maxOffsetsPerTrigger"):
        parse(subscribe="a", minOffsetsPerTrigger="5", maxOffsetsPerTrigger="4")


def test_batches_and_streams() -> None:
    def source(**options: str) -> KafkaSource:
        return KafkaSource(parse(**options))

    for offsets in ("latest", '{"a": {"0": -1}}'):
        with pytest.raises(OptionError, match="startingOffsets: latest is not possible"):
            source(subscribe="a", startingOffsets=offsets).check_batch()
    for offsets in ("earliest", '{"a": {"0": -2}}'):
        with pytest.raises(OptionError, match="endingOffsets: earliest is not possible"):
            source(subscribe="a", endingOffsets=offsets).check_batch()
    with pytest.raises(OptionError, match="endingTimestamp: a stream has no end"):
        source(subscribe="a", endingTimestamp="1").check_stream()
    source(subscribe="a", startingOffsets="latest").check_stream()
    source(subscribe="a", startingOffsets="earliest", endingOffsets="latest").check_batch()


@pytest.mark.parametrize(
    "name",
    [
        "auto.offset.reset",
        "enable.auto.commit",
        "enable.partition.eof",
        "interceptor.classes",
        "key.deserializer",
        "ssl.truststore.password",
        "value.deserializer",
    ],
)
def test_options_rejected_by_spark_are_rejected(name: str) -> None:
    with pytest.raises(OptionError, match=f"kafka.{name} is not supported") as caught:
        client_config(SERVERS | {name: SECRET})
    assert SECRET not in str(caught.value)


def test_the_brokers_must_be_named() -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers is missing"):
        parse({"group.id": "x"}, subscribe="a")


def test_names_of_the_java_client() -> None:
    assert config(fetch_max_wait_ms="5", request_timeout_ms="7", max_poll_records="9") == {
        "fetch.wait.max.ms": "5",
        "socket.timeout.ms": "7",
    }
    assert config(group_id="mine") == {"group.id": "mine"}
    assert config(buffer_memory="33554432", max_request_size="5000000") == {
        "message.max.bytes": "5000000",
        "queue.buffering.max.kbytes": "32768",
    }
    with pytest.raises(OptionError, match=r"kafka\.buffer\.memory is not supported"):
        config(buffer_memory="32m")
    assert config(ssl_endpoint_identification_algorithm="") == {
        "ssl.endpoint.identification.algorithm": "none"
    }


@pytest.mark.parametrize("junk", [" " * 5_000 + "x", "x" * 20_000, "x=" * 20_000])
def test_garbage_in_a_jaas_login_takes_linear_time(junk: str) -> None:
    start = time.process_time()
    with pytest.raises(OptionError, match=r"kafka\.sasl\.username"):
        config(sasl_mechanism="PLAIN", sasl_jaas_config=f"x.PlainLoginModule required {junk}")
    assert time.process_time() - start < 1


@pytest.mark.parametrize("module", ["plain.PlainLoginModule", "scram.ScramLoginModule"])
def test_jaas_logins_are_translated(module: str) -> None:
    jaas = (
        f"org.apache.kafka.common.security.{module} required\n"
        f""" username="me" password='{SECRET};=\\"' ;"""
    )
    assert config(sasl_mechanism="PLAIN", sasl_jaas_config=jaas) == {
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": f'{SECRET};="',
    }


@pytest.mark.parametrize(
    "jaas",
    [
        f'com.sun.security.auth.module.Krb5LoginModule required keyTab="{SECRET}";',
        f"org.apache.kafka.common.security.plain.PlainLoginModule required password={SECRET};",
        f"x.ScramLoginModule required username=a password={SECRET} tokenauth=true;",
        SECRET,
    ],
)
def test_error_of_other_jaas_logins_names_the_settings(jaas: str) -> None:
    with pytest.raises(OptionError, match=r"kafka\.sasl\.username") as caught:
        config(sasl_mechanism="PLAIN", sasl_jaas_config=jaas)
    assert SECRET not in str(caught.value)


def test_key_stores() -> None:
    pem: dict[str, str] = {"ssl_truststore_type": "PEM", "ssl_keystore_type": "PEM"}
    assert config(**pem, ssl_truststore_location="ca.pem", ssl_keystore_location="me.pem") == {
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "me.pem",
        "ssl.key.location": "me.pem",
    }
    assert config(
        **pem,
        ssl_truststore_certificates="C",
        ssl_keystore_certificate_chain="D",
        ssl_keystore_key="E",
        ssl_key_password="F",
    ) == {
        "ssl.ca.pem": "C",
        "ssl.certificate.pem": "D",
        "ssl.key.pem": "E",
        "ssl.key.password": "F",
    }
    assert config(ssl_keystore_type="pkcs12", ssl_keystore_location="me.p12") == {
        "ssl.keystore.location": "me.p12"
    }
    with pytest.raises(OptionError, match=r"kafka\.ssl\.ca\.location"):
        config(ssl_truststore_location="trust.jks")
    with pytest.raises(OptionError, match="PKCS12"):
        config(ssl_keystore_location="me.jks")
    with pytest.raises(OptionError, match="PEM only"):
        config(ssl_truststore_type="JKS")


def test_error_of_invalid_setting_hides_its_value() -> None:
    from confluent_kafka import Consumer

    def refused(**settings: Any) -> str:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        with pytest.raises(OptionError) as caught:
            open_client(lambda: Consumer({**SERVERS, "group.id": "g", "log_level": 0, **given}))
        assert SECRET not in str(caught.value)
        return str(caught.value)

    assert "kafka.no.such: the client (librdkafka) has no such setting" in refused(no_such=SECRET)
    assert "option kafka.socket.timeout.ms" in refused(socket_timeout_ms=SECRET)
    # Spark's users know 305000 of kafka.request.timeout.ms.
    long = refused(socket_timeout_ms="305000")
    assert "(or kafka.request.timeout.ms)" in long
    assert "in 10..300000" in long
    assert "option kafka.security.protocol" in refused(security_protocol=SECRET)
    text = refused(security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN")
    assert "sasl.username and sasl.password must be set" in text


def test_secrets_are_not_in_repr() -> None:
    options = parse({**SERVERS, "sasl.password": SECRET}, subscribe="a")
    assert SECRET not in repr(options)
    assert SECRET not in str(options)


@pytest.mark.parametrize("name", NATIVE)
def test_settings_that_run_code_are_reserved_for_operators(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OptionError, match=rf"option kafka\.{name} .*{ALLOWED_VARIABLE}={name}"):
        client_config(SERVERS | {name: "/tmp/x.so"})
    monkeypatch.setenv(ALLOWED_VARIABLE, "ssl.providers, ssl.engine.location")
    if name == "sasl.kerberos.kinit.cmd":
        with pytest.raises(OptionError, match="runs a command in a shell"):
            client_config(SERVERS | {name: "touch /tmp/x"})
    else:
        assert client_config(SERVERS | {name: "/tmp/x.so"})[name] == "/tmp/x.so"


def test_kinit_arguments_with_shell_syntax_are_rejected() -> None:
    good = {
        "sasl.kerberos.principal": "kafka/host.example.com@EXAMPLE.COM",
        "sasl.kerberos.keytab": "/etc/security/kafka client.keytab",
    }
    assert client_config(SERVERS | good) == SERVERS | good
    for name in good:
        for value in ("x; touch /tmp/pwned", "$(id)", "`id`", 'x" && id', "x\nid", "x|id", "'"):
            with pytest.raises(OptionError, match=f"option kafka.{name} is not supported") as error:
                client_config(SERVERS | {name: value})
            assert value not in str(error.value)


def test_every_partition_needs_an_offset() -> None:
    request = OffsetRequest("startingOffsets", each={("t", 0): 3, ("u", 0): 4})
    with pytest.raises(OptionError, match=r"it lacks t-1; not among them: u-0\. -2 is earliest"):
        request.values_for([("t", 0), ("t", 1)])
    assert request.values_for([("u", 0), ("t", 0)]) == {("t", 0): 3, ("u", 0): 4}
    everywhere = OffsetRequest("startingOffsets", everywhere=-2)
    assert everywhere.values_for([("t", 1)]) == {("t", 1): -2}
