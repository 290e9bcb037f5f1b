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

    _inferred = False
    _told = False
    """Whether the inferred schema is that of the schema store, so that a stream may have it."""

    @classmethod
    def name(cls) -> str:
        return "cdc"

    # Formats, pyarrow and fsspec are imported only from here on: Spark imports this module
    # whenever it looks for any data source.

    def schema(self) -> StructType:
        from cdcfmt_core.errors import OptionError
        from pyspark_cdcfmt.events import events_schema
        from pyspark_cdcfmt.options import is_of_stream, parse_options

        options = parse_options(self.options)
        options.require_input()
        if options.table is None:
            return events_schema(options)
        # Spark asks only where the user gave no schema, and keeps this object.
        self._inferred = True
        told = _told_by_store(options)
        if told is not None:
            self._told = True
            return told
        # Spark does not say here whether it is about a stream; some options do.
        if is_of_stream(self.options):
            raise OptionError(_NO_STREAM_SCHEMA)
        return _infer(options)

    def reader(self, schema: StructType) -> DataSourceReader:
        from pyspark_cdcfmt.options import parse_options
        from pyspark_cdcfmt.reader import CdcBatchReader, PushdownReader

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
        if self._inferred and not self._told:
            raise OptionError(_NO_STREAM_SCHEMA)
        self._check_type_options()
        check_schema(schema, options)
        if options.kafka is not None:
            from pyspark_cdcfmt.stream import KafkaStreamReader

            return KafkaStreamReader(schema, options, options.kafka, inferred=self._inferred)
        from pyspark_cdcfmt.file_stream import FileStreamReader

        return FileStreamReader(schema, options, inferred=self._inferred)

    def _check_type_options(self) -> None:
        from pyspark_cdcfmt.options import check_type_options

        if not self._inferred:
            check_type_options(self.options, "the types are those of the schema that you give")

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pyspark_cdcfmt.kafka_writer import CdcKafkaWriter, KafkaWriter
        from pyspark_cdcfmt.output_options import parse_write_options
        from pyspark_cdcfmt.writer import CdcBatchWriter, FileWriter

        options = parse_write_options(self.options)
        if options.kafka is not None:
            return CdcKafkaWriter(KafkaWriter.open(schema, options, overwrite=overwrite))
        return CdcBatchWriter(FileWriter.open(schema, options), overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from pyspark_cdcfmt.kafka_writer import CdcKafkaStreamWriter, KafkaWriter
        from pyspark_cdcfmt.output_options import parse_write_options
        from pyspark_cdcfmt.writer import CdcStreamWriter, FileWriter

        options = parse_write_options(self.options)
        if options.kafka is not None:
            return CdcKafkaStreamWriter(KafkaWriter.open(schema, options, overwrite=overwrite))
        return CdcStreamWriter(FileWriter.open(schema, options), overwrite=overwrite)


def check_schema(schema: StructType, options: ReadOptions) -> None:
    """OptionError for a schema that the shape cannot have."""
    from pyspark_cdcfmt.change_rows import check_changes_schema
    from pyspark_cdcfmt.events import check_events_schema

    check = check_events_schema if options.table is None else check_changes_schema
    check(schema, options)


def _told_by_store(options: ReadOptions) -> StructType | None:
    """The table's columns as ``schemaStore`` has them, and else the messages' schema events."""
    from cdcfmt_core.sources import KeptSchemaStore
    from pyspark_cdcfmt.change_rows import changes_schema
    from pyspark_cdcfmt.infer import merge_columns
    from pyspark_cdcfmt.inputs import open_input
    from pyspark_cdcfmt.schemas import find_schemas, open_store
    from pyspark_cdcfmt.types import TypeOptions

    store = open_store(options)
    if not isinstance(store, KeptSchemaStore):
        return None
    assert options.table is not None
    database, *schema, table = options.table
    name = (database, table, schema[0] if schema else None)
    records = store.reload(*name)
    if not records:
        source = open_input(options)
        shares = source.plan()
        find_schemas(options, lambda marks: source.read_all(shares, marks))
        records = store.reload(*name)
    if not records:
        return None
    records.sort(key=lambda record: (record.stream, record.position))
    columns = merge_columns((record.table for record in records), TypeOptions.of(options.values))
    return changes_schema(columns, options)


def _infer(options: ReadOptions) -> StructType:
    import attrs

    from pyspark_cdcfmt.change_rows import changes_schema
    from pyspark_cdcfmt.engine import open_decoder
    from pyspark_cdcfmt.infer import infer_columns
    from pyspark_cdcfmt.inputs import open_input
    from pyspark_cdcfmt.schemas import find_schemas
    from pyspark_cdcfmt.types import TypeOptions

    source = open_input(options)
    shares = source.plan()
    event_filter = attrs.evolve(options.event_filter(), kinds=None)
    table = options.table
    assert table is not None
    schemas = find_schemas(options, lambda marks: source.read_all(shares, marks))
    columns = infer_columns(
        lambda: source.read_all(shares),
        open_decoder(options, event_filter, schemas=schemas),
        table,
        options["inferSampleMessages"],
        TypeOptions.of(options.values),
        any_table=open_decoder(options, attrs.evolve(event_filter, table=None), schemas=schemas),
    )
    return changes_schema(columns, options)
