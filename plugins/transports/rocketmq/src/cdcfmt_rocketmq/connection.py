"""A connection to a name server or a broker."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Mapping
from typing import Final

from cdcfmt_rocketmq.frames import (
    Answer,
    FrameError,
    NoAnswerError,
    decode_answer,
    encode_request,
    frame_length,
)
from cdcfmt_rocketmq.settings import NAME_SERVERS, ConnectionSettings, split_address

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
