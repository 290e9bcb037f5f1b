"""A real Kafka broker for the tests: KRaft, one node, no Docker."""

from __future__ import annotations

import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from cdcfmt_core.events import Message
from support.brokers import NOWHERE, end_process, free_ports, wait_for_start
from support.certificates import make_certificates
from support.java import SHORT_LIVED
from support.maven import java_program, resolve

KAFKA = ("org.apache.kafka", "kafka_2.13", "4.3.1")
USER, PASSWORD = "reader", "s3cr3t-word"
WRONG_LOGIN = {
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.username": USER,
    "kafka.sasl.password": "wr0ng-word",
}
"""Options beside :attr:`Broker.sasl_servers`."""

_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={clients},ASTRAY://{astray},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={clients},ASTRAY://{nowhere}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,ASTRAY:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
listener.name.sasl_plaintext.sasl.enabled.mechanisms=PLAIN
listener.name.sasl_ssl.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.keystore.type=PEM
ssl.keystore.certificate.chain={certificate}
ssl.keystore.key={key}
listener.name.sasl_plaintext.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
log.dirs={folder}/logs
auto.create.topics.enable=false
log.retention.ms=-1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
offsets.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.backoff.ms=100
log.initial.task.delay.ms=100
log.retention.check.interval.ms=500
"""


@attrs.define
class Broker:
    """A broker in a folder of its own; it may be stopped and started again."""

    folder: Path
    _ports: list[int] = attrs.field(factory=lambda: free_ports(5))
    _process: subprocess.Popen[bytes] | None = None
    _admin: AdminClient | None = None
    _producer: Producer | None = None

    @property
    def servers(self) -> str:
        """``bootstrap.servers`` without any security."""
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def sasl_servers(self) -> str:
        """``bootstrap.servers`` that want SASL PLAIN as :data:`USER`."""
        return f"127.0.0.1:{self._ports[1]}"

    @property
    def scram_servers(self) -> str:
        """``bootstrap.servers`` that want TLS and SASL SCRAM-SHA-512 as :data:`USER`."""
        return f"127.0.0.1:{self._ports[3]}"

    @property
    def astray_servers(self) -> str:
        """``bootstrap.servers`` that answer, and send their clients to :data:`NOWHERE`."""
        return f"127.0.0.1:{self._ports[4]}"

    @property
    def authority(self) -> Path:
        """The certificate, as PEM, that makes :attr:`scram_servers` trusted."""
        return self.folder / "ca.pem"

    def start(self) -> None:
        settings = self.folder / "server.properties"
        log = self.folder / "broker.log"
        if not settings.exists():
            settings.write_text(self._settings())
            login = f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"
            format_storage(settings, new_cluster(), "--add-scram", login)
        self._process = run_broker(settings, log, "384m")
        wait_for_start(self._answers, self._process, [log])

    def _answers(self) -> bool:
        try:
            self.admin.list_topics(timeout=2)
        except KafkaException:
            return False
        return True

    def _settings(self) -> str:
        certificates = make_certificates()
        self.authority.write_text(certificates.authority)
        clients = {
            "PLAINTEXT": self.servers,
            "SASL_PLAINTEXT": self.sasl_servers,
            "SASL_SSL": self.scram_servers,
        }
        return _SETTINGS.format(
            clients=",".join(f"{protocol}://{at}" for protocol, at in clients.items()),
            controller=self._ports[2],
            astray=self.astray_servers,
            nowhere=NOWHERE,
            folder=self.folder,
            user=USER,
            password=PASSWORD,
            certificate=certificates.server.replace("\n", "\\n"),
            key=certificates.server_key.replace("\n", "\\n"),
        )

    def stop(self) -> None:
        end_process(self._process)
        self._process = None

    def kill(self) -> None:
        """End it at once; :meth:`start` goes on with its data."""
        end_process(self._process, at_once=True)
        self._process = None

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        return self._admin

    def create_topic(
        self, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None
    ) -> str:
        """A new topic; once this returns clients see it."""
        wait_for(
            self.admin.create_topics([NewTopic(name, partitions, 1, config=dict(settings or {}))])
        )
        self._wait_for_partitions(name, partitions)
        return name

    @contextmanager
    def topic(self, name: str, partitions: int = 1) -> Iterator[str]:
        """A topic that other tests name, too: it is gone afterwards."""
        try:
            yield self.create_topic(name, partitions)
        finally:
            self.delete_topic(name)

    def _wait_for_partitions(self, topic: str, count: int) -> None:
        while len(self.admin.list_topics(topic, timeout=10).topics[topic].partitions) != count:
            time.sleep(0.05)

    def add_partitions(self, topic: str, total: int) -> None:
        wait_for(self.admin.create_partitions([NewPartitions(topic, total)]))
        self._wait_for_partitions(topic, total)
        # A new one sees them at once.
        self._producer = None

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Do what retention does."""
        wait_for(self.admin.delete_records([TopicPartition(topic, partition, before)]))

    def delete_topic(self, name: str) -> None:
        wait_for(self.admin.delete_topics([name]))
        while name in self.admin.list_topics(timeout=10).topics:
            time.sleep(0.05)

    def produce(self, topic: str, messages: Iterable[Message]) -> None:
        """Send messages to the partitions that they name, or by their keys."""
        if self._producer is None:
            self._producer = Producer(
                {
                    "bootstrap.servers": self.servers,
                    "log_level": 0,
                    "linger.ms": 5,
                    # Without it what is sent again comes behind what was sent after it.
                    "enable.idempotence": True,
                }
            )
        send(self._producer, topic, messages)
        left = self._producer.flush(60)
        assert not left

    def read(self, topic: str) -> list[Message]:
        """The messages that partition 0 of a topic has now."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": topic, "log_level": 0})
        place = TopicPartition(topic, 0, 0)
        consumer.assign([place])
        _, end = consumer.get_watermark_offsets(place)
        found = consumer.consume(end, timeout=30)
        consumer.close()
        return [Message(each.key(), each.value(), topic=topic) for each in found]


def send(producer: Producer, topic: str, messages: Iterable[Message]) -> None:
    """Hand messages to a producer, which may be transactional."""
    ends = time.monotonic() + 60
    for message in messages:
        place: dict[str, Any] = {}
        if message.partition is not None:
            place["partition"] = message.partition
        if message.timestamp is not None:
            place["timestamp"] = message.timestamp
        while True:
            try:
                producer.produce(
                    topic,
                    message.value,
                    message.key,
                    headers=list(message.headers) or None,
                    on_delivery=_delivered,
                    **place,
                )
                break
            except BufferError:
                producer.poll(0.1)
            except KafkaException as error:
                # A producer remembers for a while that a topic of this name was deleted.
                is_new = error.args[0].code() == KafkaError._UNKNOWN_TOPIC
                if not is_new or time.monotonic() > ends:
                    raise
                producer.list_topics(topic, timeout=10)
                producer.poll(0.5)


def _delivered(error: KafkaError | None, _: object) -> None:
    # A message purged by an aborted transaction is what the test wants.
    if error is not None and error.code() != KafkaError._PURGE_QUEUE:
        raise KafkaException(error)


def new_cluster() -> str:
    """An id for a cluster; it may begin with a dash."""
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def format_storage(settings: Path, cluster: str, *more: str) -> None:
    """Prepare the folder of a broker with these settings."""
    tool = [*_java("384m"), "kafka.tools.StorageTool", "format"]
    subprocess.run(
        [*tool, f"--cluster-id={cluster}", "-c", str(settings), *more],
        check=True,
        capture_output=True,
        timeout=120,
    )


def run_broker(settings: Path, log: Path, memory: str) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(
            [*_java(memory), "kafka.Kafka", str(settings)], stdout=output, stderr=output
        )


def _java(memory: str) -> list[str]:
    return [java_program(), *SHORT_LIVED, f"-Xmx{memory}", "-cp", f"{resolve(*KAFKA)}/*"]


def wait_for(futures: Mapping[Any, Any]) -> None:
    """Wait for the answers of the admin client; raises the first error."""
    for future in futures.values():
        future.result(30)
