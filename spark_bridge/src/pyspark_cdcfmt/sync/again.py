"""Events that come with a batch once more: of tables that resume, and dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from cdcfmt_core.errors import OptionError
from pyspark_cdcfmt import decode, message_options
from pyspark_cdcfmt.sync.control import Control
from pyspark_cdcfmt.sync.expressions import is_of
from pyspark_cdcfmt.sync.names import TableName
from pyspark_cdcfmt.sync.options import SyncOptions
from pyspark_cdcfmt.sync.states import TableState

LETTERS: TableName = ("", None, "dead letters")
"""Stands among the states of tables, for how far letters were replayed."""


@attrs.frozen
class Again:
    """What of it a query asks for, and its events."""

    options: SyncOptions
    source: Mapping[str, str]
    """Options of the stream's source, all of them."""
    control: Control

    def ask(self, states: dict[TableName, TableState]) -> None:
        """Note what ``resume`` and ``replay`` ask for, so that a restart knows it, too."""
        by_text = {state.text: state for state in states.values() if state.name != LETTERS}
        for text in self.options.resume:
            state = by_text.get(text)
            if state is None:
                known = ", ".join(sorted(by_text)) or "none"
                raise OptionError(f"option resume: there is no table {text}, but these: {known}")
            if state.halted:
                states[state.name] = self.control.resume(state, "resume")
        if self.options.replay and self.control.has("dead_letters"):
            letters = states.get(LETTERS, TableState(LETTERS, ""))
            states[LETTERS] = self.control.resume(letters, "replay")

    def events(self, states: Mapping[TableName, TableState]) -> Iterator[DataFrame]:
        """The events to add to the next batch."""
        for state in states.values():
            if state.catching_up and state.name == LETTERS:
                yield from self._letters(state)
            elif state.catching_up:
                yield self.control.kept("held", state).where(is_of(state.name))

    def _letters(self, state: TableState) -> Iterator[DataFrame]:
        letters = self.control.kept("dead_letters", state)
        yield letters.where("kind <> 'corrupt'")
        record = "_corrupt_record"
        # Of a message with several bad rows only the first has the bytes.
        messages = letters.where(f"{record}.value IS NOT NULL")
        options = message_options(self.source)
        yield decode(
            messages,
            value=f"{record}.value",
            key=f"{record}.key",
            source=f.col(f"{record}.source"),
            **options,
        )
