"""A micro-batch: summarise its events, plan each table, and write."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pyspark_cdcfmt.blocks.dataframes import blocks_of, events_of
from pyspark_cdcfmt.blocks.letters import with_tables
from pyspark_cdcfmt.sync.control import Batch, Control, LogRow
from pyspark_cdcfmt.sync.expressions import IS_OF, first_place, is_of, of_tables
from pyspark_cdcfmt.sync.names import FIELDS, TableName
from pyspark_cdcfmt.sync.options import SyncOptions
from pyspark_cdcfmt.sync.planning import Planner, Spread, spread_statements
from pyspark_cdcfmt.sync.replays import LETTERS, Replays
from pyspark_cdcfmt.sync.resolved import Resolved, check_consistency
from pyspark_cdcfmt.sync.session import keeping
from pyspark_cdcfmt.sync.snapshots import Snapshots
from pyspark_cdcfmt.sync.states import TableState
from pyspark_cdcfmt.sync.summary import (
    Counts,
    Report,
    Shapes,
    TableStatement,
    read_statements,
    summarize,
)
from pyspark_cdcfmt.sync.table_merge import TableMerge
from pyspark_cdcfmt.sync.tombstones import Tombstones
from pyspark_cdcfmt.sync.writing import Writer

_BATCHES_BETWEEN_CLEANING = 100
_BATCHES_BETWEEN_VACUUM = 1000

_UNCOUNTED = (
    "over Spark Connect tasks report no values that options change, such as invalid ones that "
    "become NULL: set invalidValues and invalidText to fail, or look for them with observed()"
)

_TEXTS = [*(f"of_{name}" for name in (*FIELDS, "query")), *(f"own_{name}" for name in FIELDS)]
_OWN = (
    ", ".join(f"{name} STRING" for name in _TEXTS) + ", own_ddl STRUCT<query: STRING, type: STRING>"
)


@attrs.define
class Sync:
    """Processes the batches of one query, one after the other."""

    options: SyncOptions
    control: Control
    tombstones: Tombstones
    writer: Writer
    planner: Planner
    replays: Replays
    snapshots: Snapshots
    resolved: Resolved | None = None
    states: dict[TableName, TableState] | None = None
    shapes: Shapes = attrs.field(factory=dict)
    _changed: frozenset[tuple[str, str]] = frozenset()
    """Tables with changes of values that this run has logged."""
    _has_noted: bool = False

    def run(self, blocks: DataFrame, batch: Batch) -> Report:
        """Apply the events of a micro-batch to the targets."""
        if self.states is None:
            self.states = self.control.load(batch, (self.options.tables, self.options.exclude))
            check_consistency(self.control, batch, is_resolved=self.resolved is not None)
            self.replays.leave_out(self.states)
            # If the last run ended in between.
            self.replays.clean(self.states)
            self.snapshots.begin(blocks.sparkSession, self.states)
            self.planner.know(self.states.values())
            self.replays.request(self.states)
        for kept in self.replays.events(self.states):
            blocks = blocks.unionByName(blocks_of(kept))
        with keeping() as frames:
            blocks = frames.keep(blocks)
            if self.resolved is not None:
                events = frames.keep(self._events(blocks))
                blocks = frames.keep(blocks_of(self.resolved.release(events, batch)))
            return self._run(blocks, batch, self.states)

    def _events(self, blocks: DataFrame) -> DataFrame:
        return events_of(blocks, self.replays.source)

    def _run(self, blocks: DataFrame, batch: Batch, states: dict[TableName, TableState]) -> Report:
        report = Report(batch.number)
        log: list[LogRow] = []
        versions = summarize(blocks, report, self.shapes)
        statements: dict[TableName, list[TableStatement]] = {}
        if report.statements:
            found = blocks.where("kind = 'ddl' OR truncates > 0")
            statements = read_statements(self._events(found))
            self.planner.define(chain.from_iterable(statements.values()))
        tables = {*states, *versions}
        taken, spread = spread_statements(statements, tables, self.options.wants)
        log += [LogRow("statement", statement.query) for statement in taken]
        blocks = self._with_own(blocks, spread)

        def events(name: TableName) -> DataFrame:
            return self._events(blocks.where(is_of(name)))

        plans = [
            self.planner.plan(
                states.get(name), name, versions.get(name, []), statements.get(name, []), events
            )
            for name in dict.fromkeys([*versions, *statements])
        ]
        for plan in plans:
            self.replays.note_late(plan, statements.get(plan.state.name, ()))
        if report.corrupt:
            letters = self._events(blocks.where("kind = 'corrupt'"))
            letters = with_tables(letters, self.replays.source)
            self.control.keep_events(
                "dead_letters", batch, "", letters, f.col("_corrupt_record.reason")
            )
            report.first_corrupt = first_place(letters)
        self.writer.check(plans)
        to_write = [plan for plan in plans if not plan.state.halted]
        self._hold([plan for plan in plans if plan.state.halted], blocks, batch)
        self._write(plans, blocks, batch, report, log)
        refused = [plan for plan in to_write if plan.state.halted]
        self._hold(refused, blocks, batch, "refused")
        self._finish(plans, states, batch, report, log)
        return report

    def _with_own(self, blocks: DataFrame, spread: list[Spread]) -> DataFrame:
        """Add an event for each table that the statement of another message empties.

        The event is held with the table's rows, and a changelog has it as a row.
        """
        if not spread:
            return blocks
        rows = [
            (*each.origin.name, each.origin.query, *each.own.name, (each.query, each.own.type))
            for each in spread
        ]
        session = blocks.sparkSession
        own = f.broadcast(session.createDataFrame(rows, _OWN))
        events = self._events(blocks.where("kind = 'ddl'"))
        both = events.join(own, f.expr(f"{IS_OF} AND ddl.query = of_query")).withColumns(
            {name: f.col(f"own_{name}") for name in (*FIELDS, "ddl")}
        )
        # Computed once, as each table of the batch reads the blocks.
        packed = blocks_of(both.select(*events.columns)).toArrow()
        return blocks.unionByName(session.createDataFrame(packed, blocks.schema))

    def _write(
        self,
        plans: list[TableMerge],
        blocks: DataFrame,
        batch: Batch,
        report: Report,
        log: list[LogRow],
    ) -> None:
        done = self.writer.write(plans, blocks, batch)
        for plan in plans:
            counts = report.tables[plan.state.text] = done.get(plan.state.text, Counts())
            log += plan.log
            if counts.bad:
                log.append(_letters(counts.bad, "rows", counts.first_bad, plan.state))
        self._log_changed(plans, log)

    def _log_changed(self, plans: list[TableMerge], log: list[LogRow]) -> None:
        """Log values that options changed, each once in a run."""
        changed = self.writer.typed.changed
        if changed is None:
            if not self._has_noted:
                log.append(LogRow("change values", _UNCOUNTED))
                self._has_noted = True
            return
        if not (new := changed.value - self._changed):
            return
        self._changed |= new
        states = {plan.state.text: plan.state for plan in plans}
        log += [
            LogRow("change values", what, states.get(table), "warning")
            for table, what in sorted(new)
        ]

    def _hold(
        self, plans: list[TableMerge], blocks: DataFrame, batch: Batch, part: str = ""
    ) -> None:
        """Append the events of halted tables to ``held``."""
        if not plans:
            return
        reasons = [(*plan.state.name, plan.state.halted) for plan in plans]
        blocks = of_tables(blocks.where("kind IN ('row', 'ddl')"), reasons, "letter STRING")
        held = of_tables(self._events(blocks.drop("letter")), reasons, "letter STRING")
        self.control.keep_events("held", batch, part, held, f.col("letter"))

    def _finish(
        self,
        plans: list[TableMerge],
        states: dict[TableName, TableState],
        batch: Batch,
        report: Report,
        log: list[LogRow],
    ) -> None:
        if report.corrupt:
            log.append(_letters(report.corrupt, "messages", report.first_corrupt))
        number = batch.number + 1
        if number % _BATCHES_BETWEEN_CLEANING == 0:
            if any(state.has_tombstones for state in states.values()):
                self.tombstones.remove_older(self.options.tombstone_retention.total_seconds())
            if self.resolved is not None:
                self.resolved.clean()
            self.control.clean(vacuum=number % _BATCHES_BETWEEN_VACUUM == 0)
        for plan in plans:
            plan.state = plan.state.settled()
        changed = [
            plan.state
            for plan in plans
            if states.get(plan.state.name) != plan.state and plan.state.is_significant
        ]
        letters = states.get(LETTERS)
        if letters is not None and letters.catching_up:
            changed.append(letters.settled())
        with ThreadPoolExecutor(2) as threads:
            # Both are idempotent: a crash may leave one of them.
            for done in (
                threads.submit(self.control.log, batch, log),
                threads.submit(self.control.save, batch, changed),
            ):
                done.result()
        states.update((state.name, state) for state in changed)
        if letters is not None and letters.catching_up:
            self.replays.clean(states)
        if self.resolved is not None:
            self.resolved.step(batch, states.values(), {plan.state.target for plan in plans})
            report.watermark = self.resolved.resolved
        halted = (state for state in states.values() if state.halted)
        report.halted = sorted(state.text for state in halted if self.options.wants(state.name))


def _letters(count: int, what: str, first: str, state: TableState | None = None) -> LogRow:
    text = f"{count} {what} cannot be read, first {first}: see dead_letters"
    return LogRow("dead letters", text, state, "warning")
