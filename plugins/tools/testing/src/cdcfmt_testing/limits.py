"""Limits of time and memory, so that a hostile message cannot block or kill the tests."""

from __future__ import annotations

import signal
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SECONDS = 20.0
"""A guard against hangs, not a performance target."""

MEMORY_BASE = 64 << 20
MEMORY_PER_BYTE = 100
"""Memory allowed per message byte: parsed JSON takes tens of bytes per byte of text."""


class TimeLimit(KeyboardInterrupt):
    """An interruption, which neither a decoder nor the registry takes for an error."""


@contextmanager
def time_limit(what: str, seconds: float | None = None) -> Iterator[None]:
    """AssertionError if the block takes longer than ``seconds``.

    No effect without alarms: on Windows, and in threads other than the main one.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not (
        threading.main_thread()
    ):
        yield
        return

    seconds = SECONDS if seconds is None else seconds

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeLimit

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except TimeLimit:
        raise AssertionError(f"{what} takes longer than {seconds:g} seconds") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def memory_limit() -> Iterator[MemoryLimit]:
    """Trace Python's memory in the block; use the result around each message."""
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    try:
        yield MemoryLimit()
    finally:
        if not tracing:
            tracemalloc.stop()


class MemoryLimit:
    """``with limit(size, what):`` fails if the block takes too much memory for ``size`` bytes."""

    @contextmanager
    def __call__(self, size: int, what: str) -> Iterator[None]:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        yield
        _, peak = tracemalloc.get_traced_memory()
        most = MEMORY_BASE + MEMORY_PER_BYTE * size
        if peak - before > most:
            raise AssertionError(
                f"{what} of {size} bytes takes {peak - before} bytes of memory: do not allocate "
                "memory by a length that the wire claims"
            )
