"""The rows of the golden Canal-JSON messages, as the reader gives them, in Arrow batches."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType
from run import load

from pyspark_cdcfmt.options import parse_options
from pyspark_cdcfmt.read.decoding import open_decoder
from pyspark_cdcfmt.read.inference import infer_columns
from pyspark_cdcfmt.rows.change_rows import ChangeRows
from pyspark_cdcfmt.rows.event_rows import EventRows
from pyspark_cdcfmt.rows.policy import ValuePolicy
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.record_batches import BatchBuilder
from pyspark_cdcfmt.rows.row_schemas import changes_schema, events_schema
from pyspark_cdcfmt.rows.types import TypeOptions

TABLE = "bench.orders"
ZONE = {"sourcetimezone": "Asia/Shanghai"}


def input_rows(**given: str) -> tuple[StructType, list[pa.RecordBatch]]:
    """Schema and batches of the shape that the options ask for."""
    messages = list(load("canal-json"))
    shape = {} if "table" in given else {"includecolumns": "true"}
    options = parse_options({**ZONE, "protocol": "canal-json", **shape, **given})
    decoder = open_decoder(options, options.event_filter())
    policy = ValuePolicy("text", "replace")
    rows: Any
    if options.table is None:
        schema = events_schema(options)
        rows = EventRows(ReadTask(schema, options), policy)
    else:
        columns = infer_columns(
            lambda: messages,
            decoder,
            options.table,
            1000,
            TypeOptions.of(options.values),
        )
        schema = changes_schema(columns, options)
        rows = ChangeRows(ReadTask(schema, options, inferred=True), policy)
    builder = BatchBuilder(schema)
    batches = []
    for message in messages:
        for event in decoder.decode(message):
            batches += builder.add(list(rows.rows(message, event, decoder.protocol)), 0)
    return schema, [*batches, *builder.flush()]
