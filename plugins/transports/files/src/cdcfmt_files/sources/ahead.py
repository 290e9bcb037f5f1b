"""Read several sources concurrently, with their messages in the order of the sources."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeAlias

from cdcfmt_core.events import Message
from cdcfmt_toolkit.inputs import BadLine

Messages: TypeAlias = Iterator[Message | BadLine]

_AHEAD_BYTES = 1 << 20
"""Maximum bytes of values to buffer per source while an earlier one is read."""


def read_ahead(sources: Iterable[Messages], threads: int | None = None) -> Messages:
    """The messages of all sources, in order; threads start reading the next sources early.

    For searches with few hits: reading and searching a block of a file release Python's global
    lock.  ``threads``: number of processors by default.
    """
    threads = threads or os.cpu_count() or 1
    begun: deque[tuple[Future[deque[Message | BadLine]], Messages]] = deque()
    with ThreadPoolExecutor(threads, "cdcfmt-read") as pool:
        try:
            for source in sources:
                begun.append((pool.submit(_begin, source), source))
                if len(begun) > threads:
                    yield from _finish(*begun.popleft())
            while begun:
                yield from _finish(*begun.popleft())
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(source: Messages) -> deque[Message | BadLine]:
    """The first messages of a source, up to _AHEAD_BYTES of values."""
    begun: deque[Message | BadLine] = deque()
    size = 0
    while size < _AHEAD_BYTES and (message := next(source, None)) is not None:
        size += len(message.value or b"")
        begun.append(message)
        # Else the name would keep a large message while the next one is read.
        del message
    return begun


def _finish(begun: Future[deque[Message | BadLine]], source: Messages) -> Messages:
    messages = begun.result()
    while messages:
        yield messages.popleft()
    yield from source
