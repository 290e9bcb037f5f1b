"""Shapes of messages that no format of this repository has, and a layout can describe."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import attrs
import pytest

from cdcfmt_core import CodecSpec, default_registry, hookimpl
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Column, Image, Message, RowChange, TableSchema
from cdcfmt_core.types import Int, Text, Timestamp
from cdcfmt_testing import Case, Subject
from cdcfmt_testing.checks import golden, meaning
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.images import read_image
from cdcfmt_toolkit.layout import Layout
from cdcfmt_toolkit.plans import TablePlan
from cdcfmt_toolkit.value_readers import value_reader
from cdcfmt_toolkit.wire_json import loads_exact, names_of, object_of, text_of
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

OPS: Any = {"I": "insert", "U": "update", "D": "delete"}
TYPES: Any = {
    "int": (Int(32), Encoding("json-number")),
    "text": (Text(), Encoding("text")),
    "millis": (Timestamp(3), Encoding("epoch-millis")),
}


def open_decoder(options: Any, context: Any) -> Any:
    """Qualified names, columns as objects, and before an update only the key."""

    @cache
    def find(names: tuple[str, ...], types: tuple[tuple[str, str], ...], keys: Any) -> Any:
        columns = tuple(
            Column(name, text, TYPES[text][0], key=name in keys) for name, text in types
        )
        schema = TableSchema(names[0], names[-1], columns, keys, schema_of(names))

        def reader(column: Column) -> Any:
            encoding = TYPES[column.source_type][1]
            return value_reader(
                encoding, column.type, time_zone=context.time_zone, counts=context.counts
            )

        context.note_zoneless_timestamps(schema)
        return TablePlan.open(schema, context, reader)

    def decode(message: Message) -> list[Any]:
        wire = loads_exact(message.value or b"")
        if type(wire) is not dict:
            raise DecodeError("not a JSON object")
        op, names = OPS.get(text_of(wire, "op")), tuple(text_of(wire, "table").split("."))
        if op is None or len(names) not in (2, 3) or not all(names):
            raise DecodeError("is no operation, or no table", field="op")
        if not context.event_filter.wants("row", names[0], names[-1], schema_of(names), op, None):
            return []
        sides = {side: cells(wire, side) for side in ("new", "old")}
        both = [*(sides["new"] or ()), *(sides["old"] or ())]
        types = {name: text for name, text, _ in both}
        plan = find(names, tuple(types.items()), tuple(names_of(wire, "key") or ()))
        images: dict[str, Image | None] = {"new": None, "old": None}
        rows = {side: {name: value for name, _, value in sides[side] or ()} for side in sides}
        changed = plan.reads_before(rows["old"], rows["new"])
        for side in {"insert": ["new"], "delete": ["old"], "update": ["new", "old"]}[op]:
            if op == "update" and side == "old" and (not sides["old"] or not changed):
                continue
            if not rows[side] or len(rows[side]) != len(sides[side] or ()):
                raise DecodeError("is no row", field=side)
            values = read_image(rows[side], plan.readers, side)
            whole = len(rows[side]) == len(plan.schema.columns)
            images[side] = Image(values, complete=whole)
        return [RowChange(op, plan.schema, images["old"], images["new"])]

    return decode


def schema_of(names: tuple[str, ...]) -> str | None:
    return names[1] if len(names) == 3 else None


def cells(wire: Any, side: str) -> list[tuple[str, str, Any]] | None:
    found = object_of(wire, side)
    for cell in (found or {}).values():
        is_cell = type(cell) is dict and cell.keys() == {"type", "value"}
        if not is_cell or cell["type"] not in [*TYPES]:
            raise DecodeError("is no cell", field=side, sample=cell)
    return found and [(name, cell["type"], cell["value"]) for name, cell in found.items()]


def encodings(value: bytes, table: TableSchema) -> Any:
    return {column.name: TYPES[column.source_type][1] for column in table.columns}


def open_layouts(options: Any) -> list[Layout]:
    members: Any = {
        "table": "object_name", "op": "op", "key": "same", "new": "after", "old": "before",
    }  # fmt: skip
    return [
        Layout(
            members,
            OPS,
            encodings,
            extra=lambda envelope: {},
            cell="value",
            partial_before=True,
        )
    ]


class Plugin:
    @hookimpl
    def cdcfmt_register_codecs(self) -> list[CodecSpec]:
        return [
            CodecSpec(
                "shapes",
                summary="x",
                spec_url="https://example.com",
                open_decoder=open_decoder,
                open_layouts=open_layouts,
                sniff=sniff,
                emits=frozenset({"row"}),
                type_map="mysql",
                api_version=1,
            )
        ]


def sniff(message: Message) -> float:
    return 0.0


def message(op: str, number: int, table: str = "shop.orders", **more: Any) -> Message:
    key = {"id": {"type": "int", "value": number}}
    note = {"type": "text", "value": None if number % 3 else f'a"{number}'}
    row = {**key, "note": note, "at": {"type": "millis", "value": 1_700_000_000_123 + number}}
    sides = {"I": {"new": row}, "U": {"new": row, "old": key}, "D": {"old": row}}[op]
    wire = {"table": table, "op": op, "key": ["id"], **sides, **more}
    return Message(None, json.dumps(wire, separators=(",", ":")).encode(), offset=number)


@pytest.fixture
def subject() -> Iterator[Subject]:
    default_registry.cache_clear()
    assert default_registry().register(Plugin(), "shapes").error is None
    messages = [message("IUD"[n % 3], n) for n in range(30)]
    messages += [message("IU"[n % 2], n, "db.own.orders") for n in range(10)]
    yield Subject(default_registry().get_codec("shapes"), [Case("all", tuple(messages))])
    default_registry.cache_clear()


def test_kernel_reads_the_shapes(subject: Subject) -> None:
    golden.check_kernel(subject)
    messages = subject.cases[0].messages
    for given, others in (
        ({"table": "shop.orders", "images": "after"}, 1),
        # Before images that lack columns are the decoder's.
        ({"table": "shop.orders"}, 11),
        ({"images": "after"}, 2),
    ):
        options = parsed({"protocol": "shapes", **given})
        schema = inferred_schema(messages, options) if options.table else events_schema(options)
        assert schema is not None
        result = check_equal(messages, schema, options, inferred=bool(options.table))
        assert result.by_reference <= others, (given, result.refusal)


def test_other_orders_and_types_fall_back(subject: Subject) -> None:
    first = message("I", 3)
    wire = json.loads(first.value or b"")
    turned = json.dumps(wire | {"new": dict(reversed(wire["new"].items()))}).encode()
    wire["new"]["id"] |= {"type": "text", "value": "3"}
    others = [Message(None, value) for value in (turned, json.dumps(wire).encode())]
    options = parsed({"protocol": "shapes", "images": "after", "includeColumns": "true"})
    result = check_equal([first, *others, first], events_schema(options), options, inferred=False)
    assert result.by_kernel == 1


@pytest.mark.parametrize(
    ("mistake", "check", "reason"),
    [
        (lambda row: {"before": row.after, "after": row.before}, "sides", "images swapped"),
        (lambda row: {"before": row.before and Image(row.before.values)}, "case", "lacks column"),
    ],
)
def test_mistakes_in_images_are_found(
    mistake: Any, check: str, reason: str, subject: Subject
) -> None:
    """Even if the decoder itself has written the cases."""

    def open_wrong(options: Any, context: Any) -> Any:
        decode = open_decoder(options, context)

        def wrong(message: Message) -> list[Any]:
            rows: list[RowChange] = decode(message)
            return [attrs.evolve(r, **mistake(r)) if r.op == "update" else r for r in rows]

        return wrong

    own = attrs.evolve(subject.spec, open_decoder=open_wrong)
    other = Subject(own, [attrs.evolve(case, events=None) for case in subject.cases])
    checks: Any = {
        "sides": meaning.check_sides,
        "case": partial(golden.check_case, case=subject.cases[0]),
    }
    checks[check](subject)
    with pytest.raises(AssertionError, match=reason):
        checks[check](other)
