"""Cells of PostgreSQL's connector beside the truth, and the list of what the connector loses.

What is a string in the message's schema, as numbers in decimal.handling.mode=string, is compared
as text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from cdcfmt_core.types import InvalidValue
from support.framed_cells import TrueRow, adjusted
from support.golden_data import GOLDEN, Bits, same
from support.postgres_values import (
    UNKNOWN_TYPES,
    WIRE_TYPES,
    Beyond,
    Settings,
    array_items,
    postgres_value,
    text_of_bytes,
    wire_value,
)

UNKNOWN_ARRAYS = frozenset({"interval[]", "money[]", "point[]", "xml[]"})
"""Types that are never sent."""
NOT_FINITE = {
    "NaN": "NAN",
    "Infinity": "POSITIVE_INFINITY",
    "-Infinity": "NEGATIVE_INFINITY",
}
"""Special values of numeric in ``decimal.handling.mode=string``."""
DEFAULTS = {
    ("evolve", "a"): "dflt",
    ("evolve", "u"): UUID(int=0),
    ("gen", "ab"): "x",
    ("later", "e"): "ok",
    ("later", "t"): datetime(1970, 1, 1, tzinfo=UTC),
    ("pk_full", "v"): "d",
    ("pair", "v"): "dflt",
    ("t_num", "c_bool"): True,
    ("t_num", "c_int"): 7,
    ("t_num", "c_num"): Decimal("1.50"),
    ("t_text", "c_vcn"): "dflt",
}
"""What a NULL in a column with a default is."""
FILLED = {
    # The default was dropped before.
    ("evolve", "a"): None,
    ("gen", "sm"): 0,
    ("pair", "n"): 7,
    ("ri_index", "id"): 0,
}
"""What an old row has in a column that its REPLICA IDENTITY lacks: this, the default, or null."""

# --- What the connector does not write -------------------------------------------------

LOST = {
    "default": "NULL in a column with a default arrives as the default",
    "zeros": "numeric without scale has no zeros at its end",
    "scale": "numeric of a negative scale has 2046 zeros",
    "nan": "NaN and infinities of numeric are null",
    "name": "the type name is null in the stream",
    "unavailable": "a TOAST value that did not change is not sent",
    "placeholder": "a TOAST value of bytea that did not change is null with binary mode base64",
    "unknown": "a column of this type is not sent",
    "generated": "generated columns are not sent in the stream",
    "filled": "a column that the REPLICA IDENTITY lacks has its default, or 0, in the old row",
    "millis": "time.precision.mode=connect has milliseconds",
    "stale": "a stale reference after DDL: new columns are missing or in the place of others",
    "nested": "arrays of arrays have no items",
    "bit[]": "arrays of bit are null",
    "null item": "an array of an enum or ltree with a NULL is null",
    "era": "date[] has no BC",
    "midnight": "time.precision.mode=isostring writes 24:00:00 as 00:00:00",
    "double": "decimal.handling.mode=double has the digits of a double",
    "nanos": "time.precision.mode=nanoseconds has no times before 1677 and after 2262",
    "changed": "types that ALTER TABLE changed: the value is as in the JSON",
}


def lsn_of(text: str | None) -> int | None:
    if text is None:
        return None
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def settings_of(variant: str, *, given: bool = False) -> Settings:
    """The settings of a golden set; ``given``: see :class:`Settings`."""
    text = (GOLDEN / "postgres" / variant / "connector.properties").read_text(encoding="utf-8")
    own = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    return Settings(
        own.get("time.precision.mode", "adaptive"),
        own.get("decimal.handling.mode", "precise"),
        own.get("interval.handling.mode", "numeric"),
        own.get("hstore.handling.mode", "json"),
        own.get("snapshot.mode", "initial"),
        own.get("value.converter.replace.null.with.default", "true") == "true",
        own.get("value.converter.decimal.format", "BASE64"),
        own.get("binary.handling.mode", "bytes"),
        given,
    )


def key_names(table: str, row: TrueRow) -> set[str]:
    return {
        c["name"] for c in row.columns if c.get("pk") or (table == "uk_only" and c["name"] == "u")
    }


def _sent(row: TrueRow, side: str, column: Any) -> bool:
    """Whether the connector has the column's true value."""
    if side == "new" or row.identity == "full":
        return True
    return bool(column.get("ri" if row.identity == "index" else "pk"))


def check_cell(
    variant: str,
    settings: Settings,
    place: Any,
    row: TrueRow,
    column: Mapping[str, Any],
    side: str,
    image: Mapping[str, Any],
) -> str | None:
    """The reason of a loss, or an empty one; a wrong value fails."""
    true, type_, table = column.get(side), column["type"], place[2]
    stale = variant == "avro_confluent_refs" and table in ("evolve", "gen")
    name = next((n for n in (column["name"], adjusted(column["name"])) if n in image), None)
    shown = f"{variant} {place} {side} {column['name']} {type_}: {true}"
    if name is None:
        if column.get("generated"):
            return "generated"
        if type_ in UNKNOWN_TYPES or type_ in UNKNOWN_ARRAYS:
            return "unknown"
        if stale:
            return "stale"
        # A real value may equal the placeholder.
        real = true is not None and true["v"] == "__debezium_unavailable_value"
        unchanged = {"old", "new"} <= column.keys() and column["old"] == column["new"]
        assert unchanged or real, shown
        return "unavailable"
    actual = image[name]
    if not _sent(row, side, column):
        place_of = table, column["name"]
        default = DEFAULTS.get(place_of) if settings.defaults else None
        filling = _in_mode(FILLED.get(place_of, default), settings)
        if stale and not same(filling, actual):
            defaults = *FILLED.values(), *DEFAULTS.values()
            assert actual in (*defaults, *map(str, defaults)), f"{shown} is {actual!r}"
            return "stale"
        assert same(filling, actual), f"{shown} is filled with {actual!r}, not {filling!r}"
        return None if filling is None else "filled"
    on_the_wire = (
        column["t"] in WIRE_TYPES or type_.startswith("bit varying") or type_ in UNKNOWN_TYPES
    )
    if on_the_wire:
        nested = true is not None and true["v"].startswith("{{")
        expected = None if true is None or nested else wire_value(type_, true["v"], settings)
        if same(expected, actual) and not nested:
            return None
        reason = None if true is None else _of_wire(type_, true["v"], expected, actual, settings)
    else:
        expected = postgres_value(column, true, given=settings.given)
        if isinstance(expected, bytes) and settings.binary != "bytes":
            if not settings.given:
                # The message's schema says only that it is text.
                expected = text_of_bytes(expected, settings)
            if actual is None and settings.binary.startswith("base64"):
                assert column["old"] == column["new"], shown
                return "placeholder"
        if same(expected, actual):
            return None
        reason = _reason(column, expected, actual, settings)
    if reason == "default":
        default = _in_mode(DEFAULTS.get((table, column["name"])), settings)
        assert same(default, actual), f"{shown} is {actual!r}, not the default {default!r}"
    if reason is None and stale:
        others = [postgres_value(other, other.get(side)) for other in row.columns]
        others += [str(other) for other in others if isinstance(other, UUID)]
        assert any(same(other, actual) for other in (None, *others)), f"{shown} is {actual!r}"
        return "stale"
    if reason is None and settings.time == "isostring" and expected == timedelta(days=1):
        assert actual == timedelta(0), shown
        return "midnight"
    assert reason is not None, f"{shown} is not {actual!r}, but {expected!r}"
    return reason


def _in_mode(default: Any, settings: Settings) -> Any:
    if not isinstance(default, Decimal) or settings.decimal == "precise" or settings.given:
        return default
    return str(default) if settings.decimal == "string" else float(default)


def _outer_items(text: str) -> int:
    marks = re.sub(r'"[^"]*"|[^{},]', "", text)[1:-1]
    while "{" in marks:
        marks = re.sub("{[^{}]*}", "", marks)
    return marks.count(",") + 1


def _of_wire(type_: str, text: str, expected: Any, actual: Any, settings: Settings) -> str | None:
    """The loss of a value that stays as on the wire."""
    if text.startswith("{{"):
        right = type(actual) is list and all(
            v is None or str(v).startswith("[Ljava.lang.String;@") for v in actual
        )
        return "nested" if right and len(actual) == _outer_items(text) else None
    if actual is None and type_.startswith("bit("):
        return "bit[]"
    if actual is None and type_ in ("mood[]", "ltree[]") and None in array_items(text):
        return "null item"
    if " BC" in text and same(wire_value(type_, text.replace(" BC", ""), settings), actual):
        return "era"
    return None


def _reason(column: Any, expected: Any, actual: Any, settings: Settings) -> str | None:
    """The loss; empty for a right value of another form, None for a wrong value."""
    if expected is None:
        return "default" if column.get("default") or column.get("generated") else None
    if actual is None and settings.time == "nanoseconds" and column["t"] == "timestamp":
        is_out = isinstance(expected, Beyond) or not 1677 < expected.year < 2262
        return "nanos" if is_out else None
    if isinstance(expected, Beyond):
        return "" if isinstance(actual, InvalidValue) else None
    if actual is None:
        if column["type"] == "name":
            return "name"
        return "nan" if column["t"] == "decimal" and not expected.is_finite() else None
    if isinstance(expected, Decimal):
        return _of_decimal(expected, actual, settings)
    if isinstance(expected, datetime | timedelta):
        return _of_time(expected, actual)
    if isinstance(expected, Bits) and type(actual) is float:
        return "" if expected.value != expected.value and actual != actual else None
    return None


def _of_decimal(expected: Decimal, actual: Any, settings: Settings) -> str | None:
    if isinstance(actual, Decimal) and actual == expected:
        return "zeros"
    if settings.given and isinstance(actual, InvalidValue):
        return None if expected.is_finite() else ""
    if settings.given and settings.decimal == "double" and isinstance(actual, Decimal):
        return "double" if float(actual) == float(expected) else None
    if type(actual) is float:
        return "" if str(actual) == str(float(expected)) else None
    if type(actual) is str and not expected.is_finite():
        return "" if actual == NOT_FINITE[str(expected)] else None
    if type(actual) is not str or Decimal(actual) != expected:
        return None
    return "" if same(Decimal(actual), expected) else "scale"


def _of_time(expected: Any, actual: Any) -> str | None:
    clock = expected if isinstance(expected, datetime) else datetime.min + expected
    cut = expected - timedelta(microseconds=clock.microsecond % 1000)
    return "millis" if same(cut, actual) else None
