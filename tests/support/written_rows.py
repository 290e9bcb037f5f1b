"""Rows in record batches, as the reader gives them, written by the kernel and by the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from cdcfmt_core import default_registry
from cdcfmt_core.errors import CdcfmtError
from cdcfmt_core.events import Event, Message, RowChange
from cdcfmt_files.sinks import line_writer
from pyspark_cdcfmt.options import parse_options
from pyspark_cdcfmt.read.decoding import open_decoder
from pyspark_cdcfmt.read.inference import infer_columns
from pyspark_cdcfmt.read.schemas import find_schemas
from pyspark_cdcfmt.rows.change_rows import ChangeRows
from pyspark_cdcfmt.rows.event_rows import EventRows
from pyspark_cdcfmt.rows.policy import BadRow, ValuePolicy
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.record_batches import BatchBuilder
from pyspark_cdcfmt.rows.row_schemas import changes_schema, events_schema
from pyspark_cdcfmt.rows.types import TypeOptions
from pyspark_cdcfmt.write.encoding import EventWriter
from pyspark_cdcfmt.write_options import parse_write_options

NOW = 1_700_000_000_000_000_000


@attrs.frozen
class Rows:
    schema: StructType
    batches: Sequence[pa.RecordBatch]


def event_rows(events: Iterable[tuple[Message, Event]], protocol: str | None, **given: str) -> Rows:
    """Events as rows of the events shape."""
    options = parse_options({"includeColumns": "true", "protocol": protocol or "auto"} | given)
    schema = events_schema(options)
    rows = EventRows(ReadTask(schema, options), ValuePolicy("text", "replace"))
    builder = BatchBuilder(schema)
    batches: list[pa.RecordBatch] = []
    for message, event in events:
        batches += builder.add(list(rows.rows(message, event, protocol)), 0)
    return Rows(schema, [*batches, *builder.flush()])


def decoded(messages: Sequence[Message], **given: str) -> tuple[list[tuple[Message, Event]], str]:
    """The events of messages, and their format."""
    options = parse_options({"includeColumns": "true", "scanSchemas": "true"} | given)
    schemas = find_schemas(options, lambda _: messages)
    decoder = open_decoder(options, options.event_filter(), schemas=schemas)
    events = [(message, event) for message in messages for event in decoder.decode(message)]
    assert decoder.protocol is not None
    return events, decoder.protocol


def change_rows(
    messages: Sequence[Message], table: tuple[str, ...], **given: str
) -> tuple[Rows, dict[str, str]]:
    """The changes of one table, and the types of its columns as an option of the writer."""
    quoted = ".".join("`" + part.replace("`", "``") + "`" for part in table)
    every = dict.fromkeys(("incompleteRows", "onSchemaChange", "onTruncate"), "corrupt")
    options = parse_options({"table": quoted, "scanSchemas": "true"} | every | given)
    schemas = find_schemas(options, lambda _: messages)
    decoder = open_decoder(options, options.event_filter(), schemas=schemas)
    own = infer_columns(lambda: messages, decoder, table, 100_000, TypeOptions.of(options.values))
    schema = changes_schema(own, options)
    rows = ChangeRows(ReadTask(schema, options), ValuePolicy())
    builder = BatchBuilder(schema)
    batches: list[pa.RecordBatch] = []
    types: dict[str, str] = {}
    for message in messages:
        for event in decoder.decode(message):
            if not isinstance(event, RowChange):
                continue
            try:
                batches += builder.add(list(rows.rows(message, event, decoder.protocol)), 0)
            except (BadRow, CdcfmtError):
                continue
            types |= {column.name: column.source_type for column in event.table.columns}
    return Rows(schema, [*batches, *builder.flush()]), types


def written(rows: Rows, *, by_kernel: bool, **given: str) -> tuple[list[Any], EventWriter]:
    """The lines, at the end perhaps an error, and the writer."""
    options = parse_write_options({"sourceTimeZone": "Asia/Shanghai"} | given, default_registry())
    writer = EventWriter(rows.schema, options, by_kernel=by_kernel)
    line_format = options["lineFormat"]
    line_of = line_writer(line_format)
    lines: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time_ns", lambda: NOW)
        try:
            for part in writer.parts(iter(rows.batches), line_format=line_format):
                if isinstance(part, Message):
                    lines.append(line_of(part))
                    continue
                some = part[0].split(b"\n")[:-1]
                assert len(some) == part[1]
                lines += some
        except CdcfmtError as error:
            lines.append(f"{type(error).__name__}: {error}")
    return lines, writer


def sent(rows: Rows, *, by_kernel: bool, partitions: int, **given: str) -> tuple[list[Any], int]:
    """Partition, key and value of each message to a topic, and how many the kernel wrote."""
    options = parse_write_options({"sourceTimeZone": "Asia/Shanghai"} | given, default_registry())
    writer = EventWriter(rows.schema, options, partitions, by_kernel=by_kernel)
    messages: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time_ns", lambda: NOW)
        try:
            for part in writer.parts(iter(rows.batches)):
                if isinstance(part, Message):
                    messages.append((part.partition, part.key, part.value))
                else:
                    columns = (part[name].to_pylist() for name in ("partition", "key", "value"))
                    messages += zip(*columns, strict=True)
        except CdcfmtError as error:
            messages.append(f"{type(error).__name__}: {error}")
    return messages, writer.rows_by[0]


def check_equal(rows: Rows, **given: str) -> tuple[int, int]:
    """Write the rows both ways, and compare everything; lines, and rows by the kernel."""
    expected, reference = written(rows, by_kernel=False, **given)
    found, writer = written(rows, by_kernel=True, **given)
    for number, (line, other) in enumerate(zip(found, expected, strict=False)):
        assert line == other, f"line {number}"
    assert len(found) == len(expected)
    if not (found and isinstance(found[-1], str)):
        assert writer.watermarks == reference.watermarks
        assert writer.statements == reference.statements
        assert Counter(writer.counts) == Counter(reference.counts)
    return len(found), writer.rows_by[0]
