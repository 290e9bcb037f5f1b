"""PostgreSQL's types and texts, for every format whose messages have them.

:data:`POSTGRESQL` is the type map; :func:`domain_map` adds domains and enums of a database.
"""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_core.hookspecs import hookimpl
from cdcfmt_core.types import TypeMap
from cdcfmt_postgresql.type_map import POSTGRESQL, domain_map, open_reader, resolve_type

__all__ = ["POSTGRESQL", "domain_map", "open_reader", "resolve_type"]


@hookimpl
def cdcfmt_register_type_maps() -> Iterable[TypeMap]:
    return [POSTGRESQL]
