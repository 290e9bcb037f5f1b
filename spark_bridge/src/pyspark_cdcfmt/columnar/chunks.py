"""Messages in, record batches out, in order: by columns where a plan reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs
import pyarrow as pa
from msgspec import Struct

from cdcfmt_core.events import Message
from cdcfmt_core.schema_store import SchemaStore
from cdcfmt_core.sources import BadLine, Lines
from cdcfmt_core.texts import open_logger
from pyspark_cdcfmt.batches import MAX_BATCH_BYTES, MAX_MESSAGE_BYTES, MAX_ROWS
from pyspark_cdcfmt.columnar.avro_look import LookByBeginning
from pyspark_cdcfmt.columnar.chunking import Chunking
from pyspark_cdcfmt.columnar.formats import Format, Reference, Row
from pyspark_cdcfmt.columnar.made import Made, Merging
from pyspark_cdcfmt.columnar.pending import AnyGathered, Pending
from pyspark_cdcfmt.columnar.plans import Plan
from pyspark_cdcfmt.columnar.scan_chunks import (
    SCANNED_BYTES,
    SCANNED_MESSAGES,
    Found,
    ScannedChunk,
)
from pyspark_cdcfmt.columnar.scan_plans import ScanPlan
from pyspark_cdcfmt.columnar.structs import Unlike

logger = open_logger("pyspark_cdcfmt")

GATHERED_MESSAGES = 4096
GATHERED_BYTES = MAX_MESSAGE_BYTES
GATHERED_ROW_BYTES = 2 * MAX_BATCH_BYTES
"""A batch ends after so many messages, when it has so many bytes of them, or of rows."""

_MOST_BYTES = 1 << 20
"""A larger message goes the reference path, which makes its rows one after the other."""

_CHUNK_MESSAGES = 512
_CHUNK_BYTES = 1 << 20
"""As much is decoded at a time: it is in the processor's caches when it becomes cells."""

_MAX_PLANS = 8
_MAX_LEARNED = 200
_WORTH_A_PLAN = 1000
"""So many messages read by columns pay for one more plan."""


@attrs.frozen
class _ReadLines:
    lines: Lines
    plan: Plan
    decoded: list[Struct]


class Chunks:
    """Decodes messages; ``find_format`` gives the format of the last decoded one.

    ``metadata`` are the names of the schema's columns besides the table's own, with what they
    are without prefix.  ``by_columns`` and ``by_reference`` count messages.
    """

    def __init__(
        self,
        schema: pa.Schema,
        metadata: Mapping[str, str],
        find_format: Callable[[], Format | None],
        reference: Reference,
        max_message_bytes: int,
        counts: Counter[str],
        schemas: SchemaStore,
    ) -> None:
        self._schema = schema
        self._metadata = {
            name: (plain, schema.field(name).type) for name, plain in metadata.items()
        }
        self._find_format = find_format
        self._format = find_format()
        self._reference = reference
        self._limit = min(max_message_bytes, _MOST_BYTES)
        self._counts = counts
        self._schemas = schemas
        self._known_schemas = schemas.changes
        self._plans: list[Plan | ScanPlan] = []
        self._rows: list[Row] = []  # of messages that the reference had alone
        self._message_bytes = self._row_bytes = 0  # of these rows
        self._rows_counts: list[int] = []
        self._count_rows = False
        self._learned = 0
        self._chunking = Chunking(self._can_read_lines, self._read_lines, self._chunk_size)
        self.by_columns = 0
        self.by_reference = 0
        self.unwanted = 0

    def batches(
        self, messages: Iterable[Message | BadLine | Lines], *, count_rows: bool = False
    ) -> Iterator[Made]:
        """What is made of the messages, in order.

        Batches have a row at least, unless ``count_rows`` asks for the rows of every message.

        :raises DecodeError: in FAILFAST mode.
        :raises PolicyError: for what an option refuses by ``fail``.
        """
        self._count_rows = count_rows
        pending = Pending()
        for chunk in self._chunking.chunks(messages):
            if isinstance(chunk, _ReadLines):
                self._add_lines(pending, chunk)
            else:
                self._forget_if_told()
                if not self._read_alike(pending, chunk):
                    scanned = self._scan(chunk)
                    left = [] if self._read_whole(pending, chunk, scanned) else chunk
                    for place, message in enumerate(left):
                        if not self._read(pending, message, place, scanned):
                            yield from self._finish(pending)
                            pending = Pending()
                            yield from self._alone(message)
                            scanned = self._scan(chunk, place + 1, scanned)
                self._gather(pending)
            if (
                len(pending.messages) >= GATHERED_MESSAGES
                or pending.size >= GATHERED_BYTES
                or pending.row_bytes >= GATHERED_ROW_BYTES
            ):
                yield from self._finish(pending)
                pending = Pending()
        yield from self._finish(pending)
        yield from self._flush_rows()

    def _forget_if_told(self) -> None:
        if self._schemas.changes != self._known_schemas:
            # A message told of a table, this task's or another's.
            self._known_schemas = self._schemas.changes
            self._plans.clear()

    def _can_read_lines(self) -> bool | None:
        return self._lines_plan() is not None if self._plans else None

    def _lines_plan(self) -> Plan | None:
        """The newest plan, if it reads lines in one piece."""
        plan = self._plans[0] if self._plans and self._format is not None else None
        return plan if isinstance(plan, Plan) and plan.reader.lines is not None else None

    def _read_lines(self, lines: Lines) -> _ReadLines | None:
        self._forget_if_told()
        plan = self._lines_plan()
        if plan is None or plan.reader.lines is None or self._format is None:
            return None
        try:
            decoded = plan.reader.lines.read(lines, self._limit)
            if self._recognises_all(lines.messages()):
                return _ReadLines(lines, plan, decoded)
        except Exception:
            logger.debug("lines are read one by one", exc_info=True)
        return None

    def _recognises_all(self, messages: Iterable[Message | BadLine]) -> bool:
        recognises: Callable[[Any], bool] | None = None
        if self._format is not None:
            recognises = self._format.recognises
        return recognises is None or all(map(recognises, messages))

    def _add_lines(self, pending: Pending, read: _ReadLines) -> None:
        try:
            pending.add_lines(read.lines, read.plan, read.decoded)
        except Exception as error:
            self._give_up(pending, error)

    def _read_alike(self, pending: Pending, chunk: list[Message | BadLine]) -> bool:
        """Whether the newest plan reads all of a chunk."""
        if not self._plans or {Message} != set(map(type, chunk)) or self._format is None:
            return False
        plan = self._plans[0]
        if isinstance(plan, ScanPlan):
            return False
        values: list[Any] = [message.value for message in chunk]
        keys: list[Any] = [message.key for message in chunk if isinstance(message, Message)]
        try:
            decoded, counts = plan.reader.read(values, keys)
        except Exception:
            return False
        if not self._recognises_all(chunk):
            return False
        size = sum(map(len, values))
        if size > self._limit and max(map(len, values)) > self._limit:
            return False
        pending.add_all(chunk, size, plan, decoded, counts)
        return True

    def _read_whole(
        self, pending: Pending, chunk: list[Message | BadLine], scanned: ScannedChunk | None
    ) -> bool:
        """Whether one scan has read all of a chunk."""
        whole = None if scanned is None else scanned.whole
        if whole is None or self._format is None:
            return False
        if not (whole.plan.recognised or self._recognises_all(chunk)):
            return False
        pending.add_whole(chunk, whole)
        return True

    def _chunk_size(self) -> tuple[int, int]:
        """How many messages are read at a time, and how many bytes of them."""
        if self._plans and isinstance(self._plans[0], ScanPlan):
            return SCANNED_MESSAGES, SCANNED_BYTES
        return _CHUNK_MESSAGES, _CHUNK_BYTES

    def _scan(
        self,
        chunk: list[Message | BadLine],
        start: int = 0,
        before: ScannedChunk | None = None,
    ) -> ScannedChunk | None:
        """What plans read of a chunk from ``start`` on; it is not read again by the same ones."""
        if self._format is None or not isinstance(self._format.look, LookByBeginning):
            return None
        plans = [plan for plan in self._plans if isinstance(plan, ScanPlan)]
        look = self._format.look
        if before is not None and before.look is look and set(before.plans) == set(plans):
            return before
        return ScannedChunk(plans, look, chunk, start, self._limit)

    def _read(
        self,
        pending: Pending,
        message: Message | BadLine,
        place: int,
        scanned: ScannedChunk | None,
    ) -> bool:
        """Whether the message could be put among the pending ones, or is not wanted.

        ``place`` is its number in the chunk that was ``scanned``.
        """
        value = message.value
        if isinstance(message, BadLine) or value is None or len(value) > self._limit:
            return False
        known = self._format
        if known is None:
            return False
        found = None if scanned is None else scanned.found(place)
        sure = found is not None and found.scan.plan.recognised
        if not (known.recognises is None or sure or known.recognises(message)):
            return False
        if found is not None:
            return self._take(pending, message, found)
        look, key = known.look, message.key
        kind = None if scanned is None else scanned.kind(place)
        if kind is None and not look.mentions(value, key):
            kind = look(value, key)
        if kind == "unwanted":
            return self._skip(pending, message)
        for number, plan in enumerate(self._plans):
            if isinstance(plan, ScanPlan):
                continue
            try:
                decoded, _ = plan.reader.read((value,), (key,))
            except Exception:
                continue
            if number:
                self._plans.insert(0, self._plans.pop(number))
            pending.add(message, len(value), plan, decoded)
            return True
        if kind is None:
            kind = look(value, key)
        if kind == "unwanted":
            return self._skip(pending, message)
        if kind == "other" or (kind == "row" and self._may_learn()):
            return False
        pending.add(message, len(value), None, [])
        return True

    def _take(self, pending: Pending, message: Message, found: Found) -> bool:
        plan = found.scan.plan
        if plan is not self._plans[0]:
            self._plans.remove(plan)
            self._plans.insert(0, plan)
        pending.add_found(message, len(message.value or b""), found)
        return True

    def _skip(self, pending: Pending, message: Message) -> bool:
        self.unwanted += 1
        if self._count_rows:
            pending.skip(message)
        return True

    def _may_learn(self) -> bool:
        return self._learned < _MAX_LEARNED + self.by_columns // _WORTH_A_PLAN

    def _alone(self, message: Message | BadLine) -> Iterator[Made]:
        """A message by the reference path, and what is to be learned from it."""
        count = 0
        for row in self._reference.rows(message, in_list=self._count_rows):
            count += 1
            self._rows.append(row)
            self._row_bytes += self._reference.weigh(row)
            if self._rows_are_full() and not self._count_rows:
                yield from self._flush_rows()
        self._rows_counts.append(count)
        self._message_bytes += len(message.value or b"")
        if self._rows_are_full() or self._message_bytes >= MAX_MESSAGE_BYTES:
            yield from self._flush_rows()
        self.by_reference += 1
        if isinstance(message, BadLine):
            return
        last, self._format = self._format, self._find_format()
        if self._format is not last:
            self._plans.clear()
        if self._format is None:
            return
        if self._reference.found_nothing_wrong():
            self._format.look.trust(message.value or b"")
        changes = self._reference.changes()
        self._forget_if_told()
        if changes is None and not self._format.by_schemas:
            # What other messages mean may have changed.
            self._plans.clear()
        elif changes and len(message.value or b"") <= self._limit and self._may_learn():
            self._learned += 1
            if all(change.table is changes[0].table for change in changes):
                try:
                    self._plans.insert(0, self._format.learn(message, changes))
                except Unlike as error:
                    logger.debug("not by columns: %s", error)
                except Exception as error:
                    logger.warning("cdc: not by columns: %s: %s", type(error).__name__, error)
                del self._plans[_MAX_PLANS:]

    def _rows_are_full(self) -> bool:
        return len(self._rows) >= MAX_ROWS or self._row_bytes >= MAX_BATCH_BYTES

    def _flush_rows(self) -> Iterator[Made]:
        size = max(self._message_bytes, self._row_bytes)
        rows, counts = self._rows, self._rows_counts
        self._rows, self._rows_counts = [], []
        self._message_bytes = self._row_bytes = 0
        if counts if self._count_rows else rows:
            yield Made(self._reference.batch(rows), size, counts if self._count_rows else ())

    def _finish(self, pending: Pending) -> Iterator[Made]:
        """What is pending, as one batch."""
        self._gather(pending)
        if not pending.messages:
            return
        pieces: list[pa.RecordBatch] = []
        owners: list[int] = []
        notes: list[str] = []
        try:
            for gathered in pending.gathered.values():
                batch, of_rows = self._usual(gathered)
                pieces.append(batch)
                owners += of_rows
                notes += [note for owner, note in gathered.noted if owner not in gathered.unusual]
        except Exception as error:
            self._give_up(pending, error)
            pieces, owners, notes = [], [], []
        self._counts.update(notes)
        left = set(pending.left).union(*(each.unusual for each in pending.gathered.values()))
        self.by_columns += len(pending.messages) - pending.skipped - len(left)
        self.by_reference += len(left)
        yield from self._flush_rows()
        merging = Merging(
            [piece for piece in pieces if piece.num_rows],
            owners,
            self._reference,
            len(pending.messages),
            in_lists=self._count_rows,
        )
        for place in sorted(left):
            message = pending.message(place)
            yield from merging.add(place, self._reference.rows(message, in_list=self._count_rows))
        yield from merging.finish(pending.size)

    def _usual(self, gathered: AnyGathered) -> tuple[pa.RecordBatch, list[int]]:
        """The rows of messages that nothing speaks against, and whose they are."""
        batch = self._batch(gathered.finish(self._metadata), len(gathered.owners))
        of_rows = gathered.owners
        if gathered.unusual:
            keep = [at for at, owner in enumerate(of_rows) if owner not in gathered.unusual]
            batch = batch.take(pa.array(keep, pa.int32()))
            of_rows = [of_rows[at] for at in keep]
        return batch, of_rows

    def _gather(self, pending: Pending) -> None:
        try:
            pending.gather()
        except Exception as error:
            self._give_up(pending, error)

    def _give_up(self, pending: Pending, error: Exception) -> None:
        """A mistake of this path must not end a job that the reference path would not end."""
        logger.warning(
            "cdc: %d messages could not be read by columns and are read one by one: %s: %s",
            len(pending.messages),
            type(error).__name__,
            error,
        )
        pending.give_up()
        self._plans.clear()

    def _batch(self, columns: Mapping[str, pa.Array], count: int) -> pa.RecordBatch:
        arrays = [
            columns[field.name] if field.name in columns else pa.nulls(count, field.type)
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
