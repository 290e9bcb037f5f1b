"""The events shape: one row per event, for every table and kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from cdcfmt_core import types as logical
from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.events import (
    KIND_OF,
    Corrupt,
    Event,
    Image,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
    split_key_update,
)
from cdcfmt_core.texts import qualified
from cdcfmt_toolkit.row_changes import extra_of, fields_of_columns, fields_of_schema
from pyspark_cdcfmt.rows.columns import match_keys
from pyspark_cdcfmt.rows.json_values import image_to_json
from pyspark_cdcfmt.rows.policy import ValuePolicy
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.values import plain_value, variant_form
from pyspark_cdcfmt.rows.variant import VariantEncoder, encode_variant

_STAND_FOR_THEMSELVES = frozenset({int, float, bool, Decimal, bytes, date, datetime, timedelta})
_COLUMN_BYTES = 1_000
"""Bytes of a writer's column, without its schema."""
LAST_MILLISECOND = 253_402_300_799_999  # of the year 9999

Row: TypeAlias = tuple[Any, ...]


class EventRows:
    """Makes rows of the events shape.

    :ivar shown: the attributes of its message that each row has, of those with any length.
    """

    def __init__(self, task: ReadTask, policy: ValuePolicy) -> None:
        schema, options = task.schema, task.options
        self._names = schema.names
        self._policy = policy
        self._key_columns = tuple(options["keyColumns"])
        self._case_sensitive = options.case_sensitive
        self._after_only = options["images"] == "after"
        self._split = options.splits_keys
        self._json = options["imageFormat"] == "json"
        self._wants_images = bool({"before", "after"} & set(schema.names))
        self.wants_columns = "columns" in schema.names
        self._wants_headers = "headers" in schema.names
        place = ("topic", "path") if "_source" in schema.names else ()
        self.shown = (*place, "headers") if self._wants_headers else place
        self._plans: Cache[TableSchema, tuple[tuple[str, ...], Callable[[Image], Any]]] = Cache()

    def rows(self, message: Message, event: Event, protocol: str | None) -> Iterator[Row]:
        """The rows of one event: one, or two if a key update is split.

        :raises BadRow: for a value that the policy refuses.
        :raises PolicyError: if the policy ends the read.
        """
        if isinstance(event, RowChange):
            keys, write = self._plan(event.table)
            parts = split_key_update(event, keys) if self._split else [event]
            for part in parts:
                yield self._row(message, part, protocol, self._of_row_change(part, keys, write))
        elif isinstance(event, Corrupt):
            record = corrupt_record(message, event, protocol)
            yield self._row(message, event, protocol, {"_corrupt_record": record})
        else:
            yield self._row(message, event, protocol, _of_table_event(event))

    def _plan(self, table: TableSchema) -> tuple[tuple[str, ...], Callable[[Image], Any]]:
        """The key columns of a table, and the writer of its images."""
        plan = self._plans.get(table)
        if plan is None:
            keys = table.key_columns
            if given := self._key_columns:
                keys = match_keys(given, table.column_names, case_sensitive=self._case_sensitive)
            values_of = image_values(table, self._policy, as_json=self._json)
            encode: Callable[[Any], Any] = image_to_json
            if not self._json:
                encode = VariantEncoder(table.column_names).encode
            plan = keys, lambda image: encode(values_of(image))
            self._plans.add(table, plan, table_size(table, _COLUMN_BYTES))
        return plan

    def _row(
        self, message: Message, event: Event, protocol: str | None, values: dict[str, Any]
    ) -> Row:
        commit_ts: int | None = getattr(event, "commit_ts", None)
        extra = extra_of(event)
        if self.wants_columns:
            extra = extra | _added_extra(event)
        values |= {
            "kind": KIND_OF[type(event)],
            "commit_ts": commit_ts,
            "commit_time": microseconds(None if commit_ts is None else commit_ts >> 18),
            "source_time": getattr(event, "source_time", None),
            "emit_time": getattr(event, "emit_time", None),
            "extra": encode_variant(extra) if extra else None,
            "_source": source_of(message, event, protocol),
        }
        if self._wants_headers:
            values["headers"] = [{"key": k, "value": v} for k, v in message.headers]
        return tuple(map(values.get, self._names))

    def _of_row_change(
        self, event: RowChange, keys: tuple[str, ...], write: Callable[[Image], Any]
    ) -> dict[str, Any]:
        table = event.table
        values: dict[str, Any] = {
            "op": event.op,
            "database": table.database,
            "schema": table.schema,
            "table": table.table,
            "key_columns": list(keys),
        }
        if self.wants_columns:
            values["columns"] = fields_of_columns(table)
        if self._wants_images:
            if event.before is not None and not (self._after_only and event.after is not None):
                values["before"] = write(event.before)
            if event.after is not None:
                values["after"] = write(event.after)
        return values


def image_values(
    table: TableSchema, policy: ValuePolicy, *, as_json: bool
) -> Callable[[Image], dict[str, Any]]:
    """A function from a table's images to the values in JSON text or a variant."""
    types = {column.name: column.type for column in table.columns}
    place = qualified(*table.name)
    # Only values of some types need conversion.
    untyped = {name for name, type_ in types.items() if isinstance(type_, logical.Unknown)}
    forms = [
        (name, form) for name, type_ in types.items() if (form := variant_form(type_)) is not None
    ]

    def values_of(image: Image) -> dict[str, Any]:
        values = {
            name: (
                value
                if value is None or (type(value) in _STAND_FOR_THEMSELVES and name not in untyped)
                else plain_value(value, types[name], f"{place}.{name}", policy, as_json=as_json)
            )
            for name, value in image.values.items()
        }
        for name, form in forms:
            if type(values.get(name)) is int:
                values[name] = form(values[name])
        return values

    return values_of


ADDED_EXTRA = ("sequence_commit", "partial")
"""Names that ``includeColumns`` adds to ``extra``."""


def _added_extra(event: Any) -> dict[str, Any]:
    """Fields that ``changes`` needs and that have no column; ``includeColumns`` adds them."""
    added: dict[str, Any] = {}
    if getattr(event, "sequence_commit", None) is not None:
        added["sequence_commit"] = event.sequence_commit
    if isinstance(event, RowChange):
        images = {"before": event.before, "after": event.after}
        partial = [name for name, image in images.items() if image and not image.complete]
        if partial:
            added["partial"] = partial
    return added


def microseconds(milliseconds: int | None) -> int | None:
    """Milliseconds since 1970 as microseconds; None beyond the range of timestamps."""
    # A number outside of the range of timestamps is not a time.
    if milliseconds is None or not 0 <= milliseconds <= LAST_MILLISECOND:
        return None
    return milliseconds * 1000


def source_of(message: Message, event: Event, protocol: str | None) -> dict[str, Any]:
    """The ``_source`` of both shapes."""
    return {
        "protocol": protocol,
        "topic": message.topic,
        "path": message.path,
        "partition": message.partition,
        "offset": message.offset,
        "index": event.index,
        "timestamp": microseconds(message.timestamp),
        "epoch": message.epoch,
    }


def corrupt_record(message: Message, event: Corrupt, protocol: str | None) -> dict[str, Any]:
    """The ``_corrupt_record`` of both shapes."""
    return {
        "reason": str(event.error),
        "key": message.key,
        "value": message.value,
        "source": source_of(message, event, protocol),
    }


def _of_table_event(event: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    schema: TableSchema | None = getattr(event, "table_schema", None)
    if schema is not None:
        fields = fields_of_schema(schema)
        values = {name: fields[name] for name in fields if name != "columns"}
        values["table_schema"] = fields
    if isinstance(event, SchemaChange):
        values["database"] = event.database
        values["schema"] = event.schema
        values["table"] = event.table
        values["ddl"] = {"query": event.query, "type": event.ddl_type}
    return values
