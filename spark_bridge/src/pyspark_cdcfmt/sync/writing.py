"""The writes of a batch to the targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import reduce
from typing import Any

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from pyspark_cdcfmt.blocks.dataframes import INVALID_CHANGE, LACKS_COLUMNS, events_of
from pyspark_cdcfmt.sync.control import QUERY_PROPERTY, Batch, Control
from pyspark_cdcfmt.sync.expressions import first_place, is_of, is_wider
from pyspark_cdcfmt.sync.names import TableName, quote, table_text
from pyspark_cdcfmt.sync.options import SyncOptions
from pyspark_cdcfmt.sync.order import unordered_text
from pyspark_cdcfmt.sync.retyping import cast_sql, converted_column
from pyspark_cdcfmt.sync.session import Kept
from pyspark_cdcfmt.sync.stores.store import Store
from pyspark_cdcfmt.sync.summary import Counts
from pyspark_cdcfmt.sync.table_merge import TableMerge, check_target
from pyspark_cdcfmt.sync.target import Target, TargetError
from pyspark_cdcfmt.sync.tombstones import Tombstones
from pyspark_cdcfmt.sync.typed import TypedChanges

_SMALL = 10_000
"""A table with at most this many rows is one task: tasks cost more than rows."""

_TYPED_BEFORE = (
    "{}: it arrived after rows from after it, which have the names of the definition before it: "
    "write the source's names into the rows with a higher _sequence, and resume"
)

_AT_ONCE = 50
"""Maximum number of tables whose rows are counted, and tombstones appended, together."""


@attrs.define
class Write:
    """The events and changes of a batch for one target.

    :ivar is_direct: all changes are valid; ``rows`` is None then.
    :ivar deleted: changes that include all deletes.
    :ivar most_deletes: an upper bound of the deletes in ``deleted``.
    """

    plan: TableMerge
    rows: DataFrame | None
    typed: DataFrame
    deleted: DataFrame
    most_deletes: int
    is_direct: bool
    is_new: bool
    kept: Kept
    counts: Counts = attrs.field(factory=Counts)


@attrs.define
class Writer:
    """Writes to the targets, several of them at the same time."""

    options: SyncOptions
    target: Target
    control: Control
    tombstones: Tombstones
    store: Store
    typed: TypedChanges
    _shapes: dict[str, StructType] = attrs.field(factory=dict)
    """The known columns of targets."""
    _invalid: set[TableName] = attrs.field(factory=set)
    """Tables whose blocks cannot be decoded into changes directly, up to a batch without any such
    row."""
    _short: set[TableName] = attrs.field(factory=set)
    """Tables with rows that lack columns of their version."""
    _ahead: ThreadPoolExecutor = attrs.field(factory=lambda: ThreadPoolExecutor(1))

    def write(
        self, plans: Iterable[TableMerge], blocks: DataFrame, batch: Batch
    ) -> dict[str, Counts]:
        """Execute the plans; returns the counts of each table.

        A table whose target rejects its rows halts.
        """
        work = [plan for plan in plans if not plan.state.halted and plan.state.columns is not None]
        large = [plan for plan in work if plan.rows > _SMALL]
        small = [plan for plan in work if plan.rows <= _SMALL]
        with (
            ThreadPoolExecutor(self.options.parallel) as threads,
            ThreadPoolExecutor(1) as beside,
        ):
            # Small tables do not wait for large ones.
            of_large = beside.submit(self._write_all, large, blocks, batch, threads.map)
            done = self._write_all(small, blocks, batch, threads.map)
            done |= of_large.result()
        for plan in large if self.store.needs_key else ():
            # Errors may be ignored: the next MERGE raises them, too.
            self._ahead.submit(self.target.prepare, plan.state.target)
        return done

    def _write_all(
        self, plans: Sequence[TableMerge], blocks: DataFrame, batch: Batch, run: Callable[..., Any]
    ) -> dict[str, Counts]:
        done: dict[str, Counts] = {}
        for begin in range(0, len(plans), _AT_ONCE):
            done |= self._write(plans[begin : begin + _AT_ONCE], blocks, batch, run)
        return done

    def _write(
        self, plans: Sequence[TableMerge], blocks: DataFrame, batch: Batch, run: Callable[..., Any]
    ) -> dict[str, Counts]:
        """Write tables whose rows are counted, and tombstones appended, together.

        :param run: applies a function to each table, like ``map``.
        """
        done: dict[str, Counts] = {}
        while plans:
            opened = run(lambda plan: self._open(plan, blocks), plans)
            writes = [write for write in opened if write is not None]
            try:
                self._count(writes)
                with self._adding_tombstones(writes):
                    are_done = [*run(lambda write: self._apply_if_valid(write, batch), writes)]
            except Exception as error:
                if not self._note_invalid(writes, error):
                    raise
                continue
            finally:
                for write in writes:
                    write.kept.release()
            plans = []
            for write, is_done in zip(writes, are_done, strict=True):
                if not is_done:
                    plans.append(write.plan)
                elif not write.plan.state.halted:
                    done[write.plan.state.text] = write.counts
        return done

    def check(self, plans: Iterable[TableMerge]) -> None:
        """Halt tables whose targets cannot be written, before anything is."""
        plans = [*plans]
        work = [
            plan
            for plan in plans
            if not plan.state.halted and plan.state.columns is not None and self._is_new_to(plan)
        ]
        with ThreadPoolExecutor(self.options.parallel) as threads:
            for done in [threads.submit(self._check, plan) for plan in work]:
                done.result()
        for plan in plans:
            if plan.renumbered and plan.known is not None and not plan.state.halted:
                self._check_numbers(plan)

    def _check_numbers(self, plan: TableMerge) -> None:
        """Halt if a statement arrived after rows that have its definition."""
        sequence = quote(self.store.sequence)
        with self._alone(plan):
            rows = self.target.read(plan.state.target)
            for start, query in plan.renumbered:
                if not rows.where(f"{sequence}.commit >= {start}").isEmpty():
                    plan.halt_unless_catching_up(_TYPED_BEFORE.format(query))
                    if plan.state.halted:
                        plan.refuse(plan.state.halted)
                        return

    def _check(self, plan: TableMerge) -> None:
        state = plan.state
        with self._alone(plan):
            check_target(
                plan,
                self.target.schema(state.target),
                self.store.columns(state.own_columns),
                self.options.metadata_prefix,
                self.target,
                self.control.first.query_id,
            )

    @contextmanager
    def _alone(self, plan: TableMerge) -> Iterator[None]:
        """Halt the table for an error of its target."""
        state = plan.state
        try:
            yield
        except TargetError as error:
            plan.refuse(str(error))
        except Exception as error:
            if (unordered := unordered_text(error)) is not None:
                plan.refuse(unordered)
            else:
                # The error of a bad row has its values.
                is_of_row = INVALID_CHANGE in str(error)
                reason = None if is_of_row else self.target.refusal(error)
                if reason is None:
                    raise
                what = f"the target {state.target} of {state.text} refuses a write"
                plan.refuse(f"{what}: {reason}; remove the cause, and resume")
        if plan.state.halted:
            self._shapes.pop(state.target, None)

    def _apply_if_valid(self, write: Write, batch: Batch) -> bool:
        counts, plan = write.counts, write.plan
        try:
            with self._alone(plan):
                self._apply(write, batch)
        except Exception as error:
            if self._note_invalid([write], error):
                return False
            raise
        if plan.state.halted:
            return True
        if counts.bad:
            self._keep_letters(write, batch)
        if not counts.bad and (plan.lacks_columns or not counts.partial):
            self._invalid.discard(plan.state.name)
        return True

    def _note_invalid(self, writes: Iterable[Write], error: Exception) -> bool:
        """Remember tables that must be decoded another way; True if ``writes`` has any."""
        text, found = str(error), False
        for name in (write.plan.state.name for write in writes if write.is_direct):
            begin = f"{INVALID_CHANGE}: {table_text(name)}: "
            if begin in text:
                found = True
                (self._short if begin + LACKS_COLUMNS in text else self._invalid).add(name)
        return found

    def _count(self, writes: Iterable[Write]) -> None:
        uncounted = []
        for write in writes:
            if write.is_direct and (self.store.reads_once or not write.plan.updates):
                write.counts = write.plan.counts
            else:
                uncounted.append(write)
        counts = self.typed.count([write.typed for write in uncounted]) if uncounted else ()
        for write, counted in zip(uncounted, counts, strict=True):
            write.counts = counted
            write.most_deletes = min(write.most_deletes, counted.deletes)
        for write in writes:
            state, first = write.plan.state, write.counts.first
            spread = write.plan.is_spread
            if spread and first:
                # A delete on any partition may be later.
                first = first[:2]
            # If all rows are bad, ``first`` is empty.
            may_be_late = bool(first) and state.has_tombstones
            late = may_be_late and self.tombstones.exist_after(state, first)
            write.counts = attrs.evolve(write.counts, first=first, late=late, spread=spread)

    def _open(self, plan: TableMerge, blocks: DataFrame) -> Write | None:
        """Prepare the target and the changes; None if there is nothing to write."""
        with self._alone(plan):
            is_new = self._shape(plan)
            if plan.state.epoch > plan.before.epoch and not is_new:
                # Before the first row of the epoch.
                self.target.set_properties(plan.state.target, plan.epoch_property)
            is_row = is_new or self.store.keeps_truncates
            for sequence in () if is_row else plan.truncates:
                self.target.check(plan.state.target)
                self.store.truncate(plan.state, sequence)
            for cast in () if is_new else plan.casts:
                self.target.check(plan.state.target)
                # Before the MERGE: an update that lacks the column keeps the converted value.
                if (column := converted_column(plan.state, cast)) is not None:
                    value = cast_sql(cast, quote(column.name), column.dataType)
                    where = f"NOT {quote(column.name)} <=> {value}"
                    self.store.fill(plan.state, column.name, value, cast.at, where)
        return None if plan.state.halted else self._changes(plan, blocks, is_new)

    def _changes(self, plan: TableMerge, blocks: DataFrame, is_new: bool) -> Write | None:
        state = plan.state
        of_table = blocks.where(is_of(state.name))
        if plan.rows <= _SMALL:
            of_table = of_table.coalesce(1)
        if not plan.versions and not (plan.truncates and self.store.keeps_truncates):
            return None
        with_reads = self.store.needs_reads and plan.has_reads
        plan.has_short_rows = state.name in self._short
        is_direct = state.name not in self._invalid and self.typed.are_direct(plan)
        rows = None
        if is_direct:
            typed = self.typed.of_blocks(plan, of_table, with_reads=with_reads)
            typed = self.typed.converted(plan, typed)
        else:
            events = events_of(
                of_table, self.typed.source, table=state.text, changed=self.typed.changed
            )
            rows = self.typed.rows_of(events, self.store.keeps_truncates)
            typed = self.typed.changes(plan, rows, with_reads=with_reads)
            typed = self.typed.converted(plan, typed)
        most = plan.most_deletes if self.store.keeps_tombstones else 0
        kept = Kept()
        if is_direct and self.store.reads_once and (plan.rows > _SMALL or not most):
            deleted = typed
            if most:
                # Reading them again costs less than caching all changes.
                deleted = self.typed.of_blocks(plan, of_table, with_reads=False, only="delete")
        else:
            deleted = typed = kept.keep(typed)
        return Write(plan, rows, typed, deleted, most, is_direct, is_new, kept)

    @contextmanager
    def _adding_tombstones(self, writes: Iterable[Write]) -> Iterator[None]:
        """Append the keys of deleted rows to the tombstones, while the MERGE deletes the rows.

        After a crash only one of the two may be complete; the batch runs again.
        """
        deleting = [write for write in writes if write.most_deletes]
        if not deleting:
            yield
            return
        keys = [
            self.typed.deletes(w.plan.state, self.typed.good(w.plan.state, w.deleted, ()))
            for w in deleting
        ]
        most = sum(write.most_deletes for write in deleting)
        with ThreadPoolExecutor(1) as thread:
            added = thread.submit(self.tombstones.add, reduce(DataFrame.unionAll, keys), most)
            yield
            newest = {write.plan.state.text: write.plan.last_delete for write in deleting}
            texts = self.tombstones.remember(newest, added.result())
        for write in deleting:
            if write.plan.state.text in texts and not write.plan.state.halted:
                write.plan.state = attrs.evolve(write.plan.state, has_tombstones=True)

    def _apply(self, write: Write, batch: Batch) -> None:
        state, counts = write.plan.state, write.counts
        good = self.typed.good(state, write.typed, write.plan.truncates)
        self.store.apply(batch, state, good, counts, is_new=write.is_new)
        for column, value, sequence in write.plan.fills:
            self.store.fill(state, column, value, sequence, f"{quote(column)} IS NULL")
        every = self.options.optimize_every
        if every and batch.number % every == every - 1:
            self.target.optimize(state.target)

    def _keep_letters(self, write: Write, batch: Batch) -> None:
        assert write.rows is not None
        state = write.plan.state
        letters = self.typed.bad_events(write.rows, write.typed)
        self.control.keep_events("dead_letters", batch, state.text, letters, f.col("letter"))
        # Uses the cached rows: counting the letters would decode again.
        record = quote(f"{self.options.metadata_prefix}corrupt_record")
        bad = write.typed.where(f"{record} IS NOT NULL")
        write.counts = attrs.evolve(write.counts, first_bad=first_place(bad, f"{record}.source"))

    def _is_new_to(self, plan: TableMerge) -> bool:
        """Whether the target has other columns than this run has written."""
        state = plan.state
        return self._shapes.get(state.target) != state.own_columns or bool(plan.retired)

    def _shape(self, plan: TableMerge) -> bool:
        """Give the target its columns; True if it is new."""
        state = plan.state
        if not self._is_new_to(plan):
            return False
        is_new = self._reshape(plan, state.own_columns)
        self._shapes[state.target] = state.own_columns
        return is_new

    def _reshape(self, plan: TableMerge, columns: StructType) -> bool:
        state = plan.state
        there = self.target.schema(state.target)
        wanted = self.store.columns(columns)
        query_id = self.control.first.query_id
        if there is None:
            self.target.create(
                state.target,
                wanted,
                properties={**plan.properties, QUERY_PROPERTY: query_id},
                partition_by=self.store.partition_by,
            )
            return True
        old = {field.name.lower(): field for field in there.fields}
        for name, new in plan.retired:
            # Already done if the batch runs again.
            if (field := old.pop(name.lower(), None)) is None:
                continue
            self.target.retire_column(state.target, name, new)
            if new is not None:
                old[new.lower()] = field
        added = [field for field in columns.fields if field.name.lower() not in old]
        if added:
            self.target.add_columns(state.target, added)
        for field in columns.fields:
            before = old.get(field.name.lower())
            if before is not None and is_wider(before.dataType, field.dataType):
                self.target.widen(state.target, before.dataType, field)
        return False
