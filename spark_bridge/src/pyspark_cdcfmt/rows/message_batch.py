"""Messages in Arrow columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, overload

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from cdcfmt_core.events import Message
from cdcfmt_core.transport import MessageColumns
from cdcfmt_files.sources import BadLine
from pyspark_cdcfmt.rows.event_rows import LAST_MILLISECOND

MESSAGE: pa.Schema = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("path", pa.string()),
        ("epoch", pa.int32()),
    ]
)
"""``timestamp`` is in milliseconds.  NULL means no headers: it is read faster than a list."""


@attrs.frozen
class MessageBatch(Sequence[Message]):
    """Messages whose attributes are the columns of :data:`MESSAGE`."""

    columns: pa.RecordBatch

    @classmethod
    def of(cls, messages: Sequence[Message | BadLine]) -> MessageBatch:
        """Make a batch of messages; for a bad line, of its known attributes."""
        arrays = [_array(attributes(messages, field.name), field) for field in MESSAGE]
        return cls(pa.RecordBatch.from_arrays(arrays, schema=MESSAGE))

    @classmethod
    def of_columns(cls, columns: MessageColumns) -> MessageBatch:
        """Make a batch of columns of a topic's partition."""
        count = len(columns.values)
        arrays = [
            pa.array(columns.keys, pa.binary()),
            pa.array(columns.values, pa.binary()),
            _array([*columns.headers], MESSAGE.field("headers")),
            pa.repeat(pa.scalar(columns.topic), count),
            pa.repeat(pa.scalar(columns.partition, pa.int32()), count),
            pa.array(columns.offsets, pa.int64()),
            pa.array(columns.timestamps, pa.int64()),
            pa.nulls(count, pa.string()),
            pa.repeat(pa.scalar(columns.epoch, pa.int32()), count),
        ]
        return cls(pa.RecordBatch.from_arrays(arrays, schema=MESSAGE))

    @classmethod
    def of_structs(cls, structs: pa.StructArray) -> MessageBatch:
        """Make a batch of structs with any of the fields; ``timestamp`` is a Spark timestamp."""
        given = dict(zip((field.name for field in structs.type), structs.flatten(), strict=True))
        if "timestamp" in given:
            # In UTC: Arrow rounds local times, which the session's zone may have twice.
            utc = given["timestamp"].cast(pa.timestamp("us", "UTC"))
            floor = pc.floor_temporal(utc, unit="millisecond")
            given["timestamp"] = floor.cast(pa.timestamp("ms", "UTC"))
        epoch = given.get("epoch", pa.nulls(len(structs), pa.int32()))
        given["epoch"] = pc.fill_null(epoch, 0)
        arrays = [
            given[field.name].cast(field.type)
            if field.name in given
            else pa.nulls(len(structs), field.type)
            for field in MESSAGE
        ]
        return cls(pa.RecordBatch.from_arrays(arrays, schema=MESSAGE))

    def __len__(self) -> int:
        rows: int = self.columns.num_rows
        return rows

    @overload
    def __getitem__(self, place: int) -> Message: ...
    @overload
    def __getitem__(self, place: slice) -> MessageBatch: ...
    def __getitem__(self, place: int | slice) -> Message | MessageBatch:
        if isinstance(place, int):
            return next(iter(self[place : place + 1]))
        start, end, _ = place.indices(len(self))
        return MessageBatch(self.columns.slice(start, end - start))

    def __iter__(self) -> Iterator[Message]:
        key, value, _, *place = (column.to_pylist() for column in self.columns.columns)
        headers = (tuple((h["key"], h["value"]) for h in each) for each in self.headers())
        return map(Message, key, value, headers, *place)

    @property
    def size(self) -> int:
        """The total bytes of the values."""
        size: int = self.columns.column("value").nbytes
        return size

    def times(self, type_: pa.DataType) -> pa.Array:
        """The timestamps as Spark timestamps; NULL outside of their range."""
        column = self.columns.column("timestamp")
        is_time = pc.and_(pc.greater_equal(column, 0), pc.less_equal(column, LAST_MILLISECOND))
        known = pc.if_else(is_time, column, pa.scalar(None, column.type))
        return pc.multiply(known, 1000).cast(type_)

    def headers(self) -> list[list[dict[str, Any]]]:
        """The headers of each message."""
        column = self.columns.column("headers")
        if column.null_count == len(column):
            return [[]] * len(column)
        return [each or [] for each in column.to_pylist()]


def attributes(messages: Sequence[Message | BadLine], name: str) -> list[Any]:
    """An attribute of each message; None for bad lines without it."""
    try:
        return list(map(attrgetter(name), messages))
    except AttributeError:
        return [getattr(each, name, None) for each in messages]


def _array(values: list[Any], field: pa.Field) -> pa.Array:
    # Most messages have the same topic, partition and headers as the previous one.
    if values.count(values[0]) == len(values):
        return pa.repeat(_array_of(values[:1], field)[0], len(values))
    return _array_of(values, field)


def _array_of(values: list[Any], field: pa.Field) -> pa.Array:
    if field.name == "headers":
        values = [named(each) if each else None for each in values]
    return pa.array(values, field.type)


def named(headers: Sequence[tuple[str, bytes | None]]) -> list[dict[str, Any]]:
    """Headers as structs of an Arrow column."""
    return [{"key": name, "value": value} for name, value in headers]
