"""Engines' parts of the commands, from entry points in groups named after the commands.

- ``cdcfmt.doctor``: a function of the packages that ``--packages`` names; it gives checks.
- ``cdcfmt.schema``: a module with what :class:`SchemaEngine` has.
- ``cdcfmt.convert``: a :class:`ConversionEngine`.

An entry point bears the name of the extra of its distribution that brings the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Protocol

from cdcfmt_core.cli.inputs import Input
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
        """Take in the events of a message."""

    def finish(self, source: Input, reader: Reader) -> None:
        """Take in the input's ends, and the schemas that the scan has found."""

    def of(self, table: tuple[str, ...]) -> Sequence[EngineColumn]:
        """A table's columns; none of a table without rows and schemas."""


class SchemaEngine(Protocol):
    """A table's columns in an engine; ``OPTIONS`` are names of options that ``-o`` takes."""

    OPTIONS: tuple[str, ...]

    def columns(
        self, source: Input, settings: Settings, table: tuple[str, ...]
    ) -> Sequence[EngineColumn]:
        """:raises CdcfmtError: if no row of the table is in the input."""

    def every_table(self, settings: Settings) -> EngineTables: ...

    def sql(self, columns: Iterable[Any], delta_table: tuple[str, ...] | None = None) -> str:
        """The columns as text of a schema, or the statement that makes a Delta table of them."""


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
        """The converted messages; ``number`` is that of the first one.

        Bytes, order and errors are those of ``conversion``.
        """


def conversion_engine() -> ConversionEngine | None:
    """None without one that can be imported: it is only faster."""
    for entry in entry_points(group="cdcfmt.convert"):
        try:
            engine: ConversionEngine = entry.load()
        except ImportError as error:
            logger.debug("converted one by one: %s", error)
        else:
            return engine
    return None


def schema_engine() -> SchemaEngine:
    """:raises MissingDependencyError: without an engine, or if it cannot be imported."""
    for entry in entry_points(group="cdcfmt.schema"):
        try:
            engine: SchemaEngine = entry.load()
        except ImportError as error:
            raise MissingDependencyError(
                f"Spark column types need pyspark-cdcfmt: {error}: {_remedy(entry)} "
                "(schema --as create-table does without)"
            ) from error
        return engine
    raise MissingDependencyError(
        f"Spark column types need pyspark-cdcfmt, which is missing: {_INSTALL} "
        "(schema --as create-table does without)"
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
