"""A limit for the text that the rows of one message expand from it.

A bitmap of eight bytes may stand for 64 long names, in each row of a message.
"""

from __future__ import annotations

import math
import threading
from typing import Final

_EXPANDED_BYTES: Final = 16 << 20
_EXPANDED_TIMES: Final = 8
"""Limit of a message's expanded texts: a constant, plus a multiple of the message's bytes."""


_ROOM = threading.local()
"""``left``: characters that the bitmaps of this thread's message may still become."""


def limit_expanded(message_bytes: int | None) -> None:
    """Limit the text that this thread makes of bitmaps; None: no limit."""
    _ROOM.left = (
        math.inf if message_bytes is None else _EXPANDED_BYTES + _EXPANDED_TIMES * message_bytes
    )


def take_expanded(size: int) -> None:
    """Count the characters that a bitmap becomes.

    :raises ValueError: if the message's limit is exceeded.
    """
    _ROOM.left = getattr(_ROOM, "left", math.inf) - size
    if _ROOM.left < 0:
        raise ValueError(
            "the message's bitmaps of SET columns have more text than it may have: over "
            f"{_EXPANDED_BYTES} characters, plus {_EXPANDED_TIMES} times the message"
        )
