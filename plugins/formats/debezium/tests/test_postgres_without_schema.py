"""PostgreSQL's connector without schemas, with types from ``tableSchemas``, against the truth."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from datetime import date
from typing import Any

import attrs
import pytest
from debezium_messages import message
from debezium_messages import row as envelope
from support.framed_cells import TrueRow, images_of, true_rows
from support.framed_data import framed_messages
from support.golden_data import codec_decoder
from support.postgres_cells import LOST, check_cell, key_names, lsn_of, settings_of
from support.postgres_given import CHANGED, OF_TOPICS, VARIANTS, table_schemas

from cdcfmt_core import DecoderContext, default_registry
from cdcfmt_core.errors import DecodeError, OptionError
from cdcfmt_core.events import Corrupt, Image, Message, RowChange
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import Binary, Bit, Geometry, Unknown


def open_decoder(tables: Any, **options: Any) -> Any:
    context = DecoderContext(default_registry().get_type_map("postgresql"), SchemaStore())
    text = tables if type(tables) is str else json.dumps(tables)
    return codec_decoder("debezium", context, tableSchemas=text, **options)


_DEFAULTS = (
    "evolve.a gen.ab later.t pair.v pk_full.v t_num.c_bool t_num.c_int t_num.c_num t_text.c_vcn"
)
_FILLED = (
    "evolve.u gen.sm pair.n pair.v ri_index.id t_num.c_bool t_num.c_int t_num.c_num t_text.c_vcn"
)
_DOUBLES = (
    "keys.k_num keys.k_numn nopk_full.z t_num.c_money t_num.c_num0 t_num.c_num38 t_num.c_numn "
    "t_numspecial.c_numn"
)
_NANOS = (
    "t_time.c_ts t_time.c_ts0 t_time.c_ts1 t_time.c_ts2 t_time.c_ts3 t_time.c_ts5 t_time.c_ts6 "
    "t_timespecial.c_ts t_timespecial.c_ts3"
)
_TOAST = "toast.arr toast.big toast.h toast.j toast.nums"
_ALWAYS = {
    "bit[]": "t_array2.a_bit",
    "changed": "evolve.c",
    "default": f"{_DEFAULTS} later.e",
    "generated": "gen.ab",
    "name": "t_text.c_name",
    "nested": "t_nest.n_int t_nest.n_text",
    "null item": "t_array.a_mood t_array2.a_lt",
    "unavailable": f"t_text.c_text t_text.c_vc {_TOAST} toast.big2",
    "unknown": "t_array2.a_iv t_array2.a_money t_array2.a_point t_array2.a_xml t_unknown.u_addr "
    "t_unknown.u_box t_unknown.u_circle t_unknown.u_line t_unknown.u_lseg t_unknown.u_lsn "
    "t_unknown.u_mr t_unknown.u_path t_unknown.u_poly t_unknown.u_reg t_unknown.u_tsq "
    "t_unknown.u_xid",
    "zeros": "keys.k_numn nopk_full.z t_num.c_numn",
}
_COLUMNS = {
    "noschema_default": _ALWAYS
    | {"filled": _FILLED, "nan": "t_numspecial.c_num t_numspecial.c_numn"},
    "noschema_isostring": _ALWAYS
    | {
        "double": _DOUBLES,
        "era": "t_timespecial.a_date",
        "filled": _FILLED,
        "midnight": "t_time.c_time",
        "placeholder": "toast.big2",
        "unavailable": f"t_text.c_text t_text.c_vc {_TOAST}",
    },
    # Neither updates nor deletes.
    "noschema_nanos": _ALWAYS
    | {
        "default": _DEFAULTS,
        "era": "t_timespecial.a_date",
        "nanos": _NANOS,
        "unavailable": "t_text.c_text t_text.c_vc",
        "zeros": "",
    },
    "noschema_unwrap": _ALWAYS
    | {"filled": "ri_index.id", "nan": "t_numspecial.c_num t_numspecial.c_numn"},
}
LOSSES = {
    variant: {(reason, column) for reason, columns in listed.items() for column in columns.split()}
    for variant, listed in _COLUMNS.items()
}
"""The losses of a variant, reason and column: each of them, and no other one."""
YEARS = "outside of the years 1 to 9999; set timePrecisionMode"
"""Timestamps before year 1 and after 9999 could be others in another unit."""
NO_ROW = "a delete without key and row, of a table without key"
BAD_ROWS = {
    "noschema_default": {("t_timespecial", YEARS): 5},
    "noschema_unwrap": {("t_timespecial", YEARS): 5, ("nopk_full", NO_ROW): 10},
}


@attrs.frozen
class Decoded:
    """The rows of a golden set by place, and the number of its bad rows by table."""

    rows: dict[Any, list[RowChange]]
    bad: Counter[tuple[str, str]]


def decoded(variant: str) -> Decoded:
    decode = open_decoder(table_schemas(), **VARIANTS[variant])
    rows: dict[Any, list[RowChange]] = defaultdict(list)
    bad = Counter[tuple[str, str]]()
    for each in framed_messages(f"postgres/{variant}"):
        try:
            found = decode(each)
        except DecodeError as error:
            bad[place_of_bad(each, error)] += 1
            continue
        for event in found:
            if isinstance(event, Corrupt):
                bad[place_of_bad(each, event.error)] += 1
            if isinstance(event, RowChange) and event.op != "truncate":
                rows[place_of(event)].append(event)
    return Decoded(rows, bad)


def place_of_bad(each: Message, error: DecodeError) -> tuple[str, str]:
    """The table of a bad row, and the reason."""
    (reason,) = (known for known in (YEARS, NO_ROW) if known in str(error))
    return (each.topic or "").rpartition(".")[2], reason


def place_of(event: RowChange) -> Any:
    """Flattened rows have no position: those of a table are in order."""
    table = event.table
    if table.schema is None:
        return None, table.database, table.table
    lsn = None if event.op == "read" else (event.extra or {}).get("lsn")
    return lsn, table.schema, table.table


def expected(variant: str) -> dict[Any, list[TrueRow]]:
    """The true rows by :func:`place_of`, without those that the connector skips."""
    flat, snapshot = variant == "noschema_unwrap", defaultdict[Any, list[TrueRow]](list)
    rows: dict[Any, list[TrueRow]] = defaultdict(list)
    for (lsn, schema, table), each in true_rows("postgres", "lsn").items():
        names = OF_TOPICS.get((schema, table), (schema, table)) if flat else (schema, table)
        place = (None if flat else lsn_of(lsn)), *names
        for row in each:
            keyless = flat and row.op == "delete" and not key_names(table, row)
            if table == "dbz_signal" or keyless:
                continue
            if variant == "noschema_nanos" and any("old" in c for c in row.columns):
                # skipped.operations=u,d, also both halves of a change of the key.
                continue
            if "adaptive" in VARIANTS[variant].values() and is_of_another_unit(row):
                continue
            if row.op == "read" and table.startswith("part_"):
                # The snapshot reads the rows of partitions twice.
                snapshot[None, "public", "part"].append(row)
            rows[place].append(row)
    for place, again in snapshot.items():
        rows[place] = sorted(again, key=lambda row: row.columns[0]["new"]["v"]) + rows[place]
    return rows


def is_of_another_unit(row: TrueRow) -> bool:
    """Whether a timestamp is beyond Python's years: it could be one in another unit."""
    texts = (c["new"]["v"] for c in row.columns if c["name"] == "c_ts" and c.get("new"))
    return any(re.search(r" BC$|^[0-9]{5}", text) for text in texts)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_cell_equals_the_truth(variant: str) -> None:
    settings, found, cells = settings_of(variant, given=True), decoded(variant), 0
    flat, seen = variant == "noschema_unwrap", set[tuple[str, str]]()
    for place, rows in expected(variant).items():
        events = found.rows.pop(place, [])
        assert [row.op for row in rows] == [event.op for event in events], place
        for row, event in zip(rows, events, strict=True):
            keyed = flat and row.op == "delete"
            keys = key_names(place[2], row)
            columns = [c for c in row.columns if not keyed or c["name"] in keys]
            for side, image in images_of(event):
                for column in columns:
                    cells += 1
                    name = f"{place[2]}.{column['name']}"
                    if name == ".".join(CHANGED):
                        is_null = image.values[column["name"]] is None
                        assert side == "old" or is_null == (column[side] is None)
                        seen.add(("changed", name))
                        continue
                    reason = check_cell(variant, settings, place, row, column, side, image.values)
                    if reason:
                        seen.add((reason, name))
    assert not found.rows, found.rows.keys()
    assert found.bad == BAD_ROWS.get(variant, {})
    assert cells > 3_000
    assert seen == LOSSES[variant]
    assert {reason for reason, _ in seen} <= LOST.keys()


def decode_row(tables: Any, after: Any, **source: Any) -> RowChange:
    given = {"db": "shop", "schema": "public", "table": "orders", "connector": "postgresql"}
    (event,) = open_decoder(tables)(message(envelope(after=after, source=given | source)))
    assert isinstance(event, RowChange)
    return event


TABLES = {"public": {"orders": {"id": "bigint", "at": "date", "kept": None}}}


def test_types_of_columns() -> None:
    types = {
        "b": "bit varying",
        "v": "bit varying(20)",
        "p": "point",
        "r": "int4range[]",
        "l": "pg_lsn",
    }
    values = {"b": "AQE=", "v": "BQ==", "r": ["[1,5)", None], "l": "MC8w", "p": None}
    event = decode_row({"public": {"orders": types}}, values)
    assert event.after == Image(
        {"b": b"\1\1", "v": 5, "r": ["[1,5)", None], "l": b"0/0", "p": None}
    )
    found = {column.name: column.type for column in event.table.columns}
    assert [found[name] for name in "bvpl"] == [Binary(), Bit(20), Geometry(), Binary()]


def test_a_null_is_a_value_as_in_the_json() -> None:
    event = decode_row(TABLES, {"id": 1, "at": 2, "kept": 3})
    assert event.after == Image({"id": 1, "at": date(1970, 1, 3), "kept": 3})
    assert event.table.columns[-1].type == Unknown()


@pytest.mark.parametrize(
    ("tables", "place"),
    [
        ({"shop": TABLES}, {}),
        ({"shop": TABLES["public"]}, {"schema": None, "connector": "mysql"}),
        (TABLES | {"shop": TABLES, "other": {"public": {"orders": {"id": "text"}}}}, {}),
    ],
)
def test_places_of_tables(tables: Any, place: Any) -> None:
    event = decode_row(tables, {"id": 1, "at": 2}, **place)
    assert event.after == Image({"id": 1, "at": date(1970, 1, 3)})


def test_other_tables_are_not_affected() -> None:
    event = decode_row(TABLES, {"at": 2}, table="others")
    assert event.after == Image({"at": 2})


def test_a_column_that_is_not_listed_is_an_error() -> None:
    with pytest.raises(DecodeError, match=r"tableSchemas lists no such column") as error:
        decode_row(TABLES, {"id": 1, "new": 2})
    assert error.value.field == "new"


def test_a_delete_by_key_has_the_types() -> None:
    decode = open_decoder(TABLES, flattened=True)
    (event,) = decode(Message(b'{"at":2}', None, topic="p.public.orders"))
    assert event.before.values == {"at": date(1970, 1, 3)}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("public.orders", "not a JSON object such as"),
        ("[]", "not a JSON object such as"),
        ("{}", "not a JSON object such as"),
        ('{"public": {"orders": "bigint"}}', "not a JSON object such as"),
        ('{"a": {"b": {"c": {"d": {"e": "bigint"}}}}}', "not a JSON object such as"),
        ('{"public": {"orders": {"id": 1}}}', r"public\.orders\.id: a type is text, not 1"),
        ('{"public": {"orders": {"m": "mood"}}}', r"public\.orders\.m: .* no type 'mood'"),
    ],
)
def test_option_errors(text: str, reason: str) -> None:
    context = DecoderContext(default_registry().get_type_map("postgresql"), SchemaStore())
    with pytest.raises(OptionError, match=reason):
        codec_decoder("debezium", context, tableSchemas=text)
