"""Readers of the envelope's fields, with type checks.

Sources: Debezium MySQL connector, "Data change events"; TiCDC Debezium, "Message format"
(``commit_ts``, ``cluster_id``; ``start_ts`` with debezium-include-start-ts).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.schemas.versions import Position
from cdcfmt_core.types import MAX_TIMESTAMP
from cdcfmt_debezium.message import PAYLOAD_KNOWN, SOURCE_TAKEN, TICDC
from cdcfmt_toolkit.layout import LogPaths, Path

TIMES = (0, MAX_TIMESTAMP // 1000, 1000)
"""Bounds and unit of ``ts_ms``, as in layouts."""
FINER_TIMES = (0, MAX_TIMESTAMP, 1)
"""The same of ``ts_us``."""

_OF_BINLOG = ("server_id", "file", "pos")
_OF_COMMITS = ("commit_lsn", "event_serial_no", "change_lsn")
LOG_FIELDS = frozenset({*_OF_BINLOG, *_OF_COMMITS, "lsn"})
"""The fields of a position in the source's log that the kernel reads."""


def log_in(paths: Mapping[str, Path]) -> LogPaths | None:
    """The members of :func:`~cdcfmt_toolkit.row_changes.log_position`; ``paths``: by name."""
    if "commit_lsn" in paths:
        commit, serial, change = map(paths.get, _OF_COMMITS)
        return None, commit, serial, change
    if paths.keys() >= {*_OF_BINLOG}:
        server, file, pos = map(paths.get, _OF_BINLOG)
        return server, file, pos, None
    return (None, None, paths["lsn"], None) if "lsn" in paths else None


def time_of(wire: Mapping[str, Any], path: str = "") -> int | None:
    """The finest of ``ts_us``, ``ts_ns`` and ``ts_ms``, in microseconds."""
    value = wire.get("ts_us")
    if value is not None:
        return _checked(value, value, path + "ts_us")
    value = wire.get("ts_ns")
    if value is not None:
        return _checked(value, value // 1000 if type(value) is int else 0, path + "ts_ns")
    value = wire.get("ts_ms")
    if value is not None:
        return _checked(value, value * 1000 if type(value) is int else 0, path + "ts_ms")
    return None


def _checked(value: Any, microseconds: int, field: str) -> int:
    if type(value) is not int:
        raise DecodeError("is not a time", field=field, sample=value)
    if not 0 <= microseconds <= MAX_TIMESTAMP:
        raise DecodeError("is outside of 1970 to 9999", field=field, sample=value)
    return microseconds


def position_of(source: Mapping[str, Any]) -> Position | None:
    """The position of an event in its stream: TSO or binlog position; None without either."""
    commit_ts = source.get("commit_ts")
    if type(commit_ts) is int:
        return (commit_ts,)
    file, offset = source.get("file"), source.get("pos")
    if type(file) is str and file and type(offset) is int:
        # binlog.1000000 comes after binlog.999999.
        return (len(file), file, offset)
    return None


def extra_of(payload: Mapping[str, Any], source: Mapping[str, Any]) -> dict[str, Any] | None:
    """Fields of the message that have no field in an event; None if there are none."""
    extra: dict[str, Any] = {}
    # TiCDC has no binlog, and writes zeros into its fields.
    no_binlog = source.get("connector") == TICDC
    for name, value in source.items():
        if value is None or value == "" or name in SOURCE_TAKEN:
            continue
        if no_binlog and value == 0:
            continue
        # `in` would also match 0, which equals False.
        if name == "snapshot" and (value == "false" or value is False):
            continue
        extra[name] = value
    for name, value in payload.items():
        if name not in PAYLOAD_KNOWN:
            extra[name] = value
    if payload.get("transaction"):
        extra["transaction"] = payload["transaction"]
    return extra or None
