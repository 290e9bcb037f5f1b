"""Checks of names and types on the driver, by samples of the input."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql.types import StructType

from cdcfmt_core.errors import SourceError
from cdcfmt_core.registry import default_registry
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.texts import open_logger
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.declared import GivenNames, check_declared_types, unmatched_exclusion
from pyspark_cdcfmt.read.inputs import FilesInput
from pyspark_cdcfmt.read.notices import looks_for_zones, notices, warn
from pyspark_cdcfmt.read.slices import Input, Slice
from pyspark_cdcfmt.read.survey import Survey, Surveyor, TableName

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


def check_batch(
    source: Input,
    slices: Sequence[Slice],
    options: ReadOptions,
    schema: StructType,
    *,
    inferred: bool,
) -> Survey:
    """Sample a batch's input and compare it with ``schema`` and options.

    The sample ends as soon as all names are known.  The result has the table's schemas that the
    sampled messages show (``complete_schemas_of(options.table)``).

    Warns of missing information, and of columns that only the end of the last slice has.

    :raises SourceError: for a name that the input does not know.
    :raises PolicyError: for a declared type that cannot hold a column.
    """
    default_registry().warn(options["protocol"], warn)
    names = GivenNames.of(options, schema, inferred=inferred)
    zones = looks_for_zones(options, schema)
    if not slices or not (names or options.table or options["excludeTables"] or zones):
        return Survey()
    surveyor = Surveyor(source, slices, options, slices[0].schemas)
    survey = surveyor.survey
    if options["requireTables"] and names:
        surveyor.sample_ends(names.all_in)
        if names.unknown(survey):
            surveyor.read_on(lambda survey: names.unknown(survey) is None)
        names.check(survey)
    elif options.table is not None:
        surveyor.sample_ends(partial(_has_table, options.table))
    if not inferred:
        check_declared_types(schema, survey, options)
    if options.table is not None:
        last = Surveyor(source, slices[-1:], options, slices[0].schemas, survey=survey)
        last.sample_ends(lambda survey: False, thorough=False, most=_MESSAGES_OF_LAST)
    else:
        try:
            _sample_more(surveyor, options, zones=zones)
        except SourceError as error:
            # The tasks meet it, too, and report it.
            logger.debug("cdc: no survey: %s", error)
    many = source.has_many_files(slices)
    for notice in notices(survey, options, schema, inferred=inferred, many_files=many):
        warn(notice)
    return survey


def _sample_more(surveyor: Surveyor, options: ReadOptions, *, zones: bool) -> None:
    """Sample more messages, for warnings about events."""

    def answered(survey: Survey) -> bool:
        return not zones and bool(survey.tables) and unmatched_exclusion(survey, options) is None

    if zones or options["excludeTables"]:
        surveyor.sample_ends(answered, thorough=False, most=_MESSAGES_OF_LAST)


def _has_table(table: TableName, survey: Survey) -> bool:
    return bool(survey.complete_schemas_of(table))


class StreamCheck:
    """Warns of names that the first micro-batches of a stream do not have.

    The stream continues, as they may appear later.  It fails if a declared type cannot hold a
    column.
    """

    def __init__(self, options: ReadOptions, schema: StructType, *, inferred: bool) -> None:
        default_registry().warn(options["protocol"], warn)
        self._names = GivenNames.of(options, schema, inferred=inferred)
        self._options = options
        self._declared = None if inferred else schema
        self._survey = Survey()
        self._zones = looks_for_zones(options, schema)
        given = self._names or options.table or options["excludeTables"] or self._zones
        wanted = options["requireTables"] and given
        self._batches = _BATCHES if wanted else 0
        self._warned = False
        self._schema = schema
        self._noticed: set[str] = set()

    def check(self, source: Input, slices: Sequence[Slice]) -> None:
        """Check the next micro-batch.

        :raises PolicyError: for a declared type that cannot hold a column.
        """
        if not self._batches or not slices:
            return
        self._batches -= 1
        surveyor = Surveyor(
            source,
            slices,
            self._options,
            # The stream itself must not depend on this sample.
            SchemaStore(self._options["maxCachedSchemaBytes"]),
            survey=self._survey,
            seconds=_STREAM_SECONDS,
        )
        try:
            surveyor.sample_ends(self._knows, thorough=False)
            if self._options.table is None:
                _sample_more(surveyor, self._options, zones=self._zones)
        except SourceError as error:
            # The tasks meet it, too, and report it.
            logger.debug("cdc: no survey: %s", error)
            return
        if self._declared is not None:
            check_declared_types(self._declared, self._survey, self._options)
        found = notices(
            self._survey,
            self._options,
            self._schema,
            inferred=self._declared is None,
            # More files will come.
            many_files=isinstance(source, FilesInput),
        )
        for notice in found:
            if notice not in self._noticed:
                self._noticed.add(notice)
                warn(notice)
        if self._knows(self._survey):
            self._batches = 0
        elif not self._warned and (reason := self._names.unknown(self._survey)):
            self._warned = True
            warn(f"{reason} ({_MAY_COME}; requireTables=false disables this check)")

    def _knows(self, survey: Survey) -> bool:
        table = self._options.table
        return self._names.all_in(survey) and (table is None or _has_table(table, survey))
