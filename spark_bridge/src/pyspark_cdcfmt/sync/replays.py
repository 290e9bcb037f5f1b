"""Events that a batch applies again: held events of resumed tables, and dead letters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from cdcfmt_core.errors import OptionError
from cdcfmt_core.events import full_name
from cdcfmt_toolkit.table_texts import nearest_tables
from pyspark_cdcfmt import decode, message_options
from pyspark_cdcfmt.sync.control import ADDED, Batch, Control, LogRow
from pyspark_cdcfmt.sync.expressions import of_tables
from pyspark_cdcfmt.sync.names import TableName
from pyspark_cdcfmt.sync.options import SyncOptions
from pyspark_cdcfmt.sync.states import TableState
from pyspark_cdcfmt.sync.summary import TableStatement
from pyspark_cdcfmt.sync.table_merge import TableMerge

LETTERS: TableName = ("", None, "dead letters")
"""An entry among the tables' states, for the progress of replays."""

_LEFT_OUT = (
    "a run without this table (tables, exclude) has skipped its messages, and the target lacks "
    "their changes: resume accepts that; for all changes start a new sync with another target"
)

_BEGINS_LATE = (
    "an earlier run left this table out (tables, exclude), so the target lacks its rows from then: "
    "for these pass its snapshot to a new sync with another target"
)


def resumed_tables(options: SyncOptions, states: Iterable[TableState]) -> list[TableState]:
    """The known tables that the option ``resume`` selects.

    :raises OptionError: for a pattern without a table, and for a table that is not wanted.
    """
    known = {state.text: state for state in states if state.name != LETTERS}
    names = [full_name(*state.name) for state in known.values()]
    found: dict[str, TableState] = {}
    for pattern in options.resume:
        # A name in backticks may have the characters of a glob.
        named = [known[pattern]] if pattern in known else []
        match = attrs.evolve(options, tables=(pattern,), exclude=())
        named = named or [state for state in known.values() if match.wants(state.name)]
        if not named:
            raise OptionError(
                f"option resume: there is no table {pattern}; {nearest_tables(pattern, names)}"
            )
        if not any(map(options.wants, (state.name for state in named))):
            raise OptionError(f"option resume: tables and exclude leave out {pattern}: select it")
        found |= {state.text: state for state in named if options.wants(state.name)}
    return [*found.values()]


@attrs.frozen
class Replays:
    """The options ``resume`` and ``replay`` of a query, and the events to apply for them.

    :ivar source: all options of the stream's source.
    """

    options: SyncOptions
    source: Mapping[str, str]
    control: Control

    def leave_out(self, states: dict[TableName, TableState]) -> None:
        """Halt tables that the options leave out: a later run that has them again lacks changes."""
        left = [
            state
            for state in states.values()
            if state.name != LETTERS
            and state.halted != _LEFT_OUT
            and (state.columns is not None or state.halted)
            and not self.options.wants(state.name)
        ]
        if left:
            now = self.control.now()
            batch = Batch("leave out", int(now.timestamp() * 1000))
            halted = [attrs.evolve(state, halted=_LEFT_OUT) for state in left]
            self.control.log(batch, [LogRow("leave out", _LEFT_OUT, s, "warning") for s in halted])
            self.control.save(batch, halted)
            states |= {state.name: state for state in halted}

    def note_late(self, plan: TableMerge, statements: Iterable[TableStatement]) -> None:
        """Log a warning if a table begins now that an earlier run left out."""
        begins = plan.known is None and plan.state.columns is not None
        if begins and not any(statement.type == "CREATE" for statement in statements):
            runs = [
                attrs.evolve(self.options, tables=tables, exclude=exclude)
                for tables, exclude in self.control.selections
            ]
            if not all(run.wants(plan.state.name) for run in runs):
                plan.note("begin", _BEGINS_LATE, "warning")

    def request(self, states: dict[TableName, TableState]) -> None:
        """Record ``resume`` and ``replay`` in the states, so that they survive a restart."""
        resumed = resumed_tables(self.options, states.values())
        states |= self._resume([state for state in resumed if state.halted], "resume")
        if self.options.replay and self.control.has("dead_letters"):
            states |= self._resume([states.get(LETTERS, TableState(LETTERS, ""))], "replay")
        if any(state.catching_up for state in states.values()):
            self.control.discard_kept()

    def _resume(self, states: Sequence[TableState], action: str) -> dict[TableName, TableState]:
        """The states of resumed tables, saved before their events are applied."""
        self.control.follow_clock("held", "dead_letters")
        now = self.control.now()
        to = now.isoformat()
        resumed = {s.name: attrs.evolve(s, halted=None, catching_up=to) for s in states}
        batch = Batch(action, int(now.timestamp() * 1000))
        log = [LogRow(action, state.halted or "", resumed[state.name]) for state in states]
        self.control.log(batch, log)
        self.control.save(batch, resumed.values())
        return resumed

    def clean(self, states: Mapping[TableName, TableState]) -> None:
        """Remove dead letters that a replay has made again, once the replay is complete."""
        state = states.get(LETTERS)
        if state is not None and not state.catching_up and self.control.has("dead_letters"):
            self.control.forget_earlier_letters(state.caught_up)

    def events(self, states: Mapping[TableName, TableState]) -> Iterator[DataFrame]:
        """The events to add to the next batch."""
        again = [state for state in states.values() if state.catching_up]
        if letters := [state for state in again if state.name == LETTERS]:
            yield from self._letters(letters[0])
        if tables := [state for state in again if state.name != LETTERS]:
            spans = [(*state.name, state.caught_up, state.catching_up) for state in tables]
            held = of_tables(self._kept("held", tables), spans, "since STRING, until STRING")
            own = held.where("at > since::timestamp AND at <= until::timestamp")
            yield own.drop("since", "until", *ADDED)

    def _kept(self, name: str, states: Sequence[TableState]) -> DataFrame:
        """Events in ``held`` or ``dead_letters`` from ``caught_up`` to ``catching_up``."""
        since = min(state.caught_up for state in states)
        until = max(state.catching_up or "" for state in states)
        span = f"at > timestamp'{since}' AND at <= timestamp'{until}'"
        return self.control.rows(name).where(span)

    def _letters(self, state: TableState) -> Iterator[DataFrame]:
        letters = self._kept("dead_letters", [state]).drop(*ADDED)
        yield letters.where("kind <> 'corrupt'")
        record = "_corrupt_record"
        # If a message has several bad rows, only the first one has its bytes.
        messages = letters.where(f"{record}.value IS NOT NULL")
        options = message_options(self.source)
        yield decode(
            messages,
            value=f"{record}.value",
            key=f"{record}.key",
            source=f.col(f"{record}.source"),
            **options,
        )
