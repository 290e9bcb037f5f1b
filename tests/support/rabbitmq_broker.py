"""A real RabbitMQ for the tests: one node of Debian's packages."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import pika
from rstream import AMQPMessage, ConfirmationStatus, OffsetNotFound, Producer
from rstream.client import Client
from rstream.exceptions import LeaderNotAvailable, StreamNotAvailable

from support.brokers import START_SECONDS, answers, end_process, free_ports, wait_for_start
from support.rabbitmq_files import unpacked, write_settings

_SETTLE_SECONDS = 6.0
"""A broker killed shortly after its first stream was created loses the leaders of streams."""

_SCHEDULING = (
    "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1 +sbwt none +sbwtdcpu none "
    "+sbwtdio none -start_epmd false"
)


@attrs.define
class RabbitBroker:
    """A broker in a folder of its own; it may be stopped or killed, and started again."""

    folder: Path
    _ports: list[int] = attrs.field(factory=lambda: free_ports(6))
    _process: subprocess.Popen[bytes] | None = None
    _names: subprocess.Popen[bytes] | None = None
    _settled_at: float = 0.0
    _streams: set[str] = attrs.field(factory=set, repr=False)

    @property
    def version(self) -> tuple[int, ...]:
        (folder,) = unpacked().glob("usr/lib/rabbitmq/lib/rabbitmq_server-*")
        return tuple(map(int, folder.name.partition("-")[2].split(".")))

    @property
    def stream_host(self) -> str:
        """``rabbitmq.hosts`` of streams."""
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def stream_tls_host(self) -> str:
        return f"127.0.0.1:{self._ports[1]}"

    @property
    def amqp_host(self) -> str:
        """``rabbitmq.hosts`` of queues."""
        return f"127.0.0.1:{self._ports[2]}"

    @property
    def amqp_tls_host(self) -> str:
        return f"127.0.0.1:{self._ports[3]}"

    @property
    def tls(self) -> Mapping[str, str]:
        """Options by which the broker's certificate is trusted."""
        return {"rabbitmq.tls": "true", "rabbitmq.ssl.ca.location": str(self.folder / "ca.pem")}

    @property
    def client_certificate(self) -> Mapping[str, str]:
        """Options that log in as :data:`CLIENT`, beside :attr:`tls`."""
        return {
            "rabbitmq.sasl.mechanism": "EXTERNAL",
            "rabbitmq.ssl.certificate.location": str(self.folder / "client.pem"),
            "rabbitmq.ssl.key.location": str(self.folder / "client.key"),
        }

    def start(self) -> None:
        root = unpacked()
        (erlang,) = root.glob("usr/lib/erlang/erts-*/bin")
        (server,) = root.glob("usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server")
        is_new = not (self.folder / "rabbitmq.conf").exists()
        if is_new:
            write_settings(self.folder, self._ports)
        environment = self._environment(root)
        with (self.folder / "broker.log").open("ab") as log:
            names = [f"{erlang}/epmd", "-address", "127.0.0.1", "-port", str(self._ports[4])]
            self._names = subprocess.Popen(names, stdout=log, stderr=log, env=environment)
            # The script ends in exec: the process becomes the Erlang machine.
            self._process = subprocess.Popen([str(server)], stdout=log, stderr=log, env=environment)
        addresses = self.stream_host, self.stream_tls_host, self.amqp_host, self.amqp_tls_host
        wait_for_start(
            lambda: all(map(answers, addresses)), self._process, [self.folder / "broker.log"]
        )
        if is_new:
            self.create_stream("first")
            self._settled_at = time.monotonic() + _SETTLE_SECONDS
        else:
            asyncio.run(asyncio.wait_for(self._with_client(self._leaders), START_SECONDS))

    def stop(self) -> None:
        self._end(at_once=False)

    def kill(self) -> None:
        """End it at once; :meth:`start` goes on with its data, and waits for streams' leaders."""
        time.sleep(max(self._settled_at - time.monotonic(), 0))
        self._end(at_once=True)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """It answers nothing meanwhile."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def _end(self, *, at_once: bool) -> None:
        end_process(self._process, at_once=at_once)
        end_process(self._names, at_once=True)
        self._process = self._names = None

    def create_stream(self, name: str, **arguments: str) -> None:
        """``arguments`` are those of the protocol, such as ``max_length_bytes``."""
        given = {key.replace("_", "-"): value for key, value in arguments.items()}
        asyncio.run(self._with_client(lambda client: client.create_stream(name, given)))
        self._streams.add(name)

    def delete_stream(self, name: str) -> None:
        asyncio.run(self._with_client(lambda client: client.delete_stream(name)))
        self._streams.discard(name)

    async def _leaders(self, client: Client) -> None:
        for stream in self._streams:
            while True:
                with suppress(LeaderNotAvailable, StreamNotAvailable):
                    await client.query_leader_and_replicas(stream)
                    break
                await asyncio.sleep(0.1)

    def store_offset(self, name: str) -> None:
        """Consume from an offset of the stream."""

        async def store(client: Client) -> None:
            await client.store_offset(name, "consumer", 1)
            # A message is confirmed once the stream has it.
            while True:
                with suppress(OffsetNotFound):
                    await client.query_offset(name, "consumer")
                    return
                await asyncio.sleep(0.02)

        asyncio.run(self._with_client(store))

    async def _with_client(self, work: Callable[[Client], Awaitable[object]]) -> None:
        host, port = self.stream_host.split(":")
        client = Client(host, int(port), frame_max=1 << 20, heartbeat=60)
        await client.start()
        await client.authenticate("/", "guest", "guest")
        await work(client)
        await client.close()

    def publish(self, stream: str, messages: Sequence[AMQPMessage]) -> None:
        """Write messages by the library's own producer; they are confirmed."""

        async def send() -> None:
            host, port = self.stream_host.split(":")
            confirmed = 0
            async with Producer(host, int(port), username="guest", password="guest") as producer:

                def count(status: ConfirmationStatus) -> None:
                    nonlocal confirmed
                    assert status.is_confirmed, status
                    confirmed += 1

                # In several chunks, as time makes of many messages.
                for at in range(0, len(messages), 4):
                    some = messages[at : at + 4]
                    await producer.send_batch(stream, some, on_publish_confirm=count)
                    while confirmed < at + len(some):
                        await asyncio.sleep(0.001)

        asyncio.run(send())

    def amqp(self) -> pika.BlockingConnection:
        """A connection for queues."""
        host, port = self.amqp_host.split(":")
        return pika.BlockingConnection(pika.ConnectionParameters(host, int(port)))

    def create_queue(self, name: str, kind: str = "classic") -> str:
        with self.amqp() as connection:
            arguments = {"x-queue-type": kind}
            connection.channel().queue_declare(name, durable=True, arguments=arguments)
        return name

    def fill_queue(self, name: str, messages: Iterable[tuple[bytes, dict[str, Any]]]) -> None:
        """Publish bodies with these properties; they are confirmed."""
        (body, properties), *others = messages
        with self.amqp() as connection:
            # A quorum queue without a leader, as after a restart, forgets a transaction.
            first = connection.channel()
            first.confirm_delivery()
            while True:
                try:
                    first.basic_publish("", name, body, _stored(properties))
                    break
                except pika.exceptions.NackError:
                    time.sleep(0.1)
            channel = connection.channel()
            channel.tx_select()
            for body, properties in others:
                channel.basic_publish("", name, body, _stored(properties))
            channel.tx_commit()

    def count(self, name: str) -> int:
        """Messages that are in the queue, and not taken."""
        with self.amqp() as connection:
            found = connection.channel().queue_declare(name, passive=True)
            count: int = found.method.message_count
            return count

    def limit_streams(self, pattern: str, size: int) -> None:
        """Apply retention at once, to a number of bytes, for streams whose names match."""
        root = unpacked()
        (tool,) = root.glob("usr/lib/rabbitmq/lib/rabbitmq_server-*/escript/rabbitmqctl")
        rule = json.dumps({"max-length-bytes": size})
        subprocess.run(
            [
                root / "usr/lib/erlang/bin/escript", tool, "-n", self._node, "set_policy",
                "--apply-to", "queues", f"limit-{pattern}", pattern, rule,
            ],
            env=self._environment(root),
            check=True,
            capture_output=True,
            timeout=60,
        )  # fmt: skip

    @property
    def _node(self) -> str:
        return f"test-{self._ports[5]}@localhost"

    def _environment(self, root: Path) -> dict[str, str]:
        folder = self.folder
        return {
            "PATH": f"{root}/usr/lib/erlang/bin:{os.environ['PATH']}",
            "HOME": str(folder / "home"),
            "LANG": "C.UTF-8",
            "ERL_EPMD_PORT": str(self._ports[4]),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": self._node,
            "RABBITMQ_DIST_PORT": str(self._ports[5]),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            # Else a shell stays above it.
            "RUNNING_UNDER_SYSTEMD": "true",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _SCHEDULING,
        }


def _stored(properties: dict[str, Any]) -> pika.BasicProperties:
    return pika.BasicProperties(delivery_mode=2, **properties)
