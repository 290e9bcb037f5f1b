"""The compiled kernel: messages to record batches; refused messages go the reference's way.

The kernel reads messages in order until it refuses one.  The reference decodes that message in
its place, and the bridge adds the plan of its table schema, so that the kernel reads the next one.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import TypeAlias, cast
from zoneinfo import ZoneInfo

import attrs
import orjson
import pyarrow as pa

from cdcfmt_core.caches import Cache, text_size
from cdcfmt_core.events import Message, RowChange, TableSchema
from cdcfmt_core.layout import Layout, Zoned
from cdcfmt_core.sources import BadLine, Lines
from cdcfmt_core.sources.lines import begins_message
from cdcfmt_core.texts import open_logger
from pyspark_cdcfmt.kernel.merging import Made, in_order
from pyspark_cdcfmt.kernel.origins import Origins, Span, headers_of_rows, source_of_rows
from pyspark_cdcfmt.kernel.plans import describe_plan, describe_zone
from pyspark_cdcfmt.kernel.reference import Reference, Row
from pyspark_cdcfmt.kernel.settings import Shape, Unlike, describe_settings
from pyspark_cdcfmt.rows.record_batches import MAX_BATCH_BYTES, MAX_MESSAGE_BYTES, MAX_ROWS

try:
    import cdcfmt_kernel
except ImportError:
    _INSTALLED = False
else:
    _INSTALLED = True

Chunk: TypeAlias = list[Message | BadLine]

logger = open_logger("pyspark_cdcfmt")

_VALUE, _KEY, _OFFSET = attrgetter("value"), attrgetter("key"), attrgetter("offset")
_CHUNK_MESSAGES = 1024
_TOGETHER = 15
_CHUNK_BYTES = 4 << 20
_LEARNT = ("unknown", "a time zone that the kernel lacks")
"""Why the kernel stops at messages from which there is something to learn."""
_LARGEST_EXAMPLE = 8 << 20
"""Bytes of a message that may be looked at once more, for its schema."""
_PLANS_OF_TABLE = 16
_WORTH_A_PLAN = 1000
"""So many messages read by the kernel pay for one more plan of a table."""
_TABLE_BYTES = 8 << 20


def is_installed() -> bool:
    """Whether the wheel cdcfmt-kernel is there."""
    return _INSTALLED


@attrs.define
class _Held:
    """What a batch has of messages: the reference's rows, and where messages come from.

    ``owners`` are the numbers of the rows' messages in the batch; ``spans`` are all messages of
    the batch.  ``size`` is the bytes of the reference's messages, ``row_bytes`` those of its rows.
    """

    rows: list[Row] = attrs.field(factory=list)
    owners: list[int] = attrs.field(factory=list)
    spans: list[Span] = attrs.field(factory=list)
    size: int = 0
    row_bytes: int = 0


class KernelChunks:
    """Decodes the messages of one format.

    ``recognises`` finds messages of the format where others may come, which are the reference's.
    ``by_kernel`` and ``by_reference`` count messages.
    """

    def __init__(
        self,
        protocol: str,
        layouts: Sequence[Layout],
        shape: Shape,
        reference: Reference,
        max_message_bytes: int,
        recognises: Callable[[Message], bool] | None = None,
    ) -> None:
        self._protocol = protocol
        self._layouts = layouts
        self._shape = shape
        self._reference = reference
        self._recognises = recognises
        self._kernel = cdcfmt_kernel.Kernel(
            json.dumps(
                {
                    **describe_settings(layouts, shape, max_message_bytes),
                    "zone": describe_zone(shape.policy.time_zone),
                }
            )
        )
        self._known_schemas = shape.schemas.changes
        self._held = _Held()
        self._in_frames = layouts[0].max_events is not None
        self._keyed = self._in_frames or any(layout.keyed for layout in layouts)
        self._repeats_database = any(layout.repeats_database for layout in layouts)
        self._learned: Cache[tuple[str, ...], int] = Cache(_TABLE_BYTES)
        self._learned_more = 0
        self._taken = 0
        self.by_reference = 0

    @property
    def by_kernel(self) -> int:
        """Messages that the kernel has read."""
        return self._taken - self.unwanted

    @property
    def unwanted(self) -> int:
        """Messages that the filters do not want."""
        return self._kernel.skipped

    def batches(
        self, messages: Iterable[Message | BadLine | Lines], *, count_rows: bool = False
    ) -> Iterator[Made]:
        """Record batches in the order of the messages.

        Batches have a row at least, unless ``count_rows`` asks for the rows of every message.

        :raises DecodeError: in FAILFAST mode.
        :raises PolicyError: for what an option refuses by ``fail``.
        """
        for chunk in self._chunks(messages):
            self._forget_old_plans()
            if isinstance(chunk, Lines):
                yield from self._read_lines(chunk, count_rows)
            else:
                yield from self._read_messages(chunk, count_rows)
        yield from self._finish(count_rows)

    def _chunks(self, messages: Iterable[Message | BadLine | Lines]) -> Iterator[Chunk | Lines]:
        """Messages, some at a time; lines of a file in one piece where they are values."""
        chunk: Chunk = []
        size = 0
        items = iter(messages)
        while (item := next(items, None)) is not None:
            if isinstance(item, Lines):
                if chunk:
                    yield chunk
                    chunk, size = [], 0
                if self._are_values(item):
                    yield item
                else:
                    yield from self._chunks(item.cut())
                continue
            chunk.append(item)
            size += len(item.value or b"")
            if type(item) is Message:
                # Not one by one in Python, but few enough if all of them are large.
                some = list(islice(items, _TOGETHER))
                if Lines in set(map(type, some)):
                    items = chain(some, items)
                else:
                    chunk += cast(Chunk, some)
                    size += sum(map(len, filter(None, map(_VALUE, some))))
            if len(chunk) >= _CHUNK_MESSAGES or size >= _CHUNK_BYTES:
                yield chunk
                chunk, size = [], 0
        if chunk:
            yield chunk

    def _are_values(self, lines: Lines) -> bool:
        """Whether lines are read in one piece, as values of this format.

        The first one tells whether they are whole messages; a file may begin with a byte order
        mark.
        """
        if lines.data.startswith(BOM_UTF8) or not (lines.plain or not begins_message(lines.data)):
            return False
        return self._recognises is None or all(map(self._recognises, lines.messages()))

    def _forget_old_plans(self) -> None:
        if self._shape.schemas.changes != self._known_schemas:
            self._known_schemas = self._shape.schemas.changes
            self._kernel.clear_plans()

    def _read_messages(
        self, chunk: Sequence[Message | BadLine], count_rows: bool
    ) -> Iterator[Made]:
        if self._recognises is None and set(map(type, chunk)) == {Message}:
            values, keys = list(map(_VALUE, chunk)), list(map(_KEY, chunk)) if self._keyed else []
        else:
            values = [self._value(item) for item in chunk]
            keys = [getattr(item, "key", None) for item in chunk] if self._keyed else []
        offsets = list(map(_OFFSET, chunk))
        at = 0
        while at < len(chunk):
            first, start = self._kernel.messages, at
            at = self._kernel.read(values, keys, offsets, at)
            self._add_span(chunk[start:at], first)
            if at < len(chunk):
                if self._is_full():
                    yield from self._finish(count_rows)
                elif not self._skips(chunk[at]):
                    yield from self._pass_over(chunk[at], count_rows)
                    at += 1

    def _value(self, message: Message | BadLine) -> bytes | None:
        """The value, if it is for the kernel."""
        if isinstance(message, BadLine):
            return None
        known = self._recognises is None or self._recognises(message)
        return message.value if known else None

    def _read_lines(self, lines: Lines, count_rows: bool) -> Iterator[Made]:
        data, at = lines.data, 0
        while at < len(data):
            first = self._kernel.messages
            at = self._kernel.read_lines(data, lines.offset, at)
            self._add_span(lines, first)
            if at < len(data):
                if self._is_full():
                    yield from self._finish(count_rows)
                    continue
                end = data.index(b"\n", at)
                line = data[at:end].removesuffix(b"\r")
                if line.isspace():
                    at = end + 1
                    continue
                message = lines.parse(line, lines.offset + at)
                if not self._skips(message):
                    yield from self._pass_over(message, count_rows)
                    at = end + 1

    def _is_full(self) -> bool:
        held = self._held
        return (
            self._kernel.stop[0] == "full"
            or held.size + self._kernel.size >= MAX_MESSAGE_BYTES
            or held.row_bytes >= MAX_BATCH_BYTES
            or len(held.rows) >= MAX_ROWS
        )

    def _add_span(self, origins: Origins, first: int) -> None:
        """What the kernel has read since it had so many messages."""
        count = self._kernel.messages - first
        if count:
            self._taken += count
            self._reference.decoder.note_format(self._protocol)
            self._held.spans.append(Span(origins, count))

    def _skips(self, message: Message | BadLine) -> bool:
        """Whether the refused message is of an unwanted table, which the kernel knows from now.

        A schema beside its payload has to be good for that, which the reference knows.
        """
        if self._kernel.stop[0] != "unknown" or not self._is_unwanted(message):
            return False
        if any(layout.connect for layout in self._layouts):
            return False
        self._kernel.skip(*self._row(message), all=True)
        return True

    def _row(
        self, message: Message | BadLine, event: int | None = None
    ) -> tuple[bytes, bytes | None]:
        """Value and key of a message, or of the event in it at which the kernel stopped."""
        value, key = message.value or b"", getattr(message, "key", None)
        if self._in_frames:
            return self._kernel.event(value, key, self._kernel.stop[1] if event is None else event)
        return value, key

    def _is_unwanted(self, message: Message | BadLine) -> bool:
        if not self._shape.event_filter.wants_kind("row"):
            return True
        database, schema, table = self._kernel.names(*self._row(message))
        own = None if schema == database and self._repeats_database else schema or None
        return not self._shape.event_filter.wants_table(database, table, own)

    def _pass_over(self, message: Message | BadLine, count_rows: bool) -> Iterator[Made]:
        """Has the reference decode a refused message."""
        unknown = self._kernel.stop[0] in _LEARNT
        number = self._number(message)
        for row in self._reference.rows(message, in_list=count_rows):
            if self._held.row_bytes >= MAX_BATCH_BYTES and not count_rows:
                yield from self._finish(count_rows)
                number = self._number(message)
            self._held.rows.append(row)
            self._held.owners.append(number)
            self._held.row_bytes += self._reference.weigh(row)
        self.by_reference += 1
        self._held.size += len(message.value or b"")
        self._forget_old_plans()
        if not unknown or not isinstance(message, Message):
            return
        if len(message.value or b"") > _LARGEST_EXAMPLE:
            return
        is_unwanted = self._is_unwanted(message)
        if not is_unwanted and self._reference.decoder.changes():
            self._learn(message)
        elif self._reference.decoder.found_nothing_wrong():
            self._skip(message, whole_table=is_unwanted)

    def _skip(self, message: Message, *, whole_table: bool) -> None:
        """Lets the kernel skip messages like this one, which the filters refused."""
        try:
            self._kernel.skip(*self._row(message), all=whole_table)
        except ValueError as error:
            logger.debug("not skipped by the kernel: %s", error)

    def _number(self, message: Message | BadLine) -> int:
        number = self._kernel.pass_over()
        self._held.spans.append(Span([message], 1))
        return number

    def _is_worth_a_plan(self, table: TableSchema) -> bool:
        """Whether there are few plans of this table, or messages enough to pay for more."""
        name = (table.database, table.schema or "", table.table)
        learned = self._learned.get(name) or 0
        if learned < _PLANS_OF_TABLE:
            self._learned.add(name, learned + 1, text_size(*name))
            return True
        is_worth = self._learned_more * _WORTH_A_PLAN < self.by_kernel
        self._learned_more += is_worth
        return is_worth

    def _learn(self, message: Message) -> None:
        """Adds what the kernel lacks for messages like this one."""
        changes = self._reference.decoder.changes() or []
        tables = {id(each.table): each for each in changes if self._tells_schema(each)}
        if len(tables) > 1 and not self._in_frames:
            logger.debug("not by the kernel: its rows have several schemas")
            return
        for change in tables.values():
            if not self._is_worth_a_plan(change.table):
                continue
            try:
                self._add_plan(change.table, *self._row(message, change.index))
            except (Unlike, ValueError) as error:
                logger.debug("not by the kernel: %s", error)
            except Exception as error:
                # A mistake here costs time, and no row.
                logger.warning("no plan for the kernel: %s: %s", type(error).__name__, error)

    def _tells_schema(self, change: RowChange) -> bool:
        """Whether a plan is made of a row; an event may have its key only."""
        image = change.before if change.after is None else change.after
        return image is not None and (image.complete or not self._in_frames)

    def _add_plan(self, table: TableSchema, value: bytes, key: bytes | None) -> None:
        """Adds the plan of a table schema, for messages or events like this one."""
        layout = next(each for each in self._layouts if value.startswith(each.begins))
        if layout.avro is None:
            wire = orjson.loads((self._in_frames and key) or value)
        else:
            wire = json.loads(self._kernel.envelope(value))
        if layout.connect and "payload" in wire:
            wire = wire["payload"]
        plan = describe_plan(layout, value, table, self._shape, wire)
        self._kernel.add_plan(value, key, json.dumps(plan))
        if layout.zoned is not None:
            self._add_zones(layout.zoned, value, key)

    def _add_zones(self, zoned: Zoned, value: bytes, key: bytes | None) -> None:
        """Adds the time zones of a message's values."""
        known: set[str] = set()
        name = self._kernel.missing_zone(value, key)
        while name is not None and name not in known:
            known.add(name)
            zone = self._shape.policy.time_zone
            if name.lower() not in zoned.own:
                try:
                    zone = ZoneInfo(name)
                except (KeyError, OSError) as error:
                    raise Unlike(str(error)) from error
            self._kernel.add_zone(name, json.dumps(describe_zone(zone)))
            name = self._kernel.missing_zone(value, key)

    def _finish(self, count_rows: bool) -> Iterator[Made]:
        held, self._held = self._held, _Held()
        count, size = self._kernel.messages, held.size + self._kernel.size
        if not count:
            return
        rows = pa.record_batch(self._kernel.finish())
        for note, noted in self._kernel.take_counts():
            self._shape.policy.counts[note] += noted
        pieces = [self._batch(rows, held)] if rows.num_rows else []
        owners = rows.column("message").to_pylist() if held.rows or count_rows else []
        if held.rows or (count_rows and not pieces):
            pieces.append(self._reference.batch(held.rows))
            owners += held.owners
        counts = [0] * count if count_rows else []
        if count_rows:
            for owner in owners:
                counts[owner] += 1
        batch, _ = in_order(pieces, owners)
        if batch is not None:
            yield Made(batch, max(size, held.row_bytes), counts)

    def _batch(self, rows: pa.RecordBatch, held: _Held) -> pa.RecordBatch:
        arrays = []
        for field in self._shape.schema:
            if field.name in rows.schema.names:
                arrays.append(rows.column(field.name).cast(field.type))
            elif self._shape.metadata.get(field.name) in ("source", "_source"):
                arrays.append(source_of_rows(held.spans, rows, self._protocol, field.type))
            elif self._shape.metadata.get(field.name) == "headers":
                arrays.append(headers_of_rows(held.spans, rows, field.type))
            elif self._shape.metadata.get(field.name) == "invalid":
                # A row with a changed value is the reference's.
                arrays.append(_empty_lists(rows.num_rows, field.type))
            else:
                arrays.append(pa.nulls(rows.num_rows, field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self._shape.schema)


def _empty_lists(count: int, type_: pa.DataType) -> pa.Array:
    offsets = pa.array([0] * (count + 1), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array([], pa.string()), type=type_)
