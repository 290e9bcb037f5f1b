"""The settings of a read as data for the kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import attrs
import pyarrow as pa
from pyspark.sql import types as spark
from pyspark.sql.types import StructField

from cdcfmt_core.codec import Projection
from cdcfmt_core.errors import PolicyError
from cdcfmt_core.events import Op, TableSchema
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_toolkit.column_names import lacking
from cdcfmt_toolkit.layout import Layout, Members
from pyspark_cdcfmt.rows.columns import match_fields, match_keys
from pyspark_cdcfmt.rows.policy import ValuePolicy
from pyspark_cdcfmt.rows.read_task import ReadTask, TaskState
from pyspark_cdcfmt.rows.record_batches import MAX_BATCH_BYTES, MAX_ROWS, fixed_bytes
from pyspark_cdcfmt.rows.row_schemas import metadata_fields
from pyspark_cdcfmt.rows.types import OWN_TYPES
from pyspark_cdcfmt.spark_api import arrow_schema


class Unsupported(Exception):
    """Only the reference can decode messages with these settings."""


@attrs.define
class NumberedTables:
    """Table schemas by number, for rows that the writing kernel encodes."""

    schemas: list[TableSchema] = attrs.field(factory=list)
    _numbers: dict[TableSchema, int] = attrs.field(factory=dict)

    def number_of(self, table: TableSchema) -> int:
        """The number of a schema; a new schema gets a new one."""
        if table not in self._numbers:
            self._numbers[table] = len(self.schemas)
            self.schemas.append(table)
        return self._numbers[table]

    def clear(self) -> None:
        """Remove all schemas; no plan may use a number after that."""
        self.schemas.clear()
        self._numbers.clear()


@attrs.frozen
class Shape:
    """The wanted shape of every table.

    :ivar schema: schema of the rows.
    :ivar metadata: the added columns: name, and name without prefix.
    :ivar fields: the table's own columns; empty in the events shape.
    :ivar inferred: whether a column that the schema lacks is a schema change.
    :ivar split: whether an update of the key is two changes, which the reference makes.
    :ivar schemas: the decoder's table schemas.
    :ivar events: form of the images in the events shape.
    :ivar numbered: whether rows have the number of their table schema in ``table_number``, and
        JSON columns in images are texts.
    :ivar row_bytes: bytes of a row of NULLs.
    :ivar low_watermark: rows with a smaller commit_ts may be duplicates.
    """

    schema: pa.Schema
    metadata: Mapping[str, str]
    fields: Sequence[StructField]
    projection: Projection
    event_filter: EventFilter
    schemas: SchemaStore
    policy: ValuePolicy
    inferred: bool
    split: bool
    events: Literal["json", "variant"] | None = None
    row_bytes: int = 0
    low_watermark: int = 0
    numbered: NumberedTables | None = None

    @property
    def shows_source(self) -> bool:
        """Whether rows have the position of their message."""
        return not {"source", "_source"}.isdisjoint(self.metadata.values())

    @property
    def shown(self) -> tuple[str, ...]:
        """The attributes of its message that each row has, of those with any length."""
        place = ("topic", "path") if self.shows_source else ()
        return (*place, "headers") if "headers" in self.metadata.values() else place

    @property
    def shows_columns(self) -> bool:
        """Whether events have the columns of their table."""
        return self.events is not None and "columns" in self.metadata

    @property
    def shows_origins(self) -> bool:
        """Whether rows have attributes of their message besides key and value."""
        return bool(self.shown)

    def key_of(self, table: TableSchema) -> tuple[str, ...]:
        """The key columns by option or schema; the table may lack them.

        :raises Unsupported: for an ambiguous name, which the reference reports.
        """
        given = self.projection.key_columns
        if not given:
            return table.key_columns
        try:
            keys = match_keys(given, table.column_names, case_sensitive=self._case_sensitive)
        except PolicyError as error:
            raise Unsupported(str(error)) from error
        reason = None if self.events else lacking(keys, table.column_names)
        if reason:
            raise Unsupported(reason)
        return keys

    def keys_of(self, table: TableSchema) -> tuple[str, ...]:
        """The table's existing key columns, by option or schema."""
        return tuple(name for name in self.key_of(table) if name in table.column_names)

    def wanted_of(self, table: TableSchema) -> tuple[str, ...]:
        """The table's columns to parse."""
        looked_at = self.projection.wanted_of(table.column_names, self.keys_of(table))
        if looked_at is None:
            return table.column_names
        return tuple(name for name in table.column_names if name in looked_at)

    @property
    def _case_sensitive(self) -> bool:
        return self.projection.case_sensitive

    def own_of(self, table: TableSchema) -> dict[str, StructField]:
        """The fields by the names of the table's columns.

        :raises Unsupported: for ambiguous names, which the reference reports.
        """
        try:
            return match_fields(
                self.fields, table.column_names, case_sensitive=self._case_sensitive
            )
        except PolicyError as error:
            raise Unsupported(str(error)) from error


def make_shape(task: ReadTask, state: TaskState) -> Shape:
    schema, options = task.schema, task.options
    events = options.table is None
    added = schema.fields if events else metadata_fields(options)
    prefix = "" if events else options["metadataPrefix"]
    known = {field.name: field.name.removeprefix(prefix) for field in added}
    metadata = {name: known[name] for name in schema.names if name in known}
    return Shape(
        schema=arrow_schema(schema),
        metadata=metadata,
        fields=[field for field in schema.fields if field.name not in metadata],
        projection=task.projection,
        event_filter=state.event_filter,
        schemas=task.schemas,
        policy=state.policy,
        inferred=task.inferred,
        split=options.splits_keys,
        events=options["imageFormat"] if events else None,
        row_bytes=fixed_bytes(schema),
        low_watermark=task.low_watermark,
    )


_EVENTS = (
    *("kind", "op", "database", "schema", "table", "commit_time", "source_time", "emit_time"),
    *("key_columns", "columns", "extra"),
)
_CHANGES = ("change_type", "commit_version", "commit_timestamp", "sequence", "absent")
_NULLABLE = ("commit_version", "commit_timestamp", "corrupt_record", "rescued")
_TARGETS: dict[type, str] = {
    **{type_: type_.typeName() for type_ in OWN_TYPES},
    spark.DayTimeIntervalType: "interval",
}


def describe_settings(
    layouts: Sequence[Layout],
    shape: Shape,
    max_message_bytes: int,
    *,
    framed: bool = False,
    headers: Sequence[str] | None = None,
) -> dict[str, Any]:
    """The settings for all messages, except the time zone.

    :param framed: whether messages name their writer schemas, which are added later.
    :param headers: how names of headers begin on which layouts depend, beside the topic.
    :raises Unsupported: if only the reference can decode the messages.
    """
    metadata = shape.metadata
    outputs: list[dict[str, Any]] = []
    if any("\0" in field.name for field in shape.fields):
        # Arrow's C interface ends names at NUL.
        raise Unsupported("a column has NUL in its name")
    for field in shape.fields:
        target = _target(field.dataType)
        if target is not None:
            outputs.append(
                {"name": field.name, "content": "value", "nullable": field.nullable, **target}
            )
        elif not field.nullable:
            raise Unsupported(f"{field.name} is NOT NULL and of a type that the kernel lacks")
    for name, plain in metadata.items():
        if plain in _NULLABLE and not shape.schema.field(name).nullable:
            raise Unsupported(f"{name} is NOT NULL, which the kernel does not check")
    outputs += _events(metadata) if shape.events else _changes(metadata)
    outputs.append({"name": "message", "content": "message"})
    if shape.numbered is not None:
        number = "table_number"
        outputs.append({"name": number, "content": "event", "column": number})
    if shape.shows_source:
        outputs += [{"name": name, "content": name} for name in ("index", "offset")]
    return {
        "layouts": [describe_layout(layout) for layout in layouts],
        "framed": framed,
        "headers": headers,
        "outputs": outputs,
        "starting_commit_ts": shape.event_filter.starting_commit_ts,
        "ending_commit_ts": shape.event_filter.ending_commit_ts,
        "starting_source_time": shape.event_filter.starting_source_time,
        "ending_source_time": shape.event_filter.ending_source_time,
        "low_watermark": shape.low_watermark,
        "wanted_ops": _wanted_ops(shape.event_filter),
        "before_updates": shape.projection.before_updates,
        "splits_keys": shape.split,
        "max_message_bytes": max_message_bytes,
        "max_rows": MAX_ROWS,
        "max_bytes": MAX_BATCH_BYTES,
        "row_bytes": shape.row_bytes,
        "shown": {"place": "topic" in shape.shown, "headers": "headers" in shape.shown},
        "images": shape.events if _has_images(shape) else None,
        # As the reference, which writes events without rows between.
        "keeps_order": shape.numbered is not None,
    }


def _wanted_ops(event_filter: EventFilter) -> list[str] | None:
    if not event_filter.wants_kind("row"):
        return []
    if event_filter.ops is None:
        return None
    # A truncation has no row.
    return [op for op in get_args(Op) if op in event_filter.ops and op != "truncate"]


def _changes(metadata: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"name": n, "content": plain} for n, plain in metadata.items() if plain in _CHANGES]


def _events(metadata: Mapping[str, str]) -> list[dict[str, Any]]:
    outputs: list[dict[str, Any]] = []
    for name in metadata:
        if name in _EVENTS:
            outputs.append({"name": name, "content": "event", "column": name})
        elif name in ("before", "after"):
            outputs.append({"name": name, "content": name})
        elif name == "commit_ts":
            outputs.append({"name": name, "content": "commit_version"})
    return outputs


def _has_images(shape: Shape) -> bool:
    """Whether there are columns in images."""
    return shape.events is not None and shape.projection.columns is None


def _target(type_: spark.DataType) -> dict[str, Any] | None:
    if isinstance(type_, spark.DecimalType):
        return {"type": "decimal", "precision": type_.precision, "scale": type_.scale}
    if isinstance(type_, spark.ArrayType):
        return _nested("array", "element", type_.elementType, type_.containsNull)
    if isinstance(type_, spark.MapType) and isinstance(type_.keyType, spark.StringType):
        return _nested("map", "value", type_.valueType, type_.valueContainsNull)
    if isinstance(type_, spark.StructType):
        fields = [_field(each.name, each.dataType, each.nullable) for each in type_.fields]
        return {"type": "struct", "fields": fields} if all(fields) else None
    name = _TARGETS.get(type(type_))
    return None if name is None else {"type": name}


def _nested(kind: str, part: str, type_: spark.DataType, nullable: bool) -> dict[str, Any] | None:
    field = _field(part, type_, nullable)
    return field and {"type": kind, part: field}


def _field(name: str, type_: spark.DataType, nullable: bool) -> dict[str, Any] | None:
    target = _target(type_)
    return target and {"name": name, "nullable": nullable, **target}


def describe_layout(layout: Layout) -> dict[str, Any]:
    """A layout, as JSON."""
    return attrs.asdict(layout, filter=attrs.filters.exclude(*_OF_BRIDGE)) | {
        "begins": layout.begins.decode(),
        "lacks": [text.decode("utf-8", "replace") for text in layout.lacks],
        "members": _members(layout.members),
        "ops": dict(layout.ops),
        "row_words": [json.dumps(word, ensure_ascii=False) for word in layout.row_words],
    }


_OF_BRIDGE = ("encodings", "extra", "limits", "zoned", "repeats_database", "reads_all")
"""The fields of layouts that the kernel does not need."""


def _members(members: Members) -> list[dict[str, Any]]:
    return [
        {"name": name, "role": role if isinstance(role, str) else _members(role)}
        for name, role in members.items()
    ]
