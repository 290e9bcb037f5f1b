"""The data source: what Spark calls first."""

from __future__ import annotations

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

if TYPE_CHECKING:
    from pyspark_cdcfmt.options import ReadOptions
    from pyspark_cdcfmt.read.inferred import InferredSchema

_NO_STREAM_SCHEMA = (
    "a stream of changes needs its schema from you, since inferring one from some messages would "
    "give another one at every start: give .schema(...), or a schemaStore that tells the table's "
    'columns. In batch spark.read.format("cdc").option("table", ...) shows what would be inferred'
)


class CdcDataSource(DataSource):
    """Change-data-capture messages of any installed format.

    Without the option ``table``: events, one row per event of every table.  With it: the
    typed changes of that table.  Options: docs/spark.md.
    """

    _inferred: InferredSchema | None = None
    """The schema where the user gave none, and what its inference has found."""

    @classmethod
    def name(cls) -> str:
        return "cdc"

    # Formats, pyarrow and fsspec are imported only from here on: Spark imports this module
    # whenever it looks for any data source.

    def schema(self) -> StructType:
        from cdcfmt_core.errors import OptionError
        from pyspark_cdcfmt.options import is_of_stream, parse_options
        from pyspark_cdcfmt.read.inferred import infer_schema, schema_of_store
        from pyspark_cdcfmt.rows.row_schemas import events_schema

        options = parse_options(self.options)
        options.require_input()
        if options.table is None:
            return events_schema(options)
        # Spark asks only where the user gave no schema, and keeps this object.
        # It does not say here whether it is about a stream; some options do.
        self._inferred = schema_of_store(options)
        if self._inferred is None:
            if is_of_stream(self.options):
                raise OptionError(_NO_STREAM_SCHEMA)
            self._inferred = infer_schema(options)
        return self._inferred.schema

    def reader(self, schema: StructType) -> DataSourceReader:
        from pyspark_cdcfmt.options import parse_options
        from pyspark_cdcfmt.read.batch_reader import CdcBatchReader, PushdownReader

        options = parse_options(self.options)
        self._check_type_options()
        reader = (
            PushdownReader
            if "pyspark.sql.worker.data_source_pushdown_filters" in sys.modules
            else CdcBatchReader
        )(schema, options, inferred=self._inferred)
        check_schema(schema, options)
        return reader

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from cdcfmt_core.errors import OptionError
        from pyspark_cdcfmt.options import parse_options

        options = parse_options(self.options)
        options.require_input()
        inferred = self._inferred is not None
        if self._inferred is not None and not self._inferred.of_store:
            raise OptionError(_NO_STREAM_SCHEMA)
        self._check_type_options()
        check_schema(schema, options)
        if options.kafka is not None:
            from pyspark_cdcfmt.read.stream_readers import KafkaStreamReader

            return KafkaStreamReader(
                schema, options, options.kafka, inferred=self._inferred is not None
            )
        from pyspark_cdcfmt.read.file_stream import FileStreamReader

        return FileStreamReader(schema, options, inferred=inferred)

    def _check_type_options(self) -> None:
        from pyspark_cdcfmt.options import check_type_options

        if self._inferred is None:
            check_type_options(self.options, "the types are those of the schema that you give")

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pyspark_cdcfmt.write.files import CdcBatchWriter, FileWriter
        from pyspark_cdcfmt.write.kafka import CdcKafkaWriter, KafkaWriter
        from pyspark_cdcfmt.write_options import parse_write_options

        options = parse_write_options(self.options)
        if options.kafka is not None:
            return CdcKafkaWriter(KafkaWriter.open(schema, options, overwrite=overwrite))
        return CdcBatchWriter(FileWriter.open(schema, options), overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from pyspark_cdcfmt.write.files import CdcStreamWriter, FileWriter
        from pyspark_cdcfmt.write.kafka import CdcKafkaStreamWriter, KafkaWriter
        from pyspark_cdcfmt.write_options import parse_write_options

        options = parse_write_options(self.options)
        if options.kafka is not None:
            return CdcKafkaStreamWriter(KafkaWriter.open(schema, options, overwrite=overwrite))
        return CdcStreamWriter(FileWriter.open(schema, options), overwrite=overwrite)


def check_schema(schema: StructType, options: ReadOptions) -> StructType:
    """The schema, with our spelling of the columns that are not the table's.

    :raises OptionError: for a schema that the shape cannot have.
    """
    from pyspark_cdcfmt.rows.change_schema import canonical_changes, check_changes_schema
    from pyspark_cdcfmt.rows.row_schemas import canonical_events, check_events_schema

    if options.table is None:
        schema = canonical_events(schema, options)
        check_events_schema(schema, options)
    else:
        schema = canonical_changes(schema, options)
        check_changes_schema(schema, options)
    return schema
