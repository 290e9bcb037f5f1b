"""A progress bar on stderr, if it is a terminal."""

from __future__ import annotations

import sys

from rich.progress import (
    BarColumn,
    DownloadColumn,
    SpinnerColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress

from cdcfmt_cli.console import Quiet, error_console

_EVERY = 1000


def no_bars(streams: bool) -> None:
    """Switch bars off if data is printed meanwhile (``streams``) and stdout is a terminal."""
    ProgressBar.quiet = streams and sys.stdout.isatty()


class ProgressBar:
    """A bar towards ``total`` (in ``unit``), and a count of messages.

    Hidden without a terminal, or after :func:`no_bars`.
    """

    quiet = False

    def __init__(self, what: str, total: int | None, unit: str = "bytes") -> None:
        self._messages = 0
        self._bar: RichProgress | None = None
        self._task = TaskID(0)
        if sys.stderr.isatty() and not (ProgressBar.quiet or Quiet.on):
            self._bar = RichProgress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TaskProgressColumn(),
                *([DownloadColumn(binary_units=True)] if unit == "bytes" else []),
                TextColumn("[dim]{task.fields[messages]:,} messages"),
                TimeRemainingColumn(),
                console=error_console(),
                transient=True,
            )
            self._task = self._bar.add_task(what, total=total, messages=0)

    def __enter__(self) -> ProgressBar:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

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
