"""Recognition of Canal-JSON by its bytes."""

from __future__ import annotations

import re
from typing import Final

from cdcfmt_core.events import Message

_TICDC_BEGINS: Final = re.compile(
    rb'\{"id":[0-9]+,"database":"[^"]*","table":"[^"]*","pkNames":(?:null|\[[^]]*\]),"isDdl":'
).match
_ENVELOPE = (b'"database"', b'"type"', b'"data"')
# Flink CDC sends no times.  Maxwell's row is not a list.
_HAS_ROWS: Final = re.compile(rb'"data"\s*:\s*\[').search
# Flink SQL sends no more than rows and type; only both ends are searched, as it may be large.
_ROWS_BEGIN: Final = re.compile(rb'\{\s*(?:"old"\s*:\s*null\s*,\s*)?"data"\s*:\s*\[\s*\{').match
_ROWS_END: Final = re.compile(rb'\]\s*,\s*"type"\s*:\s*"(?:INSERT|UPDATE|DELETE)"\s*\}\s*\Z').search
_END: Final = 100
_STRONG = (b'"isDdl"', b'"mysqlType"', b'"pkNames"', b'"sqlType"', b'"old"')


def sniff(message: Message) -> float:
    """1.0 for Canal's complete envelope, less with fewer of its names, otherwise 0.0."""
    value = message.value
    if value is None or value[:1] != b"{":
        return 0.0
    # Five names in this order are enough: a search for all costs as much as decoding.
    if _TICDC_BEGINS(value):
        return 1.0
    if _ROWS_BEGIN(value) and _ROWS_END(value[-_END:]):
        return 0.5
    if not all(name in value for name in _ENVELOPE):
        return 0.0
    if b'"es"' not in value and not (b'"pkNames"' in value and _HAS_ROWS(value)):
        return 0.0
    found = sum(name in value for name in _STRONG)
    return 0.4 + 0.12 * found if found else 0.0
