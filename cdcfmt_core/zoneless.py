"""The warning of TIMESTAMP columns over a wire without their time zone."""

from __future__ import annotations

import functools

from cdcfmt_core.texts import open_logger

logger = open_logger("cdcfmt_core")


@functools.lru_cache(maxsize=10_000)
def warn_zoneless(
    database: str,
    table: str,
    consequence: str = "read as UTC; set sourceTimeZone to the source's zone",
) -> None:
    """Log it once for each table; ``consequence`` is what happens, and what to do."""
    logger.warning(
        "%s has TIMESTAMP columns, whose time zone this format does not tell: they are %s",
        f"{database}.{table}",
        consequence,
    )
