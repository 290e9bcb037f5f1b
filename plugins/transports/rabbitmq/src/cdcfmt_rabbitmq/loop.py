"""An event loop in a thread, for synchronous code.

The client library uses asyncio.  Its loop runs in a separate thread, so that heartbeats continue
while the task does something else.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

from cdcfmt_rabbitmq.broker_errors import of_stream

ANSWER_SECONDS: Final = 10.0
"""How long one request to a broker may take."""

_T = TypeVar("_T")


class Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="cdcfmt-rabbitmq", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # Callers see connection errors themselves.
        self._loop.set_exception_handler(lambda *_: None)
        self._loop.run_forever()
        self._loop.close()

    def call(self, work: Coroutine[Any, Any, _T], seconds: float = ANSWER_SECONDS) -> _T:
        """Run a coroutine and return its result.

        :raises BrokerError: if it fails, or takes longer than ``seconds``.
        """
        waiting = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, seconds), self._loop)
        try:
            return waiting.result(seconds + 1)
        except Exception as error:
            waiting.cancel()
            raise of_stream(error) from None

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine without waiting for it."""
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self, last: Coroutine[Any, Any, Any]) -> None:
        """End the thread after ``last``, without waiting for it."""

        async def end() -> None:
            with suppress(Exception):
                await asyncio.wait_for(last, ANSWER_SECONDS)
            self._loop.stop()

        asyncio.run_coroutine_threadsafe(end(), self._loop)
