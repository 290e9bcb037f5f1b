"""Events and typed changes from blocks, and blocks from events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType
from pyspark.sql.utils import is_remote

from cdcfmt_core.schemas.store import SchemaStore
from pyspark_cdcfmt.blocks.packing import blocks_of_events
from pyspark_cdcfmt.blocks.schema import BLOCKS, MESSAGES, Unpacked, unpack
from pyspark_cdcfmt.blocks.summary import is_of_group
from pyspark_cdcfmt.options import ReadOptions, message_options, parse_options
from pyspark_cdcfmt.read.dataframes import inlined
from pyspark_cdcfmt.read.decoding import CORRUPT, DUPLICATES
from pyspark_cdcfmt.read.engine import Engine
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.row_schemas import check_schema, events_schema
from pyspark_cdcfmt.spark_api import arrow_schema

INVALID_CHANGE = "cdcfmt: the table has invalid changes"
"""Marks the error of a query over :func:`changes_of_blocks` with a bad or partial change."""

LACKS_COLUMNS = "a row lacks columns"
"""The reason of that error for a partial change."""

_OF_BLOCK = ("database", "schema", "table", "is_read")
_OF_EVENTS = ("includetables", "excludetables", "includecolumns", "schemastore", "includeheaders")


Changed: TypeAlias = "Accumulator[frozenset[tuple[str, str]]]"
"""Tables, and what options changed in them, such as ``at: invalid value as NULL``."""


def changed_values() -> Changed | None:
    """Collects what options changed, from all tasks; None where Spark has no accumulators."""
    if is_remote():
        return None
    empty: frozenset[tuple[str, str]] = frozenset()
    with suppress(PySparkException):
        return SparkContext.getOrCreate().accumulator(empty, _Union())
    return None


class _Union(AccumulatorParam[frozenset[tuple[str, str]]]):
    def zero(self, value: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        return frozenset()

    def addInPlace(
        self, value1: frozenset[tuple[str, str]], value2: frozenset[tuple[str, str]]
    ) -> frozenset[tuple[str, str]]:
        return value1 | value2


def blocks_of(events: DataFrame) -> DataFrame:
    """Blocks from events with all columns of the events shape, and images as variants."""

    def cdc_pack(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for batch in batches:
            blocks = blocks_of_events(pa.RecordBatch.from_struct_array(batch))
            # The list of the first event has all blocks.
            ends = [0, *[len(blocks)] * len(batch)]
            yield _lists(ends, blocks)

    return inlined(events, cdc_pack, f.struct("*"), BLOCKS, BLOCKS)


def events_of(
    blocks: DataFrame,
    source: Mapping[str, Any],
    *,
    table: str = "",
    changed: Changed | None = None,
    schemas: SchemaStore | None = None,
) -> DataFrame:
    """The events of blocks.

    :param schemas: its ``statements`` give exact types to the rows of blocks of messages.
    :param source: the options that the blocks were read with.
    :param changed: gets ``table`` with each description of values that options changed.
    """
    options = parse_options(message_options(source), of_dataframe=True).in_stream()
    schema = events_schema(options)
    arrow = arrow_schema(schema)

    def cdc_events(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        counts = Counter[str]()
        for events in read_events(_blocks(batches), schema, options, counts, schemas):
            _note(changed, table, counts)
            yield _one_list(events, arrow)

    column = f.struct("form", "payload", "count", *_OF_BLOCK)
    return inlined(blocks, cdc_events, column, schema, schema)


def read_events(
    blocks: Iterable[Mapping[str, pa.Scalar]],
    schema: StructType,
    options: ReadOptions,
    counts: Counter[str] | None = None,
    schemas: SchemaStore | None = None,
) -> Iterator[list[pa.RecordBatch]]:
    """The events of each block, with the columns of ``schema``.

    :param counts: gets the counts of changed values.
    :raises AssertionError: if messages give another number of events than at first.
    """
    arrow = arrow_schema(schema)
    engines = _Engines(ReadTask(schema, options), Counter() if counts is None else counts, schemas)
    for block in blocks:
        unpacked = unpack(block["payload"])
        if block["form"].as_py() == MESSAGES:
            events = [_of_block(each, block) for each in engines.batches(unpacked)]
        else:
            events = [_as(arrow, each) for each in unpacked.batches]
        count, wanted = sum(each.num_rows for each in events), block["count"].as_py()
        if count != wanted:
            table = f"{block['database'].as_py()}.{block['table'].as_py()}"
            raise AssertionError(f"{table}: a block of {wanted} events gives {count}")
        yield events


def changes_of_blocks(
    blocks: DataFrame,
    table: str,
    source: Mapping[str, Any],
    *,
    schema: StructType,
    keys: Sequence[str],
    read: str | None,
    partial: bool,
    only: str | None = None,
    changed: Changed | None = None,
    schemas: SchemaStore | None = None,
    **options: Any,
) -> DataFrame:
    """The typed changes in the blocks of one table, whose ``form`` is ``messages``.

    The result equals :func:`~pyspark_cdcfmt.decode` with these options.  The query fails with
    :data:`INVALID_CHANGE` if a row is bad, or lacks its key.

    :param source: the options that the blocks were read with.
    :param read: name of a column to add, with ``is_read`` of the block.
    :param partial: whether rows may lack columns outside of the key.
    :param only: the change type to return; other changes are only checked.
    :param schemas: its ``statements`` give exact types to rows.
    :param changed: gets the table with each description of values that options changed.
    """
    of_messages = {
        name: value
        for name, value in message_options(source).items()
        if name.lower() not in _OF_EVENTS
    }
    # Columns that the schema lacks are not wanted, even if the table gains them later.
    how = {**of_messages, **options, "table": table, "ignoreColumns": "*"}
    parsed = parse_options(how, of_dataframe=True).in_stream()
    prefix = parsed["metadataPrefix"]
    checked = StructType(list(schema.fields))
    added = {field.name for field in schema.fields}
    for name, type_ in _CHECKED.items():
        if prefix + name not in added:
            checked = checked.add(prefix + name, type_)
    rows = check_schema(checked, parsed)
    json_columns = {field.name for field in schema.fields if field.dataType.typeName() == "variant"}
    result = StructType(list(schema.fields))
    if read is not None:
        result = result.add(read, BooleanType())
    names = schema.names
    arrow = arrow_schema(result)

    def cdc_changes(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        counts = Counter[str]()
        engines = _Engines(ReadTask(rows, parsed), counts, schemas)
        for block in _blocks(batches):
            made = []
            for batch in engines.batches(unpack(block["payload"])):
                batch = batch.rename_columns(checked.names)
                check(batch)
                if only is not None:
                    batch = batch.filter(pc.equal(batch.column(prefix + "change_type"), only))
                columns = [
                    _without_json_nulls(batch.column(name))
                    if name in json_columns
                    else batch.column(name)
                    for name in names
                ]
                if read is not None:
                    columns.append(pa.repeat(block["is_read"], batch.num_rows))
                made.append(pa.RecordBatch.from_arrays(columns, schema=arrow))
            _note(changed, table, counts)
            yield _one_list(made, arrow)

    def check(batch: pa.RecordBatch) -> None:
        """:raises ValueError: with INVALID_CHANGE, for a change to decode another way."""
        record, absent = batch.column(prefix + "corrupt_record"), batch.column(prefix + "absent")
        if record.null_count < batch.num_rows:
            refuse(record.drop_null()[0].as_py()["reason"])
        if pc.any(pc.is_in(absent.flatten(), pa.array(keys, pa.string()))).as_py():
            refuse("a row lacks its key")
        is_short = pc.greater(pc.list_value_length(absent), 0)
        is_delete = pc.equal(batch.column(prefix + "change_type"), "delete")
        if not partial and pc.any(pc.and_not(is_short, is_delete)).as_py():
            refuse(LACKS_COLUMNS)

    def refuse(reason: str) -> None:
        raise ValueError(f"{INVALID_CHANGE}: {table}: {reason}")

    return inlined(blocks, cdc_changes, f.struct("is_read", "payload"), result, result)


_NO_VALUES = ("tombstones", DUPLICATES, CORRUPT)
"""Counts that are not of values."""


def _note(changed: Changed | None, table: str, counts: Counter[str]) -> None:
    if changed is not None and (noted := counts.keys() - _NO_VALUES):
        # Counts of events name the table.
        changed.add(frozenset((table, each.removeprefix(f"{table}.")) for each in noted))


def _without_json_nulls(variants: pa.StructArray) -> pa.StructArray:
    """Variants with NULL for the null of JSON, as in changes from events."""
    is_null = pc.equal(pc.struct_field(variants, "value"), b"\0")
    if not pc.any(is_null).as_py():
        return variants
    fields = [variants.field(place) for place in range(variants.type.num_fields)]
    mask = is_null.fill_null(True)
    return pa.StructArray.from_arrays(fields, fields=list(variants.type), mask=mask)


@attrs.define
class _Engines:
    """Reads blocks of messages; consecutive blocks with the same schemas share an engine."""

    _task: ReadTask
    _counts: Counter[str]
    _known: SchemaStore | None = None
    _engine: Engine | None = None
    _schemas: bytes = b""

    def batches(self, block: Unpacked) -> Iterator[pa.RecordBatch]:
        """The rows of a block's messages."""
        if self._engine is None or block.schemas != self._schemas:
            schemas = block.store()
            if self._known is not None:
                schemas.statements = self._known.statements
            self._engine = Engine(attrs.evolve(self._task, schemas=schemas))
            self._schemas = block.schemas
        yield from self._engine.batches(block.messages())
        # Sums are not needed.
        self._counts |= self._engine.counts


def _blocks(batches: Iterable[pa.Array]) -> Iterator[dict[str, pa.Scalar]]:
    for batch in batches:
        names = [field.name for field in batch.type]
        for place in range(len(batch)):
            yield {name: batch.field(name)[place] for name in names}


def _as(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of ``schema``; a batch stored in a table may have another time zone."""
    columns = [batch.column(field.name) for field in schema]
    return pa.RecordBatch.from_arrays(
        [
            # Arrow cannot cast a struct with NULLs to one with fields that are NOT NULL.
            column if column.type.equals(field.type) else column.cast(field.type)
            for column, field in zip(columns, schema, strict=True)
        ],
        schema=schema,
    )


def _one_list(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.ListArray:
    """All rows in one list."""
    whole = pa.Table.from_batches(batches, schema).combine_chunks().to_batches()
    rows = whole[0] if whole else pa.RecordBatch.from_pylist([], schema)
    return _lists([0, rows.num_rows], rows)


def _lists(ends: Sequence[int], rows: pa.RecordBatch) -> pa.ListArray:
    element = pa.field("element", pa.struct(list(rows.schema)), nullable=False)
    return pa.ListArray.from_arrays(
        pa.array(ends, pa.int32()), rows.to_struct_array(), type=pa.list_(element)
    )


def _of_block(events: pa.RecordBatch, block: Mapping[str, pa.Scalar]) -> pa.RecordBatch:
    """The events of a block's messages, without those of other tables."""
    owner = pa.array([{name: block[name].as_py() for name in _OF_BLOCK}], _OWNER)
    owners = owner.take(pa.repeat(pa.scalar(0, pa.int32()), events.num_rows))
    return events.filter(is_of_group(events, owners))


_CHECKED = {
    "absent": ArrayType(StringType()),
    "corrupt_record": StructType([StructField("reason", StringType())]),
}
_OWNER = pa.struct([*((name, pa.string()) for name in _OF_BLOCK[:-1]), ("is_read", pa.bool_())])
