"""The dialects of Canal-JSON, as data.

Sources: TiCDC Canal-JSON document; Canal's ``FlatMessage``; CloudCanal "MQ message
formats", Canal Json; messages of Tencent CKafka and Huawei DRS.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

# 10^11 milliseconds is March 1973 and 10^11 seconds is the year 5138, so one limit
# distinguishes the units for every real source.
SECONDS_LIMIT = 100_000_000_000


@attrs.frozen
class Dialect:
    """Properties of a producer; None: detected for each message.

    - ``seconds``: ``es`` and ``ts`` are seconds, not milliseconds
    - ``es_is_commit_time``: ``es`` is exactly ``commit_ts >> 18``, so it orders changes even if
      ``_tidb`` is off
    - ``deleted_row_in_old``: DELETE has the row in ``old``
    - ``writes_latin1``: bytes are text of one character per byte
    """

    summary: str
    seconds: bool | None = None
    es_is_commit_time: bool | None = None
    deleted_row_in_old: bool | None = None
    writes_latin1: bool = False

    def source_unit(self, time: int) -> int:
        """Microseconds in one unit of ``time``."""
        seconds = abs(time) < SECONDS_LIMIT if self.seconds is None else self.seconds
        return 1_000_000 if seconds else 1_000

    def sequence_commit(self, message: Mapping[str, Any], commit_ts: int | None) -> int | None:
        """A commit_ts that orders an event without one; None if ``es`` is not a commit time."""
        if commit_ts is not None or not self._has_commit_time(message):
            return None
        es: int = message["es"]
        return es << 18

    def _has_commit_time(self, message: Mapping[str, Any]) -> bool:
        """Whether ``es`` exists and is TiDB's commit time."""
        # More than 45 bits would exceed the 63 bits of a commit_ts.
        if not 0 < (message.get("es") or 0) < 1 << 45:
            return False
        if self.es_is_commit_time is not None:
            return self.es_is_commit_time
        # TiCDC writes milliseconds.
        return message["es"] >= SECONDS_LIMIT and is_ticdcs(message)

    def has_latin1(self, message: Mapping[str, Any]) -> bool:
        """Whether the producer certainly writes bytes as text of one character per byte."""
        return self.writes_latin1 or "_tidb" in message or is_ticdcs(message)

    def deleted_rows(self, data: Any, old: Any) -> tuple[str, Any]:
        """Field name and rows of a DELETE."""
        in_old = self.deleted_row_in_old
        if in_old is None:
            in_old = not data and bool(old)
        return ("old", old) if in_old else ("data", data)


def is_ticdcs(message: Mapping[str, Any]) -> bool:
    """Whether "id" is first, and 0 as always in TiCDC; Java producers sort their fields."""
    return next(iter(message), None) == "id" and message["id"] == 0


DIALECTS = {
    "auto": Dialect("decided for each message"),
    "ticdc": Dialect(
        "TiCDC",
        seconds=False,
        es_is_commit_time=True,
        deleted_row_in_old=False,
        writes_latin1=True,
    ),
    "canal": Dialect(
        "Alibaba Canal",
        seconds=False,
        es_is_commit_time=False,
        deleted_row_in_old=False,
        writes_latin1=True,
    ),
    "cloudcanal": Dialect("CloudCanal", seconds=False, es_is_commit_time=False),
    "ckafka": Dialect("Tencent CKafka, times in seconds", seconds=True, es_is_commit_time=False),
    "drs": Dialect(
        "Huawei DRS, deleted rows in `old`",
        seconds=False,
        es_is_commit_time=False,
        deleted_row_in_old=True,
    ),
}
