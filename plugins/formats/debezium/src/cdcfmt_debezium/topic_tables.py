"""The tables of deletes without value, in topics of the transform ExtractNewRecordState.

Such a delete has its key, its headers and its topic, but not the fields that the transform adds to
rows, and the name of a topic may differ from that of its table: connectors write ``_`` for each
character that no topic may have, a router renames topics, and topics of PostgreSQL have no
database.  The rows of the same topic show its table.

Sources: Debezium, "New Record State Extraction", and ``SchemaTopicNamingStrategy``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from cdcfmt_core.caches import Cache, text_size
from cdcfmt_core.errors import DecodeError, SourceError
from cdcfmt_core.schemas.records import Persistence
from cdcfmt_debezium.message import MYSQL_CONNECTORS, OF_MYSQL, ROUTED_TABLE
from cdcfmt_toolkit.wire_json import text_of

_NOT_IN_TOPICS: Final = re.compile(r"[^a-zA-Z0-9._-]")
_CONNECTOR: Final = "debezium.context.connectorName"
"""Header of connectors since Debezium 3.2, without its prefix."""
_DOTS: Final = 2
_MOST_TABLES: Final = 10_000
_ORIGIN: Final = 500

UNKNOWN_TABLE: Final = (
    "the table is unknown: none in __table, headers or topic; have the transform add it "
    "(add.fields=table,db), or set flattenedDatabase where topics end with the table"
)
_UNSURE: Final = (
    "; have the transform add add.headers=db,schema,table, or send the rows of deletes "
    "(delete.tombstone.handling.mode=rewrite). Here: schemaStore keeps the tables that rows show, "
    "flattenedTable=topic names all tables by their topics alone, defaultTable names the only one"
)
_NO_ROW_READ: Final = (
    "the table of a delete without value is not certain: the topic may have another name than the "
    "table (_ for other characters, a database or schema that only rows have), and no row of the "
    "topic was read before it" + _UNSURE
)
_OTHER_TABLES: Final = (
    "the table of a delete without value is not certain: the topic has rows of tables with other "
    "names" + _UNSURE
)


@attrs.frozen
class Origin:
    """Where a row comes from.

    - ``stream``: the connector's prefix of topics.
    - ``by_topic``: the topic names the table, rather than the row.
    """

    database: str
    table: str
    schema: str | None
    stream: str
    connector: str
    by_topic: bool

    @property
    def place(self) -> tuple[str, str, str | None]:
        return self.database, self.table, self.schema

    def fits(self, topic: str) -> bool:
        """Whether the topic is this table's alone: named by it, not by a router."""
        parents = [_in_topics(each) for each in (self.schema, self.database) if each]
        ends = tuple(f".{each}.{_in_topics(self.table)}" for each in parents)
        return self.by_topic or f".{topic}".endswith(ends)

    def agrees(self, source: Mapping[str, Any]) -> bool:
        """Whether it has the names that added fields or headers give."""
        database = text_of(source, "db") or text_of(source, "keyspace")
        return (
            database in ("", self.database)
            and text_of(source, "table") in ("", self.table)
            and text_of(source, "schema") in ("", self.schema)
        )


def origin_of(source: Mapping[str, Any], topic: str, given: str) -> Origin:
    """The origin by fields and headers, else by the topic.

    Connectors name topics ``prefix.database.table``, ``prefix.schema.table`` or
    ``prefix.database.schema.table``; prefix and table may have dots.  A name before the table that
    is not the database is the schema, so that two tables stay two.

    :param given: the database if neither fields nor headers have it.
    :raises DecodeError: if the table is unknown.
    """
    stream, table = text_of(source, "name"), text_of(source, "table")
    database = text_of(source, "db") or text_of(source, "keyspace") or given
    schema, connector = text_of(source, "schema"), text_of(source, "connector")
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
        if connector in MYSQL_CONNECTORS or source.keys() & OF_MYSQL:
            levels, database = 1, database or names[-1]
        elif schema or not database:
            levels = min(len(names), 2)
            database = database or names[-levels]
            schema = schema or (names[-1] if levels > 1 else "")
        elif names[-1] != known or names[-2:-1] == [known]:
            levels, schema = min(len(names), 2), names[-1]
        else:
            levels = 1
    if not table:
        raise DecodeError(UNKNOWN_TABLE)
    stream = stream or ".".join([first, *names[: len(names) - levels]])
    by_topic = not text_of(source, "table")
    return Origin(database, table, schema or None, stream, connector, by_topic)


def _in_topics(name: str) -> str:
    """A name as in topics, where other characters are underscores."""
    return _NOT_IN_TOPICS.sub("_", name)


@attrs.define
class _Shown:
    """The origins of a topic's rows; ``is_loaded``: with those that are kept."""

    origins: dict[Origin, None] = attrs.field(factory=dict)
    is_loaded: bool = False


class TopicTables:
    """The tables that the rows of each topic showed, and those of deletes without value.

    :param given: the database of rows that do not name it.
    :param default: the table of deletes whose topic does not tell it.
    :param kept: where tables are kept that topics do not tell.
    """

    def __init__(
        self, given: str, default: tuple[str, str, str | None] | None, kept: Persistence | None
    ) -> None:
        self._given = given
        self._default = default
        self._kept = kept
        # After a topic is dropped, its deletes may be errors until its next row.
        self._topics: Cache[str, _Shown] = Cache()

    def of_row(self, source: Mapping[str, Any], topic: str) -> Origin:
        """The origin of a row, remembered for deletes.

        :raises DecodeError: if the table is unknown.
        """
        origin = origin_of(source, topic, self._given)
        self.learn(topic, origin)
        return origin

    def learn(self, topic: str, origin: Origin) -> None:
        """Remember the origin of a row of the topic."""
        shown = self._topics.get(topic)
        if shown is None:
            shown = self._topics.add(topic, _Shown(), text_size(topic))
        if origin in shown.origins or len(shown.origins) >= _MOST_TABLES:
            return
        self._remember(topic, shown, origin)
        if self._kept is not None:
            certain = self._certain({}, topic)
            if certain is None or certain.place != origin.place:
                data = json.dumps([topic, *attrs.astuple(origin)])
                self._kept.keep(_folder(topic), data.encode())

    def of_delete(
        self, source: Mapping[str, Any], topic: str, key: Mapping[str, Any] | None
    ) -> Origin:
        """The origin of a delete without value; ``source``: its headers.

        :raises DecodeError: if it is not certain.
        """
        physical = (key or {}).get(ROUTED_TABLE)
        own = physical if type(physical) is str and physical else topic
        shown = [
            each
            for each in self._all_shown(topic)
            if each.agrees(source) and (own == topic or each.fits(own))
        ]
        if len(shown) == 1 and (text_of(source, "table") or shown[0].fits(own)):
            return shown[0]
        found = None if shown else self._certain(source, own)
        if found is not None:
            return found
        default = self._default
        if default is not None and all(each.place == default for each in shown):
            return Origin(*default, text_of(source, "name"), connector="", by_topic=False)
        raise DecodeError(_OTHER_TABLES if shown else _NO_ROW_READ)

    def _certain(self, source: Mapping[str, Any], topic: str) -> Origin | None:
        """The origin by headers and topic, if no row would show another one."""
        try:
            origin = origin_of(source, topic, self._given)
        except DecodeError:
            return None
        database = text_of(source, "db") or text_of(source, "keyspace") or self._given
        given = database, text_of(source, "table"), text_of(source, "schema")
        taken = [each for each, own in zip(origin.place, given, strict=True) if each and not own]
        if taken and (topic.count(".") != _DOTS or any("_" in each for each in taken)):
            return None
        connector = origin.connector or text_of(source, _CONNECTOR)
        if connector and connector not in MYSQL_CONNECTORS and not database:
            # What looks like the database is the schema.
            return None
        return origin

    def _all_shown(self, topic: str) -> Iterable[Origin]:
        shown = self._topics.get(topic)
        if self._kept is None or (shown is not None and shown.is_loaded):
            return shown.origins if shown is not None else ()
        if shown is None:
            shown = self._topics.add(topic, _Shown(), text_size(topic))
        for data in self._kept.kept(_folder(topic)):
            try:
                own, *names = json.loads(data)
                origin = Origin(*names)
            except (ValueError, TypeError) as error:
                raise SourceError(
                    f"topic {topic}: the schema store has a damaged file of its tables ({error}): "
                    f"delete it in {_folder(topic)}"
                ) from error
            if own == topic:
                self._remember(topic, shown, origin)
        shown.is_loaded = True
        return shown.origins

    def _remember(self, topic: str, shown: _Shown, origin: Origin) -> None:
        shown.origins[origin] = None
        self._topics.add(topic, shown, text_size(topic) + _ORIGIN * len(shown.origins))


def _folder(topic: str) -> str:
    digest = hashlib.sha256(topic.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"_flattened-tables/{digest}"
