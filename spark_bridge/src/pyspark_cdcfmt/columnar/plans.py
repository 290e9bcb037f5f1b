"""What is learned from one message: how its like are read and become columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

import attrs
import orjson

from cdcfmt_core.avro_layout import AvroLayout
from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.events import Column, Message, RowChange, TableSchema
from cdcfmt_core.layout import Layout, Parsers
from pyspark_cdcfmt.columnar.columns import WireColumn, column_check, column_converter
from pyspark_cdcfmt.columnar.converters import ColumnConverter
from pyspark_cdcfmt.columnar.framing import learn_framing
from pyspark_cdcfmt.columnar.json_tokens import token_converter
from pyspark_cdcfmt.columnar.kinds import Kind, kind_of
from pyspark_cdcfmt.columnar.scan_plans import ScanLearner, ScanPlan
from pyspark_cdcfmt.columnar.split_events import make_event_reader, read_example
from pyspark_cdcfmt.columnar.structs import Unlike
from pyspark_cdcfmt.columnar.variant_tokens import variant_converter
from pyspark_cdcfmt.columnar.wanted import Shape, Told
from pyspark_cdcfmt.columnar.wire import Images, MessageReader, make_reader
from pyspark_cdcfmt.columnar.zoned import ZoneNames, zoned_type
from pyspark_cdcfmt.policy import ValuePolicy
from pyspark_cdcfmt.row_bytes import REPEATED_SHARE, table_bytes, value_bytes
from pyspark_cdcfmt.variant import encode_variant

_COLUMN_BYTES = 350
"""Of the types that a column's values were seen to have, beside its schema."""

_MAX_COLUMNS = 5_000
"""MySQL has 4 096 in a table.  The time that some parsers take to make grows with its square."""

_REPEATED = 1024
_MOST_NULLS = 64
"""Bounds of messages by columns; the reference path's are wider."""


@attrs.frozen(eq=False)
class Plan:
    """Reads the messages that are like the one it was learned from.

    ``columns`` are the converters of the schema's columns, with the place of their cells in
    a row of ``width``; ``checked`` is the same for keys that are no columns; ``absent`` are
    the columns that the wire does not send; ``surplus`` the places of cells that no column
    takes and that must be NULL; ``noted`` those of cells that are counted if they equal a
    value, under which text; ``keys`` those of the key, where a change of it matters; ``keyed``
    says that the table has a key.
    ``zoned`` are the places of cells that are texts with their zones.
    ``source`` is the protocol, where ``_source`` is wanted.
    ``repeats`` are the bytes that every row repeats, ``row_bytes`` those of a row of NULLs.
    ``event``: for the events shape; ``columns`` then make what images are put together from, and
    ``signless`` are the places of cells that must not be below zero.
    """

    layout: Layout
    reader: MessageReader
    columns: Mapping[str, tuple[int, ColumnConverter]]
    checked: Sequence[tuple[int, ColumnConverter]]
    absent: tuple[str, ...]
    surplus: tuple[int, ...]
    noted: Sequence[tuple[int, Any, str]]
    keys: tuple[int, ...]
    keyed: bool
    before_updates: bool
    width: int
    event: Told | None = None
    source: str | None = None
    signless: tuple[int, ...] = ()
    zoned: tuple[int, ...] = ()
    repeats: int = 0
    row_bytes: int = 0

    def is_too_much(self, rows: int, size: int) -> bool:
        """Whether the rows of a message of this size are for the reference path to bound."""
        if rows * self.repeats > REPEATED_SHARE * size + rows * _REPEATED:
            return True
        return rows * self.row_bytes > _MOST_NULLS * size


class Learner:
    """Makes plans; what JSON types a column has had is remembered from plan to plan."""

    def __init__(self, protocol: str, layouts: Sequence[Layout | AvroLayout], shape: Shape) -> None:
        self._protocol = protocol
        self._layouts = layouts
        self._scans = ScanLearner(shape)
        self._shape = shape
        self._seen: Cache[TableSchema, dict[str, set[type]]] = Cache(16 << 20)
        self._zone_names = ZoneNames()
        self._source = protocol if shape.source else None

    def learn(self, message: Message, changes: Sequence[RowChange]) -> Plan | ScanPlan:
        """The plan of a message of these row changes, all with one table schema.

        :raises Unlike: if such messages are for the reference path.
        """
        if len(changes[0].table.columns) > _MAX_COLUMNS:
            raise Unlike("it has more columns than databases allow")
        reasons = []
        for layout in self._layouts:
            try:
                if isinstance(layout, AvroLayout):
                    scan = self._scans.learn(layout, message.value or b"", changes[0].table)
                    return self._of_rows(scan, layout, changes)
                plan = self._learn(layout, message, changes[0].table)
                return self._of_rows(plan, layout, changes)
            except Unlike as error:
                reasons.append(str(error))
        raise Unlike("; ".join(reasons))

    def _of_rows(
        self, plan: Plan | ScanPlan, layout: Layout | AvroLayout, changes: Sequence[RowChange]
    ) -> Plan | ScanPlan:
        repeats, event = table_bytes(changes[0].table), None
        if self._shape.events:
            event = self._told(layout, changes)
            repeats += value_bytes(changes[0].extra or {})
        return attrs.evolve(
            plan,
            event=event,
            source=self._source,
            repeats=repeats,
            row_bytes=self._shape.row_bytes,
        )

    def _learn(self, layout: Layout, message: Message, table: TableSchema) -> Plan:
        if layout.split is not None:
            return self._learn_events(layout, message, table)
        value = message.value or b""
        if not value.startswith(layout.begins):
            raise Unlike("it begins otherwise")
        framing = learn_framing(layout, value, message.key)
        document = value[len(framing.head) : len(value) - len(framing.tail)]
        try:
            wire = orjson.loads(document)
        except orjson.JSONDecodeError as error:
            raise Unlike("it takes the exact parser") from error
        if type(wire) is not dict:
            raise Unlike("it is no object")
        columns = {column.name: column for column in table.columns}
        rows = _checked_rows(layout, wire, columns)
        limits = {} if layout.limits is None else layout.limits(wire, self._shape.schemas)
        if limits is None:
            raise Unlike("nobody can tell how long its schema holds")
        kinds = self._kinds(layout, table, rows)
        images = _images(self._shape, table, kinds)
        zone_names = self._zone_names.find(layout.zoned, table, rows)
        if layout.zoned is not None and zone_names:
            zoned = {name: zoned_type(layout.zoned, zone) for name, zone in zone_names.items()}
            images = attrs.evolve(images, types={**images.types, **zoned})
        reader = make_reader(layout, wire, images, self._shape.event_filter, limits, framing)
        if not reader.paths.keys() >= {"op", "after"} or not (
            reader.paths.keys() & {"commit_ts", "source_time"}
        ):
            raise Unlike("it lacks what every message of rows has")
        try:
            reader.read((value,), (message.key,))
        except Exception as error:
            raise Unlike(f"it is unusual itself: {error}") from error
        plan = _plan(self._shape, layout, reader, images, value, table, kinds, zone_names)
        unsure = [images.wanted[place] for place in plan.signless]
        if any(type(row.get(name)) is int and row[name] < 0 for row in rows for name in unsure):
            raise Unlike("its extra tells of its values")
        return plan

    def _learn_events(self, layout: Layout, message: Message, table: TableSchema) -> Plan:
        example = read_example(layout, message, table)
        kinds = self._kinds(layout, table, example.rows)
        images = _images(self._shape, table, kinds)
        limits = layout.limits(example.key, self._shape.schemas) if layout.limits else {}
        if limits is None:
            raise Unlike("nobody can tell how long its schema holds")
        reader = make_event_reader(layout, example, images, self._shape.event_filter, table, limits)
        if "commit_ts" not in reader.paths:
            raise Unlike("it lacks what every message of rows has")
        value = message.value or b""
        try:
            # All of its events are like the first one, then.
            reader.read((value,), (message.key,))
        except Exception as error:
            raise Unlike(f"it is unusual itself: {error}") from error
        return _plan(self._shape, layout, reader, images, value, table, kinds, {})

    def _told(self, layout: Layout | AvroLayout, changes: Sequence[RowChange]) -> Told:
        first = changes[0]
        # What may differ in Avro's is none of a plan's.
        tells = isinstance(layout, AvroLayout) or layout.tells_extra
        if not tells or any(change.extra != first.extra for change in changes):
            raise Unlike("nobody can tell what is in extra")
        keys = self._shape.key_of(first.table)
        extra = encode_variant(first.extra) if first.extra else None
        return Told(self._protocol, first.table, keys, extra)

    def _kinds(
        self, layout: Layout, table: TableSchema, rows: Sequence[Mapping[str, Any]]
    ) -> dict[str, Kind]:
        if layout.texts:
            return {column.name: Kind.TEXT for column in table.columns}
        seen = self._seen.get(table)
        if seen is None:
            seen = self._seen.add(table, {}, table_size(table, _COLUMN_BYTES))
        for row in rows:
            for name, value in row.items():
                if value is not None:
                    seen.setdefault(name, set()).add(type(value))
        return {
            column.name: kind_of(seen.get(column.name, set()), column.type)
            for column in table.columns
        }


def _checked_rows(
    layout: Layout, wire: Mapping[str, Any], columns: Mapping[str, Column]
) -> list[dict[str, Any]]:
    """All images of the message; Unlike, if the schema depends on more than a plan compares."""
    rows: list[dict[str, Any]] = []
    for role in ("after", "before"):
        name = next(name for name, known in layout.members.items() if known == role)
        images = wire.get(name)
        if images is None:
            continue
        some = images if layout.in_lists else [images]
        if type(some) is not list or any(type(row) is not dict for row in some):
            raise Unlike(f"{name} holds no rows")
        whole = role == "after" or not layout.completes_before
        if any(whole and row.keys() != columns.keys() for row in some):
            raise Unlike("its rows have other columns than its schema")
        rows += some
    if layout.column_types is not None:
        types = wire.get(layout.column_types)
        if type(types) is not dict:
            raise Unlike("it tells no types")
        for name in columns:
            text = types.get(name)
            if type(text) is not str or not text.strip():
                raise Unlike(f"it does not tell the type of {name}")
    return rows


def _images(shape: Shape, table: TableSchema, kinds: Mapping[str, Kind]) -> Images:
    names = table.column_names
    found = {field.name for field in shape.own_of(table).values()}
    return Images(
        names=names,
        types={name: kind.json_type for name, kind in kinds.items()},
        wanted=shape.wanted_of(table),
        keys=shape.keys_of(table),
        unknown=tuple(field.name for field in shape.fields if field.name not in found),
        before_updates=shape.projection.before_updates,
        tell_extra=shape.events is not None,
    )


def _plan(
    shape: Shape,
    layout: Layout,
    reader: MessageReader,
    images: Images,
    value: bytes,
    table: TableSchema,
    kinds: Mapping[str, Kind],
    zone_names: Mapping[str, str],
) -> Plan:
    # What these do to values is counted here only to be noticed.
    noticed: Counter[str] = Counter()
    own_zone = shape.policy.time_zone
    assert layout.parsers is not None
    parsers = dict(layout.parsers(value, table, own_zone, noticed))
    zones: dict[str, tzinfo] = {}
    for name, zone_name in zone_names.items():
        assert layout.zoned is not None
        zones[name] = layout.zoned.find(zone_name, own_zone)
        parsers[name] = layout.parsers(value, table, zones[name], noticed)[name]
    cells = {}
    for column in table.columns:
        kind, parser = kinds[column.name], parsers[column.name]
        only_text = kind is Kind.TEXT and parser.text is not None
        cells[column.name] = WireColumn(
            column,
            kind,
            layout.texts or (only_text and parser.mysql_text),
            parser.text if only_text else parser.parse,
            noticed,
            zones.get(column.name, own_zone),
            parser.plain,
        )
    places = {name: place for place, name in enumerate(images.wanted)}
    zoned = tuple(place for name, place in places.items() if name in zones)
    if shape.events:
        to_image: Callable[[WireColumn, TableSchema, ValuePolicy], ColumnConverter]
        to_image = token_converter if shape.events == "json" else variant_converter
        return Plan(
            layout=layout,
            reader=reader,
            columns={
                name: (place, to_image(cells[name], table, shape.policy))
                for name, place in places.items()
            },
            checked=(),
            absent=(),
            surplus=(),
            noted=_noted(parsers, places),
            keys=tuple(places[name] for name in images.keys) if shape.split else (),
            keyed=shape.is_keyed(table),
            before_updates=images.before_updates,
            width=len(images.wanted),
            signless=tuple(places[name] for name, parser in parsers.items() if parser.signless),
            zoned=zoned,
        )
    own = shape.own_of(table)
    return Plan(
        layout=layout,
        reader=reader,
        columns={
            field.name: (
                places[name],
                column_converter(cells[name], field, shape.arrow[field.name], shape.policy),
            )
            for name, field in own.items()
            if name in places
        },
        checked=[
            (places[name], column_check(cells[name])) for name in images.wanted if name not in own
        ],
        absent=images.unknown,
        surplus=tuple(places[name] for name in images.wanted if shape.inferred and name not in own),
        noted=_noted(parsers, places),
        keys=tuple(places[name] for name in images.keys) if shape.split else (),
        keyed=shape.is_keyed(table),
        before_updates=images.before_updates,
        width=len(images.wanted),
        zoned=zoned,
    )


def _noted(parsers: Parsers, places: Mapping[str, int]) -> list[tuple[int, Any, str]]:
    return [
        (places[name], parser.noted, parser.note)
        for name, parser in parsers.items()
        if parser.note is not None and name in places
    ]
