"""The warning of TIMESTAMP columns over a wire without their time zone."""

from __future__ import annotations

import functools

from cdcfmt_core.texts import open_logger, qualified

logger = open_logger("cdcfmt_core")


def warn_zoneless(
    database: str,
    table: str,
    consequence: str = "read as UTC; set sourceTimeZone to the source's zone",
) -> None:
    """Log it once for each table; ``consequence`` is what happens, and what to do."""
    warn_once(qualified(database, table), consequence)


@functools.lru_cache(maxsize=10_000)
def warn_once(table: str, consequence: str) -> None:
    """The same of a table whose names are joined, and short."""
    logger.warning(
        "%s has TIMESTAMP columns, whose time zone this format does not have: they are %s",
        table,
        consequence,
    )
