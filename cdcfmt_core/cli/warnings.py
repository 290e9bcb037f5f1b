"""Collects the core's warnings, and prints one line per kind on stderr at the end."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from rich.text import Text

from cdcfmt_core.cli.console import Quiet, error_console

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
        console = error_console()
        for texts in [] if Quiet.on else handler.texts.values():
            more = f" (and {len(texts) - 1} more like it)" if len(texts) > 1 else ""
            console.print(Text.assemble(("note: ", "warn"), texts[0] + more), soft_wrap=True)
