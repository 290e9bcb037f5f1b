"""The data source, the entry point for Spark, and the check of Spark's Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from pyspark_cdcfmt.blocks import BLOCKS_OPTION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_cdcfmt.read.batch_reader import Work
    from pyspark_cdcfmt.read.inference import InferredSchema


_SECONDS = 60
_FIND = "import importlib.util as u, sys; sys.exit(u.find_spec('pyspark_cdcfmt') is None)"

_NO_STREAM_SCHEMA = (
    "a stream of changes needs a schema, since inference from some messages could give a different "
    "schema at every start: set .schema(...), or a schemaStore that has the table's columns. "
    'A batch spark.read.format("cdc").option("table", ...) shows the inferred schema, without '
    "options of streams such as maxFilesPerTrigger"
)


_FILTER_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"
"""The module of the worker that shows the filters of a query; any other one refuses a reader that
takes them."""

_NO_TABLE = (
    "a table USING cdc could not be read: Spark passes the options of CREATE TABLE to the source "
    "only while it creates the table. Use CREATE TEMPORARY VIEW ... USING cdc OPTIONS (...), "
    "or declare the columns in CREATE TABLE, and give the options in each query: "
    "SELECT ... FROM t WITH (path '...')"
)


class CdcDataSource(DataSource):
    """Change-data-capture messages of any installed format.

    Without the option ``table``: events, one row per event, of all tables.  With it: the
    typed changes of that table.  Options: docs/options.md.
    """

    _inferred: InferredSchema | None = None
    """The inferred schema, if the user gave none."""

    @property
    def _is_of_blocks(self) -> bool:
        return BLOCKS_OPTION in self.options

    @classmethod
    def name(cls) -> str:
        return "cdc"

    # Formats, pyarrow and fsspec are imported only from here on: Spark imports this module
    # at every look-up of a data source.

    def schema(self) -> StructType:
        from cdcfmt_core.errors import OptionError
        from pyspark_cdcfmt.options import is_of_stream, parse_options
        from pyspark_cdcfmt.rows.row_schemas import events_schema

        if "provider" in self.options:
            raise OptionError(_NO_TABLE)
        options = parse_options(self.options)
        options.require_input().check()
        if self._is_of_blocks:
            from pyspark_cdcfmt.blocks.schema import BLOCKS

            options.check_restarts()
            return BLOCKS
        if options.table is None:
            return events_schema(options)
        from pyspark_cdcfmt.read.inference import infer_schema, schema_of_store

        # Spark calls this only without a user's schema, and keeps this object. Only some options
        # show whether the read is a stream.
        self._inferred = schema_of_store(options)
        if self._inferred is None:
            if is_of_stream(self.options):
                raise OptionError(_NO_STREAM_SCHEMA)
            self._inferred = infer_schema(options)
        return self._inferred.schema

    def reader(self, schema: StructType) -> DataSourceReader:
        from pyspark_cdcfmt.options import parse_options
        from pyspark_cdcfmt.read.batch_reader import CdcBatchReader
        from pyspark_cdcfmt.rows.row_schemas import check_schema

        options = parse_options(self.options)
        self._check_type_options()
        reader_class = CdcBatchReader
        if _FILTER_WORKER in sys.modules:
            from pyspark_cdcfmt.read.query_filters import FilteredReader

            reader_class = FilteredReader
        reader = reader_class(schema, options, inferred=self._inferred)
        check_schema(schema, options)
        return reader

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from cdcfmt_core.errors import OptionError
        from pyspark_cdcfmt.options import parse_options
        from pyspark_cdcfmt.rows.row_schemas import check_schema, events_schema

        options = parse_options(self.options)
        options.require_input()
        inferred = self._inferred is not None
        if self._inferred is not None and not self._inferred.of_store:
            raise OptionError(_NO_STREAM_SCHEMA)
        self._check_type_options()
        from pyspark_cdcfmt.read.batch_reader import read_slice
        from pyspark_cdcfmt.read.stream_readers import CdcStreamReader

        work: Work = read_slice
        if self._is_of_blocks:
            from pyspark_cdcfmt.blocks.packing import read_blocks

            work, schema = read_blocks, events_schema(options)
        check_schema(schema, options)
        return CdcStreamReader(schema, options, inferred=inferred, work=work)

    def _check_type_options(self) -> None:
        from pyspark_cdcfmt.options import check_type_options

        if self._inferred is None:
            check_type_options(self.options, "the types are those of the schema that you give")

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pyspark_cdcfmt.write.writers import CdcBatchWriter, CdcTopicWriter
        from pyspark_cdcfmt.write_options import parse_write_options

        options = parse_write_options(self.options)
        if options.sink is not None:
            return CdcTopicWriter.open(schema, options, options.sink, overwrite=overwrite)
        return CdcBatchWriter.open(schema, options, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from pyspark_cdcfmt.write.writers import CdcStreamWriter, CdcTopicStreamWriter
        from pyspark_cdcfmt.write_options import parse_write_options

        options = parse_write_options(self.options)
        if options.sink is not None:
            return CdcTopicStreamWriter.open(schema, options, options.sink, overwrite=overwrite)
        return CdcStreamWriter.open(schema, options, overwrite=overwrite)


def check_interpreter(spark: SparkSession) -> None:
    """Check that the Python of the session's data sources has this package.

    Otherwise Spark fails with DATA_SOURCE_NOT_FOUND, or a worker with ModuleNotFoundError.

    :raises MissingDependencyError: with the name of that Python and the variables to set.
    """
    from cdcfmt_core.errors import MissingDependencyError

    context = getattr(spark, "_sc", None)
    if context is None:
        # Spark Connect: the server chooses its Python.
        return
    name: str = context.pythonExec
    program = shutil.which(name)
    # Compares paths unresolved: a venv's Python links to the system's, which lacks its packages.
    if program is not None and os.path.abspath(program) == os.path.abspath(sys.executable):
        return
    variable = "PYSPARK_PYTHON" if os.environ.get("PYSPARK_PYTHON") else "PYSPARK_PYTHON is unset"
    if program is None:
        problem = "does not run on this machine, which plans queries with it"
    elif _finds_us(program):
        return
    else:
        problem = f"({program}) has no package pyspark-cdcfmt"
    raise MissingDependencyError(
        f"Spark runs data sources with {name!r} ({variable}), which {problem}: set PYSPARK_PYTHON "
        f"and PYSPARK_DRIVER_PYTHON, for example to {sys.executable}, before the session starts, "
        "and start a new one"
    )


def _finds_us(program: str) -> bool:
    from pyspark import SparkFiles

    # Files of --py-files and addPyFile are on the path of the workers, too.
    root = SparkFiles.getRootDirectory()
    shipped = [path for path in sys.path if path.startswith(root)]
    path = os.pathsep.join([*shipped, os.environ.get("PYTHONPATH", "")])
    try:
        done = subprocess.run(
            [program, "-c", _FIND],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
