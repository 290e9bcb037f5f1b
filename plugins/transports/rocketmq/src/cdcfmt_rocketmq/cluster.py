"""Name servers and brokers: their queues, and requests to them."""

from __future__ import annotations

import itertools
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeVar

import attrs

from cdcfmt_core.errors import OptionError
from cdcfmt_core.texts import one_line
from cdcfmt_rocketmq import codes
from cdcfmt_rocketmq.frames import (
    Answer,
    FrameError,
    NoAnswerError,
    decode_answer,
    encode_request,
    frame_length,
)
from cdcfmt_rocketmq.settings import (
    ACCESS_KEY,
    NAME_SERVERS,
    SECRET_KEY,
    ConnectionSettings,
    split_address,
)

_PIECE: Final = 1 << 18
CONNECT_SECONDS: Final = 5.0


class Connection:
    """Sends one request at a time, from any thread; closes after the first failure."""

    def __init__(self, address: str, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        host, port = split_address(address, NAME_SERVERS)
        try:
            self._socket = socket.create_connection((host, port), CONNECT_SECONDS)
            try:
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if settings.tls is not None:
                    context = settings.tls.context()
                    self._socket = context.wrap_socket(self._socket, server_hostname=host)
            except BaseException:
                self._socket.close()
                raise
        except OSError as error:
            hint = "; check rocketmq.tls.*" if settings.tls is not None else ""
            raise NoAnswerError(f"{address}: {error}{hint}") from None
        self.address = address

    def ask(
        self, code: int, fields: Mapping[str, str], body: bytes = b"", *, seconds: float
    ) -> Answer:
        """Send a request and return its answer.

        :raises NoAnswerError: if there is no answer in time; the connection is closed.
        """
        with self._lock:
            number = next(self._numbers)
            deadline = time.monotonic() + seconds
            try:
                self._socket.settimeout(seconds)
                self._socket.sendall(encode_request(code, number, fields, body, self._settings))
                while True:
                    frame = self._receive(frame_length(self._receive(4, deadline)), deadline)
                    answer = decode_answer(frame)
                    # Other frames are late answers, and requests of the broker to its clients.
                    if answer is not None and answer[0] == number:
                        return answer[1]
            except (OSError, FrameError) as error:
                self._socket.close()
                text = "it does not answer in time" if isinstance(error, TimeoutError) else error
                raise NoAnswerError(f"{self.address}: {text}") from None
            except BaseException:
                # Part of an answer may be unread.
                self._socket.close()
                raise

    def _receive(self, length: int, deadline: float) -> bytes:
        """Receive ``length`` bytes; memory grows only with received bytes, not by ``length``."""
        found = bytearray()
        while len(found) < length:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            piece = self._socket.recv(min(length - len(found), _PIECE))
            if not piece:
                raise FrameError("the connection was closed; does the listener use TLS?")
            found += piece
        return bytes(found)

    def close(self) -> None:
        self._socket.close()


ANSWER_SECONDS: Final = 10.0
"""How long a server may take for one answer."""

TOO_LARGE: Final = (
    "set maxMessageBytes to the brokers' limit (maxMessageSize, 4 MiB by default), and "
    "largeMessageHandleOption if the format has it"
)
"""Advice about a message that is too large."""

_UNCODED: Final = {
    "AclException": codes.NO_PERMISSION,
    "size exceeded": codes.MESSAGE_ILLEGAL,
}
"""Texts of errors to which brokers give a general code: the ACL of RocketMQ 4, large batches."""

_PAUSE: Final = 0.25
_READ, _WRITE = 4, 2
_MASTER: Final = "0"
_TABLES: Final = ("brokerAddrTable", "clusterAddrTable")

_OWN_PREFIXES: Final = ("%RETRY%", "%DLQ%", "rmq_sys_", "RMQ_SYS_", "CID_RMQ_SYS_", "TRANS_CHECK_")
_OWN_TOPICS: Final = frozenset(
    {"BenchmarkTest", "OFFSET_MOVED_EVENT", "SCHEDULE_TOPIC_XXXX", "SELF_TEST_TOPIC", "TBW102"}
)

_STRING_OR_KEY: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|([{,]\s*)(-?\d+)(?=\s*:)', re.DOTALL)

_T = TypeVar("_T")


class RefusedError(Exception):
    """A broker rejected a request permanently, with the response code ``code``."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text, code)
        self.text = text
        self.code = code

    def __str__(self) -> str:
        return self.text


@attrs.frozen
class Queue:
    """A queue of a topic; ``address`` is that of its broker's current master, if it has one."""

    broker: str
    number: int
    address: str | None


@attrs.frozen
class Route:
    """The readable and the writable queues of a topic."""

    readable: tuple[Queue, ...]
    writable: tuple[Queue, ...]

    @classmethod
    def of_json(cls, body: bytes) -> Route:
        """Parse a route.

        :raises NoAnswerError: for bytes that are not a route.
        :raises OptionError: for a static topic.
        """
        data = parse_json(body)
        if data.get("topicQueueMappingByBroker"):
            raise OptionError(
                "option subscribe: a static topic, whose queues span brokers, cannot be read"
            )
        try:
            masters = {
                str(each["brokerName"]): each["brokerAddrs"].get(_MASTER)
                for each in data["brokerDatas"]
            }

            def queues(count: str, permission: int) -> tuple[Queue, ...]:
                return tuple(
                    Queue(name, number, masters.get(name))
                    for each in data["queueDatas"]
                    for name in [str(each["brokerName"])]
                    if int(each["perm"]) & permission
                    for number in range(min(int(each[count]), 1 << 16))
                )

            return cls(queues("readQueueNums", _READ), queues("writeQueueNums", _WRITE))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise NoAnswerError(f"a route that cannot be read ({type(error).__name__})") from None


class Cluster:
    """Sends requests to name servers and brokers; keeps connections until :meth:`close`."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self.settings = settings
        self._connections: dict[str, Connection] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def route(self, topic: str) -> Route | None:
        """The queues of a topic; None if the topic does not exist."""
        fields = {"topic": topic, "acceptStandardJsonOnly": "true"}
        answer = self._ask_name_servers(codes.ROUTE_OF_TOPIC, fields, {codes.TOPIC_NOT_EXIST})
        return None if answer.code else Route.of_json(answer.body)

    def masters(self) -> dict[str, str | None]:
        """The master addresses of all registered brokers, sorted by broker name."""
        data = parse_json(self._ask_name_servers(codes.CLUSTER_INFO, {}).body)
        try:
            return {
                str(name): broker["brokerAddrs"].get(_MASTER)
                for name, broker in sorted(data["brokerAddrTable"].items())
            }
        except (AttributeError, LookupError, TypeError):
            raise NoAnswerError("a list of brokers that cannot be read") from None

    def topics(self) -> list[str]:
        """The names of all topics, without RocketMQ's internal ones."""
        data = parse_json(self._ask_name_servers(codes.ALL_TOPICS, {}).body)
        names = sorted(str(name) for name in data.get("topicList") or ())
        info = parse_json(self._ask_name_servers(codes.CLUSTER_INFO, {}).body)
        # Each broker and each cluster has an internal topic with its name.
        own = _OWN_TOPICS.union(*(info.get(each) or () for each in _TABLES))
        return [
            name
            for name in names
            if name not in own
            and not name.startswith(_OWN_PREFIXES)
            and not name.endswith("_REPLY_TOPIC")
        ]

    def ask(
        self,
        address: str,
        code: int,
        fields: Mapping[str, str],
        body: bytes = b"",
        *,
        expected: Collection[int] = (),
    ) -> Answer:
        """Send a request; the answer is success, or has one of the ``expected`` codes.

        :raises NoAnswerError: if there is no answer, or a temporary error.
        :raises RefusedError: for any other answer.
        """
        with self._lock:
            connection = self._connections.get(address)
            if connection is None:
                connection = self._connections[address] = Connection(address, self.settings)
        try:
            answer = connection.ask(code, fields, body, seconds=ANSWER_SECONDS)
        except BaseException:
            if self._connections.get(address) is connection:
                del self._connections[address]
            raise
        if answer.code == codes.SUCCESS or answer.code in expected:
            return answer
        text = f"{address} answers {answer.code}: {one_line(answer.remark, 300)}"
        for words, code in _UNCODED.items():
            if words in answer.remark:
                raise RefusedError(text, code)
        if answer.code in codes.PASSING:
            raise NoAnswerError(text)
        raise RefusedError(text, answer.code)

    def _ask_name_servers(
        self, code: int, fields: Mapping[str, str], expected: Collection[int] = ()
    ) -> Answer:
        failures = []
        for server in self.settings.name_servers:
            try:
                return self.ask(server, code, fields, expected=expected)
            except NoAnswerError as error:
                failures.append(str(error))
        raise NoAnswerError("; ".join(failures))


def patiently(question: Callable[[], _T], seconds: float) -> _T:
    """Call ``question``, and retry it while there is no answer.

    :raises NoAnswerError: after ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return question()
        except NoAnswerError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)


def problem(settings: ConnectionSettings, error: NoAnswerError | RefusedError) -> str:
    """The error text for users, with the options to check."""
    if isinstance(error, RefusedError):
        hint = f"check {ACCESS_KEY}, {SECRET_KEY} and the user's permissions"
        if error.code == codes.MESSAGE_ILLEGAL:
            hint = TOO_LARGE
        elif error.code == codes.REQUEST_UNKNOWN:
            hint = f"check {NAME_SERVERS}: this may be a broker, and no name server"
        return f"RocketMQ at {settings.address} refuses ({error}); {hint}"
    return (
        f"RocketMQ at {settings.address} does not answer ({error}); check {NAME_SERVERS}, "
        "rocketmq.tls.enable, and the addresses that brokers register (brokerIP1)"
    )


def parse_json(body: bytes) -> Any:
    """Parse RocketMQ's JSON, which may have integers as member names.

    :raises NoAnswerError: if it is not an object.
    """

    def quoted(match: re.Match[bytes]) -> bytes:
        return match[0] if match[2] is None else match[1] + b'"' + match[2] + b'"'

    try:
        data = json.loads(_STRING_OR_KEY.sub(quoted, body))
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise NoAnswerError("an answer that is not a JSON object")
    return data
