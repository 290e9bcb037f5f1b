"""Consoles with a common theme: data on stdout, everything else on stderr."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text
from rich.theme import Theme

from cdcfmt_cli.guesses import spelled
from cdcfmt_core.texts import harmless

THEME = Theme(
    {
        "ok": "green",
        "warn": "yellow",
        "bad": "bold red",
        "head": "bold",
        "name": "cyan",
        "faint": "dim",
        "key": "bold cyan",
        "null": "dim italic",
        "op.insert": "green",
        "op.read": "bright_green",
        "op.update": "yellow",
        "op.upsert": "bright_yellow",
        "op.delete": "red",
        "op.truncate": "bright_red",
        "kind.row": "none",
        "kind.ddl": "magenta",
        "kind.schema": "bright_magenta",
        "kind.watermark": "bright_blue",
        "kind.transaction": "bright_cyan",
        "kind.heartbeat": "dim",
        "kind.message": "cyan",
        "kind.corrupt": "bold red",
    }
)
_PIPE_WIDTH = 120
_ENDLESS = 1_000_000


def console(*, wide: bool = False) -> Console:
    """The console of stdout; with ``wide``, output to a pipe is never truncated."""
    return _console(stderr=False, pipe_width=_ENDLESS if wide else _PIPE_WIDTH)


def error_console() -> Console:
    """The console of stderr, for progress, notes and errors."""
    return _console(stderr=True, pipe_width=_ENDLESS)


class Quiet:
    """Whether ``--quiet`` was given: no notes, warnings, progress or next command."""

    on = False


def print_error(text: Text | str, style: str = "") -> None:
    """Print a line on stderr; a terminal breaks it between words."""
    out = error_console()
    out.print(text, style=style, soft_wrap=not out.is_terminal)


def note(text: str) -> None:
    """Print a line for people on stderr."""
    if not Quiet.on:
        print_error(spelled(text), "faint")


def next_command(command: Sequence[str], paths: Sequence[str]) -> None:
    """Print the next useful command, ready to copy."""
    if Quiet.on:
        return
    line = shlex.join(["cdcfmt", *command, *paths])
    # Names from the wire may hold control characters.
    shown = "".join(character if character.isprintable() else "?" for character in line)
    console().print(Text.assemble(("next: ", "faint"), shown), soft_wrap=True)


class _Console(Console):
    """Shows control characters escaped; everything on a terminal is written through it."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            # Control segments are rich's own cursor movements.
            yield segment if segment.control else segment._replace(text=harmless(segment.text))

    def on_broken_pipe(self) -> None:
        # rich would exit with code 1.
        raise BrokenPipeError


def _console(*, stderr: bool, pipe_width: int) -> Console:
    # A pipe has no width to fit.
    piped = not (sys.stderr if stderr else sys.stdout).isatty()
    columns = os.environ.get("COLUMNS", "")
    is_width = columns.isdecimal() and int(columns) > 0
    return _Console(
        stderr=stderr,
        theme=THEME,
        width=pipe_width if piped and not is_width else None,
        # rich would accept a width of 0 and print nothing.
        _environ=os.environ if is_width else {**os.environ, "COLUMNS": ""},
        highlight=False,
        emoji=False,
        markup=False,  # names from the wire may hold brackets
    )


_LOGGER = "cdcfmt_core"


class _Gathering(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: dict[str, list[str]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.setdefault(record.msg, []).append(record.getMessage())


@contextmanager
def gathered() -> Iterator[None]:
    """Hold back warnings; on exit, print the first of those with the same log format."""
    handler, logger = _Gathering(), logging.getLogger(_LOGGER)
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates
        for texts in [] if Quiet.on else handler.texts.values():
            more = f" (and {len(texts) - 1} more like it)" if len(texts) > 1 else ""
            print_error(Text.assemble(("note: ", "warn"), spelled(texts[0]) + more))
