"""What is learned from one message: how its like are read and become columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import orjson
import pyarrow as pa
from pyspark.sql.types import StructField

from cdcfmt_core.codec import Projection
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.layout import Layout
from pyspark_cdcfmt.columnar.cells import ColumnConverter, column_check, column_converter
from pyspark_cdcfmt.columnar.wire import Images, MessageReader, Unlike, make_reader
from pyspark_cdcfmt.policy import ValuePolicy


@attrs.frozen
class Shape:
    """What is wanted of every table: ``fields`` are the user columns of the schema.

    ``inferred``: a column that the schema lacks is a change of the table's schema.
    ``split``: an update of the key is two changes, which the reference path makes.
    """

    fields: Sequence[StructField]
    arrow: Mapping[str, pa.DataType]
    projection: Projection
    event_filter: EventFilter
    policy: ValuePolicy
    inferred: bool
    split: bool


@attrs.frozen(eq=False)
class Plan:
    """Reads the messages that are like the one it was learned from.

    ``columns`` are the converters of the schema's columns, with the place of their cells in
    a row of ``width``; ``checked`` is the same for keys that are no columns; ``absent`` are
    the columns that the wire does not send; ``surplus`` the places of cells that no column
    takes and that must be NULL; ``keys`` those of the key, where a change of it matters.
    """

    layout: Layout
    reader: MessageReader
    columns: Mapping[str, tuple[int, ColumnConverter]]
    checked: Sequence[tuple[int, ColumnConverter]]
    absent: tuple[str, ...]
    surplus: tuple[int, ...]
    keys: tuple[int, ...]
    before_updates: bool
    width: int


def learn_plan(layout: Layout, value: bytes, table: TableSchema, shape: Shape) -> Plan:
    """The plan of a message of rows, whose table schema is ``table``.

    :raises Unlike: if such messages are for the reference path.
    """
    if not value.startswith(layout.begins):
        raise Unlike("it begins otherwise")
    try:
        wire = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise Unlike("it takes the exact parser") from error
    columns = {column.name: column for column in table.columns}
    _check(layout, wire, columns)
    projection = shape.projection
    key_columns = projection.key_columns or table.key_columns
    wanted = tuple(columns)
    if projection.columns is not None:
        looked_at = projection.columns.union(key_columns)
        wanted = tuple(name for name in columns if name in looked_at)
    own = {field.name for field in shape.fields}
    images = Images(
        names=tuple(columns),
        wanted=wanted,
        keys=tuple(name for name in key_columns if name in columns),
        unknown=tuple(field.name for field in shape.fields if field.name not in columns),
        before_updates=projection.before_updates,
    )
    reader = make_reader(layout, wire, images, shape.event_filter)
    if not reader.paths.keys() >= {"op", "after"} or not (
        reader.paths.keys() & {"commit_ts", "source_time"}
    ):
        raise Unlike("it lacks what every message of rows has")
    try:
        reader.decode(value)
    except Exception as error:
        raise Unlike(f"it is unusual itself: {error}") from error
    places = {name: place for place, name in enumerate(wanted)}
    return Plan(
        layout=layout,
        reader=reader,
        columns={
            field.name: (
                places[field.name],
                column_converter(
                    columns[field.name], field, shape.arrow[field.name], layout, shape.policy
                ),
            )
            for field in shape.fields
            if field.name in columns
        },
        checked=[
            (places[name], column_check(columns[name], layout, shape.policy))
            for name in wanted
            if name not in own
        ],
        absent=images.unknown,
        surplus=tuple(places[name] for name in wanted if shape.inferred and name not in own),
        keys=tuple(places[name] for name in images.keys) if shape.split else (),
        before_updates=projection.before_updates,
        width=len(wanted),
    )


def _check(layout: Layout, wire: Any, columns: Mapping[str, Column]) -> None:
    """Unlike, if the schema depends on more than what a plan compares."""
    for row in _rows(wire, layout, "after"):
        if row.keys() != columns.keys():
            raise Unlike("its rows have other columns than its schema")
    if layout.column_types is not None:
        types = wire.get(layout.column_types)
        if type(types) is not dict:
            raise Unlike("it tells no types")
        for name in columns:
            text = types.get(name)
            if type(text) is not str or not text.strip():
                raise Unlike(f"it does not tell the type of {name}")


def _rows(wire: Any, layout: Layout, role: str) -> list[dict[str, Any]]:
    name = next(name for name, known in layout.members.items() if known == role)
    images = wire.get(name)
    rows = images if layout.in_lists else [images]
    if type(rows) is not list or not rows or any(type(row) is not dict for row in rows):
        raise Unlike(f"{name} holds no rows")
    return rows
