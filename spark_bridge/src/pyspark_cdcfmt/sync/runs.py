"""Runs of a query, and the names of their writers."""

from __future__ import annotations

from typing import TypeAlias

import attrs

Once: TypeAlias = tuple[str, int]
"""Name of a writer, and a number that grows with each of its writes to a table."""

MARK = "cdcfmt "
"""How the metadata of commits begins that sync gives them."""


@attrs.frozen
class Run:
    """A run of a query.

    :ivar first: its first batch; an earlier run may have crashed in it.
    :ivar planned: when Spark planned that batch, in milliseconds since 1970.
    """

    query_id: str
    first: int
    planned: int


def writer_name(query_id: str, purpose: str = "") -> str:
    """The name of a writer of a query; without a purpose, how the names of all begin."""
    return f"cdcfmt:{query_id}:{purpose}"
