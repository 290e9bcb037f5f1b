"""Where messages come from: one by one, or as lines of a file in one piece."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from cdcfmt_core.events import Message
from cdcfmt_core.sources import BadLine, Lines

Origins: TypeAlias = Sequence[Message | BadLine] | Lines
"""Of the messages that a plan has read."""

Origin: TypeAlias = Literal["topic", "partition", "offset", "timestamp", "path"]
ORIGINS: tuple[Origin, ...] = ("topic", "partition", "offset", "timestamp", "path")


def origins_of(messages: Origins, name: Origin) -> list[Any]:
    """One of these things of every message."""
    if not isinstance(messages, Lines):
        return list(map(attrgetter(name), messages))
    if name == "offset":
        return messages.offsets
    return [messages.path if name == "path" else None] * len(messages)
