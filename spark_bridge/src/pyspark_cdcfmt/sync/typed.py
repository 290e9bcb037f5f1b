"""Typed changes of one table from the events of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

import attrs
from pyspark.accumulators import Accumulator
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructField, StructType

from cdcfmt_core.events import full_name
from pyspark_cdcfmt import CORRUPT_RECORD, METADATA, changes
from pyspark_cdcfmt.blocks.dataframes import changes_of_blocks
from pyspark_cdcfmt.sync.definitions import store_of
from pyspark_cdcfmt.sync.expressions import COMPARED, At, key_text, literal
from pyspark_cdcfmt.sync.names import quote, table_text
from pyspark_cdcfmt.sync.options import SyncOptions
from pyspark_cdcfmt.sync.retyping import cast_sql, converted_column
from pyspark_cdcfmt.sync.states import TableState
from pyspark_cdcfmt.sync.summary import Counts
from pyspark_cdcfmt.sync.table_merge import TableMerge

READ = "__sync_read"
"""The column that marks rows of the producer's snapshot."""

_OPTIONS = ("typeMap", "sourceTimeZone", "caseSensitive", "invalidValues", "incompleteRows")
"""Source options that also apply to changes."""

_PLACE = ("topic", "partition", "path", "offset", "index")


def metadata_field(name: str, prefix: str) -> StructField:
    return StructField(prefix + name, METADATA[name])


@attrs.frozen
class TypedChanges:
    """Turns events into changes; marks bad rows, and finds their events."""

    options: SyncOptions
    source: Mapping[str, str]
    wanted: Sequence[str]
    """The columns of :data:`METADATA` that the store needs."""
    needs_key: bool
    """Whether a row without a key is bad."""
    changed: Accumulator[frozenset[tuple[str, str]]] | None = None

    def rows_of(self, events: DataFrame, with_truncates: bool) -> DataFrame:
        """The events of one table that are changes."""
        rows = "kind = 'row' AND op <> 'truncate'"
        if with_truncates:
            rows = "kind = 'row' OR ddl.type IN ('TRUNCATE', 'ERASE')"
        return events.where(rows)

    def are_direct(self, plan: TableMerge) -> bool:
        """Whether the blocks of a batch can be decoded into changes directly."""
        state = plan.state
        given, key = self._keys(state), [name.lower() for name in state.keys]
        names = {column.name.lower() for version in plan.versions for column in version.columns}
        return bool(
            plan.versions
            and all(version.has_messages for version in plan.versions)
            and not plan.truncates
            and not any(each.name.lower() in names for each in state.retired)
            and {*state.keys} <= {*state.own_columns.names}
            and all(given or [*map(str.lower, v.key_columns)] == key for v in plan.versions)
        )

    def of_blocks(
        self, plan: TableMerge, blocks: DataFrame, *, with_reads: bool, only: str | None = None
    ) -> DataFrame:
        """Like :meth:`changes`, directly from blocks (see :meth:`are_direct`).

        :param only: the change type to keep, with the key columns alone.
        """
        state = plan.state
        own = [
            StructField(field.name, field.dataType)
            for field in state.own_columns.fields
            if only is None or field.name in state.keys
        ]
        wanted = {"change_type", "sequence", *self.wanted}
        if plan.lacks_columns:
            wanted.add("absent")
        typed = changes_of_blocks(
            blocks.where("kind = 'row'"),
            table_text(state.name),
            self.source,
            schema=StructType([*own, *self._metadata(wanted)]),
            keys=state.keys,
            read=READ if with_reads else None,
            partial=plan.lacks_columns,
            only=only,
            changed=self.changed,
            schemas=store_of(state.name, state.definitions),
            **self._how(state),
        )
        return self._in_epoch(state, typed)

    def _in_epoch(self, state: TableState, typed: DataFrame) -> DataFrame:
        """The changes in the epochs of the target."""
        if not state.base:
            return typed
        sequence = self._added("sequence")
        is_ordered = f"{sequence}.commit > 0 AND {sequence}.time IS NULL"
        epoch = f.expr(f"{sequence}.epoch + IF({is_ordered}, 0, {state.base})")
        name = self.options.metadata_prefix + "sequence"
        moved = f.col(sequence).withField("epoch", epoch.cast("int"))
        # A bad row has none.
        return typed.withColumn(name, f.when(f.col(sequence).isNotNull(), moved))

    @property
    def _needed(self) -> set[str]:
        """The columns of :data:`METADATA` that changes have."""
        needed = {"change_type", "sequence", "absent", "corrupt_record", *self.wanted}
        return needed | {"source"} if self.needs_key else needed

    def _metadata(self, wanted: set[str]) -> list[StructField]:
        prefix = self.options.metadata_prefix
        return [metadata_field(name, prefix) for name in METADATA if name in wanted]

    def _keys(self, state: TableState) -> tuple[str, ...] | None:
        """The user's key columns for a table."""
        return self.options.keys.get(full_name(*state.name))

    def changes(self, plan: TableMerge, rows: DataFrame, *, with_reads: bool) -> DataFrame:
        """One row per change, with the types of the table's columns.

        :param with_reads: add the column ``READ``.
        """
        state = plan.state
        if with_reads:
            is_read = f.coalesce(f.col("op") == "read", f.lit(False))
            read, others = (
                self._changes(state, rows.where(is_read == wanted)).withColumn(READ, f.lit(wanted))
                for wanted in (True, False)
            )
            return read.unionByName(others)
        if not state.keys or self.needs_key or all(each.key_columns for each in plan.versions):
            return self._changes(state, rows)
        # A table that has lost its key, or gained it later.
        keyless = attrs.evolve(state, keys=self._keys(state) or ())
        has_key = "coalesce(size(key_columns), 0) > 0"
        return self._changes(state, rows.where(has_key)).unionByName(
            self._changes(keyless, rows.where(f"NOT ({has_key})"))
        )

    def converted(self, plan: TableMerge, typed: DataFrame) -> DataFrame:
        """Convert rows from before statements that convert the rows of the target."""
        sequence = self._added("sequence")
        for cast in plan.state.casts:
            column = converted_column(plan.state, cast)
            at = At.of(cast.at)
            if column is None or all(version.first >= at for version in plan.versions):
                continue
            value = quote(column.name)
            new = cast_sql(cast, value, column.dataType)
            cell = f"IF({sequence} < {literal(cast.at)}, {new}, {value})"
            typed = typed.withColumn(column.name, f.expr(cell))
        return typed

    def _how(self, state: TableState) -> dict[str, Any]:
        """The options of changes."""
        keys = self._keys(state)
        return {
            # Only its before image identifies the row of a table without a key.
            "images": "after" if state.keys else "both",
            "metadataPrefix": self.options.metadata_prefix,
            "onSchemaChange": "corrupt",
            "onTruncate": "row",
            **({"keyColumns": ",".join(keys)} if keys else {}),
        }

    def _changes(self, state: TableState, rows: DataFrame) -> DataFrame:
        own = [StructField(field.name, field.dataType) for field in state.own_columns.fields]
        fields = {field.name.lower(): field for field in own}
        renamed = {
            each.name: fields[each.now.lower()] for each in state.retired if each.now is not None
        }
        own += [StructField(name, field.dataType) for name, field in renamed.items()]
        options = {k: v for k, v in self.source.items() if k.lower() in map(str.lower, _OPTIONS)}
        typed = changes(
            rows,
            table_text(state.name),
            schema=StructType([*own, *self._metadata(self._needed)]),
            schemas=store_of(state.name, state.definitions),
            **self._how(state),
            **options,
        )
        if renamed:
            typed = self._with_names_now(typed, {old: new.name for old, new in renamed.items()})
        typed = self._in_epoch(state, typed)
        return self._with_keys(typed, state) if self.needs_key else typed

    def _with_keys(self, typed: DataFrame, state: TableState) -> DataFrame:
        """Mark rows without a key as bad: a MERGE would match no row, or the row with key NULL."""
        kind, record = (self.options.metadata_prefix + n for n in ("change_type", "corrupt_record"))
        overlap = f.arrays_overlap(self._added("absent"), f.array(*map(f.lit, state.keys)))
        lacks = f.coalesce((f.col(quote(kind)) != "truncate") & overlap, f.lit(False))
        columns = ", ".join(state.keys)
        text = f"{table_text(state.name)}: the row lacks its key ({columns})"
        reason = f.struct(
            f.lit(text).alias("reason"),
            f.lit(None).cast("binary").alias("key"),
            f.lit(None).cast("binary").alias("value"),
            f.col(self._added("source")).alias("source"),
        ).cast(CORRUPT_RECORD)
        typed = typed.withColumns(
            {
                kind: f.when(~lacks, f.col(quote(kind))),
                record: f.when(lacks, reason).otherwise(f.col(quote(record))),
            }
        )
        if "source" in self.wanted:
            return typed
        return typed.drop(self.options.metadata_prefix + "source")

    def _with_names_now(self, typed: DataFrame, renamed: Mapping[str, str]) -> DataFrame:
        """Move values of rows from before a RENAME to the renamed columns."""
        absent = self._added("absent")
        cells: dict[str, Column] = {}
        absent_names = [f.lit(name) for name in renamed]
        for name, now in renamed.items():
            has_it = ~f.array_contains(absent, name)
            absent_names.append(f.when(has_it, f.lit(now)))
            cells[now] = f.when(has_it, f.col(quote(name))).otherwise(
                cells.get(now, f.col(quote(now)))
            )
        cells[self.options.metadata_prefix + "absent"] = f.array_except(
            absent, f.array_compact(f.array(*absent_names))
        )
        return typed.withColumns(cells).drop(*renamed)

    def count(self, typed: Sequence[DataFrame]) -> list[Counts]:
        """Count the changes of tables in one pass, which also fills their caches."""
        kind, sequence = f.col(self._added("change_type")), f.col(self._added("sequence"))
        is_partial = (f.size(self._added("absent")) > 0) & ~kind.isin("delete", "update_preimage")
        facts = {"kind": kind, "sequence": sequence, "is_partial": is_partial}
        looked_at = [
            each.select(f.lit(nth).alias("nth"), *(fact.alias(n) for n, fact in facts.items()))
            for nth, each in enumerate(typed)
        ]
        is_delete = f.col("kind") == "delete"
        by = () if len(typed) == 1 else ("nth",)
        rows = (
            reduce(DataFrame.unionAll, looked_at)
            .groupBy(*by)
            .agg(
                f.expr("count_if(NOT kind <=> 'update_preimage')").alias("changes"),
                f.count_if(is_delete).alias("deletes"),
                f.count_if(f.col("kind").isNull()).alias("bad"),
                f.count_if("is_partial").alias("partial"),
                f.min("sequence").alias("first"),
            )
            .collect()
        )
        counts = [Counts()] * len(typed)
        for row in rows:
            counts[row.nth if by else 0] = Counts(
                row.changes - row.bad,
                row.deletes,
                row.bad,
                partial=row.partial,
                first=tuple(row.first or ())[:COMPARED],
            )
        return counts

    def deletes(self, state: TableState, changes: DataFrame) -> DataFrame:
        """``source``, ``key`` and ``sequence`` of the deletes among good changes."""
        return changes.where(f"{self._added('change_type')} = 'delete'").select(
            f.lit(state.text).alias("source"),
            key_text(state.keys).alias("key"),
            f.col(self._added("sequence")).alias("sequence"),
        )

    def good(
        self, state: TableState, typed: DataFrame, truncates: Sequence[Sequence[int]]
    ) -> DataFrame:
        """The valid changes after the snapshot, and each TRUNCATE of ``truncates`` once."""
        kind, sequence = self._added("change_type"), self._added("sequence")
        if state.snapshot is not None:
            typed = typed.where(f"{kind} IS NULL OR {sequence} > {literal(state.snapshot)}")
        changes = typed.where(f"{kind} <> 'truncate'")
        if not truncates:
            return changes
        new = " OR ".join(f"{sequence} = {literal(each)}" for each in truncates)
        # Each partition has a copy of a statement.
        once = typed.where(f"{kind} = 'truncate' AND ({new})").dropDuplicates(
            [self.options.metadata_prefix + "sequence"]
        )
        return changes.unionByName(once)

    def bad_events(self, rows: DataFrame, typed: DataFrame) -> DataFrame:
        """The complete events of bad rows, with the reason as ``letter``."""
        record = self._added("corrupt_record")
        bad = (
            typed.where(f"{self._added('change_type')} IS NULL")
            .groupBy(f.col(f"{record}.source").alias("bad_source"))
            .agg(f.first(f"{record}.reason").alias("letter"))
        )
        same = [f.col(f"_source.{p}").eqNullSafe(f.col(f"bad_source.{p}")) for p in _PLACE]
        return rows.join(f.broadcast(bad), reduce(and_, same)).drop("bad_source")

    def _added(self, name: str) -> str:
        return quote(self.options.metadata_prefix + name)
