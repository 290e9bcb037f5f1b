"""History: each version of a row, from the change that started it to the one that ended it.

A batch recomputes the versions of its keys from the target, its changes, and the tombstones.  The
``_sequence`` gives late and repeated changes their position, which makes writes idempotent.  Only
the first write to a new table is an append, which is idempotent by query and batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.types import StructField, StructType, VariantType
from pyspark.sql.window import WindowSpec

from pyspark_cdcfmt import SEQUENCE
from pyspark_cdcfmt.sync.control import Batch
from pyspark_cdcfmt.sync.expressions import compared, key_text, literal
from pyspark_cdcfmt.sync.names import quote
from pyspark_cdcfmt.sync.order import ORDER, with_order
from pyspark_cdcfmt.sync.states import TableState
from pyspark_cdcfmt.sync.stores.store import Store
from pyspark_cdcfmt.sync.summary import Counts
from pyspark_cdcfmt.sync.target import Target
from pyspark_cdcfmt.sync.tombstones import Tombstones
from pyspark_cdcfmt.sync.typed import READ

_KEY, _AT, _KNOWN, _SET = (f"__sync_{name}" for name in ("key", "at", "known", "set"))
"""Columns of a point in a key's history: its key, its position, whether the target has it, and
its known columns (NULL for the end of a row)."""


@attrs.frozen
class History(Store):
    """The store ``scd2``."""

    target: Target
    tombstones: Tombstones
    prefix: str
    start_at: str
    end_at: str

    needs_reads = True

    @property
    def sequence(self) -> str:
        return self.start_at

    reads_once = False

    def first_rows(self, rows: DataFrame, sequence: Sequence[int]) -> DataFrame:
        added = {self.start_at: f.expr(literal(sequence)), self.end_at: f.lit(None).cast(SEQUENCE)}
        return rows.withColumns(added)

    def columns(self, own: StructType) -> StructType:
        ends = [StructField(name, SEQUENCE) for name in (self.start_at, self.end_at)]
        return StructType([*own.fields, *ends])

    def truncate(self, state: TableState, sequence: Sequence[int]) -> None:
        end, at = quote(self.end_at), literal(sequence)
        self.target.run(f"UPDATE {state.target} SET {end} = {at} WHERE {self._current(at)}")

    def fill(
        self, state: TableState, column: str, value: str, sequence: Sequence[int], where: str
    ) -> None:
        self.target.run(
            f"UPDATE {state.target} SET {quote(column)} = {value} WHERE {where} "
            f"AND {self._current(literal(sequence))}"
        )

    def _current(self, at: str) -> str:
        """The SQL condition for the versions that are current before the sequence ``at``."""
        start, end = quote(self.start_at), quote(self.end_at)
        # A row that someone else inserted has no start: it is older than every change.
        is_started = f"({start} IS NULL OR {compared(start, '<', at)})"
        return f"{is_started} AND ({end} IS NULL OR {compared(end, '>', at)})"

    def apply(
        self, batch: Batch, state: TableState, changes: DataFrame, counts: Counts, *, is_new: bool
    ) -> None:
        points = self._points_of(state, changes)
        if state.truncates:
            at = f.explode(f.array(*(f.expr(literal(each)) for each in state.truncates)))
            ends = points.select(_KEY).distinct().withColumns({_AT: at, _KNOWN: f.lit(True)})
            points = points.unionByName(ends, allowMissingColumns=True)
        if not is_new:
            known = self._known_points(state, points, counts)
            points = points.unionByName(known, allowMissingColumns=True)
        versions = self._versions(state, points, counts)
        if is_new:
            names = self.columns(state.own_columns).names
            rows = versions.select(*map(quote, names))
            self.target.append(state.target, rows, batch.once(state.text))
        else:
            # MERGE keeps its source, and computes it again if Spark loses an executor.
            self._merge(state, versions)

    def _points_of(self, state: TableState, changes: DataFrame) -> DataFrame:
        """The changes of a batch as points."""
        names = state.own_columns.names
        is_delete = f.col(quote(f"{self.prefix}change_type")) == "delete"
        present = f.array_except(f.array(*map(f.lit, names)), f.col(quote(f"{self.prefix}absent")))
        reads = [READ] if READ in changes.columns else []
        return changes.select(
            *map(quote, names),
            *reads,
            key_text(state.keys).alias(_KEY),
            f.col(quote(f"{self.prefix}sequence")).alias(_AT),
            f.lit(False).alias(_KNOWN),
            f.when(~is_delete, present).alias(_SET),
        )

    def _known_points(self, state: TableState, points: DataFrame, counts: Counts) -> DataFrame:
        """Points of the same keys from the target and the tombstones."""
        names = state.own_columns.names
        keys = points.select(_KEY).distinct()
        rows = (
            self.target.read(state.target)
            .withColumn(_KEY, key_text(state.keys))
            .join(keys, _KEY, "left_semi")
        )
        everything = f.array(*map(f.lit, names))
        starts = rows.select(
            *map(quote, names),
            _KEY,
            f.col(quote(self.start_at)).alias(_AT),
            f.lit(True).alias(_KNOWN),
            everything.alias(_SET),
        )
        ends = rows.where(f.col(quote(self.end_at)).isNotNull()).select(
            _KEY, f.col(quote(self.end_at)).alias(_AT)
        )
        if counts.late:
            tombstones = self.tombstones.after(state, counts.first).toDF(_KEY, _AT)
            ends = ends.unionByName(tombstones.join(keys, _KEY, "left_semi"))
        return starts.unionByName(ends.withColumn(_KNOWN, f.lit(True)), allowMissingColumns=True)

    def _versions(self, state: TableState, points: DataFrame, counts: Counts) -> DataFrame:
        """The versions of the keys: from each point with a row to the next point."""
        # At one position a row wins over an end, and a known point over a new one.
        same = Window.partitionBy(_KEY, _AT).orderBy(
            f.col(_SET).isNotNull().desc(), f.col(_KNOWN).desc()
        )
        ordered = Window.partitionBy(_KEY).orderBy(ORDER)
        rows = points.withColumn("__sync_nth", f.row_number().over(same)).where("__sync_nth = 1")
        rows = with_order(rows, [_KEY], _AT, state, spread=counts.spread, known=_KNOWN)
        if counts.partial:
            rows = self._filled(state, rows, ordered)
        if READ in points.columns:
            rows = self._without_known_reads(state, rows, ordered)
        spans = {self.end_at: f.lead(_AT).over(ordered), self.start_at: f.col(_AT)}
        return rows.withColumns(spans).where(f.col(_SET).isNotNull())

    def _without_known_reads(
        self, state: TableState, rows: DataFrame, ordered: WindowSpec
    ) -> DataFrame:
        """Drop snapshot rows that are equal to the key's version before them, which continues."""
        row = f.struct(*(_comparable(field) for field in state.own_columns.fields))
        before = f.lag(f.when(f.col(_SET).isNotNull(), row)).over(ordered)
        is_known = f.col(READ) & before.isNotNull() & before.eqNullSafe(row)
        known = rows.withColumn("__sync_same", f.coalesce(is_known, f.lit(False)))
        return known.where("NOT __sync_same").drop("__sync_same")

    def _filled(self, state: TableState, rows: DataFrame, ordered: WindowSpec) -> DataFrame:
        """Fill columns that an image lacks from the version before it."""
        ends = f.sum(f.col(_SET).isNull().cast("int")).over(ordered)
        life = Window.partitionBy(_KEY, "__sync_life").orderBy(ORDER)
        rows = rows.withColumn("__sync_life", ends)

        def filled(name: str) -> Column:
            cell = f.when(f.array_contains(_SET, name), f.struct(f.col(quote(name)).alias("cell")))
            return f.last(cell, ignorenulls=True).over(life)["cell"]

        return rows.withColumns({name: filled(name) for name in state.own_columns.names})

    def _merge(self, state: TableState, versions: DataFrame) -> None:
        start, end = quote(self.start_at), quote(self.end_at)
        on = " AND ".join(f"t.{quote(key)} <=> s.{quote(key)}" for key in state.keys)
        names = [quote(name) for name in self.columns(state.own_columns).names]
        clauses = (
            f"WHEN MATCHED AND NOT t.{end} <=> s.{end} THEN UPDATE SET t.{end} = s.{end} "
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) "
            f"VALUES ({', '.join('s.' + name for name in names)})"
        )
        on = f"{on} AND t.{start} <=> s.{start}"
        self.target.merge(state.target, versions, on, clauses, reads_table=True)


def _comparable(field: StructField) -> Column:
    column = f.col(quote(field.name))
    is_variant = isinstance(field.dataType, VariantType)
    return (f.to_json(column) if is_variant else column).alias(field.name)
