"""A worker and its watchdog: which message is in hand, and how long already."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.sharedctypes import RawArray, RawValue
from pathlib import Path
from typing import Any

import attrs

from cdcfmt_core.events import Message

STUCK_CPU = 10.0
"""CPU seconds after which a message is killed with its process."""
STUCK_COMPARING = 120.0

_SLOT = 1 << 22


class Slot:
    """The state shared by worker and watchdog: the current message, and counts."""

    def __init__(self) -> None:
        self.message = RawArray("c", _SLOT)
        self.size = RawValue("q", 0)
        self.key_size = RawValue("q", 0)
        self.comparing = RawValue("b", 0)
        self.mutants = RawValue("q", 0)
        self.events = RawValue("q", 0)
        self.bad = RawValue("q", 0)
        self.failed = RawValue("q", 0)
        self.slow = RawValue("q", 0)
        self.compared = RawValue("q", 0)
        self.rows = RawValue("q", 0)
        self.different = RawValue("q", 0)
        self.max_cpu = RawValue("d", 0.0)
        self.max_rss = RawValue("d", 0.0)
        self.comparing_seconds = RawValue("d", 0.0)
        self.chunk = RawArray("c", 200)

    def hold(self, message: Message) -> None:
        key, value = message.key or b"", message.value or b""
        data = (key + value)[: _SLOT - 1]
        self.key_size.value, self.size.value = len(key), len(data)
        self.message.raw = data

    def held(self) -> Message:
        data = self.message.raw[: self.size.value]
        return Message(data[: self.key_size.value] or None, data[self.key_size.value :])


@attrs.define
class Watched:
    """A worker under watch: how much CPU time the message in hand has had."""

    process: Any
    slot: Slot
    seen: tuple[int, int] = (-1, -1)
    cpu: float = 0.0

    @classmethod
    def start(
        cls, work: Callable[[str, str, float, Slot], None], given: tuple[str, str, float, Slot]
    ) -> Watched:
        """A new process, which ends with this one."""
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=work, args=given, daemon=True)
        process.start()
        return cls(process, given[-1])

    def is_stuck(self) -> bool:
        state = (self.slot.mutants.value, self.slot.comparing.value)
        cpu = cpu_of(self.process.pid)
        if state != self.seen:
            self.seen, self.cpu = state, cpu
        return cpu - self.cpu > (STUCK_COMPARING if state[1] else STUCK_CPU)


def cpu_of(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / 100
