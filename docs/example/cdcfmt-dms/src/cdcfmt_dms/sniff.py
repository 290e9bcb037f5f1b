"""Recognition of DMS's JSON by its bytes."""

from __future__ import annotations

import re

from cdcfmt_core.events import Message

_find_type = re.compile(rb'"record-type":\s*"(?:data|control)"').search


def sniff(message: Message) -> float:
    """0.9 for DMS's names in `metadata`, otherwise 0.0."""
    value = message.value
    if value is None or value[:1] != b"{" or b'"partition-key-type"' not in value:
        return 0.0
    return 0.9 if _find_type(value) else 0.0
