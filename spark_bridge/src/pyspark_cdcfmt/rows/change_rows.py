"""The changes shape: the typed rows of one table, with Spark's and Delta's change columns."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any, NoReturn, TypeAlias

import attrs
from pyspark.sql.types import StructType

from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.column_names import lacking
from cdcfmt_core.errors import show
from cdcfmt_core.events import (
    Corrupt,
    Event,
    Image,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
)
from cdcfmt_core.mysql.column_changes import ColumnChanges
from cdcfmt_core.row_changes import change_images, change_position, split_key_update
from cdcfmt_core.texts import one_line
from cdcfmt_core.types import LogicalType, Timestamp, Unknown
from cdcfmt_core.zoneless import warn_zoneless
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.rows.change_schema import OF_INSTANTS, RESCUED, metadata_fields
from pyspark_cdcfmt.rows.columns import match_fields, match_keys
from pyspark_cdcfmt.rows.event_rows import corrupt_record, source_of
from pyspark_cdcfmt.rows.policy import BadRow, BadValue, ValuePolicy, refuse
from pyspark_cdcfmt.rows.schema_conflicts import column_conflicts, statement_conflicts
from pyspark_cdcfmt.rows.values import Convert, converter, plain_value
from pyspark_cdcfmt.rows.variant import encode_variant

_COLUMN_BYTES = 800
"""Of a column of a plan, beside its schema."""

Row: TypeAlias = tuple[Any, ...]


@attrs.define
class _TablePlan:
    """How the images of one table schema become the schema's columns.

    ``columns`` have the schema's name, the wire's, and what converts a value; ``keys`` are the
    key's columns, and the other names are the wire's.  ``without_key`` says which of
    ``keyColumns`` the table lacks: the messages' own key then stands in its place.
    """

    columns: list[tuple[str, str, Convert]]
    keys: tuple[str, ...]
    without_key: str | None
    surplus: tuple[str, ...]
    types: dict[str, LogicalType]
    compared: bool = False


class ChangeRows:
    """Makes rows of the changes shape.

    ``inferred`` tells that the schema is ours: then a column that it lacks is a change of
    the table's schema, while a user's own schema is a projection.  ``zoneless`` are databases and
    tables with TIMESTAMP columns whose time zone is not known.
    """

    def __init__(
        self,
        schema: StructType,
        options: ReadOptions,
        policy: ValuePolicy,
        *,
        inferred: bool,
        zoneless: Container[tuple[str, str]] = (),
    ) -> None:
        prefix = options["metadataPrefix"]
        added = {field.name for field in metadata_fields(options)}
        self._names = schema.names
        self._wants_source = prefix + "source" in schema.names
        self._own = [field for field in schema.fields if field.name not in added]
        self._not_null = [field.name for field in schema.fields if not field.nullable]
        self._prefix = prefix
        self.wants_columns = False
        self._policy = policy
        self._zoneless = zoneless
        self._inferred = inferred
        self._key_columns = tuple(options["keyColumns"])
        self._case_sensitive = options.case_sensitive
        self._after_only = options["images"] == "after"
        self._split = options.splits_keys
        self._incomplete_rows = options["incompleteRows"]
        on_change, rescued = options["onSchemaChange"], prefix + RESCUED in schema.names
        self._on_value = on_change or "fail"
        self._on_column = on_change or ("rescue" if rescued else "fail")
        self._on_truncate = options["onTruncate"]
        self._in_stream = options.streaming
        self._ignored_columns = options["ignoreColumns"]
        self._plans: Cache[TableSchema, _TablePlan] = Cache()
        self._wire_columns: set[str] = set()
        self._ddl: str | None = None

    def rows(self, message: Message, event: Event, protocol: str | None) -> Iterator[Row]:
        """The rows of one event.

        :raises BadRow: if a row may not pass; none of the event's rows are given then.
        :raises PolicyError: if an option refuses one by ``fail``.
        """
        if isinstance(event, RowChange):
            if event.op == "truncate":
                yield from self._truncate(message, event, protocol)
            else:
                yield from self._changes(message, event, protocol)
        elif isinstance(event, SchemaChange):
            self._ddl = event.query
            if self._in_stream:
                self._check_columns(event.query)
            if event.ddl_type in ("TRUNCATE", "ERASE"):
                yield from self._truncate(message, event, protocol)
        elif isinstance(event, Corrupt):
            added = self._source(message, event, protocol)
            added["corrupt_record"] = corrupt_record(message, event, protocol)
            yield self._row(added, {})

    def _source(self, message: Message, event: Event, protocol: str | None) -> dict[str, Any]:
        return {"source": source_of(message, event, protocol)} if self._wants_source else {}

    def _changes(self, message: Message, event: RowChange, protocol: str | None) -> Iterator[Row]:
        keys = self._plan(event.table).keys
        source = self._source(message, event, protocol)
        parts = split_key_update(event, keys) if self._split else [event]
        for part in parts:
            for change_type, image in change_images(part, after_only=self._after_only):
                added = change_position(message, part, change_type, keys) | source
                yield self._change(part.table, image, added)

    def _change(self, table: TableSchema, image: Image, added: dict[str, Any]) -> Row:
        plan = self._plan(table)
        if not plan.compared and image.complete:
            self._compare(plan)
        is_new = added["change_type"] in ("insert", "update_postimage")
        if plan.without_key and image.complete and is_new:
            self._lost_key(plan.without_key)
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
                self._unfit(name, value, plan.types[wire_name], error, rescued)
        for name in plan.surplus:
            if wire.get(name) is not None:
                self._surplus(name, wire[name], plan.types[name], rescued)
        # An inferred schema may know only what partial rows hold.
        if (
            (absent or self._inferred)
            and not image.complete
            and self._incomplete_rows != "emit"
            and is_new
        ):
            without = f", without {', '.join(absent)}" if absent else ""
            reason = f"the message holds only part of the row{without}"
            refuse("incompleteRows", self._incomplete_rows, reason)
        added["absent"] = absent
        added["invalid"] = list(dict.fromkeys(changed))
        if rescued:
            added[RESCUED] = encode_variant(rescued)
        return self._row(added, values)

    def _truncate(self, message: Message, event: Any, protocol: str | None) -> Iterator[Row]:
        if self._on_truncate == "ignore":
            self._policy.counts["truncates and drops of the table, ignored"] += 1
            return
        if self._on_truncate != "row":
            what = show(getattr(event, "query", "TRUNCATE"))
            refuse("onTruncate", self._on_truncate, f"the table is truncated or dropped by {what}")
        added = change_position(message, event, "truncate", ())
        yield self._row(added | self._source(message, event, protocol), {})

    def _row(self, added: dict[str, Any], own: dict[str, Any]) -> Row:
        row = own | {self._prefix + name: value for name, value in added.items()}
        for name in self._not_null:
            if row.get(name) is None:
                raise BadRow("NULL in a column that the schema declares NOT NULL", name)
        return tuple(map(row.get, self._names))

    def _unfit(
        self,
        name: str,
        value: Any,
        type_: LogicalType,
        error: BadValue,
        rescued: dict[str, Any],
    ) -> None:
        if self._on_value in ("fail", "corrupt"):
            advice = "; declare a type that holds it"
            if "declare" in str(error):
                advice = ""
            elif isinstance(type_, Unknown):
                advice = (
                    "; the wire does not tell the column's type: declare a string, or read the "
                    "messages that tell the types, too (DDL, Debezium's schema change topic)"
                )
            self._refuse_change(self._on_value, f"{error}{advice}", name)
        if self._on_value == "ignore":
            self._policy.note(name, "value that does not fit, as NULL")
        else:
            rescued[name] = plain_value(value, type_, name, self._policy)

    def _surplus(self, name: str, value: Any, type_: LogicalType, rescued: dict[str, Any]) -> None:
        if self._on_column in ("fail", "corrupt"):
            self._refuse_change(
                self._on_column,
                "the schema has no such column (it was inferred from other messages): raise "
                "inferSampleMessages, or give a schema",
                name,
            )
        text = f"{name}: column that the schema lacks, "
        if self._on_column == "ignore":
            self._policy.counts[text + "left out"] += 1
        else:
            self._policy.counts[f"{text}in {self._prefix}{RESCUED}"] += 1
            rescued[name] = plain_value(value, type_, name, self._policy)

    def _lost_key(self, reason: str) -> None:
        if self._on_value in ("fail", "corrupt"):
            self._refuse_change(self._on_value, reason, None)
        self._policy.counts[f"{reason}: key of the messages in its place"] += 1

    def _refuse_change(self, chosen: str, reason: str, name: str | None) -> NoReturn:
        if self._ddl is not None:
            reason += f"; the last DDL of the table before it is {show(self._ddl)}"
        refuse("onSchemaChange", chosen, reason, name)

    def _check_columns(self, query: str) -> None:
        """Refuse a statement behind which rows are not what the schema and the key say.

        A batch warns of columns on the driver, which a stream cannot.
        """
        conflicts = statement_conflicts(
            query,
            [field.name for field in self._own],
            self._ignored_columns,
            has_key=bool(self._key_columns),
            case_sensitive=self._case_sensitive,
        )
        for option, name, reason in conflicts:
            if option == "onTruncate":
                if self._on_truncate != "ignore":
                    # No row of ours says that a part of the table is gone.
                    refuse(option, "corrupt" if self._on_truncate == "corrupt" else "fail", reason)
                continue
            if self._on_value in ("fail", "corrupt"):
                refuse(option, self._on_value, reason, name)
            what = "DDL that the schema does not follow"
            self._policy.counts[what if name is None else f"{name}: {what}"] += 1

    def _compare(self, plan: _TablePlan) -> None:
        """Notice columns that a user's schema lacks and earlier rows did not have."""
        plan.compared = True
        if self._wire_columns and not self._inferred:
            read = {wire_name for _, wire_name, _ in plan.columns}
            gained = sorted(plan.types.keys() - self._wire_columns - read)
            for name, reason in column_conflicts(
                ColumnChanges(gained),
                (),
                self._ignored_columns,
                case_sensitive=self._case_sensitive,
            ):
                if self._in_stream and self._on_value in ("fail", "corrupt"):
                    self._refuse_change(self._on_value, reason, name)
                self._policy.counts[f"{name}: column that the table gained, left out"] += 1
        self._wire_columns |= plan.types.keys()

    def _plan(self, table: TableSchema) -> _TablePlan:
        plan = self._plans.get(table)
        if plan is None:
            plan = self._make_plan(table)
            self._plans.add(table, plan, table_size(table, _COLUMN_BYTES))
        return plan

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
        return _TablePlan(columns, keys, without_key, surplus, types)


def _no_column(_: Any) -> Any:
    raise AssertionError("a value of a column that the table schema does not list")
