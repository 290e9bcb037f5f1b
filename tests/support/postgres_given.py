"""Golden sets of PostgreSQL without schemas, and the option ``tableSchemas`` for them."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache

from support.framed_cells import true_rows
from support.postgres_values import UNKNOWN_TYPES

VARIANTS: dict[str, dict[str, str]] = {
    "noschema_default": {"timePrecisionMode": "adaptive"},
    "noschema_isostring": {
        "timePrecisionMode": "isostring",
        "decimalHandlingMode": "double",
        "binaryHandlingMode": "base64-url-safe",
    },
    "noschema_nanos": {"timePrecisionMode": "nanoseconds", "decimalHandlingMode": "string"},
    "noschema_unwrap": {
        "timePrecisionMode": "adaptive",
        "flattened": "true",
        "flattenedPrefix": "meta_",
    },
}
DOMAINS = {"amount": "numeric(10,2)", "email": "text", "posint": "integer", "mood": "text"}
"""Domains and enums by the types in which the connector sends them."""
CHANGED = "evolve", "c"
"""A NUMERIC that became TEXT."""
OF_TOPICS = {
    ("Ünï Schema", "plain"): ("_n__Schema", "plain"),
    ("Ünï Schema", 'T "q".v2 表'): ("T__q_", "v2__"),
}
"""Schemas and tables as the names of topics have them."""


@cache
def table_schemas() -> str:
    """The option: all tables, also by the names in their topics, with the newest of a column's
    types."""
    found: dict[str, dict[str, dict[str, str | None]]] = defaultdict(lambda: defaultdict(dict))
    for (_, schema, table), rows in true_rows("postgres", "lsn").items():
        for column in (column for row in rows for column in row.columns):
            name = column["name"]
            base, _, items = column["type"].partition("[")
            type_ = DOMAINS.get(base, base) + (f"[{items}" if items else "")
            known = type_ not in UNKNOWN_TYPES and (table, name) != CHANGED
            for place in {(schema, table), OF_TOPICS.get((schema, table), (schema, table))}:
                found[place[0]][place[1]][name] = type_ if known else None
    return json.dumps(found)
