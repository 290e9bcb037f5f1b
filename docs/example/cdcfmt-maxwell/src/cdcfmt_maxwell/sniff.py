"""Recognition of Maxwell's JSON by its bytes."""

from __future__ import annotations

import re

from cdcfmt_core.events import Message

# Canal's names are the same, but its types are in capitals.
_find_type = re.compile(
    rb'"type":\s?"(?:insert|update|delete|bootstrap-[a-z]+|(?:table|database)-[a-z]+)"'
).search


def sniff(message: Message) -> float:
    """0.9 for Maxwell's names and one of its types near the beginning, otherwise 0.0."""
    value = message.value
    if value is None or value[:1] != b"{":
        return 0.0
    named = b'"database":' in value and b'"ts":' in value
    return 0.9 if named and _find_type(value, 0, 1_000) else 0.0
