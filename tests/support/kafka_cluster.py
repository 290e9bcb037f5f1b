"""Three real Kafka brokers that are one cluster; each is also a controller."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import attrs
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from support.brokers import end_process, free_ports, wait_for_start
from support.kafka_broker import format_storage, new_cluster, run_broker, wait_for

NODES = (0, 1, 2)
_SETTINGS = """
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://{address},CONTROLLER://{controller}
advertised.listeners=PLAINTEXT://{address}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/logs
auto.create.topics.enable=false
default.replication.factor=3
min.insync.replicas=2
broker.session.timeout.ms=5000
replica.lag.time.max.ms=6000
"""


@attrs.define
class Cluster:
    """Topics have a replica on each broker, and writes need two of them."""

    folder: Path
    _addresses: list[str] = attrs.field(
        factory=lambda: [f"127.0.0.1:{port}" for port in free_ports(6)]
    )
    _processes: dict[int, subprocess.Popen[bytes]] = attrs.field(factory=dict)

    @property
    def servers(self) -> str:
        return ",".join(self._addresses[:3])

    @property
    def admin(self) -> AdminClient:
        """A new one, which remembers no broker."""
        return AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    def start(self) -> None:
        cluster = new_cluster()
        voters = [f"{node}@{self._addresses[3 + node]}" for node in NODES]
        for node in NODES:
            settings = self._settings(node)
            settings.parent.mkdir()
            text = _SETTINGS.format(
                node=node,
                voters=",".join(voters),
                address=self._addresses[node],
                controller=self._addresses[3 + node],
                folder=settings.parent,
            )
            settings.write_text(text)
            format_storage(settings, cluster)
            self.start_broker(node)
        log = self._settings(0).with_name("log")
        wait_for_start(lambda: self._brokers() == len(NODES), self._processes[0], [log])

    def start_broker(self, node: int) -> None:
        settings = self._settings(node)
        self._processes[node] = run_broker(settings, settings.with_name("log"), "320m")

    def send(self, node: int, number: signal.Signals) -> None:
        self._processes[node].send_signal(number)

    def stop(self) -> None:
        for process in self._processes.values():
            end_process(process, at_once=True)

    def create_topic(self, name: str, partitions: int, replicas: int = 3) -> None:
        admin = self.admin
        wait_for(admin.create_topics([NewTopic(name, partitions, replicas)]))
        self.wait_for_replicas(name, partitions, replicas)

    def add_partitions(self, topic: str, total: int) -> None:
        admin = self.admin
        wait_for(admin.create_partitions([NewPartitions(topic, total)]))
        self.wait_for_replicas(topic, total)

    def leader(self, topic: str, partition: int = 0) -> int:
        """The node that leads a partition."""
        found = self.admin.list_topics(topic, timeout=10).topics[topic].partitions
        return int(found[partition].leader)

    def wait_for_replicas(self, topic: str, partitions: int, replicas: int = 3) -> None:
        """Wait until all replicas of the topic are in sync."""

        def are_in_sync() -> bool:
            found = self.admin.list_topics(topic, timeout=10).topics[topic].partitions
            return [len(each.isrs) for each in found.values()] == [replicas] * partitions

        _wait(are_in_sync)

    def _settings(self, node: int) -> Path:
        return self.folder / str(node) / "server.properties"

    def _brokers(self) -> int:
        try:
            return len(self.admin.list_topics(timeout=2).brokers)
        except KafkaException:
            return 0


def _wait(ready: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.5)
