"""RocketMQ's own Java client, driven through Py4J, which Spark brings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pyspark
from py4j import protocol
from py4j.java_gateway import GatewayClient, GatewayParameters, JavaGateway, launch_gateway

from cdcfmt_core.events import Message
from support.java import SHORT_LIVED
from support.maven import java_program

_TIMEOUT = 10_000
_READ_AND_WRITE = 6
_ROLLING_BODY = 700_000
KEPT_HOURS = 72
"""How old a file of messages is before retention deletes it."""


class _Connection(GatewayClient):  # type: ignore[misc]
    """Raises Java's errors as they are.

    PySpark takes errors of any gateway for its session's own, and raises what has their number
    there.
    """

    def send_command(self, command: str, retry: bool = True, binary: bool = False) -> Any:
        answer = super().send_command(command, retry, binary)
        if not binary and protocol.is_error(answer)[0]:
            # Py4J's function, which PySpark replaces in `java_gateway` alone.
            protocol.get_return_value(answer, self)
        return answer


@attrs.define
class JavaClient:
    """Makes topics of one broker, and sends to their queues."""

    name_server: str
    broker_name: str
    broker: str
    _gateway: Any
    _producer: Any

    @classmethod
    def start(
        cls, class_path: str, name_server: str, broker_name: str, broker: str, login: Sequence[str]
    ) -> JavaClient:
        (jar,) = Path(pyspark.__file__).parent.glob("jars/py4j-*.jar")
        port = launch_gateway(
            classpath=f"{jar}:{class_path}",
            java_path=java_program(),
            javaopts=["-Xmx128m", *SHORT_LIVED],
            die_on_exit=True,
        )
        parameters = GatewayParameters(port=port, auto_convert=True)
        gateway = JavaGateway(
            _Connection(gateway_parameters=parameters), gateway_parameters=parameters
        )
        jvm = gateway.jvm
        hook = jvm.org.apache.rocketmq.acl.common.AclClientRPCHook(
            jvm.org.apache.rocketmq.acl.common.SessionCredentials(*login)
        )
        producer = jvm.org.apache.rocketmq.client.producer.DefaultMQProducer("tests", hook)
        producer.setNamesrvAddr(name_server)
        # Compressed only on a test's request.
        producer.setCompressMsgBodyOverHowmuch(1 << 30)
        producer.start()
        return cls(name_server, broker_name, broker, gateway, producer)

    def close(self) -> None:
        self._gateway.shutdown()

    @property
    def _api(self) -> Any:
        factory = self._producer.getDefaultMQProducerImpl().getMqClientFactory()
        return factory.getMQClientAPIImpl()

    def broker_names(self) -> list[str]:
        """Those that are registered; none while no name server answers."""
        from py4j.protocol import Py4JJavaError

        try:
            return list(self._api.getBrokerClusterInfo(2000).getBrokerAddrTable().keySet())
        except Py4JJavaError:
            return []

    def create_topic(
        self, topic: str, queues: int = 1, attributes: Mapping[str, str] | None = None
    ) -> str:
        """A new topic, or other numbers of queues; once this returns clients see it."""
        common = self._gateway.jvm.org.apache.rocketmq.common
        config = common.TopicConfig(topic, queues, queues, _READ_AND_WRITE)
        if attributes:
            config.setAttributes({f"+{name}": value for name, value in attributes.items()})
        self._api.createTopic(self.broker, "TBW102", config, _TIMEOUT)
        self.wait(lambda: self.queues(topic) == queues)
        return topic

    def delete_topic(self, topic: str) -> None:
        self._api.deleteTopicInBroker(self.broker, topic, _TIMEOUT)
        self._api.deleteTopicInNameServer(self.name_server, topic, _TIMEOUT)
        self.wait(lambda: self.queues(topic) == 0)

    def create_group(self, name: str, *, orderly: bool = False) -> str:
        """A consumer group."""
        remoting = self._gateway.jvm.org.apache.rocketmq.remoting.protocol
        config = remoting.subscription.SubscriptionGroupConfig()
        config.setGroupName(name)
        config.setConsumeMessageOrderly(orderly)
        self._api.createSubscriptionGroup(self.broker, config, _TIMEOUT)
        return name

    def create_user(self, name: str, password: str) -> None:
        """A user who may nothing until an ACL says so."""
        body = self._gateway.jvm.org.apache.rocketmq.remoting.protocol.body
        self._api.createUser(self.broker, body.UserInfo.of(name, password, "Normal"), _TIMEOUT)

    def delete_old_files(self, until: Callable[[], bool]) -> None:
        """Delete all files of messages but the last one, as retention does."""
        self._keep_files(0)
        try:
            self._api.deleteExpiredCommitLog(self.broker, _TIMEOUT)
            # A broker deletes nothing in its first minute.
            self.wait(until, 90)
        finally:
            # It looks twenty times, and would delete files of the next test too.
            self._keep_files(KEPT_HOURS)

    def _keep_files(self, hours: int) -> None:
        settings = self._gateway.jvm.java.util.Properties()
        settings.setProperty("fileReservedTime", str(hours))
        self._api.updateBrokerConfig(self.broker, settings, _TIMEOUT)

    def first_offset(self, topic: str, queue: int) -> int:
        """Of the messages that are there."""
        return int(self._api.getMinOffset(self.broker, self._queue(topic, queue), _TIMEOUT))

    def roll_file(self, topic: str) -> None:
        """Messages that are sent from now on are in another file than those before."""
        for _ in range(2):
            body = b"x" * _ROLLING_BODY
            self._producer.send(self._message(topic, Message(None, body)), self._queue(topic, 0))

    def send(self, topic: str, messages: Iterable[Message], tag: str = "") -> None:
        """To the queues that they name, in order; runs of one queue as a batch.

        Brokers acknowledge a message some milliseconds before readers see it: this waits for it.
        """
        run: list[Any] = []
        ends: dict[int, int] = {}
        of_run = 0
        for message in messages:
            queue = message.partition or 0
            if run and (queue != of_run or len(run) >= 200):
                ends[of_run] = self._send(topic, of_run, run)
                run = []
            of_run = queue
            run.append(self._message(topic, message, tag))
        if run:
            ends[of_run] = self._send(topic, of_run, run)
        for queue, end in ends.items():
            place = self._queue(topic, queue)
            self.wait(lambda place=place, end=end: self._producer.maxOffset(place) >= end)

    def _send(self, topic: str, queue: int, run: list[Any]) -> int:
        """The offset behind the last one."""
        sent = self._producer.send(run[0] if len(run) == 1 else run, self._queue(topic, queue))
        return int(sent.getQueueOffset()) + len(run)

    def send_compressed(self, topic: str, body: bytes, kind: str) -> None:
        """One message, which the client compresses: ``LZ4``, ``ZSTD`` or ``ZLIB``."""
        types = self._gateway.jvm.org.apache.rocketmq.common.compression.CompressionType
        self._producer.setCompressType(types.of(kind))
        self._producer.setCompressMsgBodyOverHowmuch(1)
        try:
            self.send(topic, [Message(None, body)])
        finally:
            self._producer.setCompressMsgBodyOverHowmuch(1 << 30)

    def _message(self, topic: str, message: Message, tag: str = "") -> Any:
        made = self._gateway.jvm.org.apache.rocketmq.common.message.Message(
            topic, tag, "" if message.key is None else message.key.decode(), message.value
        )
        for name, value in message.headers:
            made.putUserProperty(name, (value or b"").decode())
        return made

    def _queue(self, topic: str, number: int) -> Any:
        message = self._gateway.jvm.org.apache.rocketmq.common.message
        return message.MessageQueue(topic, self.broker_name, number)

    def queues(self, topic: str) -> int:
        """How many there are; 0 without the topic."""
        from py4j.protocol import Py4JJavaError

        try:
            route = self._api.getTopicRouteInfoFromNameServer(topic, 2000)
        except Py4JJavaError:
            return 0
        mine = [each for each in route.getQueueDatas() if each.getBrokerName() == self.broker_name]
        return int(mine[0].getReadQueueNums()) if mine else 0

    def wait(self, until: Callable[[], bool], seconds: float = 30) -> None:
        """Until it is true."""
        deadline = time.monotonic() + seconds
        while not until():
            assert time.monotonic() < deadline
            time.sleep(0.05)
