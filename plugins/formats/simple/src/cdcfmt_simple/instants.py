"""TIMESTAMP values: a local time, and the name of its time zone (``location``).

Source: TiCDC's ``simple/message.go``.  ``Local``, ``System`` and the empty name are the zone
of TiCDC's server, which only ``sourceTimeZone`` can tell; the same applies to the plain texts of
TiCDC 7.6.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

from cdcfmt_core import DecoderContext, EncoderContext
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_mysql.temporal import timestamp_parser
from cdcfmt_toolkit.dialects import dialect_reader

LOCAL: Final = frozenset({"", "local", "system"})
_MAX_ZONES = 32


class Zones:
    """Parsers of TIMESTAMP texts by location and type text."""

    def __init__(self, context: DecoderContext) -> None:
        self._context = context
        self._parsers: dict[tuple[str, str], Callable[[str], Any]] = {}

    def opener(
        self, table: TableSchema, column: Column | None = None
    ) -> Callable[[str], Callable[[str], Any]]:
        """A function that returns the parser for a location in this table.

        It raises ValueError for an unknown zone.

        :param column: whose type map may read the texts; TiDB's texts without it.
        """

        def open_parser(location: str) -> Callable[[str], Any]:
            if location.lower() in LOCAL:
                return self._local_parser(table, column)
            return self._parser(location, column)

        return open_parser

    def _local_parser(self, table: TableSchema, column: Column | None) -> Callable[[str], Any]:
        parse = self._parser("", column)
        warned = False

        def parse_local(text: str) -> Any:
            nonlocal warned
            if not warned:
                self._context.note_zoneless_timestamps(table)
                warned = True
            return parse(text)

        return parse_local

    def _parser(self, location: str, column: Column | None) -> Callable[[str], Any]:
        key = location, "" if column is None else column.source_type
        parse = self._parsers.get(key)
        if parse is None:
            zone = _zone(location) if location else self._context.time_zone
            if len(self._parsers) >= _MAX_ZONES:
                self._parsers.clear()
            parse = None if column is None else dialect_reader(column, self._context, zone)
            parse = self._parsers[key] = parse or timestamp_parser(zone, self._context.counts)
        return parse


def _zone(location: str) -> ZoneInfo:
    try:
        return ZoneInfo(location)
    except (ValueError, KeyError, OSError):
        raise ValueError(f"{location[:50]!r} is not a time zone") from None


def zone_with_location(context: EncoderContext) -> tuple[tzinfo, str]:
    """The zone in which TIMESTAMP is written, and its name; UTC for a zone without a name."""
    zone = context.time_zone
    return (zone, zone.key) if isinstance(zone, ZoneInfo) and zone.key else (UTC, "UTC")
