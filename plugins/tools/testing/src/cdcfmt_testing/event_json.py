"""Events as readable, lossless JSON (``events.json`` of a case).

The text holds the table schemas once, under a name, and the events of each message::

    {"tables": {"shop.orders": {"columns": [...], "key_columns": ["id"]}},
     "messages": [[{"kind": "row", "op": "insert", "table": "shop.orders",
                    "after": {"id": 1, "price": {"decimal": "1.50"}, "note": null}}]]}

NULL, booleans, integers, floats, text and lists are plain JSON; any other value is an object of
one member, named after its type (:data:`_TAGGED`).  Fields with their default value are left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import attrs

from cdcfmt_core.errors import DecodeError, join_names
from cdcfmt_core.events import KIND_OF, Corrupt, Event, Image, RowChange, TableSchema
from cdcfmt_core.types import GeometryValue, IntervalValue, InvalidValue
from cdcfmt_mysql.temporal import format_time, parse_time
from cdcfmt_toolkit.intervals import (
    interval_text,
    parse_interval,
    parse_time_tz,
    time_tz_text,
)
from cdcfmt_toolkit.schema_json import table_from_dict, table_to_dict

_CLASSES: Final = {kind: class_ for class_, kind in KIND_OF.items()}
_SCHEMA_FIELDS: Final = ("table_schema", "previous_table_schema")
_DEFAULTS: Final[dict[str, Any]] = {"nullable": None, "key": False, "flags": []}
_POSITION: Final = ("protocol", "topic", "path", "partition", "offset")


def events_to_json(messages: Iterable[Iterable[Event]]) -> str:
    """The events of each message as text; equal events give equal text."""
    tables = _Tables()
    listed = [[_event_to_dict(event, tables) for event in events] for events in messages]
    return _layout(tables.described, listed)


def events_from_json(text: str | bytes) -> list[list[Event]]:
    """The events of each message, from a text of :func:`events_to_json`.

    :raises ValueError: if it is invalid; names the message and event.
    """
    wire = json.loads(text)
    try:
        tables = {name: _table_from_dict(name, table) for name, table in wire["tables"].items()}
        messages = wire["messages"]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"the text has no tables and messages ({error!r})") from error
    return [
        [_read_event(event, tables, f"messages[{i}][{j}]") for j, event in enumerate(events)]
        for i, events in enumerate(messages)
    ]


def value_to_json(value: Any) -> Any:
    """A value of an image or of ``extra`` as JSON.

    :raises TypeError: for a value that images cannot hold.
    """
    if type(value) is float and not (math.isfinite(value)):
        return {"float": repr(value)}
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [value_to_json(item) for item in value]
    for tag, (class_, write, _) in _TAGGED.items():
        if type(value) is class_:
            return {tag: write(value)}
    raise TypeError(f"an event cannot hold a {type(value).__name__}: {value!r}")


def value_from_json(wire: Any) -> Any:
    """The value that :func:`value_to_json` wrote."""
    if isinstance(wire, list):
        return [value_from_json(item) for item in wire]
    if isinstance(wire, dict):
        ((tag, text),) = wire.items()
        return float(text) if tag == "float" else _TAGGED[tag][2](text)
    return wire


def _members_to_json(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value_to_json(item) for name, item in value.items()}


def _members_from_json(wire: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value_from_json(item) for name, item in wire.items()}


def _geometry_to_json(value: GeometryValue) -> dict[str, Any]:
    return {**value._asdict(), "wkb": None if value.wkb is None else value.wkb.hex()}


def _geometry_from_json(wire: Mapping[str, Any]) -> GeometryValue:
    wkb = wire["wkb"]
    return GeometryValue(wire["srid"], None if wkb is None else bytes.fromhex(wkb), wire["wkt"])


_TAGGED: Final[dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]]] = {
    "decimal": (Decimal, str, Decimal),
    "hex": (bytes, bytes.hex, bytes.fromhex),
    "date": (date, date.isoformat, date.fromisoformat),
    # With a UTC offset it is an instant, otherwise a wall clock.
    "datetime": (datetime, datetime.isoformat, datetime.fromisoformat),
    "time": (timedelta, format_time, parse_time),
    "uuid": (UUID, str, UUID),
    "interval": (IntervalValue, interval_text, parse_interval),
    "time_tz": (time, time_tz_text, parse_time_tz),
    "object": (dict, _members_to_json, _members_from_json),
    "tuple": (tuple, lambda value: value_to_json(list(value)), lambda w: tuple(value_from_json(w))),
    "geometry": (GeometryValue, _geometry_to_json, _geometry_from_json),
    "invalid": (InvalidValue, lambda value: value.text, InvalidValue),
}


class _Tables:
    """Names for table schemas; equal ones share a name."""

    def __init__(self) -> None:
        self.described: dict[str, dict[str, Any]] = {}

    def name(self, table: TableSchema) -> str:
        described = table_to_dict(table)
        described["columns"] = [
            {k: v for k, v in column.items() if k not in _DEFAULTS or v != _DEFAULTS[k]}
            for column in described["columns"]
        ]
        if table.schema is None:
            del described["schema"]
        name = full = f"{table.database}.{table.table}"
        number = 1
        while self.described.get(name, described) != described:
            number += 1
            name = f"{full} ({number})"
        self.described[name] = described
        return name


def _table_from_dict(name: str, wire: Mapping[str, Any]) -> TableSchema:
    try:
        columns = [{**_DEFAULTS, **column} for column in wire["columns"]]
        return table_from_dict({"schema": None, **wire, "columns": columns})
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"tables[{name!r}] is not a table schema ({error!r})") from error


def _event_to_dict(event: Event, tables: _Tables) -> dict[str, Any]:
    wire: dict[str, Any] = {"kind": KIND_OF[type(event)]}
    if isinstance(event, Corrupt):
        error = event.error
        known = {name: getattr(error, name) for name in ("reason", "field", "sample", *_POSITION)}
        wire |= {name: value for name, value in known.items() if value is not None}
        return wire | ({"index": event.index} if event.index else {})
    for field in attrs.fields(type(event)):
        value = getattr(event, field.name)
        if field.default is not attrs.NOTHING and value == field.default:
            continue
        if isinstance(value, TableSchema):
            wire[field.name] = tables.name(value)
        elif isinstance(value, Image):
            # In the order of the columns, whatever the order of the dictionary.
            order = {name: at for at, name in enumerate(_column_names(event))}
            names = sorted(value.values, key=lambda name: (order.get(name, len(order)), name))
            wire[field.name] = {name: value_to_json(value.values[name]) for name in names}
            if not value.complete:
                wire[f"{field.name}_complete"] = False
            if value.completed:
                wire[f"{field.name}_completed"] = list(value.completed)
        elif field.name == "extra":
            wire["extra"] = _members_to_json(dict(sorted(value.items())))
        elif value is not None:
            wire[field.name] = value_to_json(value)
    return wire


def _column_names(event: Event) -> tuple[str, ...]:
    return event.table.column_names if isinstance(event, RowChange) else ()


def _read_event(wire: Any, tables: Mapping[str, TableSchema], place: str) -> Event:
    try:
        return _event_from_dict(dict(wire), tables)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{place} is not an event ({error!r})") from error


def _event_from_dict(wire: dict[str, Any], tables: Mapping[str, TableSchema]) -> Event:
    class_: Any = _CLASSES[wire.pop("kind")]
    if class_ is Corrupt:
        index = wire.pop("index", 0)
        error = DecodeError(wire.pop("reason"), field=wire.pop("field", None))
        # As it is, not quoted again.
        error = error.at(**{name: wire.pop(name, None) for name in ("sample", *_POSITION)})
        if wire:
            raise ValueError(f"unknown parts of an error: {join_names(wire)}")
        return Corrupt(error, index)
    fields: dict[str, Any] = {}
    if class_ is RowChange:
        fields["table"] = tables[wire.pop("table")]
        for name in ("before", "after"):
            complete = wire.pop(f"{name}_complete", True)
            completed = tuple(wire.pop(f"{name}_completed", ()))
            values = wire.pop(name, None)
            fields[name] = (
                None if values is None else Image(_members_from_json(values), complete, completed)
            )
    for name in _SCHEMA_FIELDS:
        if name in wire:
            fields[name] = tables[wire.pop(name)]
    if "extra" in wire:
        fields["extra"] = _members_from_json(wire.pop("extra"))
    event: Event = class_(**fields, **{name: value_from_json(v) for name, v in wire.items()})
    return event


def _layout(tables: Mapping[str, Any], messages: list[list[dict[str, Any]]]) -> str:
    """One line per column, event and image, for readable diffs."""

    def text(value: Any) -> str:
        # ASCII, as text may hold bytes that are not UTF-8.
        return json.dumps(value)

    lines = ['{"tables": {']
    for number, (name, table) in enumerate(tables.items()):
        head = ", ".join(f"{text(k)}: {text(v)}" for k, v in table.items() if k != "columns")
        columns = ",\n    ".join(map(text, table["columns"]))
        end = "," if number < len(tables) - 1 else ""
        lines.append(f'  {text(name)}: {{{head}, "columns": [\n    {columns}]}}{end}')
    lines += ["},", '"messages": [']
    for number, events in enumerate(messages):
        end = "," if number < len(messages) - 1 else ""
        shown = ",\n    ".join(
            "{" + ",\n     ".join(_event_lines(event, text)) + "}" for event in events
        )
        lines.append(f"  [{shown}]{end}" if events else f"  []{end}")
    return "\n".join([*lines, "]}", ""])


def _event_lines(event: Mapping[str, Any], text: Callable[[Any], str]) -> list[str]:
    """The lines of an event: one with all scalars, one per object."""
    scalars = [f"{text(k)}: {text(v)}" for k, v in event.items() if not isinstance(v, dict)]
    objects = [f"{text(k)}: {text(v)}" for k, v in event.items() if isinstance(v, dict)]
    return [", ".join(scalars), *objects]
