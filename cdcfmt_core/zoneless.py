"""The warning of TIMESTAMP columns in a format without time zones."""

from __future__ import annotations

import functools

from cdcfmt_core.texts import open_logger, qualified

logger = open_logger("cdcfmt_core")


def warn_zoneless(
    database: str,
    table: str,
    consequence: str = "read as UTC; set sourceTimeZone to the source's zone",
) -> None:
    """Log the warning once per table; ``consequence``: the effect, and what to do."""
    warn_once(qualified(database, table), consequence)


@functools.lru_cache(maxsize=10_000)
def warn_once(table: str, consequence: str) -> None:
    """Log the warning once for a qualified table name."""
    logger.warning(
        "%s has TIMESTAMP columns, and this format does not send their time zone: they are %s",
        table,
        consequence,
    )
