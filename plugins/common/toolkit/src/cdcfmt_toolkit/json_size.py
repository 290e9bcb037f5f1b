"""The size of JSON: its number of values, counted without parsing, and its depth."""

from __future__ import annotations

import re
from typing import Any

from cdcfmt_core.errors import DecodeError

_LEAST_VALUES = 350_000
_BYTES_A_VALUE = 384
_NO_STRUCTURE = bytes(set(range(256)) - set(b'",[{'))
_drop_texts = re.compile(rb'"[^"]*"').sub


def check_values(data: bytes, max_message_bytes: int) -> None:
    """Reject JSON with too many values for memory, before it is parsed.

    A value takes a few bytes in JSON, but some hundred in Python.

    :raises DecodeError: for more than 350 000 values and more than one per 384 bytes of
        ``max_message_bytes``.
    """
    most = max(_LEAST_VALUES, max_message_bytes // _BYTES_A_VALUE)
    if len(data) <= most:
        return
    # Without the contents of texts.
    bare = data.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _NO_STRUCTURE)
    if bare.count(b'"') > 8 * (most + 1) or len(_drop_texts(b"", bare)) > most:
        raise DecodeError(
            f"the JSON has more than {most} values; if that is right, raise maxMessageBytes to "
            f"{_BYTES_A_VALUE} times their number"
        )


def depth_exceeds(parsed: Any, max_depth: int) -> bool:
    """Whether lists and objects are nested more than ``max_depth`` deep."""
    level = [parsed] if isinstance(parsed, (dict, list)) else []
    for _ in range(max_depth):
        if not level:
            return False
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, (dict, list))
        ]
    return bool(level)
