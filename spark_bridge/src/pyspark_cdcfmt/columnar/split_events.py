"""Typed readers of messages that hold many events, each a key and a value of images.

As :mod:`~pyspark_cdcfmt.columnar.wire`, but the cells of an image are objects: one member is
the value, and the others, which make up the table's schema, are what they are in the example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import msgspec
import orjson
from msgspec import Struct
from msgspec.structs import astuple

from cdcfmt_core.events import Message, TableSchema
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.layout import Layout, Split
from pyspark_cdcfmt.columnar.structs import INT64, UNSET, Unlike, mirror, same, struct
from pyspark_cdcfmt.columnar.wire import Images, Limits, MessageReader, Path, commit_ts_type


class Event(Struct, gc=False):
    """A row change, named as in all structs, by places: key, word, and the cells of images."""

    f0: Any
    f1: str
    f2: tuple[Any, ...] | None
    f3: tuple[Any, ...] | None


_PLACES: Mapping[str, Path] = {"op": (1,), "before": (2,), "after": (3,)}


@attrs.frozen
class Example:
    """The first event of a message: its key and an image, cells as they are in JSON.

    ``rows`` are the values of all images in the message.
    """

    key: Mapping[str, Any]
    cells: Mapping[str, Mapping[str, Any]]
    rows: Sequence[Mapping[str, Any]]


def read_example(layout: Layout, message: Message, table: TableSchema) -> Example:
    """The first event of a message whose row changes have this schema.

    :raises Unlike: if the schema depends on more than a reader compares.
    """
    assert layout.split is not None
    if message.key is None or message.value is None:
        raise Unlike("it holds no events")
    keys, values, _ = layout.split((message.key,), (message.value,))
    try:
        events = [
            (orjson.loads(key), orjson.loads(value))
            for key, value in zip(keys, values, strict=True)
        ]
    except orjson.JSONDecodeError as error:
        raise Unlike("it takes the exact parser") from error
    images: list[Mapping[str, Any]] = []
    for key, value in events:
        if type(key) is not dict or type(value) is not dict:
            raise Unlike("an event is no object")
        names = {role: key.get(name) or "" for name, role in _roles(layout, "key").items()}
        if (names.get("database"), names.get("table")) != (table.database, table.table):
            raise Unlike("it holds another table's events, too")
        images += [image for image in value.values() if image is not None]
    if not images or any(type(image) is not dict for image in images):
        raise Unlike("it holds no rows")
    rows = [_values_of(layout, image) for image in images]
    if rows[0].keys() != set(table.column_names):
        raise Unlike("its rows have other columns than its schema")
    return Example(events[0][0], images[0], rows)


def _values_of(layout: Layout, image: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {name: cell[layout.cell] for name, cell in image.items()}
    except (KeyError, TypeError) as error:
        raise Unlike("a column has no value") from error


def make_event_reader(
    layout: Layout,
    example: Example,
    images: Images,
    event_filter: EventFilter,
    table: TableSchema,
    limits: Limits,
) -> MessageReader:
    """The reader of messages whose events are like this one.

    :raises Unlike: if it is no event that this path can read.
    """
    assert layout.split is not None
    paths = dict(_PLACES)
    nevers: list[Path] = []
    try:
        decode_key = msgspec.json.Decoder(
            _key_type(layout, example, event_filter, limits, paths, nevers)
        )
        decode_value = msgspec.json.Decoder(_value_type(layout, example, images, table))
    except (TypeError, ValueError) as error:
        raise Unlike(str(error)) from error
    places = _places_of_cells(layout, example, images)
    if not places:
        raise Unlike("no column of it is wanted")
    width = len(images.wanted)
    has_row_id = any(_roles(layout, "key").get(name) == "row_id" for name in example.key)
    return MessageReader(
        _reads(layout.split, decode_key.decode, decode_value.decode, places),
        paths,
        tuple(nevers),
        batched=False,
        partial=layout.completes_before,
        flags=range(width, len(places)),
        hides=width < len(images.names),
        doubts_nulls="row_id" in _roles(layout, "key").values() and not has_row_id,
    )


def _reads(
    split: Split,
    decode_key: Callable[[bytes], Struct],
    decode_value: Callable[[bytes], Struct],
    places: Sequence[tuple[int, int]],
) -> Callable[[Sequence[bytes], Sequence[bytes | None]], tuple[list[Any], list[int] | None]]:
    cells_of = _getter(places)

    def old_cells(image: Struct) -> tuple[Any, ...]:
        try:
            return cells_of(image)
        except AttributeError:
            cells = astuple(image)
            return tuple(
                UNSET if cells[column] is UNSET else astuple(cells[column])[member]
                for column, member in places
            )

    def read(
        values: Sequence[bytes], keys: Sequence[bytes | None]
    ) -> tuple[list[Any], list[int] | None]:
        event_keys, event_values, counts = split(keys, values)
        events: list[Event] = []
        add = events.append
        # Structs are of no use beyond this loop: the next ones take their place in the cache.
        for key, value in zip(event_keys, event_values, strict=True):
            told = decode_key(key)
            images: Any = decode_value(value)
            after, before, deleted = images.f0, images.f1, images.f2
            if deleted is UNSET:
                if before is UNSET:
                    add(Event(told, "after", None, cells_of(after)))
                else:
                    add(Event(told, "before", old_cells(before), cells_of(after)))
            elif after is UNSET and before is UNSET:
                add(Event(told, "deleted", cells_of(deleted), None))
            else:
                raise ValueError("a deleted row with new or old values")
        return events, counts

    return read


def _getter(places: Sequence[tuple[int, int]]) -> Callable[[Struct], tuple[Any, ...]]:
    # The interpreter learns where each of these attributes lies, which attrgetter looks up.
    cells = "".join(f"image.f{column}.f{member}, " for column, member in places)
    getter: Callable[[Struct], tuple[Any, ...]] = eval(f"lambda image: ({cells})")
    return getter


def _roles(layout: Layout, part: str) -> Mapping[str, str]:
    roles = layout.members[part]
    assert isinstance(roles, Mapping)
    return {name: role for name, role in roles.items() if isinstance(role, str)}


def _key_type(
    layout: Layout,
    example: Example,
    event_filter: EventFilter,
    limits: Limits,
    paths: dict[str, Path],
    nevers: list[Path],
) -> type[Struct]:
    fields: list[tuple[str, Any]] = []
    for place, (name, value) in enumerate(example.key.items()):
        role = _roles(layout, "key").get(name)
        type_: Any = None
        if role in ("database", "table", "same", "row"):
            type_ = same(value)
        elif role == "commit_ts":
            paths[role] = (0, place)
            type_ = commit_ts_type(event_filter, limits.get((name,)))
        elif role == "row_id" and type(value) is int:
            type_ = INT64
        elif role == "never":
            nevers.append((0, place))
            type_ = bool | None
        elif role in ("extra", "integer"):
            type_ = mirror(value)
        else:
            raise Unlike(f"no such member {name} is known")
        fields.append((name, type_))
    return struct(fields)


def _value_type(
    layout: Layout, example: Example, images: Images, table: TableSchema
) -> type[Struct]:
    hidden = [name for name in images.names if name not in images.wanted]
    columns = [
        (name, _cell_type(layout, images, name, example.cells[name]))
        for name in (*images.wanted, *hidden)
    ]
    row = struct(columns)
    part = struct(
        [(name, type_ | msgspec.UnsetType) for name, type_ in columns],
        optional=[name for name, _ in columns],
    )
    # Where every column is the key's, a deleted row may be reduced to its key or not.
    whole_deletes = "deleted" in layout.ops and not all(column.key for column in table.columns)
    types: dict[str, Any] = {
        "after": row | msgspec.UnsetType,
        "before": (part if layout.completes_before else row) | msgspec.UnsetType,
        "deleted": row | msgspec.UnsetType if whole_deletes else msgspec.UnsetType,
    }
    names = {role: name for name, role in _roles(layout, "value").items()}
    return struct([(names[role], types[role]) for role in types], optional=list(names.values()))


def _cell_type(layout: Layout, images: Images, name: str, cell: Mapping[str, Any]) -> type[Struct]:
    fields: list[tuple[str, Any]] = []
    for member, value in cell.items():
        if member == layout.cell:
            fields.append((member, images.types[name] if name in images.wanted else msgspec.Raw))
        elif type(value) is not bool:
            fields.append((member, same(value)))
        elif value and name in images.wanted:
            # No type holds only true: Cells looks.
            fields.append((member, bool))
        else:
            raise Unlike(f"a flag of {name} that nobody looks at")
    return struct(fields)


def _places_of_cells(layout: Layout, example: Example, images: Images) -> list[tuple[int, int]]:
    """Where the values of the wanted columns lie, and behind them flags: column and member."""
    values: list[tuple[int, int]] = []
    flags: list[tuple[int, int]] = []
    for place, name in enumerate(images.wanted):
        for at, (member, value) in enumerate(example.cells[name].items()):
            if member == layout.cell:
                values.append((place, at))
            elif type(value) is bool:
                flags.append((place, at))
    return values + flags
