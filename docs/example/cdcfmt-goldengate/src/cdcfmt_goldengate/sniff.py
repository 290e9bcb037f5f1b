"""Recognition of GoldenGate's JSON by its bytes."""

from __future__ import annotations

import re

from cdcfmt_core.events import Message

_find_type = re.compile(rb'"op_type":\s*"[IUDT]"').search


def sniff(message: Message) -> float:
    """0.9 for GoldenGate's names and one of its operations, otherwise 0.0."""
    value = message.value
    if value is None or value[:1] != b"{" or b'"op_ts"' not in value:
        return 0.0
    return 0.9 if _find_type(value) else 0.0
