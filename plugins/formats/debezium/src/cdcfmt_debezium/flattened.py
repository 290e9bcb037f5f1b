"""Records without envelope, from the transform ExtractNewRecordState.

Source: Debezium, "New Record State Extraction": ``add.fields`` and ``add.headers`` (with
their default prefix ``__``), ``delete.tombstone.handling.mode``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import orjson

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Message, Op
from cdcfmt_core.schemas.records import Persistence
from cdcfmt_core.schemas.versions import Position
from cdcfmt_debezium.envelope import position_of, time_of
from cdcfmt_debezium.message import (
    DELETED_FIELD,
    FLATTENED_PREFIX,
    OP_OF_WORD,
    SOURCE_TAKEN,
)
from cdcfmt_debezium.topic_tables import Origin, TopicTables, origin_of
from cdcfmt_toolkit.default_table import default_table
from cdcfmt_toolkit.wire_json import loads_fast, text_of

SOURCE = "source_"
"""How added facts begin that are of an envelope's ``source``."""
SPENT = SOURCE_TAKEN | {"op", "deleted"}
"""Added facts that are not in ``extra``."""


@attrs.frozen
class FlatRecord:
    """A flattened record: its row, and the content of its added fields and headers."""

    row: dict[str, Any]
    op: Op
    origin: Origin
    position: Position | None
    source_time: int | None
    emit_time: int | None
    extra: dict[str, Any] | None


class FlatReader:
    """Splits records into row and added fields.

    :param kept: where the tables of topics are kept; see :class:`TopicTables`.
    """

    def __init__(self, options: Mapping[str, Any], kept: Persistence | None) -> None:
        self._prefix = options["flattenedPrefix"] or FLATTENED_PREFIX
        self._database = options["flattenedDatabase"] or ""
        self._by_topic = options["flattenedTable"] == "topic"
        self.tables = TopicTables(self._database, default_table(options), kept)

    def read(
        self, payload: Mapping[str, Any] | None, message: Message, key: Mapping[str, Any] | None
    ) -> FlatRecord:
        """The record of a payload; the payload None is a delete.

        :param key: columns of the message's key, which are not added fields.
        :raises DecodeError: if the table is unknown.
        """
        prefix = self._prefix
        row: dict[str, Any] = {}
        added = {name: value for name, value in added_headers(message, prefix) if value is not None}
        for name, value in (payload or {}).items():
            if name == DELETED_FIELD:
                added["deleted"] = value
            # Two characters of another script are __ in Avro.
            elif name.startswith(prefix) and name != prefix and name not in (key or ()):
                added[name.removeprefix(prefix)] = value
            else:
                row[name] = value
        source: dict[str, Any] = {}
        for name, value in added.items():
            source.setdefault(name.removeprefix(SOURCE), value)
        # Without the prefix source_, times are the envelope's: when the producer wrote it.
        emitted: dict[str, Any] = {
            name: added[name] for name in ("ts_ms", "ts_us", "ts_ns") if name in added
        }
        executed: dict[str, Any] = {
            name: added[SOURCE + name]
            for name in ("ts_ms", "ts_us", "ts_ns")
            if SOURCE + name in added
        }
        extra = {
            name: value for name, value in source.items() if name not in SPENT and value is not None
        }
        return FlatRecord(
            row,
            _op(payload, added),
            self._origin(payload, source, message.topic or "", key),
            position_of(source),
            time_of(executed, "__source_"),
            time_of(emitted, "__"),
            extra or None,
        )

    def _origin(
        self,
        payload: Mapping[str, Any] | None,
        source: Mapping[str, Any],
        topic: str,
        key: Mapping[str, Any] | None,
    ) -> Origin:
        if self._by_topic:
            origin = origin_of({}, topic, self._database)
            return attrs.evolve(origin, connector=text_of(source, "connector"))
        if payload is None:
            return self.tables.of_delete(source, topic, key)
        return self.tables.of_row(source, topic)


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


def added_headers(message: Message, prefix: str) -> list[tuple[str, Any]]:
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
