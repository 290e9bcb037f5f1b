"""PostgreSQL's connector in Avro and JSON with schema against the truth of the database."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, TypeGuard

import attrs
import pytest
from support.framed_cells import TrueRow, adjusted, images_of, true_rows
from support.framed_data import framed_decoder, framed_messages
from support.golden_data import Bits, read_jsonl, same
from support.postgres_cells import LOST, check_cell, key_names, lsn_of, settings_of

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Event, LogicalMessage, Message, RowChange

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
    "schema_tx": {},
    "schema_unwrap_rewrite": {"flattened": True},
}
NO_ROW = "a delete without key and row"
"""The error of a flattened delete of a table without key."""
DETACHED = 152651600
"""The position of a row of a table that was a partition before."""
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
_COLUMNS |= {
    "schema_tx": _PRECISE | {"name": "", "unknown": _NEVER_SENT},
    "schema_unwrap_rewrite": _PRECISE,
}
LOSSES = {
    variant: {(reason, column) for reason, columns in listed.items() for column in columns.split()}
    for variant, listed in _COLUMNS.items()
}
"""The losses of a variant, reason and column: each of them, and no other one."""


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
    settings, by_key = settings_of(variant), variant.endswith("unwrap")
    flat, rooted = "unwrap" in variant, variant == "schema_tx"
    again = Counter[str]()
    found: dict[Any, list[RowChange]] = defaultdict(list)
    errors = Counter[str]()
    for wire in decode(variant):
        if wire.error is not None:
            assert by_key, wire.error
            assert NO_ROW in str(wire.error)
            errors[(wire.message.topic or "").rpartition(".")[2]] += 1
        for event in filter(_is_row, wire.events):
            if (event.extra or {}).get("snapshot") == "incremental":
                again[event.table.table] += 1
            elif event.op != "truncate" and event.table.table != "dbz_signal":
                found[_place(event, by_key)].append(event)
    cells, seen, failed = 0, set[tuple[str, str]](), Counter[str]()
    missing = set[tuple[str, str, str]]()
    for place, rows in _expected_rows(truth, by_key, rooted).items():
        if place[0] is None and settings.snapshot == "no_data":
            continue
        left = []
        for row in rows:
            names = key_names(place[2], row)
            if by_key and row.op == "delete" and not names:
                failed[place[2]] += 1
            elif variant == "avro_confluent_refs" and place not in found:
                missing.add((place[2], row.op, row.columns[0][row.sides[0]]["v"]))
            else:
                left.append(row)
        events = found.pop(place, [])
        assert [row.op for row in left] == [event.op for event in events], place
        for row, event in zip(left, events, strict=True):
            keyed = by_key and row.op == "delete"
            names = key_names(place[2], row)
            columns = [c for c in row.columns if c["name"] in names] if keyed else row.columns
            images = dict(images_of(event))
            sides = row.sides if row.identity == "full" and not flat else row.sides[-1:]
            assert tuple(images) == sides, (place, tuple(images))
            for side, image in images.items():
                if keyed:
                    assert len(image.values) == len(columns) > 0, place
                for column in columns:
                    cells += 1
                    reason = check_cell(variant, settings, place, row, column, side, image.values)
                    if reason:
                        seen.add((reason, f"{place[2]}.{column['name']}"))
    assert not found, found.keys()
    assert again == ({"pair": 5} if rooted else {})
    assert errors == failed
    assert missing == (MISSING if variant == "avro_confluent_refs" else set())
    assert cells > 3_000, cells
    assert seen == LOSSES[variant]
    assert {reason for reason, _ in seen} <= LOST.keys()


def _place(event: RowChange, by_key: bool) -> Any:
    """A delete by its key has no position: those of a table are in order."""
    if by_key and event.op == "delete":
        return "deletes", event.table.schema, event.table.table
    return _lsn(event), event.table.schema, event.table.table


def _expected_rows(
    truth: dict[Any, list[TrueRow]], by_key: bool, rooted: bool
) -> dict[Any, list[TrueRow]]:
    """``rooted``: changes of a partition are those of its table."""
    rows: dict[Any, list[TrueRow]] = defaultdict(list)
    for place, each in truth.items():
        for row in each:
            if place[2] == "dbz_signal":
                continue
            of_partition = place[2].startswith("part_")
            if by_key and row.op == "delete":
                # Its table is that of the topic's rows.
                rows["deletes", *place[1:]].append(row)
            elif rooted and of_partition and place[0] not in (None, DETACHED):
                rows[place[0], "public", "part"].append(row)
            else:
                rows[place].append(row)
            if row.op == "read" and of_partition:
                # The snapshot reads the rows of partitions twice.
                rows[None, "public", "part"].append(row)
    rows[None, "public", "part"].sort(key=lambda row: row.columns[0]["new"]["v"])
    return rows


def _is_row(event: Event) -> TypeGuard[RowChange]:
    return isinstance(event, RowChange)


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
