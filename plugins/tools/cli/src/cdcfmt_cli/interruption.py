"""Ctrl-C ends reading; what was counted so far is printed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import attrs

from cdcfmt_cli.console import note


@attrs.define
class Interruption:
    """Whether Ctrl-C ended the block of :func:`until_interrupted`."""

    happened: bool = False

    def end(self, text: str) -> None:
        """Print a note after an interruption, and end the command.

        :raises KeyboardInterrupt: after an interruption.
        """
        if self.happened:
            note(f"interrupted: {text}")
            raise KeyboardInterrupt


@contextmanager
def until_interrupted() -> Iterator[Interruption]:
    """A block that Ctrl-C ends without an exception; a second Ctrl-C ends the command."""
    interruption = Interruption()
    try:
        yield interruption
    except KeyboardInterrupt:
        interruption.happened = True
