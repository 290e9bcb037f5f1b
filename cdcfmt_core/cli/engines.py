"""What engines add to the commands, by entry points in groups named after the commands.

- ``cdcfmt.doctor``: a function that takes the packages of ``--packages`` and yields checks.
- ``cdcfmt.schema``: a module that implements :class:`SchemaEngine`.
- ``cdcfmt.convert``: a :class:`ConversionEngine`.

The entry point has the name of the extra (of its distribution) that installs the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Protocol

from cdcfmt_core.cli.input_base import Input
from cdcfmt_core.cli.reading import Reader
from cdcfmt_core.cli.settings import Settings
from cdcfmt_core.errors import MissingDependencyError
from cdcfmt_core.events import Event, Message
from cdcfmt_core.io.sources import BadLine, Lines
from cdcfmt_core.texts import open_logger
from cdcfmt_core.transport import Check

if TYPE_CHECKING:
    from cdcfmt_core.cli.conversion import Conversion, LinesOfMessages

logger = open_logger("cdcfmt_core")

_INSTALL = "pip install 'pyspark-cdcfmt[spark]'"


class EngineColumn(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str: ...


class EngineTables(Protocol):
    """The columns of all tables, from one pass over the input."""

    def see(self, events: Iterable[Event], *, of_end: bool = False) -> None:
        """Add the events of a message."""

    def finish(self, source: Input, reader: Reader) -> None:
        """Add the first and last messages of the input, and the schemas that the scan found."""

    def of(self, table: tuple[str, ...]) -> Sequence[EngineColumn]:
        """A table's columns; empty for a table without rows and schemas."""


class SchemaEngine(Protocol):
    """Column types of an engine; ``OPTIONS`` are the option names that it accepts by ``-o``."""

    OPTIONS: tuple[str, ...]

    def columns(
        self, source: Input, settings: Settings, table: tuple[str, ...]
    ) -> Sequence[EngineColumn]:
        """:raises CdcfmtError: if the input has no row of the table."""

    def every_table(self, settings: Settings) -> EngineTables: ...

    def sql(self, columns: Iterable[Any], delta_table: tuple[str, ...] | None = None) -> str:
        """The columns as schema text, or the statement that creates a Delta table of them."""


class ConversionEngine(Protocol):
    """Converts many messages at a time."""

    def __call__(
        self,
        conversion: Conversion,
        blocks: Iterator[Message | BadLine | Lines],
        number: int,
        *,
        as_lines: bool,
    ) -> Iterator[Message | LinesOfMessages]:
        """The converted messages: same bytes, order and errors as those of ``conversion``.

        :param number: Number of the first message of ``blocks``.
        """


def conversion_engine() -> ConversionEngine | None:
    """The first engine that can be imported; None without one, as it only adds speed."""
    for entry in entry_points(group="cdcfmt.convert"):
        try:
            engine: ConversionEngine = entry.load()
        except ImportError as error:
            logger.debug("converted one by one: %s", error)
        else:
            return engine
    return None


def schema_engine() -> SchemaEngine:
    """:raises MissingDependencyError: if no engine is installed, or its import fails."""
    for entry in entry_points(group="cdcfmt.schema"):
        try:
            engine: SchemaEngine = entry.load()
        except ImportError as error:
            raise MissingDependencyError(
                f"Spark column types need pyspark-cdcfmt: {error}: {_remedy(entry)} "
                "(schema --as create-table works without it)"
            ) from error
        return engine
    raise MissingDependencyError(
        f"Spark column types need pyspark-cdcfmt, which is missing: {_INSTALL} "
        "(schema --as create-table works without it)"
    )


def check_engines(packages: tuple[str, ...]) -> Iterator[Check]:
    """The doctor's checks of each engine."""
    found = entry_points(group="cdcfmt.doctor")
    if not found:
        yield Check("Spark", "warn", "pyspark-cdcfmt is missing", _INSTALL)
    for entry in found:
        try:
            check = entry.load()
        except ImportError as error:
            yield Check(entry.name.capitalize(), "warn", str(error), _remedy(entry))
        else:
            yield from check(packages)


def _remedy(entry: EntryPoint) -> str:
    return _INSTALL if entry.dist is None else f"pip install '{entry.dist.name}[{entry.name}]'"
