"""Current rows: the last change of each key by ``_sequence``.

Writes are idempotent by ``_sequence``: a repeated batch or change has no effect.  Only the first
write to a new table is an append, which is idempotent by query and batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.types import BooleanType, StructField, StructType

from pyspark_cdcfmt.sync.control import Batch
from pyspark_cdcfmt.sync.expressions import compared, key_text, literal
from pyspark_cdcfmt.sync.names import quote, text_literal
from pyspark_cdcfmt.sync.order import ORDER, is_newer, with_order
from pyspark_cdcfmt.sync.states import TableState
from pyspark_cdcfmt.sync.stores.store import Store
from pyspark_cdcfmt.sync.summary import Counts
from pyspark_cdcfmt.sync.target import Target
from pyspark_cdcfmt.sync.tombstones import Tombstones
from pyspark_cdcfmt.sync.typed import metadata_field


@attrs.frozen
class CurrentRows(Store):
    """The store ``scd1``."""

    target: Target
    tombstones: Tombstones
    prefix: str
    soft: bool

    @property
    def sequence(self) -> str:
        return f"{self.prefix}sequence"

    @property
    def keeps_tombstones(self) -> bool:
        return not self.soft

    def first_rows(self, rows: DataFrame, sequence: Sequence[int]) -> DataFrame:
        added = {f"{self.prefix}sequence": f.expr(literal(sequence))}
        if self.soft:
            added[f"{self.prefix}deleted"] = f.lit(False)
        return rows.withColumns(added)

    def columns(self, own: StructType) -> StructType:
        """The columns of a target."""
        added = [metadata_field("sequence", self.prefix)]
        if self.soft:
            added.append(StructField(f"{self.prefix}deleted", BooleanType()))
        return StructType([*own.fields, *added])

    def truncate(self, state: TableState, sequence: Sequence[int]) -> None:
        before = self._before(sequence)
        if self.soft:
            deleted = quote(self.prefix + "deleted")
            self.target.run(f"UPDATE {state.target} SET {deleted} = true WHERE {before}")
        else:
            self.target.run(f"DELETE FROM {state.target} WHERE {before}")

    def fill(
        self, state: TableState, column: str, value: str, sequence: Sequence[int], where: str
    ) -> None:
        self.target.run(
            f"UPDATE {state.target} SET {quote(column)} = {value} WHERE {where} "
            f"AND {self._before(sequence)}"
        )

    def _before(self, sequence: Sequence[int]) -> str:
        own = quote(self.prefix + "sequence")
        # A row that someone else inserted has none: it is older than every change.
        return f"({own} IS NULL OR {compared(own, '<', literal(sequence))})"

    def apply(
        self, batch: Batch, state: TableState, changes: DataFrame, counts: Counts, *, is_new: bool
    ) -> None:
        """Apply the changes of a batch; ``is_new``: the target is empty."""
        sequence = f"{self.prefix}sequence"
        if state.truncates:
            changes = changes.where(f"{quote(sequence)} > {literal(state.truncates[-1])}")
        keys = [*map(quote, state.keys)]
        changes = with_order(changes, keys, quote(sequence), state, spread=counts.spread)
        last = self._folded(state, changes) if counts.partial else self._last(state, changes)
        if is_new:
            names = self.columns(state.own_columns).names
            rows = last if self.soft else last.where(~self._is_delete())
            rows = rows.withColumn(f"{self.prefix}deleted", self._is_delete())
            self.target.append(
                state.target, rows.select(*map(quote, names)), batch.once(state.text)
            )
            return
        if counts.late:
            last = self._without_older_than_tombstones(state, last, counts)
        self._merge(state, last, partial=bool(counts.partial))

    def _is_delete(self) -> Column:
        return f.col(quote(self.prefix + "change_type")) == "delete"

    def _last(self, state: TableState, changes: DataFrame) -> DataFrame:
        keys = ", ".join(map(quote, state.keys))
        nth = f"row_number() OVER (PARTITION BY {keys} ORDER BY {ORDER} DESC) AS __sync_nth"
        return changes.selectExpr("*", nth).where("__sync_nth = 1")

    def _folded(self, state: TableState, changes: DataFrame) -> DataFrame:
        """The last change of each key, with the last known value of each column.

        ``_set`` has the known columns: all of them for a change after a delete.
        """
        sequence, order = f.col(quote(self.prefix + "sequence")), f.col(ORDER)
        absent = f.col(quote(self.prefix + "absent"))
        keys = [*map(quote, state.keys)]
        window = Window.partitionBy(*keys)
        deleted = f.max(f.when(self._is_delete(), order)).over(window)
        rows = changes.withColumn("__sync_base", deleted).where(
            f.col("__sync_base").isNull() | (order >= f.col("__sync_base"))
        )
        others = [name for name in state.own_columns.names if name not in state.keys]
        has = {name: ~f.array_contains(absent, name) & ~self._is_delete() for name in others}
        cells = [
            f.max_by(f.struct(f.col(quote(name)).alias("cell")), f.when(has[name], order)).alias(
                f"__sync_cell{number}"
            )
            for number, name in enumerate(others)
        ]
        change_type = quote(self.prefix + "change_type")
        grouped = rows.groupBy(*keys).agg(
            f.max_by(change_type, order).alias(self.prefix + "change_type"),
            f.max_by(sequence, order).alias(self.prefix + "sequence"),
            f.max("__sync_base").alias("__sync_base"),
            *cells,
        )
        behind_delete = f.col("__sync_base").isNotNull()
        known = [
            f.when(f.col(f"__sync_cell{number}").isNotNull() | behind_delete, f.lit(name))
            for number, name in enumerate(others)
        ]
        return grouped.select(
            *keys,
            *(f.col(f"__sync_cell{number}.cell").alias(name) for number, name in enumerate(others)),
            change_type,
            quote(self.prefix + "sequence"),
            f.array_compact(f.array(*known)).alias("__sync_set"),
        )

    def _without_older_than_tombstones(
        self, state: TableState, last: DataFrame, counts: Counts
    ) -> DataFrame:
        tombstones = self.tombstones.after(state, counts.first).toDF(
            "__sync_deleted_key", "__sync_deleted_at"
        )
        is_older = is_newer("__sync_deleted_at", quote(self.prefix + "sequence"), state)
        same = f"__sync_key = __sync_deleted_key AND {is_older}"
        keyed = last.withColumn("__sync_key", key_text(state.keys))
        return keyed.join(tombstones, f.expr(same), "left_anti").drop("__sync_key")

    def _merge(self, state: TableState, last: DataFrame, *, partial: bool) -> None:
        sequence = quote(self.prefix + "sequence")
        on = " AND ".join(f"t.{quote(key)} <=> s.{quote(key)}" for key in state.keys)
        is_delete = f"s.{quote(self.prefix + 'change_type')} = 'delete'"
        is_later = is_newer(f"s.{sequence}", f"t.{sequence}", state)
        newer = f"WHEN MATCHED AND (t.{sequence} IS NULL OR {is_later})"
        values = {quote(name): f"s.{quote(name)}" for name in state.own_columns.names}
        values[sequence] = f"s.{sequence}"
        clauses = ""
        if self.soft:
            values[quote(self.prefix + "deleted")] = is_delete
        else:
            clauses = f"{newer} AND {is_delete} THEN DELETE "
        updated = dict(values)
        if partial or self.soft:
            for name in state.own_columns.names:
                if name in state.keys:
                    continue
                column, known = quote(name), []
                if partial:
                    known.append(f"array_contains(s.__sync_set, {text_literal(name)})")
                if self.soft:
                    # The message of a delete may hold only the key.
                    known.append(f"NOT {is_delete}")
                updated[column] = f"IF({' AND '.join(known)}, s.{column}, t.{column})"
        sets = ", ".join(f"t.{column} = {value}" for column, value in updated.items())
        insert = f"({', '.join(values)}) VALUES ({', '.join(values.values())})"
        unless = "" if self.soft else f" AND NOT {is_delete}"
        clauses += f"{newer} THEN UPDATE SET {sets} WHEN NOT MATCHED{unless} THEN INSERT {insert}"
        self.target.merge(state.target, last, on, clauses)
