"""The layouts of flattened records in Avro, for the compiled kernel.

What the transform adds is in fields or headers, and the topic may name the table: a layout is that
of a writer schema, a topic and headers, which are equal in most messages of a topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Message, Op, TableSchema
from cdcfmt_core.schema_registry import WriterSchema
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_debezium.envelope import FINER_TIMES, LOG_FIELDS, TIMES, log_in
from cdcfmt_debezium.flattened import SOURCE, SPENT, added_headers
from cdcfmt_debezium.framed import FramedSchema, FramedSchemas
from cdcfmt_debezium.message import (
    DELETED_FIELD,
    FLATTENED_PREFIX,
    HEARTBEAT_SCHEMA,
    MYSQL_CONNECTORS,
    OF_MYSQL,
    OP_OF_WORD,
    TRANSACTION_FIELDS,
)
from cdcfmt_debezium.profile import ProducerProfile, profile_of
from cdcfmt_debezium.topic_tables import Origin, origin_of
from cdcfmt_debezium.value_encodings import of_column
from cdcfmt_toolkit.avro_schemas import plain_schema
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.layout import Avro, Extra, Layout, Path

_TIME_FIELDS = ("ts_us", "ts_ns", "ts_ms")
_NAMES: Mapping[str, Any] = {"db": "database", "schema": "schema", "table": "table"}
_SAME = frozenset({"connector", "name"})
_UNUSUAL = frozenset({"commit_ts", "keyspace", "scn", "commit_scn"})
"""Positions of other forms, and other names of the database."""
_OF_KEYS = frozenset({"debezium.oldkey", "debezium.newkey"})
"""Headers of changed keys: other ones in each message."""
_ANY = "x"


class FlattenedLayouts:
    """Layouts by writer schema and message.

    - ``prefix``, ``database``, ``by_topic``: as in :class:`~cdcfmt_debezium.flattened.FlatReader`
    - ``base``: the layout of envelopes
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        base: Layout,
        schemas: FramedSchemas,
        of_producers: Mapping[str, ProducerProfile],
    ) -> None:
        self._prefix = options["flattenedPrefix"] or FLATTENED_PREFIX
        self._database = options["flattenedDatabase"] or ""
        self._by_topic = options["flattenedTable"] == "topic"
        self._base = base
        self._schemas = schemas
        self._profiles = of_producers

    @property
    def headers(self) -> tuple[str, ...]:
        """How the names of headers begin that the transform may have added."""
        return tuple({self._prefix: None, FLATTENED_PREFIX: None})

    def layout_of(self, writer: WriterSchema, message: Message) -> Layout | None:
        """The layout of records with these headers; None if the decoder must read them."""
        framed = self._schemas.of(writer)
        if framed.root is None or framed.schema is None or not _is_record(framed):
            return None
        added = self._added(framed, message)
        if added is None:
            return None
        place, ops = self._place(added, message.topic or ""), _ops(added)
        if place is None or not ops:
            return None
        return self._layout(framed, added, place, ops)

    def _added(self, framed: FramedSchema, message: Message) -> _Added | None:
        """What the transform added; None if one fact has two names, or differs in each message."""
        assert framed.schema is not None
        fields: dict[str, str] = {}
        for field in (field["field"] for field in framed.schema.fields):
            name = _name_of(field, self._prefix)
            if name is None:
                continue
            if name in fields:
                return None
            fields[name] = field
        given = {
            name: value
            for name, value in added_headers(message, self._prefix)
            # A field wins over the header of the same name.
            if value is not None and name not in fields
        }
        added = _Added(fields, given)
        all_names = [
            *given,
            *(name for name in fields if name.removeprefix(SOURCE) not in _TIME_FIELDS),
        ]
        bare = [name.removeprefix(SOURCE) for name in all_names]
        is_unusual = not _UNUSUAL.isdisjoint(bare) or "deleted" in given
        if is_unusual or len({*bare}) < len(bare) or not _OF_KEYS.isdisjoint(bare):
            return None
        # What differs in each message is no fact of a layout.
        in_headers = {name.removeprefix(SOURCE) for name in given}
        if not in_headers.isdisjoint(LOG_FIELDS.union(_TIME_FIELDS)):
            return None
        if any(type(value) not in (str, bool, int) for value in given.values()):
            return None
        return added

    def _place(self, added: _Added, topic: str) -> _Place | None:
        """Where rows come from; None if it is not certain."""
        source = dict.fromkeys(added.sources, _ANY) | added.given_sources
        of_fields = frozenset(added.sources)
        try:
            if self._by_topic:
                return _Place.of(origin_of({}, topic, self._database), frozenset())
            origin = origin_of(source, topic, self._database)
        except DecodeError:
            return None
        is_mysql = not OF_MYSQL.isdisjoint(source) or (
            "connector" not in of_fields and source.get("connector") in MYSQL_CONNECTORS
        )
        has_schema = "schema" in source or is_mysql
        is_whole = has_schema and "table" in source and ("db" in source or bool(self._database))
        # The topic's schema depends on the database, and all of its names on prefix and connector.
        if not has_schema and "db" in of_fields:
            return None
        if not is_whole and not of_fields.isdisjoint(_SAME):
            return None
        return _Place.of(origin, of_fields)

    def _layout(
        self, framed: FramedSchema, added: _Added, place: _Place, ops: Mapping[str, Op]
    ) -> Layout | None:
        read, root, schema = framed.read, framed.root, framed.schema
        assert read is not None
        assert root is not None
        assert schema is not None
        times = _times(added)
        sources = added.sources
        has_log = {"file", "pos"} <= sources.keys() and "server_id" not in sources
        if times is None or has_log or ("commit_lsn" in sources and "change_lsn" not in sources):
            return None
        roles, unit = times
        members: dict[str, Any] = {}
        extra: dict[Path, Extra] = {}
        for name, field in added.fields.items():
            bare = name.removeprefix(SOURCE)
            is_name = bare in _NAMES and not self._by_topic
            if name == "op":
                members[field] = "op"
            elif name == "deleted":
                members[field] = "is_deleted"
            elif bare in _SAME or is_name:
                members[field] = _NAMES.get(bare, "same")
            else:
                members[field] = roles.get(name, "extra")
                if bare not in SPENT:
                    extra[field,] = Extra(bare)
        of_headers = _unused("headers", {field["field"] for field in schema.fields})
        members[of_headers] = dict.fromkeys(added.given_sources, "extra")
        for name, value in added.given_sources.items():
            if name not in SPENT:
                extra[of_headers, name] = Extra(name, default=value)
        columns = schema.row_fields() or {}
        connector = sources.get("connector")

        def encodings(payload: bytes, table: TableSchema) -> dict[str, Encoding]:
            known: Any = added.given_sources.get("connector")
            if connector is not None:
                known = read(payload).get(connector)
            profile = profile_of(self._profiles, known, table.schema)
            return {
                column.name: of_column(column, columns[column.name], profile)
                for column in table.columns
                # A key may have columns that are called like added fields.
                if column.name not in members
            }

        return attrs.evolve(
            self._base,
            members=members,
            ops=ops,
            encodings=encodings,
            deleted_row="after",
            extra=lambda _: extra,
            limits=place.limits_in(sources),
            times=unit,
            connect=False,
            log=log_in({name: (field,) for name, field in sources.items()}),
            avro=Avro(plain_schema(root, framed.names), has_columns=True, table=place.names),
        )


@attrs.frozen
class _Added:
    """Added facts by their names without prefix: fields, and values of headers."""

    fields: Mapping[str, str]
    given: Mapping[str, Any]

    @property
    def sources(self) -> dict[str, str]:
        """Fields by their names in an envelope's ``source``."""
        return {name.removeprefix(SOURCE): field for name, field in self.fields.items()}

    @property
    def given_sources(self) -> dict[str, Any]:
        """Values of headers by their names in an envelope's ``source``."""
        return {name.removeprefix(SOURCE): value for name, value in self.given.items()}


@attrs.frozen
class _Place:
    """Database, schema, table, and the connector's prefix of topics; None for those in fields."""

    names: tuple[str | None, str | None, str | None]
    stream: str | None

    @classmethod
    def of(cls, origin: Origin, of_fields: frozenset[str]) -> _Place:
        database = None if "db" in of_fields else origin.database
        schema = None if "schema" in of_fields else origin.schema or ""
        table = None if "table" in of_fields else origin.table
        return cls((database, schema, table), None if "name" in of_fields else origin.stream)

    def limits_in(
        self, fields: Mapping[str, str]
    ) -> Callable[[Mapping[str, Any], SchemaStore], Mapping[Path, tuple[int, int]] | None]:
        """No limits, unless a schema is from DDL: the decoder finds it by the position."""

        def limits(
            envelope: Mapping[str, Any], schemas: SchemaStore
        ) -> Mapping[Path, tuple[int, int]] | None:
            database, schema, table, stream = (
                envelope.get(fields[name]) or "" if given is None else given
                for name, given in zip((*_NAMES, "name"), (*self.names, self.stream), strict=True)
            )
            known = schemas.find(database, table, None, schema=schema or None, stream=stream)
            return {} if known is None else None

        return limits


def _is_record(framed: FramedSchema) -> bool:
    """Whether messages are records, and cannot be anything else."""
    schema = framed.schema
    assert schema is not None
    names = {field["field"] for field in schema.fields}
    is_other = "source" in names and not names.isdisjoint(("op", "ddl", "before", "after"))
    is_other = is_other or names >= TRANSACTION_FIELDS or names == {"ts_ms"}
    return not (is_other or schema.is_flinks or schema.name == HEARTBEAT_SCHEMA or not names)


def _name_of(field: str, prefix: str) -> str | None:
    """The name of an added field without prefix; None for a column."""
    if field == DELETED_FIELD:
        return "deleted"
    is_added = field.startswith(prefix) and field != prefix
    return field.removeprefix(prefix) if is_added else None


def _ops(added: _Added) -> Mapping[str, Op]:
    """The operations by their words, or that of all records; empty if it is not certain."""
    rows = {word: op for word, op in OP_OF_WORD.items() if op != "truncate"}
    if "deleted" not in added.fields:
        rows = {word: op for word, op in rows.items() if op != "delete"}
    if "op" in added.fields:
        return rows
    if "op" not in added.given:
        return {"": "upsert"}
    word = added.given["op"]
    return {"": rows[word]} if type(word) is str and word in rows else {}


def _times(added: _Added) -> tuple[dict[str, Any], tuple[int, int, int]] | None:
    """The roles of times, and their unit; None if there are two units, or nanoseconds alone."""
    roles: dict[str, Any] = {}
    units = set()
    for prefix, role in ((SOURCE, "source_time"), ("", "other_time")):
        there = [name for name in _TIME_FIELDS if prefix + name in added.fields]
        if not there:
            continue
        # The finest one that is not null; the kernel leaves nulls to the decoder.
        if there[0] == "ts_ns":
            return None
        roles[prefix + there[0]] = role
        units.add(FINER_TIMES if there[0] == "ts_us" else TIMES)
    if len(units) > 1:
        return None
    return roles, units.pop() if units else TIMES


def _unused(name: str, names: set[str]) -> str:
    while name in names:
        name += "_"
    return name
