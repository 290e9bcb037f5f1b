"""Records without envelope, from the transform ExtractNewRecordState.

Source: Debezium, "New Record State Extraction": ``add.fields`` and ``add.headers`` (with
their default prefix ``__``), ``delete.tombstone.handling.mode``.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Any

import attrs
import orjson

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Message, Op
from cdcfmt_core.schemas.versions import Position
from cdcfmt_debezium.envelope import position_of, time_of
from cdcfmt_debezium.message import (
    DELETED_FIELD,
    FLATTENED_PREFIX,
    MYSQL_CONNECTORS,
    OF_MYSQL,
    OP_OF_WORD,
    SOURCE_TAKEN,
)
from cdcfmt_toolkit.wire_json import loads_fast, text_of

_SOURCE = "source_"
_NOT_IN_TOPICS = re.compile(r"[^a-zA-Z0-9._-]")
_SPENT = SOURCE_TAKEN | {"op", "deleted"}


@attrs.frozen
class FlatRecord:
    """A flattened record: its row, and the content of its added fields and headers."""

    row: dict[str, Any]
    op: Op
    place: tuple[str, str, str | None]
    stream: str
    connector: str
    position: Position | None
    source_time: int | None
    emit_time: int | None
    extra: dict[str, Any] | None


def read_flat_record(
    payload: Mapping[str, Any] | None,
    message: Message,
    database: str | None,
    prefix: str,
    key: Container[str],
) -> FlatRecord:
    """Split a payload into row and added fields; the payload None is a delete.

    :param prefix: of added fields, the transform's ``add.fields.prefix``.
    :param key: columns of the message's key, which are not added fields.

    :raises DecodeError: if the table is unknown.
    """
    row: dict[str, Any] = {}
    added = {name: value for name, value in _headers(message, prefix) if value is not None}
    for name, value in (payload or {}).items():
        if name == DELETED_FIELD:
            added["deleted"] = value
        # Two characters of another script are __ in Avro.
        elif name.startswith(prefix) and name != prefix and name not in key:
            added[name.removeprefix(prefix)] = value
        else:
            row[name] = value
    source: dict[str, Any] = {}
    for name, value in added.items():
        source.setdefault(name.removeprefix(_SOURCE), value)
    # Without the prefix source_, times are the envelope's: when the producer wrote it.
    emitted: dict[str, Any] = {
        name: added[name] for name in ("ts_ms", "ts_us", "ts_ns") if name in added
    }
    executed: dict[str, Any] = {
        name: added[_SOURCE + name]
        for name in ("ts_ms", "ts_us", "ts_ns")
        if _SOURCE + name in added
    }
    place, stream = _place(source, message.topic or "", database or "")
    if not place[1]:
        raise DecodeError(
            "the table is unknown: none in __table, headers or topic; have the transform add it "
            "(add.fields=table,db), or set flattenedDatabase where topics end with the table"
        )
    extra = {
        name: value for name, value in source.items() if name not in _SPENT and value is not None
    }
    return FlatRecord(
        row,
        _op(payload, added),
        place,
        stream,
        text_of(source, "connector"),
        position_of(source),
        time_of(executed, "__source_"),
        time_of(emitted, "__"),
        extra or None,
    )


def _place(
    source: Mapping[str, Any], topic: str, given: str
) -> tuple[tuple[str, str, str | None], str]:
    """Database, table and schema, and the stream: of fields and headers, else of the topic.

    Connectors name topics ``prefix.database.table``, ``prefix.schema.table`` or
    ``prefix.database.schema.table``; prefix and table may have dots.  A name before the table that
    is not the database is the schema, so that two tables stay two.
    """
    stream, table = text_of(source, "name"), text_of(source, "table")
    database = text_of(source, "db") or text_of(source, "keyspace") or given
    schema = text_of(source, "schema")
    prefix, rest = "", topic
    if stream and topic.startswith(f"{stream}."):
        prefix, rest = stream, topic.removeprefix(f"{stream}.")
    last = _in_topics(table)
    if not table or not rest.endswith(f".{last}"):
        last = rest.rpartition(".")[2]
    names = rest.removesuffix(last).split(".")[:-1]
    if prefix:
        names.insert(0, prefix)
    # A shorter topic may be any name, unless the user says what it lacks.
    table = table or (last if len(names) > 1 or database else "")
    first, *names = names or [last]
    levels = 0
    if names:
        known = _in_topics(database)
        if text_of(source, "connector") in MYSQL_CONNECTORS or source.keys() & OF_MYSQL:
            levels, database = 1, database or names[-1]
        elif schema or not database:
            levels = min(len(names), 2)
            database = database or names[-levels]
            schema = schema or (names[-1] if levels > 1 else "")
        elif names[-1] != known or names[-2:-1] == [known]:
            levels, schema = min(len(names), 2), names[-1]
        else:
            levels = 1
    stream = stream or ".".join([first, *names[: len(names) - levels]])
    return (database, table, schema or None), stream


def _in_topics(name: str) -> str:
    """A name as in topics, where other characters are underscores."""
    return _NOT_IN_TOPICS.sub("_", name)


def _op(payload: Mapping[str, Any] | None, added: Mapping[str, Any]) -> Op:
    if payload is None or added.get("deleted") in ("true", True):
        return "delete"
    word = added.get("op")
    if word is None:
        return "upsert"
    op = OP_OF_WORD.get(word) if type(word) is str else None
    if op is None or op == "delete":
        raise DecodeError("is not an operation of an existing row", field="__op", sample=word)
    # An update without its before image.
    return op


def _headers(message: Message, prefix: str) -> list[tuple[str, Any]]:
    """The added headers without their prefix; values are JsonConverter's JSON, or plain text."""
    result = []
    for name, data in message.headers:
        start = next((each for each in (prefix, FLATTENED_PREFIX) if name.startswith(each)), None)
        if data is None or start is None:
            continue
        try:
            value = loads_fast(orjson.loads, data)
        except ValueError:
            value = data.decode("utf-8", "replace")
        if type(value) is dict and "payload" in value:
            value = value["payload"]
        result.append((name.removeprefix(start), value))
    return result
