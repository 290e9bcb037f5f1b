"""The layouts of rows, by writer schema, for the compiled kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdcfmt_core.events import TableSchema
from cdcfmt_core.schema_registry import WriterSchema
from cdcfmt_ticdc_avro.message import ADDED, BEFORE, CHECKSUM, COMMIT_TS, OP, OPS, PHYSICAL_TIME
from cdcfmt_ticdc_avro.plans import names_of, value_encoding
from cdcfmt_toolkit.avro_schemas import parse_avro, plain_schema
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.layout import Avro, Extra, Layout, Role, WriterLayouts

_ROLES: Mapping[str, Role] = {
    OP: "op",
    COMMIT_TS: "commit_ts",
    PHYSICAL_TIME: "source_time",
    BEFORE: "before",
}


def open_layouts(options: Mapping[str, Any]) -> Sequence[WriterLayouts]:
    return [WriterLayouts(lambda schema, _: _layout_of(schema))]


def _layout_of(writer: WriterSchema) -> Layout | None:
    """The layout of rows; None with a checksum, which the decoder verifies."""
    root = parse_avro(writer)
    fields = {field.name: field for field in root.fields}
    # Without its own field, the time follows from the commit_ts.
    derives_time = (COMMIT_TS in fields) != (PHYSICAL_TIME in fields)
    if root.kind != "record" or CHECKSUM in fields or derives_time:
        return None
    database, table = names_of(root)

    def encodings(_: bytes, schema: TableSchema) -> dict[str, Encoding]:
        return {
            column.name: value_encoding(fields[column.name], column.type)
            for column in schema.columns
        }

    members: dict[str, Any] = {name: _ROLES.get(name, "passed") for name in fields if name in ADDED}
    extra: dict[tuple[str, ...], Extra] = {}
    if COMMIT_TS in fields and BEFORE not in fields:
        # It must not order the rows: deletes have none.
        members[COMMIT_TS] = "extra"
        extra[COMMIT_TS,] = Extra("commit_ts", (None, 0))
    return Layout(
        members=members,
        ops=OPS,
        encodings=encodings,
        deleted_row="after",  # The columns hold the old row.
        keyed=True,
        extra=lambda _: extra,
        avro=Avro(
            plain_schema(root),
            has_columns=True,
            table=(database, "", table),
            least={COMMIT_TS: 1},
        ),
    )
