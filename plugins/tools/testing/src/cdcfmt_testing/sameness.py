"""Compare events by content, where Python has several forms of equal content."""

from __future__ import annotations

import difflib
import json
import struct
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import attrs

from cdcfmt_core.events import Column, Event, Image, RowChange
from cdcfmt_core.types import Array, Float, LogicalType, Map, Struct, Vector
from cdcfmt_testing.event_json import events_to_json, value_to_json


def rendered(events: Iterable[Event]) -> str:
    """Events as text; equal events have equal text."""
    return events_to_json([events])


def canonical(event: Event) -> Event:
    """The event with index 0, and each value in one canonical form.

    A 32-bit float is rounded to 32 bits, and a decimal is written without exponent: 1E+3 equals
    1000, but 0 does not equal 0.00.
    """
    if isinstance(event, RowChange):
        columns = {column.name: column for column in event.table.columns}
        event = attrs.evolve(
            event,
            before=_canonical_image(event.before, columns),
            after=_canonical_image(event.after, columns),
        )
    return attrs.evolve(event, index=0)


def difference(
    expected: Sequence[Event], actual: Sequence[Event], names: tuple[str, str]
) -> str | None:
    """The differences, value by value; None if there are none."""
    texts = ["\n".join(_lines(canonical(event)) for event in side) for side in (expected, actual)]
    return None if texts[0] == texts[1] else text_difference(texts[0], texts[1], names)


def _lines(event: Event) -> str:
    """An event as text, with one line per value of its images."""
    if not isinstance(event, RowChange):
        return rendered([event])
    values = [
        f"{side} {name!r}: {json.dumps(value_to_json(value))}"
        for side, image in (("before", event.before), ("after", event.after))
        for name, value in sorted(image.values.items() if image is not None else ())
    ]
    # The values are listed below; the head still lists the completed ones.
    bare = [None if i is None else attrs.evolve(i, values={}) for i in (event.before, event.after)]
    head = rendered([attrs.evolve(event, before=bare[0], after=bare[1])])
    return "\n".join([head, *values])


def text_difference(expected: str, actual: str, names: tuple[str, str]) -> str:
    lines = difflib.unified_diff(
        expected.splitlines(), actual.splitlines(), *names, lineterm="", n=1
    )
    return "\n".join(lines)


def _canonical_image(image: Image | None, columns: dict[str, Column]) -> Image | None:
    if image is None:
        return None
    values = {
        name: _canonical_value(columns.get(name), value) for name, value in image.values.items()
    }
    return attrs.evolve(image, values=values, completed=tuple(sorted(image.completed)))


def _canonical_value(column: Column | None, value: Any) -> Any:
    return _canonical(value, None if column is None else column.type)


def _canonical(value: Any, logical: LogicalType | None) -> Any:
    if type(value) is Decimal:
        return Decimal(format(value, "f")) if value.is_finite() else value
    if type(value) is float and logical == Float(32):
        return _float32(value)
    if type(value) is list:
        if logical == Vector():
            return [_float32(number) for number in value]
        element = logical.element if isinstance(logical, Array) else None
        return [_canonical(item, element) for item in value]
    if type(value) is dict:
        fields = dict(logical.fields) if isinstance(logical, Struct) else {}
        inner = logical.value if isinstance(logical, Map) else None
        return {name: _canonical(item, fields.get(name, inner)) for name, item in value.items()}
    return value


def _float32(value: float) -> float:
    number: float
    (number,) = struct.unpack("<f", struct.pack("<f", value))
    return number
