"""The schema of a read to which the user gave none, from the schema store or the messages."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql.types import StructType

from cdcfmt_core.schema_store import SchemaStore
from cdcfmt_core.sources import KeptSchemaStore
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.engine import open_decoder
from pyspark_cdcfmt.read.inference import infer_columns, merge_columns
from pyspark_cdcfmt.read.schemas import find_schemas, open_store
from pyspark_cdcfmt.read.slices import Share, open_input
from pyspark_cdcfmt.read.survey import SECONDS
from pyspark_cdcfmt.rows.row_schemas import changes_schema
from pyspark_cdcfmt.rows.types import TypeOptions


@attrs.frozen
class InferredSchema:
    """A schema and what its inference has read, so that the reader need not read it again.

    ``of_store`` schemas are those that the schema store has, which a stream may have, too.
    ``schemas`` are the table schemas found in ``shares``.
    """

    schema: StructType
    of_store: bool = False
    shares: Sequence[Share] = ()
    schemas: SchemaStore | None = None

    def schemas_in(self, shares: Sequence[Share]) -> SchemaStore | None:
        """The table schemas in these shares; None if the input is another one by now."""
        return self.schemas if list(self.shares) == list(shares) else None


def schema_of_store(options: ReadOptions) -> InferredSchema | None:
    """The table's columns as ``schemaStore`` has them, and else the messages' schema events."""
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
        find_schemas(options, lambda scan: source.scanned(shares, scan), statements=False)
        records = store.reload(*name)
    if not records:
        return None
    records.sort(key=lambda record: (record.stream, record.position))
    columns = merge_columns((record.table for record in records), TypeOptions.of(options.values))
    return InferredSchema(changes_schema(columns, options), of_store=True)


def infer_schema(options: ReadOptions) -> InferredSchema:
    """The schema that the input's messages give.

    :raises SourceError: if no message of the table is found.
    """
    source = open_input(options)
    shares = source.plan()
    event_filter = attrs.evolve(options.event_filter(), kinds=None)
    table = options.table
    assert table is not None
    schemas = find_schemas(options, lambda scan: source.scanned(shares, scan))
    columns = infer_columns(
        lambda: source.read_all(shares),
        open_decoder(options, event_filter, schemas=schemas),
        table,
        options["inferSampleMessages"],
        TypeOptions.of(options.values),
        any_table=open_decoder(options, attrs.evolve(event_filter, table=None), schemas=schemas),
        ends=lambda: source.ends(shares, seconds=SECONDS, thorough=True),
        schemas=schemas.versions_of(table),
    )
    return InferredSchema(changes_schema(columns, options), shares=shares, schemas=schemas)
