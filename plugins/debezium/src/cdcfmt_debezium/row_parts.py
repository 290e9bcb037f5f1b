"""The messages of rows as data for the compiled kernel."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from cdcfmt_core.events import Op, TableSchema
from cdcfmt_core.toolkit.encodings import Encoding
from cdcfmt_core.toolkit.row_messages import (
    Digits,
    Member,
    Members,
    Number,
    OfExtra,
    Part,
    RowMessage,
    Slots,
    Which,
)
from cdcfmt_debezium.connect_output import envelope_schema, key_schema_of
from cdcfmt_debezium.encode_plans import EncodePlans
from cdcfmt_debezium.payload_output import dumps, row_head


def row_message(
    op: Op, table: TableSchema, plans: EncodePlans, cluster: str, *, old_values: bool
) -> RowMessage:
    """The message of a row with all columns."""
    plan = plans.find(table)
    # Without a schema, which has the unit of each message, it is milliseconds.
    unsure = plan.unsure if plans.with_schema else ()
    slots = Slots()

    def encoding_of(name: str) -> Encoding:
        return Encoding("epoch-guessed") if name in unsure else plan.encodings[name]

    def slot(part: Part) -> orjson.Fragment:
        return orjson.Fragment(slots.add(part))

    def members(
        image: Which, names: Iterable[str], head: str = "{", missing: str = "null"
    ) -> Members:
        columns = {name: Member(f"{dumps(name).decode()}:", encoding_of(name)) for name in names}
        return Members(image, columns, head, missing=missing)

    def field(name: str) -> Any:
        if name not in unsure:
            return plan.fields[name]
        both = (found.fields[name] for found in (plan, plans.find(table, (name,))))
        return slot(Digits(name, *(orjson.dumps(field).decode() for field in both)))

    head = row_head(
        cluster,
        table,
        op,
        commit_ts=slot(Number("commit_ts")),
        source_millis=slot(Number("source_millis")),
        emit_millis=slot(Number("emit_millis")),
        transaction=slot(OfExtra("transaction", "json", "null")),
    )
    before: Part = ',"before":null'
    after: tuple[Part, ...] = (',"after":', members("after", plan.fields))
    if op == "delete":
        before, after = members("before", plan.fields, ',"after":null,"before":{'), ()
    elif op == "update":
        before = ""
        if old_values:
            before = members("before", plan.fields, ',"before":{', missing="")
    schema = plans.end(envelope_schema(plan.name, [field(name) for name in plan.fields]))
    key_schema = plans.end(key_schema_of(plan.name, [field(name) for name in plan.keys]))
    return RowMessage(
        value=(
            *slots.split(b'{"payload":' + dumps(head).removesuffix(b"}")),
            before,
            *after,
            "}",
            *slots.split(schema),
        ),
        key=(
            members("before" if op == "delete" else "after", plan.keys, '{"payload":{'),
            *slots.split(key_schema),
        ),
        wire="jsoniter",
        compresses_key=True,
    )
