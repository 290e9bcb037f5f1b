"""Recognition of Canal-JSON by its bytes."""

from __future__ import annotations

import re
from typing import Final

from cdcfmt_core.events import Message

_TICDC_BEGINS: Final = re.compile(
    rb'\{"id":[0-9]+,"database":"[^"]*","table":"[^"]*","pkNames":(?:null|\[[^]]*\]),"isDdl":'
).match
_ENVELOPE = (b'"database"', b'"type"', b'"data"', b'"es"')
_STRONG = (b'"isDdl"', b'"mysqlType"', b'"pkNames"', b'"sqlType"', b'"old"')


def sniff(message: Message) -> float:
    """1.0 for Canal's complete envelope, less with fewer of its names, otherwise 0.0."""
    value = message.value
    if value is None or value[:1] != b"{":
        return 0.0
    # Five names in this order are enough: a search for all costs as much as decoding.
    if _TICDC_BEGINS(value):
        return 1.0
    if not all(name in value for name in _ENVELOPE):
        return 0.0
    found = sum(name in value for name in _STRONG)
    return 0.4 + 0.12 * found if found else 0.0
