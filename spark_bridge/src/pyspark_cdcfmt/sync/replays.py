"""Events that a batch applies again: of tables that resume, and dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from cdcfmt_core.errors import OptionError
from pyspark_cdcfmt import decode, message_options
from pyspark_cdcfmt.sync.control import ADDED, Batch, Control, LogRow
from pyspark_cdcfmt.sync.expressions import is_of
from pyspark_cdcfmt.sync.names import TableName
from pyspark_cdcfmt.sync.options import SyncOptions
from pyspark_cdcfmt.sync.states import TableState

LETTERS: TableName = ("", None, "dead letters")
"""An entry among the tables' states, for the progress of replays."""


@attrs.frozen
class Replays:
    """The options ``resume`` and ``replay`` of a query, and the events for them.

    :ivar source: all options of the stream's source.
    """

    options: SyncOptions
    source: Mapping[str, str]
    control: Control

    def request(self, states: dict[TableName, TableState]) -> None:
        """Record ``resume`` and ``replay`` in the states, so that a restart knows them, too."""
        by_text = {state.text: state for state in states.values() if state.name != LETTERS}
        for text in self.options.resume:
            state = by_text.get(text)
            if state is None:
                known = ", ".join(sorted(by_text)) or "none"
                raise OptionError(f"option resume: there is no table {text}, but these: {known}")
            if state.halted:
                states[state.name] = self._resume(state, "resume")
        if self.options.replay and self.control.has("dead_letters"):
            letters = states.get(LETTERS, TableState(LETTERS, ""))
            states[LETTERS] = self._resume(letters, "replay")
        if any(state.catching_up for state in states.values()):
            self.control.discard_kept()

    def _resume(self, state: TableState, action: str) -> TableState:
        """The state of a resumed table, saved before its events are applied."""
        now = datetime.now(UTC)
        resumed = attrs.evolve(state, halted=None, catching_up=now.isoformat())
        batch = Batch(f"{action} {state.text}", int(now.timestamp() * 1000))
        self.control.log(batch, [LogRow(action, state.halted or "", resumed)])
        self.control.save(batch, [resumed])
        return resumed

    def events(self, states: Mapping[TableName, TableState]) -> Iterator[DataFrame]:
        """The events to add to the next batch."""
        for state in states.values():
            if state.catching_up and state.name == LETTERS:
                yield from self._letters(state)
            elif state.catching_up:
                yield self._kept("held", state).where(is_of(state.name))

    def _kept(self, name: str, state: TableState) -> DataFrame:
        """Events in ``held`` or ``dead_letters`` from ``caught_up`` to ``catching_up``."""
        span = f"at > timestamp'{state.caught_up}' AND at <= timestamp'{state.catching_up}'"
        return self.control.kept(name).where(span).drop(*ADDED)

    def _letters(self, state: TableState) -> Iterator[DataFrame]:
        letters = self._kept("dead_letters", state)
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
