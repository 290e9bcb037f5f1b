"""Checks of names and types on the driver, by samples of the input."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from functools import partial

from cdcfmt_core.errors import SourceError
from cdcfmt_core.registry import default_registry
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.texts import one_line, open_logger
from cdcfmt_toolkit.inputs import Input, Slice
from pyspark_cdcfmt.kernel.formats import warn_without_kernel
from pyspark_cdcfmt.read.engine import WORKER_LOGGING
from pyspark_cdcfmt.read.rules import (
    DeclaredNames,
    check_declared_types,
    find_warnings,
    looks_for_zones,
    unmarked_rows,
    unmatched_exclusion,
)
from pyspark_cdcfmt.read.survey import Survey, TableName
from pyspark_cdcfmt.rows.read_task import ReadTask

logger = open_logger("pyspark_cdcfmt")

_MESSAGES_OF_LAST = 400
"""Sampled messages of the last slice, for the newest schema of the table."""
_BATCHES = 3
"""Micro-batches whose names a stream checks."""
_STREAM_SECONDS = 3.0
_MAY_COME = (
    "the stream continues, since it may appear later; a row of the table that lacks a column of "
    "keyColumns ends the stream"
)


def warn(text: str) -> None:
    """Warn on the driver's stderr, or in Spark's table of worker logs if that is on."""
    line = one_line(f"cdc: {text}")
    if WORKER_LOGGING in os.environ:
        logger.warning(line)
    else:
        shown = warnings.formatwarning
        # The user's line is in another process.
        warnings.formatwarning = _without_place
        try:
            # Without a registry: Spark reuses this process for other queries, which warn again.
            warnings.warn_explicit(line, UserWarning, __name__, 0)
        finally:
            warnings.formatwarning = shown


def _without_place(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    return f"{category.__name__}: {message}\n"


def _warn_of_plan(task: ReadTask) -> None:
    """Warn of what needs no messages."""
    protocol = task.options["protocol"]
    default_registry().warn(protocol, warn)
    if text := unmarked_rows(task):
        warn(text)
    if any(codec.open_layouts is not None for codec in default_registry().codecs_of(protocol)):
        warn_without_kernel()


def check_batch(source: Input, slices: Sequence[Slice], task: ReadTask) -> Survey:
    """Sample a batch's input and compare it with the schema and options.

    The sample ends as soon as all names are known.  The result has the table's schemas that the
    sampled messages show (``complete_schemas_of(options.table)``).

    Warns of missing information, and of columns that only the end of the last slice has.

    :raises SourceError: for a name that the input does not know.
    :raises PolicyError: for a declared type that cannot hold a column.
    """
    options = task.options
    _warn_of_plan(task)
    names = DeclaredNames(task)
    zones = looks_for_zones(task)
    if not slices or not (names or options.table or options["excludeTables"] or zones):
        return Survey()
    survey = Survey.of(options, slices[0].schemas)
    if options["requireTables"] and names:
        survey.sample_ends(source, slices, names.all_in)
        if names.unknown(survey):
            survey.read_on(source, slices, lambda survey: names.unknown(survey) is None)
        names.check(survey)
    elif options.table is not None:
        survey.sample_ends(source, slices, partial(_has_table, options.table))
    check_declared_types(task, survey)
    if options.table is not None:
        last = slices[-1:]
        survey.sample_ends(source, last, lambda _: False, thorough=False, most=_MESSAGES_OF_LAST)
    else:
        try:
            _sample_more(survey, source, slices, task)
        except SourceError as error:
            # The tasks meet it, too, and report it.
            logger.debug("cdc: no survey: %s", error)
    many = len({path for slice_ in slices for path in slice_.paths}) > 1
    for text in find_warnings(survey, task, many_files=many):
        warn(text)
    return survey


def _sample_more(survey: Survey, source: Input, slices: Sequence[Slice], task: ReadTask) -> None:
    """Sample more messages, for warnings about events."""
    options, zones = task.options, looks_for_zones(task)

    def answered(survey: Survey) -> bool:
        return not zones and bool(survey.tables) and unmatched_exclusion(survey, options) is None

    if zones or options["excludeTables"]:
        survey.sample_ends(source, slices, answered, thorough=False, most=_MESSAGES_OF_LAST)


def _has_table(table: TableName, survey: Survey) -> bool:
    return bool(survey.complete_schemas_of(table))


class StreamCheck:
    """Warns of names that the first micro-batches of a stream do not have.

    The stream continues, as they may appear later.  It fails if a declared type cannot hold a
    column.
    """

    def __init__(self, task: ReadTask) -> None:
        options = task.options
        self._has_begun = False
        self._task = task
        self._names = DeclaredNames(task)
        self._survey: Survey | None = None
        given = self._names or options.table or options["excludeTables"] or looks_for_zones(task)
        wanted = options["requireTables"] and given
        self._batches = _BATCHES if wanted else 0
        self._warned: set[str] = set()
        self._warned_of_names = False

    def check(self, source: Input, slices: Sequence[Slice]) -> None:
        """Check the next micro-batch.

        :raises PolicyError: for a declared type that cannot hold a column.
        """
        if not self._has_begun:
            self._has_begun = True
            _warn_of_plan(self._task)
        if not self._batches or not slices:
            return
        self._batches -= 1
        task, options = self._task, self._task.options
        if self._survey is None:
            # The stream itself must not depend on this sample.
            self._survey = Survey.of(options, SchemaStore(options["maxCachedSchemaBytes"]))
        survey = self._survey
        try:
            survey.sample_ends(source, slices, self._knows, seconds=_STREAM_SECONDS, thorough=False)
            if options.table is None:
                _sample_more(survey, source, slices, task)
        except SourceError as error:
            # The tasks meet it, too, and report it.
            logger.debug("cdc: no survey: %s", error)
            return
        check_declared_types(task, survey)
        # More files will come.
        many = any(slice_.paths for slice_ in slices)
        for text in find_warnings(survey, task, many_files=many):
            if text not in self._warned:
                self._warned.add(text)
                warn(text)
        if self._knows(survey):
            self._batches = 0
        elif not self._warned_of_names and (reason := self._names.unknown(survey)):
            self._warned_of_names = True
            warn(f"{reason} ({_MAY_COME}; requireTables=false disables this check)")

    def _knows(self, survey: Survey) -> bool:
        table = self._task.options.table
        return self._names.all_in(survey) and (table is None or _has_table(table, survey))
