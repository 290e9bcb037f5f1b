"""Packs the messages or events of a task into blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import Any, cast

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from cdcfmt_core.caches import TableKey
from cdcfmt_core.events import Message
from cdcfmt_core.registry import default_registry
from cdcfmt_core.schemas.records import SchemaRecord
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.schemas.versions import TableName
from cdcfmt_files.sources import Lines
from cdcfmt_toolkit.inputs import Input, Slice
from cdcfmt_toolkit.schema_lookups import Lookups
from pyspark_cdcfmt.blocks.schema import ARROW_BLOCKS, EVENTS, MESSAGES, pack
from pyspark_cdcfmt.blocks.summary import Group, groups_of
from pyspark_cdcfmt.kernel.batches import Item, cut_chunks
from pyspark_cdcfmt.read.batch_reader import open_slice, release_batches
from pyspark_cdcfmt.read.engine import Engine
from pyspark_cdcfmt.rows.message_batch import MessageBatch
from pyspark_cdcfmt.rows.read_task import ReadTask


def read_blocks(source: Input, slice_: Slice, task: ReadTask) -> Iterator[tuple[Any, ...]]:
    """The blocks of a slice."""
    # A statement of an unwanted table may empty a wanted one.
    event_filter = attrs.evolve(task.event_filter, every_statement=True)
    engine, messages = open_slice(source, slice_, attrs.evolve(task, event_filter=event_filter))
    blocks = blocks_of_messages(engine, messages)
    # Spark accepts record batches although its type hints demand tuples.
    return cast(Iterator[tuple[Any, ...]], release_batches(blocks))


def blocks_of_messages(engine: Engine, messages: Iterable[Item]) -> Iterator[pa.RecordBatch]:
    """Blocks of messages, which an engine decodes to events.

    Packs messages with the table schemas that their decoding needs; packs events if these
    schemas are unknown.
    """
    held: deque[pa.RecordBatch] = deque()
    lookups = engine.task.schemas.lookups = Lookups()
    how_of = cache(partial(_how_to_pack, engine.task.low_watermark))

    def noted() -> Iterator[Item]:
        for chunk in cut_chunks(messages, lambda item: isinstance(item, MessageBatch)):
            assert not isinstance(chunk, Lines)
            batch = chunk if isinstance(chunk, MessageBatch) else MessageBatch.of(chunk)
            held.append(batch.columns)
            if batch is chunk or set(map(type, chunk)) == {Message}:
                yield batch
            else:
                yield from chunk

    for lists in engine.lists(noted()):
        some = _first(held, len(lists))
        events = pa.RecordBatch.from_struct_array(lists.flatten())
        if events.num_rows:
            owners = pc.list_parent_indices(lists)
            groups = groups_of(events)
            shared = _shared(groups, owners)
            packed = _Packed(some, events, owners, shared, engine.task.schemas)
            yield _batch(groups, [packed.of(group, how_of) for group in groups])
        lookups.begin()


def _first(held: deque[pa.RecordBatch], count: int) -> pa.RecordBatch:
    """Remove and return the first ``count`` rows of the batches."""
    found = []
    while count:
        batch = held.popleft()
        if batch.num_rows > count:
            held.appendleft(batch.slice(count))
            batch = batch.slice(0, count)
        found.append(batch)
        count -= batch.num_rows
    return pa.concat_batches(found)


def blocks_of_events(events: pa.RecordBatch) -> pa.RecordBatch:
    """Blocks of already decoded events."""
    groups = groups_of(events) if events.num_rows else []
    return _batch(groups, [(EVENTS, pack(_taken(events, group.rows))) for group in groups])


@attrs.frozen(slots=False)
class _Packed:
    _messages: pa.RecordBatch
    _events: pa.RecordBatch
    _owners: pa.Array
    _shared: frozenset[tuple[Any, ...]]
    _schemas: SchemaStore

    @cached_property
    def _keys(self) -> Mapping[TableName, Sequence[TableKey]]:
        return self._schemas.keys_by_table()

    def of(self, group: Group, how_of: Callable[[str], str]) -> tuple[str, bytes]:
        """Form and payload of a group's block."""
        how = EVENTS
        if group.summary["kind"] == "row" and group.table not in self._shared:
            how = how_of(group.summary["protocol"])
        schemas = self._schemas_of(group) if how == _WITH_SCHEMAS else ()
        if how == EVENTS or schemas is None:
            return EVENTS, pack(_taken(self._events, group.rows))
        messages = _taken(self._messages, pc.unique(self._owners.take(group.rows)))
        return MESSAGES, pack(messages, schemas)

    def _schemas_of(self, group: Group) -> Sequence[SchemaRecord] | None:
        """The schemas that decoding the group's rows needs; None if that is uncertain."""
        database, schema, table = (group.summary[part] for part in ("database", "schema", "table"))
        name = database or "", schema, table or ""
        lookups = self._schemas.lookups
        if self._schemas.forgetful or not isinstance(lookups, Lookups) or lookups.is_late(name):
            return None
        return [*self._schemas.records_of(self._keys.get(name, ()))]


def _shared(groups: Sequence[Group], owners: pa.Array) -> frozenset[tuple[Any, ...]]:
    """Tables with a message whose rows are in several groups: two blocks would hold the message."""
    by_table: dict[tuple[Any, ...], list[Group]] = {}
    for group in groups:
        if group.summary["kind"] == "row":
            by_table.setdefault(group.table, []).append(group)
    found = set()
    for table, several in by_table.items():
        if len(several) > 1:
            of_each = [pc.unique(owners.take(group.rows)) for group in several]
            together = pa.concat_arrays(of_each)
            if len(pc.unique(together)) < len(together):
                found.add(table)
    return frozenset(found)


def _batch(groups: Sequence[Group], payloads: Sequence[tuple[str, bytes]]) -> pa.RecordBatch:
    rows: list[Mapping[str, Any]] = [
        {**group.summary, "form": form, "payload": payload}
        for group, (form, payload) in zip(groups, payloads, strict=True)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=ARROW_BLOCKS)


def _taken(batch: pa.RecordBatch, rows: pa.Array) -> pa.RecordBatch:
    """These (distinct) rows of a batch."""
    return batch if len(rows) == batch.num_rows else batch.take(rows)


_WITH_SCHEMAS = "messages with schemas"


def _how_to_pack(low_watermark: int, protocol: str) -> str:
    """``EVENTS``, ``MESSAGES`` or ``_WITH_SCHEMAS``, for the rows of a protocol."""
    codec = default_registry().get_codec(protocol)
    if low_watermark or codec.open_layouts is None:
        return EVENTS
    # Types from statements need the whole input, which a stream never has.
    return MESSAGES if codec.scan_schemas is None else _WITH_SCHEMAS
