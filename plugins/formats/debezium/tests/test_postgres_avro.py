"""PostgreSQL's connector in Avro and JSON with schema against the truth of the database.

What is a string in the message's schema, as numbers in decimal.handling.mode=string, is compared
as text.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeGuard
from uuid import UUID

import attrs
import pytest
from support.framed_cells import TrueRow, adjusted, images_of, true_rows
from support.framed_data import framed_decoder, framed_messages
from support.golden_data import GOLDEN, Bits, read_jsonl, same
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

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Event, LogicalMessage, Message, RowChange
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
    "schema_default": {},
    "schema_adaptive_micros": {},
    "schema_micros_avronames": {
        "binaryHandlingMode": "base64",
        "unavailableValuePlaceholder": "__gone__",
    },
    "schema_strings": {"binaryHandlingMode": "hex"},
}
NO_ROW = "a delete without key and row"
"""The error of a flattened delete of a table without key."""
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
MISSING = {
    ("gen", "insert", "3"),
    ("gen", "update", "3"),
    ("gen", "delete", "1"),
    ("evolve", "insert", "51"),
    ("evolve", "insert", "53"),
    ("evolve", "update", "50"),
    ("evolve", "update", "51"),
    ("evolve", "update", "52"),
}
"""Rows of avro_confluent_refs that its converter refused, with a stale reference: table, operation
and id."""

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
}
_NEVER_SENT = "t_array2.a_iv t_array2.a_money t_array2.a_point t_array2.a_xml"
_PRECISE = {
    "bit[]": "t_array2.a_bit",
    "default": "evolve.a gen.ab later.e later.t pair.v pk_full.v t_num.c_bool t_num.c_int "
    "t_num.c_num t_text.c_vcn",
    "era": "t_timespecial.a_date",
    "filled": "evolve.u gen.sm pair.n pair.v ri_index.id t_num.c_bool t_num.c_int t_num.c_num "
    "t_text.c_vcn",
    "generated": "gen.ab",
    "name": "t_text.c_name",
    "nan": "t_numspecial.c_num t_numspecial.c_numn",
    "nested": "t_nest.n_int t_nest.n_text",
    "null item": "t_array.a_mood t_array2.a_lt",
    "unavailable": "t_text.c_text t_text.c_vc toast.arr toast.big toast.big2 toast.h toast.j "
    "toast.nums",
    "unknown": f"{_NEVER_SENT} t_unknown.u_addr t_unknown.u_box t_unknown.u_circle "
    "t_unknown.u_line t_unknown.u_lseg t_unknown.u_lsn t_unknown.u_mr t_unknown.u_path "
    "t_unknown.u_poly t_unknown.u_reg t_unknown.u_tsq t_unknown.u_xid",
    "zeros": "keys.k_numn nopk_full.z t_num.c_numn",
}
_TEXTS_OR_DOUBLES = _PRECISE | {"nan": "", "zeros": ""}
_COLUMNS = {
    "avro_confluent": _PRECISE,
    "avro_confluent_decstring": _TEXTS_OR_DOUBLES
    | {
        "midnight": "t_time.c_time",
        "scale": "t_numspecial.c_numneg",
    },
    "avro_confluent_refs": _TEXTS_OR_DOUBLES
    | {
        # The row of gen that had one is among the missing.
        "filled": "pair.n pair.v ri_index.id t_num.c_bool t_num.c_int t_num.c_num t_text.c_vcn",
        "generated": "",
        "stale": "evolve.extra evolve.k2 evolve.last evolve.renamed evolve.u",
    },
    # A flattened delete has its key alone.
    "avro_confluent_unwrap": _PRECISE | {"filled": "ri_index.id"},
    "avro_apicurio8": _PRECISE | {"name": "", "unknown": _NEVER_SENT},
    "avro_apicurio_headers": _PRECISE
    | {"millis": "t_time.c_time t_time.c_ts t_time.c_ts4 t_time.c_ts5 t_time.c_ts6"},
    "extjson_pretty": _PRECISE,
    "extjson_compact": _PRECISE,
    "schema_default": _PRECISE,
    "schema_micros_avronames": _PRECISE
    | {
        "name": "",
        "placeholder": "toast.big2",
        "unavailable": "toast.arr toast.big toast.h toast.j toast.nums",
        "unknown": _NEVER_SENT,
    },
    "schema_strings": _TEXTS_OR_DOUBLES
    | {
        "millis": "t_time.c_time t_time.c_ts t_time.c_ts4 t_time.c_ts5 t_time.c_ts6",
        "scale": "t_numspecial.c_numneg",
    },
    # replace.null.with.default=false, include.unknown.datatypes=true, no snapshot.
    "schema_adaptive_micros": _PRECISE
    | {
        "default": "",
        "filled": "gen.sm pair.n ri_index.id",
        "name": "",
        "unavailable": "t_text.c_vc toast.arr toast.big toast.big2 toast.h toast.j toast.nums",
        "unknown": _NEVER_SENT,
    },
}
LOSSES = {
    variant: {(reason, column) for reason, columns in listed.items() for column in columns.split()}
    for variant, listed in _COLUMNS.items()
}
"""The losses of a variant, reason and column: each of them, and no other one."""


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


@pytest.mark.parametrize("variant", ["schema_strings", "schema_default", "avro_confluent"])
def test_contents_of_logical_messages(variant: str) -> None:
    """pg_logical_emit_message: bytes, or hexadecimal with binary.handling.mode=hex."""
    expected = {
        lsn_of(line["lsn"]): (line["prefix"], bytes.fromhex(line["content_hex"]))
        for line in read_jsonl("postgres/truth.jsonl.gz")
        if line["kind"] == "message"
    }
    found = {
        (event.extra or {}).get("lsn"): (event.prefix, event.content)
        for wire in decode(variant)
        for event in wire.events
        if isinstance(event, LogicalMessage)
    }
    assert found == expected
    assert len(found) > 3


def _lsn(event: RowChange) -> Any:
    extra = event.extra or {}
    return None if event.op == "read" else extra.get("lsn")


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_cell_equals_the_truth(variant: str, truth: dict[Any, list[TrueRow]]) -> None:
    settings, flat = settings_of(variant), variant.endswith("unwrap")
    found: dict[Any, list[RowChange]] = defaultdict(list)
    errors = Counter[str]()
    for wire in decode(variant):
        if wire.error is not None:
            assert flat, wire.error
            assert NO_ROW in str(wire.error)
            errors[(wire.message.topic or "").rpartition(".")[2]] += 1
        for event in filter(_is_row, wire.events):
            if event.op != "truncate":
                found[_place(event, flat)].append(event)
    cells, seen, failed = 0, set[tuple[str, str]](), Counter[str]()
    missing = set[tuple[str, str, str]]()
    for place, rows in _expected_rows(truth, flat).items():
        if place[0] is None and settings.snapshot == "no_data":
            continue
        left = []
        for row in rows:
            names = _key_names(place[2], row)
            if flat and row.op == "delete" and not names:
                failed[place[2]] += 1
            elif variant == "avro_confluent_refs" and place not in found:
                missing.add((place[2], row.op, row.columns[0][row.sides[0]]["v"]))
            else:
                left.append(row)
        events = found.pop(place, [])
        assert [row.op for row in left] == [event.op for event in events], place
        for row, event in zip(left, events, strict=True):
            keyed = flat and row.op == "delete"
            names = _key_names(place[2], row)
            columns = [c for c in row.columns if c["name"] in names] if keyed else row.columns
            images = dict(images_of(event))
            sides = row.sides if row.identity == "full" and not flat else row.sides[-1:]
            assert tuple(images) == sides, (place, tuple(images))
            for side, image in images.items():
                if keyed:
                    assert len(image.values) == len(columns) > 0, place
                for column in columns:
                    cells += 1
                    reason = _check(variant, settings, place, row, column, side, image.values)
                    if reason:
                        seen.add((reason, f"{place[2]}.{column['name']}"))
    assert not found, found.keys()
    assert errors == failed
    assert missing == (MISSING if variant == "avro_confluent_refs" else set())
    assert cells > 3_000, cells
    assert seen == LOSSES[variant]
    assert {reason for reason, _ in seen} <= LOST.keys()


def settings_of(variant: str) -> Settings:
    text = (GOLDEN / "postgres" / variant / "connector.properties").read_text(encoding="utf-8")
    given = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    return Settings(
        given.get("time.precision.mode", "adaptive"),
        given.get("decimal.handling.mode", "precise"),
        given.get("interval.handling.mode", "numeric"),
        given.get("hstore.handling.mode", "json"),
        given.get("snapshot.mode", "initial"),
        given.get("value.converter.replace.null.with.default", "true") == "true",
        given.get("value.converter.decimal.format", "BASE64"),
        given.get("binary.handling.mode", "bytes"),
    )


def _place(event: RowChange, flat: bool) -> Any:
    """A flattened delete is a key alone, without position: those of a table are in order."""
    if flat and event.op == "delete":
        return "deletes", event.table.schema, event.table.table
    return _lsn(event), event.table.schema, event.table.table


def _expected_rows(truth: dict[Any, list[TrueRow]], flat: bool) -> dict[Any, list[TrueRow]]:
    rows: dict[Any, list[TrueRow]] = defaultdict(list)
    for place, each in truth.items():
        for row in each:
            if place[2] == "dbz_signal":
                continue
            if flat and row.op == "delete":
                # Its table is that of the topic's rows.
                rows["deletes", *place[1:]].append(row)
            else:
                rows[place].append(row)
            if row.op == "read" and place[2].startswith("part_"):
                # The snapshot reads the rows of partitions twice.
                rows[None, "public", "part"].append(row)
    rows[None, "public", "part"].sort(key=lambda row: row.columns[0]["new"]["v"])
    return rows


def _key_names(table: str, row: TrueRow) -> set[str]:
    return {
        c["name"] for c in row.columns if c.get("pk") or (table == "uk_only" and c["name"] == "u")
    }


def _sent(row: TrueRow, side: str, column: Any) -> bool:
    """Whether the connector has the column's true value."""
    if side == "new" or row.identity == "full":
        return True
    return bool(column.get("ri" if row.identity == "index" else "pk"))


def _is_row(event: Event) -> TypeGuard[RowChange]:
    return isinstance(event, RowChange)


def _check(
    variant: str,
    settings: Settings,
    place: Any,
    row: TrueRow,
    column: Mapping[str, Any],
    side: str,
    image: Mapping[str, Any],
) -> str | None:
    """The reason of a loss; a wrong value fails."""
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
        expected = postgres_value(column, true)
        if isinstance(expected, bytes) and settings.binary != "bytes":
            # The message's schema says only that it is text.
            expected = text_of_bytes(expected, settings)
            if actual is None and settings.binary == "base64":
                assert column["old"] == column["new"], shown
                return "placeholder"
        if same(expected, actual):
            return None
        reason = _reason(column, expected, actual)
    if reason == "default":
        default = _in_mode(DEFAULTS.get((table, column["name"])), settings)
        assert same(default, actual), f"{shown} is {actual!r}, not the default {default!r}"
    if reason is None and stale:
        others = [postgres_value(other, other.get(side)) for other in row.columns]
        others += [str(other) for other in others if isinstance(other, UUID)]
        assert any(same(other, actual) for other in (None, *others)), f"{shown} is {actual!r}"
        return "stale"
    if reason is None and variant.endswith("decstring") and expected == timedelta(days=1):
        assert actual == timedelta(0), shown
        return "midnight"
    assert reason is not None, f"{shown} is not {actual!r}, but {expected!r}"
    return reason


def _in_mode(default: Any, settings: Settings) -> Any:
    if not isinstance(default, Decimal) or settings.decimal == "precise":
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


def _reason(column: Any, expected: Any, actual: Any) -> str | None:
    """The loss; empty for a right value of another form, None for a wrong value."""
    if expected is None:
        return "default" if column.get("default") or column.get("generated") else None
    if isinstance(expected, Beyond):
        return "" if isinstance(actual, InvalidValue) else None
    if actual is None:
        if column["type"] == "name":
            return "name"
        return "nan" if column["t"] == "decimal" and not expected.is_finite() else None
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
    if type(expected) is list and type(actual) is list:
        return len(expected) == len(actual) and all(map(_same_or_float, expected, actual))
    if type(expected) is float and type(actual) is float:
        return (
            expected == actual
            or (expected != expected and actual != actual)
            or (Bits("00000000").of(expected) == Bits("00000000").of(actual))
        )
    return same(expected, actual)
