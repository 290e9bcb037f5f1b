"""TIMESTAMP values: a wall clock, and the name of its zone (``location``) beside it.

Source: TiCDC's ``simple/message.go``.  ``Local``, ``System`` and the empty name are the zone
of the server that TiCDC ran on, which only ``sourceTimeZone`` can tell; so it is for the plain
texts of TiCDC 7.6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from zoneinfo import ZoneInfo

from cdcfmt_core import DecoderContext
from cdcfmt_core.mysql.instants import timestamp_parser

_LOCAL: Final = frozenset({"", "local", "system"})
_MAX_ZONES = 1_000


class Zones:
    """Parsers of TIMESTAMP texts by location."""

    def __init__(self, context: DecoderContext) -> None:
        self._context = context
        self._parsers: dict[str, Callable[[str], Any]] = {}

    def parser(self, location: str, database: str, table: str) -> Callable[[str], Any]:
        """For texts in this zone; ValueError if there is none of that name.

        ``database`` and ``table`` are for the warning where the zone is not told.
        """
        if location.lower() in _LOCAL:
            location = ""
            self._context.note_zoneless_timestamps(database, table)
        parse = self._parsers.get(location)
        if parse is None:
            zone = self._context.time_zone if not location else _zone(location)
            if len(self._parsers) >= _MAX_ZONES:
                self._parsers.clear()
            parse = self._parsers[location] = timestamp_parser(zone, self._context.counts)
        return parse


def _zone(location: str) -> ZoneInfo:
    try:
        return ZoneInfo(location)
    except (ValueError, KeyError, OSError):
        raise ValueError(f"{location[:50]!r} is no time zone") from None
