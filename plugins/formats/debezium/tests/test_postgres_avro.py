"""PostgreSQL's connector in Avro and framed JSON against the truth of the database.

Arrays, maps, intervals, zoned times and geometries have no logical type yet: their values stay as
they are on the wire, and are compared with those of the same stream in JSON.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, TypeGuard

import attrs
import pytest
from support.framed_cells import TrueRow, adjusted, images_of, true_rows
from support.framed_data import framed_decoder, framed_messages
from support.golden_data import Bits, same
from support.postgres_values import Beyond, postgres_value

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Event, Message, RowChange
from cdcfmt_core.types import InvalidValue

TWINS = ("avro_confluent", "extjson_pretty", "extjson_compact")
"""The stream of ``schema_default`` in other forms."""
VARIANTS: dict[str, dict[str, Any]] = {
    "avro_confluent": {},
    "avro_confluent_decstring": {},
    "avro_confluent_refs": {},
    "avro_confluent_unwrap": {"flattened": True},
    "avro_apicurio8": {},
    "avro_apicurio_headers": {},
    "extjson_pretty": {},
    "extjson_compact": {},
}
TOO_LONG = 65
"""Decimals with more digits are errors."""

# --- What the connector does not write -------------------------------------------------

AS_ON_THE_WIRE = frozenset(
    {"array", "hstore", "interval", "timetz", "point", "geometry", "geography"}
)
ABSENT = frozenset(
    {"addr", "box", "circle", "line", "lseg", "pg_lsn", "int4multirange", "path", "polygon"}
    | {"regclass", "tsquery", "xid8", "interval[]", "money[]", "point[]", "xml[]"}
)
"""Types that the connector leaves out without include.unknown.datatypes."""
LOST = {
    "default": "NULL in a column with a default arrives as the default",
    "zeros": "numeric without scale has no zeros at its end",
    "nan": "NaN and infinities of numeric are null",
    "name": "the type name is null in the stream",
    "unavailable": "a TOAST value that did not change is not sent",
    "unknown": "a column of this type is not sent",
    "generated": "generated columns are not sent in the stream",
    "identity": "REPLICA IDENTITY: the old row has its key alone",
    "millis": "time.precision.mode=connect has milliseconds",
    "stale": "a stale reference after DDL: new columns are missing or in the place of others",
    "midnight": "time.precision.mode=isostring writes 24:00:00 as 00:00:00",
}
ALWAYS = {"default", "name", "unavailable", "generated", "identity"}
LOSSES = {
    "avro_confluent": {*ALWAYS, "zeros", "nan", "unknown"},
    "avro_confluent_decstring": {*ALWAYS, "unknown", "midnight"},
    "avro_confluent_refs": {*ALWAYS, "unknown", "stale"} - {"generated"},
    "avro_apicurio8": {*ALWAYS, "zeros", "nan", "unknown"} - {"name"},
    "avro_confluent_unwrap": {*ALWAYS, "zeros", "nan", "unknown"} - {"identity"},
    "avro_apicurio_headers": {*ALWAYS, "zeros", "nan", "unknown", "millis"},
    "extjson_pretty": {*ALWAYS, "zeros", "nan", "unknown"},
    "extjson_compact": {*ALWAYS, "zeros", "nan", "unknown"},
}
"""The losses of a variant: each of them, and no other one."""


def lsn_of(text: str | None) -> int | None:
    if text is None:
        return None
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


@pytest.fixture(scope="module")
def truth() -> dict[Any, list[TrueRow]]:
    rows = true_rows("postgres", "lsn")
    return {(lsn_of(lsn), *names): each for (lsn, *names), each in rows.items()}


@attrs.frozen
class Wire:
    message: Message
    events: tuple[Event, ...]
    error: DecodeError | None = None


def decode(variant: str) -> Iterator[Wire]:
    decoder = framed_decoder("debezium", f"postgres/{variant}", **VARIANTS.get(variant, {}))
    for message in framed_messages(f"postgres/{variant}"):
        try:
            yield Wire(message, tuple(decoder.decode(message)))
        except DecodeError as error:
            yield Wire(message, (), error)


def _lsn(event: RowChange) -> Any:
    extra = event.extra or {}
    return None if event.op == "read" else extra.get("lsn")


@pytest.mark.parametrize("variant", LOSSES)
def test_every_cell_equals_the_truth(variant: str, truth: dict[Any, list[TrueRow]]) -> None:
    seen, cells, errors = Counter[str](), 0, 0
    found: dict[Any, list[RowChange]] = defaultdict(list)
    for wire in decode(variant):
        if wire.error is not None:
            assert "a decimal of more than 65 digits" in str(wire.error)
            errors += 1
        for event in filter(_is_row, wire.events):
            # A flattened delete is a key alone, without position.
            keyed = event.op == "delete" and variant.endswith("unwrap")
            if event.op != "truncate" and not keyed:
                place = _lsn(event), event.table.schema, event.table.table
                found[place].append(event)
    missing = 0
    for place, events in found.items():
        precise = variant not in ("avro_confluent_decstring", "avro_confluent_refs")
        rows = [row for row in truth.get(place, ()) if not (precise and _has_long_decimal(row))]
        if variant.endswith("unwrap"):
            rows = [row for row in rows if row.op != "delete"]
        if place[2] in ("part", "dbz_signal") or (place[1] != "public" and not rows):
            # The snapshot reads the rows of partitions twice; the capture's own table.
            continue
        if variant == "avro_confluent_refs" or place[2] == "t_num":
            missing += abs(len(rows) - len(events))
        else:
            assert len(rows) == len(events), place
        for row, event in zip(rows, events, strict=False):
            assert row.op == event.op, place
            for side, image in images_of(event):
                for column in row.columns:
                    cells += 1
                    _check(variant, place, row, column, side, image.values, seen)
    assert cells > 3_000, cells
    assert seen.keys() == LOSSES[variant], Counter(seen)


def _is_row(event: Event) -> TypeGuard[RowChange]:
    return isinstance(event, RowChange)


def _has_long_decimal(row: TrueRow) -> bool:
    texts = [
        column[side]["v"]
        for column in row.columns
        for side in row.sides
        if column["t"] == "decimal" and column.get(side)
    ]
    return any(len(text.lstrip("-").replace(".", "")) > TOO_LONG for text in texts)


def _check(
    variant: str,
    place: Any,
    row: TrueRow,
    column: Mapping[str, Any],
    side: str,
    image: Mapping[str, Any],
    seen: Counter[str],
) -> None:
    true, type_ = column.get(side), column["type"]
    name = next((n for n in (column["name"], adjusted(column["name"])) if n in image), None)
    shown = f"{variant} {place} {side} {column['name']} {type_}: {true}"
    if name is None:
        reason = (
            "generated"
            if column.get("generated")
            else "unknown"
            if type_ in ABSENT
            else "stale"
            if variant == "avro_confluent_refs" and place[2] in ("evolve", "gen")
            else "unavailable"
        )
        # A real value may equal the placeholder.
        real = true is not None and true["v"] == "__debezium_unavailable_value"
        unchanged = {"old", "new"} <= column.keys() and column["old"] == column["new"]
        assert reason != "unavailable" or unchanged or real, shown
        seen[reason] += 1
        return
    actual, expected = image[name], postgres_value(column, true)
    if same(expected, actual):
        return
    reason = _reason(row, column, side, expected, actual)
    if reason is None and variant == "avro_confluent_refs" and place[2] == "evolve":
        reason = "stale"
    if reason is None and variant.endswith("decstring") and expected == timedelta(days=1):
        assert actual == timedelta(0), shown
        reason = "midnight"
    assert reason is not None, f"{shown} is not {actual!r}"
    if reason:
        seen[reason] += 1


def _reason(row: TrueRow, column: Any, side: str, expected: Any, actual: Any) -> str | None:
    """The loss; empty for a right value of another form, None for a wrong value."""
    kind = column["t"]
    if side == "old" and row.identity != "full":
        return "identity"
    if kind in AS_ON_THE_WIRE or column["type"].startswith("bit varying"):
        return ""
    if column["type"] in ABSENT:
        # With include.unknown.datatypes they are bytes of the text.
        return "" if type(actual) is bytes else None
    if expected is None:
        return "default" if column.get("default") or column.get("generated") else None
    if isinstance(expected, Beyond):
        return "" if isinstance(actual, InvalidValue) else None
    if actual is None:
        if column["type"] == "name":
            return "name"
        return "nan" if kind == "decimal" and not expected.is_finite() else None
    if isinstance(expected, Decimal):
        return _of_decimal(expected, actual)
    if isinstance(expected, datetime | timedelta):
        return _of_time(expected, actual)
    if isinstance(expected, Bits) and type(actual) is float:
        return "" if expected.value != expected.value and actual != actual else None
    return None


def _of_decimal(expected: Decimal, actual: Any) -> str | None:
    if isinstance(actual, Decimal) and actual == expected:
        return "zeros"
    if type(actual) is float:
        return "" if actual == float(expected) or expected.is_nan() else None
    if type(actual) is str and not expected.is_finite():
        return "" if actual.upper().lstrip("-")[:3] in ("NAN", "POS", "NEG") else None
    return "" if type(actual) is str and Decimal(actual) == expected else None


def _of_time(expected: Any, actual: Any) -> str | None:
    clock = expected if isinstance(expected, datetime) else datetime.min + expected
    cut = expected - timedelta(microseconds=clock.microsecond % 1000)
    return "millis" if same(cut, actual) else None


@pytest.mark.parametrize("variant", TWINS)
def test_forms_of_one_stream_give_equal_events(variant: str) -> None:
    seen = 0
    for one, other in zip(decode(variant), decode("schema_default"), strict=True):
        assert (one.error is None) == (other.error is None)
        assert len(one.events) == len(other.events)
        for event, of_json in zip(one.events, other.events, strict=True):
            assert type(event) is type(of_json)
            if not isinstance(event, RowChange) or not isinstance(of_json, RowChange):
                continue
            assert event.op == of_json.op
            for column, its in zip(event.table.columns, of_json.table.columns, strict=True):
                assert column.name in (its.name, adjusted(its.name))
                assert attrs.evolve(column, name=its.name) == its
            for image, its_image in (
                (event.before, of_json.before),
                (event.after, of_json.after),
            ):
                assert (image is None) == (its_image is None)
                if image is None or its_image is None:
                    continue
                assert image.complete == its_image.complete
                for (name, value), its_value in zip(
                    image.values.items(), its_image.values.values(), strict=True
                ):
                    seen += 1
                    # The hash code of a Java object.
                    if (event.table.table, name) != ("t_nest", "n_text"):
                        assert _same_or_float(its_value, value), (name, value, its_value)
    assert seen > 5_000


def _same_or_float(expected: Any, actual: Any) -> bool:
    if type(expected) is float and type(actual) is float:
        return (
            expected == actual
            or (expected != expected and actual != actual)
            or (Bits("00000000").of(expected) == Bits("00000000").of(actual))
        )
    return same(expected, actual)
