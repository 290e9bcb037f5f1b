"""Names of logical types."""

from __future__ import annotations

import attrs

from cdcfmt_core.types import LogicalType


def type_name(type_: LogicalType) -> str:
    """A type as docs/events.md writes it: ``Int(64) unsigned``, ``Decimal(10, 2)``, ``Text``."""
    values = attrs.asdict(type_, recurse=False)
    unsigned = "" if values.pop("signed", True) else " unsigned"
    known = [
        f"{len(value)} names" if isinstance(value, tuple) else str(value)
        for value in values.values()
        if value not in (None, "")
    ]
    return type(type_).__name__ + (f"({', '.join(known)})" if known else "") + unsigned
