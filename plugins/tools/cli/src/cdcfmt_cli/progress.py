"""A progress bar on stderr, if it is a terminal."""

from __future__ import annotations

import sys
from typing import ClassVar

from rich.progress import (
    BarColumn,
    DownloadColumn,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress
from rich.table import Column

from cdcfmt_cli.console import Quiet, error_console

_EVERY = 1000
_WHOLE = 100
"""Width of a terminal on which the whole line fits."""


def no_bars(streams: bool) -> None:
    """Switch bars off if data is printed meanwhile (``streams``) and stdout is a terminal."""
    ProgressBar.quiet = streams and sys.stdout.isatty()


class ProgressBar:
    """A bar towards ``total`` (in ``unit``), and a count of messages.

    Hidden without a terminal, or after :func:`no_bars`.  A bar that begins while another is shown
    takes its place, and gives it back.
    """

    quiet = False
    _shown: ClassVar[list[ProgressBar]] = []

    def __init__(self, what: str, total: int | None, unit: str = "bytes") -> None:
        self._messages = 0
        self._bar: RichProgress | None = None
        self._task = TaskID(0)
        out = error_console()
        if out.is_terminal and not (ProgressBar.quiet or Quiet.on):
            whole: list[ProgressColumn] = []
            if out.width >= _WHOLE:
                whole.append(BarColumn(bar_width=24))
                if unit == "bytes":
                    whole.append(DownloadColumn(binary_units=True))
            self._bar = RichProgress(
                SpinnerColumn(),
                TextColumn("{task.description}", table_column=_line()),
                TaskProgressColumn(table_column=_line()),
                *whole,
                TextColumn("[dim]{task.fields[messages]:,} messages", table_column=_line()),
                TimeRemainingColumn(table_column=_line()),
                console=out,
                transient=True,
            )
            self._task = self._bar.add_task(what, total=total, messages=0)

    def __enter__(self) -> ProgressBar:
        if self._bar is not None:
            if self._shown and (outer := self._shown[-1]._bar) is not None:
                outer.stop()
            self._shown.append(self)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._shown.remove(self)
            if self._shown and (outer := self._shown[-1]._bar) is not None:
                outer.start()

    def advance(self, size: int) -> None:
        """Add finished input, in ``unit``."""
        if self._bar is not None and size:
            self._bar.advance(self._task, size)

    def count(self, messages: int = 1) -> None:
        """Add finished messages."""
        before = self._messages // _EVERY
        self._messages += messages
        if self._bar is not None and self._messages // _EVERY > before:
            self._bar.update(self._task, messages=self._messages)


def _line() -> Column:
    """A column whose text never takes a second line, which would be left behind."""
    return Column(no_wrap=True)
