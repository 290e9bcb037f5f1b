"""DDL messages: the statement, and the resulting schemas.

Sources: Debezium MySQL connector, "Schema change topic"; TiCDC's Debezium encoder (its document
does not describe DDL messages); CloudCanal's Debezium Envelope, DDL example.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import attrs

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import DdlType, SchemaChange
from cdcfmt_core.schemas.records import SchemaRecord
from cdcfmt_core.types import LogicalType
from cdcfmt_debezium.envelope import extra_of, position_of, time_of
from cdcfmt_debezium.message import MYSQL_CONNECTORS, TICDC
from cdcfmt_debezium.table_changes import TABLE_EXTRA, TableChange, read_table_changes
from cdcfmt_mysql.ddl import ddl_type_of
from cdcfmt_toolkit.table_changes import readable
from cdcfmt_toolkit.wire_json import commit_ts_of, object_of, text_of

_OF_BINLOG: Final = "mysql"
_BEFORE_ALL: Final = (0, "", 0)
_OF_WORD: Final[dict[str, DdlType]] = {"CREATE": "CREATE", "ALTER": "ALTER", "DROP": "ERASE"}
_TAKEN: Final = frozenset({"databaseName", "schemaName", "ddl", "tableChanges"})


@attrs.frozen
class SchemaChanges:
    """The content of a DDL message."""

    events: tuple[SchemaChange, ...]
    records: tuple[SchemaRecord, ...]


def is_schema_change(payload: Mapping[str, Any]) -> bool:
    """Whether a payload is that of a DDL message, which has a statement but no images."""
    return (
        "ddl" in payload
        and type(payload.get("source")) is dict
        and "before" not in payload
        and "after" not in payload
    )


def read_schema_changes(
    payload: Mapping[str, Any],
    resolve_type: Callable[[str], LogicalType],
    counts: Counter[str],
) -> SchemaChanges:
    """Read the events, one per table that the statement changes, and the schemas.

    :param counts: gets the number of statements whose schemas cannot be read.
    :raises DecodeError: for fields of the wrong type.
    """
    source = object_of(payload, "source") or {}
    query = text_of(payload, "ddl")
    connector = text_of(source, "connector", "source.")
    # The schema history topic has no source block: its source is the stream's name alone.
    place_in_log = object_of(payload, "position") or {}
    if not connector and position_of(place_in_log):
        connector = _OF_BINLOG
    database = text_of(source, "db", "source.") or text_of(payload, "databaseName")
    schema = text_of(source, "schema", "source.") or text_of(payload, "schemaName") or None
    place = database, text_of(source, "table", "source."), schema
    unreadable: dict[str, Any] = {}
    read = partial(
        read_table_changes,
        payload.get("tableChanges"),
        place,
        resolve_type if connector in MYSQL_CONNECTORS else None,
        escaped_values=connector != TICDC,
    )
    # Without a statement, changes that cannot be read leave nothing of the message.
    changes = readable(read, unreadable, counts) if query else read()
    if not query and not changes:
        raise DecodeError("a required field of a DDL event is missing", field="ddl")
    position = position_of(source) or position_of(place_in_log) or _BEFORE_ALL
    stream = text_of(source, "name", "source.") or text_of(source, "server", "source.")
    commit_ts = commit_ts_of(source, "commit_ts", "source.")
    source_time, emit_time = time_of(source, "source."), time_of(payload)
    left = {name: value for name, value in payload.items() if name not in _TAKEN}
    common = (extra_of(left, source) or {}) | unreadable

    def event(index: int, change: TableChange | None) -> SchemaChange:
        extra, names = dict(common), place
        if change is not None:
            if change.word:
                extra["ddl_type"] = change.word
            extra |= {TABLE_EXTRA[name]: text for name, text in change.extra.items()}
            if len(change.names) > 1:
                extra["table_id"] = change.id
            names = change.place
        return SchemaChange(
            query=query,
            ddl_type=_ddl_type(query, change, of_snapshot="snapshot" in common),
            database=names[0],
            table=names[1],
            schema=names[2],
            table_schema=change.table if change is not None else None,
            commit_ts=commit_ts,
            source_time=source_time,
            emit_time=emit_time,
            index=index,
            extra=extra or None,
        )

    events = tuple(event(index, change) for index, change in enumerate(changes or [None]))
    return SchemaChanges(
        events,
        tuple(
            SchemaRecord(change.table_schema, position, stream)
            for change in events
            if change.table_schema is not None
        ),
    )


def _ddl_type(query: str, change: TableChange | None, *, of_snapshot: bool) -> DdlType:
    """The DDL type of the statement, or of the change if there is no statement.

    A snapshot lists existing tables with DROP TABLE IF EXISTS before each CREATE TABLE, which
    drops no table.
    """
    word = ddl_type_of(query)
    if of_snapshot and (word == "ERASE" or (change is not None and change.word == "DROP")):
        return "QUERY"
    if change is None:
        return word
    if len(change.names) > 1 and change.word == "ALTER":
        return "RENAME"
    return _OF_WORD.get(change.word, "QUERY") if not query else word
