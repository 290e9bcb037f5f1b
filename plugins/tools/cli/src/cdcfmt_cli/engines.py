"""Additions of engines to the commands, by entry points in groups named after the commands.

- ``cdcfmt.doctor``: a function that takes the packages of ``--packages`` and yields checks.
- ``cdcfmt.schema``: a module such as ``pyspark_cdcfmt.cli.schema``: column types of an engine.
- ``cdcfmt.convert``: a function such as ``pyspark_cdcfmt.cli.convert.convert``, which converts
  many messages at a time: same bytes, order and errors as those of a ``Conversion``.

The entry point has the name of the extra (of its distribution) that installs the engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint, PackageNotFoundError, version
from typing import Any

from cdcfmt_core.errors import MissingDependencyError
from cdcfmt_core.lazy import installed
from cdcfmt_core.texts import open_logger
from cdcfmt_core.transport import Check

logger = open_logger("cdcfmt_core")

_INSTALL = "pip install 'pyspark-cdcfmt[spark]'"


def version_of(dist: str) -> str:
    """The installed version; ``?`` for a module without a distribution."""
    try:
        return version(dist)
    except PackageNotFoundError:
        return "?"


def conversion_engine() -> Any:
    """The first engine that can be imported; None without one, as it only adds speed."""
    for entry in installed("cdcfmt.convert"):
        try:
            engine = entry.load()
        except ImportError as error:
            logger.debug("converted one by one: %s", error)
        else:
            return engine
    return None


def schema_engine() -> Any:
    """:raises MissingDependencyError: if no engine is installed, or its import fails."""
    for entry in installed("cdcfmt.schema"):
        try:
            engine = entry.load()
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
    found = installed("cdcfmt.doctor")
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
