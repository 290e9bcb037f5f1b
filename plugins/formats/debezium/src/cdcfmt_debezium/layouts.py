"""The layouts of row messages, for the compiled kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from cdcfmt_core.events import Message, TableSchema
from cdcfmt_core.schema_registry import WriterSchema
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_debezium.avro import ESCAPED
from cdcfmt_debezium.envelope import FINER_TIMES, TIMES, log_in, position_of
from cdcfmt_debezium.flattened_layouts import FlattenedLayouts
from cdcfmt_debezium.framed import FramedSchema, FramedSchemas
from cdcfmt_debezium.message import OP_OF_WORD, PAYLOAD_KNOWN, SOURCE_TAKEN, TICDC
from cdcfmt_debezium.options import profiles
from cdcfmt_debezium.profile import ProducerProfile, profile_of
from cdcfmt_debezium.unavailable import Unavailable
from cdcfmt_debezium.value_encodings import column_encodings, of_column
from cdcfmt_toolkit.avro_schemas import AvroNode, plain_schema
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.layout import Avro, Extra, Layout, Members, Path, WriterLayouts
from cdcfmt_toolkit.wire_json import text_of

_SOURCE: Members = {
    "version": "passed",
    "connector": "same",
    "name": "same",
    "ts_ms": "source_time",
    "snapshot": "extra",
    "db": "database",
    "sequence": "extra",
    "schema": "schema",
    "table": "table",
    "server_id": "extra",
    "gtid": "extra",
    "file": "same",
    "pos": "position",
    "row": "extra",
    "thread": "extra",
    "query": "extra",
    "commit_ts": "commit_ts",
    "start_ts": "extra",
    "cluster_id": "extra",
}
_OF_BINLOG = frozenset({"server_id", "gtid", "file", "pos", "row", "thread", "query"})
_POSTGRES: Members = {
    **{name: part for name, part in _SOURCE.items() if name not in _OF_BINLOG},
    "txId": "extra",
    "lsn": "extra",
    "xmin": "extra",
    "origin": "extra",
    "origin_lsn": "extra",
}
_PAYLOAD: Members = {
    "before": "before",
    "after": "after",
    "source": _SOURCE,
    "transaction": "extra",
    "op": "op",
    "ts_ms": "other_time",
}
# Newer connectors write each time in three units; the finest is used.
_FINER: Mapping[str, Any] = {"ts_ms": "passed", "ts_ns": "passed"}


def open_layouts(options: Mapping[str, Any]) -> Sequence[Layout | WriterLayouts]:
    """The layouts of envelopes, or of flattened records; none for compressed values."""
    if options["largeMessageHandleCompression"] != "none":
        return ()
    layout = Layout(
        members=_PAYLOAD,
        ops={word: op for word, op in OP_OF_WORD.items() if op != "truncate"},
        encodings=column_encodings(profiles(options)),
        times=TIMES,
        lacks=Unavailable(options["unavailableValuePlaceholder"] or "").marks,
        connect=True,
        keyed=True,
        log=log_in(_paths(_SOURCE)),
        limits=_limits,
        extra=_extra,
    )
    schemas = FramedSchemas(ESCAPED[options["fieldNameAdjustmentMode"]])
    if options["flattened"]:
        flattened = FlattenedLayouts(options, layout, schemas, profiles(options))
        return (WriterLayouts(flattened.layout_of, flattened.headers),)
    postgres = attrs.evolve(
        layout,
        members={**_PAYLOAD, "source": _POSTGRES},
        log=log_in(_paths(_POSTGRES)),
        extra=lambda envelope: _parts(envelope, _POSTGRES),
    )
    return (
        layout,
        _finer(layout),
        postgres,
        _finer(postgres),
        WriterLayouts(_avro_layouts(layout, schemas, profiles(options))),
    )


def _finer(layout: Layout) -> Layout:
    """The layout of newer connectors."""
    of_source: Any = layout.members["source"]
    members: Members = {
        **layout.members,
        **_FINER,
        "ts_us": "other_time",
        "source": {**of_source, **_FINER, "ts_us": "source_time"},
    }
    return attrs.evolve(layout, members=members, times=FINER_TIMES)


def _extra(envelope: Mapping[str, Any]) -> dict[tuple[str, ...], Extra]:
    """The known members in the ``extra`` of :func:`~cdcfmt_debezium.envelope.extra_of`."""
    return _parts(envelope, _SOURCE)


def _parts(envelope: Mapping[str, Any], of_source: Iterable[str]) -> dict[tuple[str, ...], Extra]:
    without: tuple[Any, ...] = (None, "")
    if envelope["source"].get("connector") == TICDC:
        without += (0, False)
    parts: dict[tuple[str, ...], Extra] = {
        ("source", name): Extra(name, without) for name in of_source if name not in SOURCE_TAKEN
    }
    if ("source", "snapshot") in parts:
        parts["source", "snapshot"] = Extra("snapshot", (*without, "false", False))
    parts["transaction",] = Extra("transaction", (None, "", 0, False, [], {}))
    return parts


def _avro_layouts(
    base: Layout, schemas: FramedSchemas, of_producers: Mapping[str, ProducerProfile]
) -> Callable[[WriterSchema, Message], Layout | None]:
    def layout_of(writer: WriterSchema, _: Message) -> Layout | None:
        framed = schemas.of(writer)
        if framed.root is None or framed.schema is None or framed.schema.is_flinks:
            return None
        return _avro_layout(base, framed.root, framed, of_producers)

    return layout_of


def _avro_layout(
    base: Layout, root: AvroNode, framed: FramedSchema, of_producers: Mapping[str, ProducerProfile]
) -> Layout | None:
    """The layout of envelopes; None if the decoder must find their table or their times."""
    read, schema = framed.read, framed.schema
    assert read is not None
    assert schema is not None
    fields = {field["field"]: field for field in schema.fields}
    source = dict.fromkeys(each["field"] for each in fields.get("source", {}).get("fields", ()))
    columns = schema.row_fields() or {}
    is_finer = "ts_us" in source
    has_names = {"db", "table", "ts_ms", "connector"} <= source.keys() and "op" in fields
    # A keyspace is a database, and Oracle's positions are texts.
    is_other = not source.keys().isdisjoint(("keyspace", "scn", "commit_scn"))
    is_other = is_other or ("commit_lsn" in source and "change_lsn" not in source)
    has_times = "ts_ms" in fields and is_finer == ("ts_us" in fields)
    images = [fields.get(image, {}).get("type") for image in ("before", "after")]
    if not has_names or not has_times or is_other or images != ["struct", "struct"]:
        return None
    in_source, in_payload = dict(_SOURCE), dict(_PAYLOAD)
    if is_finer:
        in_source |= {**_FINER, "ts_us": "source_time"}
        in_payload |= {**_FINER, "ts_us": "other_time"}
    members: dict[str, Any] = {name: in_payload.get(name, "extra") for name in fields}
    members["source"] = {name: in_source.get(name, "extra") for name in source}

    def extra(envelope: Mapping[str, Any]) -> dict[tuple[str, ...], Extra]:
        parts = _parts(envelope, source)
        if "transaction" not in fields:
            del parts["transaction",]
        return parts | {(name,): Extra(name, ()) for name in fields if name not in PAYLOAD_KNOWN}

    def encodings(payload: bytes, table: TableSchema) -> dict[str, Encoding]:
        connector = read(payload)["source"].get("connector")
        profile = profile_of(of_producers, connector, table.schema)
        return {
            column.name: of_column(column, columns[column.name], profile)
            for column in table.columns
        }

    return attrs.evolve(
        base,
        members=members,
        encodings=encodings,
        extra=extra,
        times=FINER_TIMES if is_finer else TIMES,
        connect=False,
        log=log_in(_paths(source)),
        avro=Avro(plain_schema(root, framed.names)),
    )


def _paths(source: Iterable[str]) -> dict[str, Path]:
    return {name: ("source", name) for name in source}


def _limits(
    envelope: Mapping[str, Any], schemas: SchemaStore
) -> Mapping[tuple[str, ...], tuple[int, int]] | None:
    """The position range in which a DDL's schema is valid: up to the stream's next DDL."""
    source = envelope["source"]
    position = position_of(source)
    schema, stream = text_of(source, "schema") or None, text_of(source, "name")
    database, table = text_of(source, "db"), text_of(source, "table")
    if position is None:
        newest = schemas.find(database, table, None, schema=schema, stream=stream)
        return {} if newest is None else None
    low, high = schemas.span(database, table, position, schema=schema, stream=stream)
    if low is None and high is None:
        return {}
    # Rows of one plan have the same binlog file.
    last = "commit_ts" if len(position) == 1 else "pos"
    first_one, last_one = 0, (1 << 63) - 1
    for end in (low, high):
        if end is not None and len(end) != len(position):
            return None
    if low is not None and low[:-1] == position[:-1]:
        first_one = max(first_one, low[-1])
    if high is not None and high[:-1] == position[:-1]:
        last_one = min(last_one, high[-1] - 1)
    return {("source", last): (first_one, last_one)}
