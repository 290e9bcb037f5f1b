"""The options of :func:`~pyspark_cdcfmt.sync.sync`: one table for validation and docs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

import attrs

from cdcfmt_core import Option
from cdcfmt_core.errors import OptionError
from cdcfmt_core.filters import EventFilter, compile_pattern, parse_table_name, table_names
from cdcfmt_core.options import validate
from cdcfmt_core.texts import parse_json
from pyspark_cdcfmt.sync.names import TableName, check_pattern

OPTIONS = (
    Option(
        name="into",
        help="Targets: a catalog name such as `lake.{database}_{table}`, or a path such as "
        "`s3://lake/{database}/{table}`. The fields are `database`, `schema` and `table`. "
        "A value with a slash is a path.",
    ),
    Option(
        name="format",
        type="choice",
        choices=("delta", "iceberg"),
        default="delta",
        help="The format of targets and control tables. `iceberg`: `into` and `control` begin with "
        "an Iceberg catalog of the session, as in `lake.bronze.{table}` and `lake.sync_orders`.",
    ),
    Option(
        name="store",
        type="choice",
        choices=("scd1", "scd2", "changelog"),
        default="scd1",
        help="What a target holds. `scd1`: the current rows. `scd2`: every version of a row, "
        "with its start and end. `changelog`: every change, appended.",
    ),
    Option(
        name="tables",
        type="list",
        default=(),
        help="Source tables: globs over `database.table`, as in `includeTables`. By default all.",
    ),
    Option(
        name="exclude",
        type="list",
        default=(),
        help="Source tables to leave out, as in `excludeTables`.",
    ),
    Option(name="checkpoint", help="Folder of the query's checkpoint. One for each sync."),
    Option(
        name="control",
        help="Folder of the control tables of sync: `log`, `dead_letters`, `held`, "
        "`tombstones`, `tables`, `staged`, `watermarks`, `progress`. One for each sync, by default "
        "`sync` in the checkpoint's folder. With `format=iceberg` a namespace of a catalog.",
    ),
    Option(
        name="keys",
        help="Key columns by source table, for tables whose messages name no key: "
        '`{"shop.audit": ["id"]}`, a mapping or its JSON.',
    ),
    Option(
        name="definitions",
        help="CREATE TABLE by source table, for tables whose statement is not in the topic: "
        '`{"shop.orders": "CREATE TABLE orders (…)"}`, a mapping or its JSON. It is used wherever '
        "the statements of the topic define no columns.",
    ),
    Option(
        name="consistency",
        type="choice",
        choices=("eventual", "resolved"),
        default="eventual",
        help="`eventual`: each batch is written at once. `resolved`, for sources with watermarks: "
        "events wait until the watermarks show that all earlier ones have arrived, all targets "
        "advance together, and `progress` maps the versions of targets to watermarks.",
    ),
    Option(
        name="resume",
        type="list",
        default=(),
        help="Halted tables to continue, by their names in the log, or globs: the next batch "
        "applies their held events. A TRUNCATE or DROP that halted a table is applied, unless "
        "`on_truncate` or `on_drop` is `ignore`; other statements that halt are skipped.",
    ),
    Option(
        name="replay",
        type="bool",
        default=False,
        help="scd1, scd2: the first batch applies the `dead_letters` again; those that still "
        "fail become dead letters again.",
    ),
    Option(
        name="snapshot_commit_ts",
        type="int",
        default=0,
        minimum=0,
        help="The commit_ts of the argument `snapshot`, which contains all changes up to it. By "
        "default the snapshot is older than every change of the source.",
    ),
    Option(
        name="deletes",
        type="choice",
        choices=("hard", "soft"),
        default="hard",
        help="scd1: `hard` removes a deleted row and keeps its key in `tombstones`; `soft` keeps "
        "the row with `_deleted` set.",
    ),
    Option(
        name="partition_by",
        type="choice",
        choices=("", "day"),
        default="",
        help="changelog: `day` partitions a target by the column `_date`, the day of the commit "
        "in UTC.",
    ),
    Option(
        name="start_at",
        default="__START_AT",
        help="scd2: the column with the `_sequence` of the change that started a version.",
    ),
    Option(
        name="end_at",
        default="__END_AT",
        help="scd2: the column with the `_sequence` of the change that ended a version; NULL for "
        "the current one.",
    ),
    Option(
        name="schema_changes",
        type="choice",
        choices=("lenient", "evolve", "ignore", "exception"),
        default="lenient",
        help="Columns that the source adds or changes: `lenient` adds and widens columns, and "
        "halts the table if the target's type cannot be widened to the new one; `evolve` also "
        "renames and drops columns; `ignore` keeps the target's columns: a new column is left "
        "out, and a row that does not fit is a dead letter; `exception` halts the table.",
    ),
    Option(
        name="on_truncate",
        type="choice",
        choices=("apply", "halt", "ignore"),
        default="apply",
        help="TRUNCATE at the source: remove the rows before it, halt the table, or keep the rows.",
    ),
    Option(
        name="on_drop",
        type="choice",
        choices=("apply", "halt", "ignore"),
        default="halt",
        help="DROP or RENAME of the table at the source: remove the rows before it, halt the "
        "table, or keep the rows. The target table itself is never dropped.",
    ),
    Option(
        name="metadata_prefix", default="_", help="Prefix of added columns, such as `_sequence`."
    ),
    Option(
        name="parallel",
        type="int",
        default=4,
        minimum=1,
        help="Number of targets that are written at the same time.",
    ),
    Option(
        name="optimize_every",
        type="int",
        default=0,
        minimum=0,
        help="Compact the targets of every n-th batch: OPTIMIZE; for Iceberg rewrite_data_files "
        "and expire_snapshots; 0: never.",
    ),
    Option(
        name="tombstone_retention",
        type="duration",
        default=timedelta(days=7),
        help="How long the key of a deleted row is kept. After that, a late older change restores "
        "the row.",
    ),
)

_KEY = Option(name="keys", help="Key columns of a table.", type="list")
_STORE_OF = {"deletes": "scd1", "start_at": "scd2", "end_at": "scd2", "partition_by": "changelog"}
"""The store of each option that only one store has."""


@attrs.frozen
class SyncOptions:
    """Validated options, by the names of :data:`OPTIONS`."""

    into: str
    format: str
    store: str
    tables: tuple[str, ...]
    exclude: tuple[str, ...]
    checkpoint: str
    control: str
    keys: Mapping[tuple[str, ...], tuple[str, ...]]
    definitions: Mapping[tuple[str, ...], str]
    consistency: str
    resume: tuple[str, ...]
    replay: bool
    snapshot_commit_ts: int
    deletes: str
    partition_by: str
    start_at: str
    end_at: str
    schema_changes: str
    on_truncate: str
    on_drop: str
    metadata_prefix: str
    parallel: int
    optimize_every: int
    tombstone_retention: timedelta

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> SyncOptions:
        """Validate options; missing ones have their defaults.

        :raises OptionError: for an unknown name, an invalid value, an option of another store,
            and a missing ``into`` or ``checkpoint``.
        """
        texts = {name: value for name, value in given.items() if name not in _BY_TABLE}
        values = validate(texts, OPTIONS, owner="sync")
        for name in ("into", "checkpoint"):
            if not values[name]:
                raise OptionError(f"sync needs the option {name}")
        check_pattern(values["into"])
        for name in ("tables", "exclude", "resume"):
            for pattern in values[name]:
                compile_pattern(pattern, name)
        defaults = {option.name: option.default for option in OPTIONS}
        for name, store in _STORE_OF.items():
            if values[name] != defaults[name] and values["store"] != store:
                raise OptionError(f"option {name} is for store={store}: leave it out")
        if len({"", values["start_at"].lower(), values["end_at"].lower()}) < 3:
            raise OptionError("options start_at and end_at need names that differ, ignoring case")
        if values["replay"] and values["store"] == "changelog":
            # The target already has the good rows of a bad message.
            raise OptionError("option replay: a changelog cannot apply dead letters again")
        values["checkpoint"] = absolute(values["checkpoint"])
        if values["format"] == "delta":
            values["control"] = absolute(values["control"] or f"{values['checkpoint']}/sync")
        elif not values["control"]:
            raise OptionError("format=iceberg needs the option control, as in lake.sync_orders")
        if "/" in values["into"]:
            values["into"] = absolute(values["into"])
        values["keys"] = _keys(by_table("keys", given))
        values["definitions"] = by_table("definitions", given)
        return cls(**values)

    @property
    def schemas(self) -> str:
        """The folder of the default schemaStore."""
        folder = self.control if self.format == "delta" else f"{self.checkpoint}/sync"
        return f"{folder}/schemas"

    def name_option(self, column: str) -> str:
        """The option that renames an added column."""
        own = {self.start_at.lower(): "start_at", self.end_at.lower(): "end_at"}
        return own.get(column.lower(), "metadata_prefix")

    def wants(self, name: TableName) -> bool:
        """Whether ``tables`` and ``exclude`` select a source table."""
        database, schema, table = name
        wanted = EventFilter(include_tables=self.tables, exclude_tables=self.exclude)
        return wanted.wants_table(database, table, schema)


def absolute(path: str) -> str:
    """An absolute path; a URL stays unchanged."""
    return path if "://" in path else os.path.abspath(path)


_BY_TABLE = {
    "keys": ("key columns", '{"shop.audit": ["id"]}'),
    "definitions": ("statements", '{"shop.audit": "CREATE TABLE audit (…)"}'),
}
"""Options with a value for each table: the value, and an example."""


def by_table(option: str, given: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    """The values of an option by table; a mapping, or its JSON."""
    mapping = given.get(option) or {}
    if isinstance(mapping, str):
        # Invalid JSON fails below.
        with suppress(ValueError):
            mapping = parse_json(mapping)
    what, example = _BY_TABLE[option]
    if not isinstance(mapping, Mapping):
        raise OptionError(
            f"option {option}: {mapping!r} is not a mapping of tables to {what}, such as {example}"
        )
    return {parse_table_name(table, option=option): value for table, value in mapping.items()}


def _keys(given: Mapping[tuple[str, ...], Any]) -> dict[tuple[str, ...], tuple[str, ...]]:
    keys = {name: _KEY.parse(columns) for name, columns in given.items()}
    for name, columns in keys.items():
        table = table_names([name])
        if not columns:
            raise OptionError(f"option keys: {table} has no columns")
        if len({column.lower() for column in columns}) < len(columns):
            raise OptionError(f"option keys: {table} names a column twice")
    return keys
