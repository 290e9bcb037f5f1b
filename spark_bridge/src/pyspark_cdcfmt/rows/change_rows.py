"""The changes shape: the typed rows of one table, with Spark's and Delta's change columns."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any, TypeAlias

import attrs

from cdcfmt_core.events import (
    Corrupt,
    Event,
    Image,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
    split_key_update,
)
from cdcfmt_core.filters import split_name
from cdcfmt_core.texts import one_line, warn_zoneless
from cdcfmt_core.types import LogicalType, Timestamp
from cdcfmt_mysql.column_changes import emptied_tables, is_emptied, namespace, vacated_names
from cdcfmt_toolkit.column_names import lacking
from cdcfmt_toolkit.plans import Plans
from cdcfmt_toolkit.row_changes import change_images, change_position
from pyspark_cdcfmt.rows.columns import match_fields, match_keys
from pyspark_cdcfmt.rows.event_rows import corrupt_record, source_of
from pyspark_cdcfmt.rows.policy import BadRow, BadValue, Convert, ValuePolicy, refuse
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.row_schemas import OF_INSTANTS, RESCUED, metadata_fields
from pyspark_cdcfmt.rows.schema_conflicts import SchemaConflicts
from pyspark_cdcfmt.rows.values import converter, plain_value
from pyspark_cdcfmt.rows.variant import encode_variant

_COLUMN_BYTES = 800
"""Bytes of a plan's column, without its schema."""

Row: TypeAlias = tuple[Any, ...]


@attrs.define
class _TablePlan:
    """The mapping of one table schema's images to the columns of the read.

    :ivar columns: for each column its name in the schema, its name in messages, and the converter.
    :ivar keys: the key columns.  Other names are those in messages.
    :ivar without_key: the ``keyColumns`` that the table lacks; the messages' key replaces them.
    """

    schema: TableSchema
    columns: list[tuple[str, str, Convert]]
    keys: tuple[str, ...]
    without_key: str | None
    surplus: tuple[str, ...]
    types: dict[str, LogicalType]
    compared: bool = False


_NEW_ROW = (
    ": it is new, by its insert or its new key, and has no earlier values to keep; let the source "
    "log whole rows (REPLICA IDENTITY FULL in PostgreSQL, binlog_row_image=FULL in MySQL)"
)


class ChangeRows:
    """Makes rows of the changes shape.

    :ivar shown: the attributes of its message that each row has, of those with any length.
    :ivar zoneless: databases and tables with TIMESTAMP columns of an unknown time zone.
    """

    def __init__(
        self, task: ReadTask, policy: ValuePolicy, zoneless: Container[tuple[str, str]] = ()
    ) -> None:
        schema, options = task.schema, task.options
        prefix = options["metadataPrefix"]
        added = {field.name for field in metadata_fields(options)}
        self._names = schema.names
        self._wants_source = prefix + "source" in schema.names
        self.shown = ("topic", "path") if self._wants_source else ()
        self._own = [field for field in schema.fields if field.name not in added]
        self._not_null = [field.name for field in schema.fields if not field.nullable]
        self._prefix = prefix
        self.wants_columns = False
        assert options.table is not None
        self._table = split_name(options.table)
        self._wants_table = options.event_filter().wants_table
        self._has_met_rows = False
        self._policy = policy
        self._zoneless = zoneless
        self._inferred = task.inferred
        self._key_columns = tuple(options["keyColumns"])
        self._case_sensitive = options.case_sensitive
        self._after_only = options["images"] == "after"
        self._split = options.splits_keys
        self._incomplete_rows = options["incompleteRows"]
        self._conflicts = SchemaConflicts([field.name for field in self._own], task, policy)
        self._plan = Plans(self._make_plan, _COLUMN_BYTES).find

    def rows(self, message: Message, event: Event, protocol: str | None) -> Iterator[Row]:
        """The rows of one event.

        :raises BadRow: if any row is refused; the event then gives no rows.
        :raises PolicyError: if an option refuses a row by ``fail``.
        """
        if isinstance(event, RowChange):
            if event.op == "truncate":
                yield from self._truncate(message, event, protocol)
            else:
                yield from self._changes(message, event, protocol)
        elif isinstance(event, SchemaChange):
            is_own = self._wants_table(event.database, event.table, event.schema)
            if is_own:
                self._conflicts.follow(event.query)
            if (is_own and event.ddl_type in ("TRUNCATE", "ERASE")) or self._empties(event):
                yield from self._truncate(message, event, protocol)
            elif self._loses_name(event):
                yield from self._truncate(message, event, protocol, is_rename=True)
        elif isinstance(event, Corrupt):
            added = self._source(message, event, protocol)
            added["corrupt_record"] = corrupt_record(message, event, protocol)
            yield self._row(added, {})

    def _empties(self, event: SchemaChange) -> bool:
        """Whether a statement empties this table: its text may name several, or a database."""
        if event.ddl_type not in ("TRUNCATE", "ERASE", "QUERY", "CREATE"):
            return False
        place = namespace(event.database, event.schema)
        # A dump often begins with DROP … IF EXISTS of missing tables.
        emptied = emptied_tables(event.query, place, if_exists=self._has_met_rows)
        return is_emptied(emptied, (event.database, event.schema), self._table)

    def _loses_name(self, event: SchemaChange) -> bool:
        """Whether a statement renames this table, and no other one to its name."""
        if "rename" not in event.query.lower():
            return False
        vacated = vacated_names(event.query, namespace(event.database, event.schema))
        return is_emptied(vacated, (event.database, event.schema), self._table)

    def _source(self, message: Message, event: Event, protocol: str | None) -> dict[str, Any]:
        return {"source": source_of(message, event, protocol)} if self._wants_source else {}

    def _changes(self, message: Message, event: RowChange, protocol: str | None) -> Iterator[Row]:
        self._has_met_rows = True
        keys = self._plan(event.table).keys
        source = self._source(message, event, protocol)
        parts = split_key_update(event, keys) if self._split else [event]
        for part in parts:
            for change_type, image in change_images(part, after_only=self._after_only):
                added = change_position(message, part, change_type, keys) | source
                yield self._change(part, image, added)

    def _change(self, event: RowChange, image: Image, added: dict[str, Any]) -> Row:
        table = event.table
        plan = self._plan(table)
        if not plan.compared and image.complete:
            plan.compared = True
            self._conflicts.compare(plan.types, {wire_name for _, wire_name, _ in plan.columns})
        is_new = added["change_type"] in ("insert", "update_postimage")
        if plan.without_key and image.complete and is_new:
            self._conflicts.lose_key(plan.without_key)
        values: dict[str, Any] = {}
        absent: list[str] = []
        rescued: dict[str, Any] = {}
        changed: list[str] = []
        self._policy.changed = changed
        wire = image.values
        for name, wire_name, convert in plan.columns:
            if wire_name not in wire:
                absent.append(name)
                continue
            value = wire[wire_name]
            if value is None:
                continue
            try:
                values[name] = convert(value)
            except BadValue as error:
                type_ = plan.types[wire_name]
                if self._conflicts.rescues_value(name, type_, error):
                    rescued[name] = plain_value(value, type_, name, self._policy)
        for name in plan.surplus:
            if wire.get(name) is not None and self._conflicts.rescues_column(name):
                rescued[name] = plain_value(wire[name], plan.types[name], name, self._policy)
        # An inferred schema may know only the columns of partial rows.
        if (absent or self._inferred) and not image.complete and is_new:
            self._refuse_partial(event, absent)
        added["absent"] = absent
        added["invalid"] = list(dict.fromkeys(changed))
        if rescued:
            added[RESCUED] = encode_variant(rescued)
        return self._row(added, values)

    def _refuse_partial(self, event: RowChange, absent: list[str]) -> None:
        chosen = self._incomplete_rows
        without = f", without {', '.join(absent)}" if absent else ""
        reason = f"the message has only part of the row{without}"
        if chosen == "unchanged" and (event.extra or {}).get("only_handle_key"):
            chosen = "corrupt"
            reason += ": TiCDC cut it to the key, so the values are unknown; use claim checks there"
        elif chosen == "unchanged" and event.op in ("insert", "read"):
            chosen = "corrupt"
            reason += _NEW_ROW
        if chosen in ("fail", "corrupt"):
            refuse("incompleteRows", chosen, reason)

    def _truncate(
        self, message: Message, event: Any, protocol: str | None, *, is_rename: bool = False
    ) -> Iterator[Row]:
        statement = getattr(event, "query", "TRUNCATE") or event.ddl_type
        if self._conflicts.passes_truncate(statement, is_rename=is_rename):
            added = change_position(message, event, "truncate", ())
            yield self._row(added | self._source(message, event, protocol), {})

    def _row(self, added: dict[str, Any], own: dict[str, Any]) -> Row:
        row = own | {self._prefix + name: value for name, value in added.items()}
        for name in self._not_null:
            if row.get(name) is None:
                raise BadRow("NULL in a column that the schema declares NOT NULL", name)
        return tuple(map(row.get, self._names))

    def _make_plan(self, table: TableSchema) -> _TablePlan:
        types = {column.name: column.type for column in table.columns}
        same = {"case_sensitive": self._case_sensitive}
        matched = match_fields(self._own, table.column_names, **same)
        database, name = one_line(table.database, 200), one_line(table.table, 200)
        if (database, name) in self._zoneless and any(
            isinstance(types[column], Timestamp) and isinstance(field.dataType, OF_INSTANTS)
            for column, field in matched.items()
        ):
            warn_zoneless(database, name)
        wire_names = {field.name: name for name, field in matched.items()}
        columns = []
        for field in self._own:
            wire_name = wire_names.get(field.name, field.name)
            convert: Convert = _no_column
            if wire_name in types:
                convert = converter(types[wire_name], field.dataType, field.name, self._policy)
            columns.append((field.name, wire_name, convert))
        keys, without_key = table.key_columns, None
        if self._key_columns:
            given = match_keys(self._key_columns, table.column_names, **same)
            without_key = lacking(given, table.column_names)
            keys = keys if without_key else given
        surplus = tuple(name for name in types if name not in matched) if self._inferred else ()
        return _TablePlan(table, columns, keys, without_key, surplus, types)


def _no_column(_: Any) -> Any:
    raise AssertionError("a value of a column that the table schema does not list")
