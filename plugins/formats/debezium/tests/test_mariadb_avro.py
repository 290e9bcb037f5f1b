"""MariaDB's connector in Avro against the truth of the database, and against its JSON."""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import Any

import pytest
from support.framed_cells import TrueRow, adjusted, decoded, images_of, rows_of, true_rows
from support.golden_data import Bits, Loss, Losses, dumped_value, same

from cdcfmt_core.events import Event, RowChange, SchemaChange

VARIANTS = {
    "avro_confluent": {},
    "avro_confluent_decstring": {},
    "avro_apicurio_headers": {},
}
"""Variants and the options to read them: none."""

# --- What the connector does not write -------------------------------------------------

_DEFAULT = "NULL in a column with a default arrives as the default"
_DIGITS = "the snapshot reads a FLOAT with the six digits that MariaDB prints"
FLOATS = [Loss("shop.wide", "c_float", "digits", _DIGITS)]
NULLS = [Loss(f"shop.{table}", column, "null", _DEFAULT) for table, column in (("pair", "v"),)]
_MILLIS = "time.precision.mode=connect has milliseconds"
_OUTSIDE = "a TIME outside of a day is null, but in microseconds"
OUTSIDE = [Loss("shop.wide", c, "outside", _OUTSIDE) for c in ("c_time", "c_time3", "c_time6")]
MILLIS = [Loss("shop.wide", column, "millis", _MILLIS) for column in ("c_dt6", "c_time6")]
LOSSES = {
    "avro_confluent": [*NULLS, *FLOATS],
    "avro_confluent_decstring": [*NULLS, *FLOATS, *OUTSIDE],
    "avro_apicurio_headers": [*NULLS, *FLOATS, *OUTSIDE, *MILLIS],
}


@pytest.fixture(scope="module")
def truth() -> dict[Any, list[TrueRow]]:
    return true_rows("avro", "gtid")


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_cell_equals_the_truth(variant: str, truth: dict[Any, list[TrueRow]]) -> None:
    events = decoded(f"avro/{variant}", **VARIANTS[variant])
    losses = Losses(LOSSES[variant], {f"{schema}.{table}" for _, schema, table in truth})
    found: dict[Any, list[RowChange]] = defaultdict(list)
    for event in rows_of(events):
        assert event.table.schema is None
        gtid = None if event.op == "read" else (event.extra or {}).get("gtid")
        found[gtid, event.table.database, event.table.table].append(event)
    assert found.keys() == truth.keys()
    cells = Counter[str]()
    for place, rows in truth.items():
        assert Counter(row.op for row in rows) == Counter(event.op for event in found[place])
        # Within a transaction and table, the order is not the truth's.
        left = list(found[place])
        for row in rows:
            event = min(left, key=lambda event: len(_differences(row, event, variant)))
            left.remove(event)
            for column, side, actual in _differences(row, event, variant):
                _check_loss(place, column, column[side], actual, losses)
            cells["cells"] += sum(len(image.values) for _, image in images_of(event))
    assert cells["cells"] > 5_000
    losses.assert_all_seen("null", "digits", "millis", "outside")


def _name(name: str, variant: str) -> str:
    # avro_unicode can be undone, avro cannot.
    return name if variant.endswith("decstring") else adjusted(name)


def _differences(row: TrueRow, event: RowChange, variant: str) -> list[tuple[Any, str, Any]]:
    if row.op != event.op:
        return [({}, "op", None)] * 1_000
    found = []
    images = dict(images_of(event))
    assert images.keys() == set(row.sides)
    names = [_name(column["name"], variant) for column in row.columns]
    for side, image in images.items():
        assert list(image.values) == names
        for column, name in zip(row.columns, names, strict=True):
            actual = image.values[name]
            if not same(_expected(column["type"], column[side]), actual):
                found.append((column, side, actual))
    return found


def _expected(type_: str, true: Any) -> Any:
    if true is None:
        return None
    if type_ == "float":
        return Bits(struct.pack(">f", float(true["v"])).hex(), true["v"])
    if type_ == "bit(1)":
        return int(true["v"])
    return dumped_value(type_, true["v"])


def _check_loss(place: Any, column: Any, true: Any, actual: Any, losses: Losses) -> None:
    table, name = f"{place[1]}.{place[2]}", column["name"]
    shown = f"{place}, {name} {column['type']}: {actual!r} is not {true}"
    expected = _expected(column["type"], true)
    if expected is None:
        assert losses.covers(table, name, "null"), shown
        assert actual is not None, shown
    elif isinstance(expected, Bits):
        assert losses.covers(table, name, "digits"), shown
        assert place[0] is None, shown
        assert f"{expected.value:.6g}" == f"{actual:.6g}", shown
    elif actual is None:
        assert losses.covers(table, name, "outside"), shown
        assert not timedelta(0) <= expected < timedelta(1), shown
    else:
        assert losses.covers(table, name, "millis"), shown
        clock = expected if isinstance(expected, datetime) else datetime.min + expected
        assert clock.microsecond % 1000, shown
        cut = timedelta(microseconds=clock.microsecond % 1000)
        assert same(expected - cut, actual), shown


def test_avro_and_json_give_equal_events() -> None:
    """One stream in both forms: equal images, types, keys and DDL, but for adjusted names."""
    avro, json_ = decoded("avro/avro_confluent"), decoded("avro/schema_default")
    assert len(avro) == len(json_) > 150
    for one, other in zip(avro, json_, strict=True):
        _check_equal(one, other)


def _check_equal(one: Event, other: Event) -> None:
    assert type(one) is type(other)
    if isinstance(one, SchemaChange) and isinstance(other, SchemaChange):
        assert one.query == other.query
        tables = [event.table_schema for event in (one, other)]
        assert (tables[0] is None) == (tables[1] is None)
        assert len({None if each is None else each.columns for each in tables}) == 1
    if not isinstance(one, RowChange) or not isinstance(other, RowChange):
        return
    assert one.op == other.op
    assert tuple(map(adjusted, other.table.key_columns)) == one.table.key_columns
    for column, of_json in zip(one.table.columns, other.table.columns, strict=True):
        assert column.name == adjusted(of_json.name)
        if column.name == of_json.name:
            assert column == of_json
    for image, of_json in ((one.before, other.before), (one.after, other.after)):
        assert (image is None) == (of_json is None)
        if image is None or of_json is None:
            continue
        assert image.complete == of_json.complete
        expected = {adjusted(name): value for name, value in of_json.values.items()}
        assert image.values.keys() == expected.keys()
        for name, value in image.values.items():
            assert same(expected[name], value), (name, value)
