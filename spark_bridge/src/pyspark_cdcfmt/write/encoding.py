"""Encoding of the rows of one task to messages, in order, for every sink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql.types import StructType

from cdcfmt_core import default_registry
from cdcfmt_core.caches import Cache, text_size
from cdcfmt_core.encoding import MessageEncoder
from cdcfmt_core.errors import EncodeError, OptionError, SinkError, UnsupportedEventError
from cdcfmt_core.events import KIND_OF, Kind, Message, RowChange, SchemaChange, Watermark
from cdcfmt_core.opening import claim_check_writer
from cdcfmt_core.texts import open_logger, qualified
from cdcfmt_toolkit.avro_output import add_ids, registered_ids
from cdcfmt_toolkit.partitioning import key_text
from cdcfmt_toolkit.row_rules import row_rules
from cdcfmt_toolkit.writable_tables import check_tables
from pyspark_cdcfmt.rows.changes_to_events import ChangeInput, check_changes
from pyspark_cdcfmt.rows.columns import check_events
from pyspark_cdcfmt.rows.input_tables import InputTables
from pyspark_cdcfmt.rows.rows_to_events import EventInput, InputEvent
from pyspark_cdcfmt.spark_api import with_offsets
from pyspark_cdcfmt.write.columnar import RowWriter, Taken
from pyspark_cdcfmt.write.watermarks import Watermarks, sources_of
from pyspark_cdcfmt.write_options import WriteOptions

logger = open_logger("pyspark_cdcfmt")


def check_rows(schema: StructType, options: WriteOptions) -> None:
    """Check, before any row is written, what the options and the columns alone show.

    :raises OptionError: for the format's options, and for columns that cannot be written; names
        one of them.
    :raises EncodeError: for columns of the table that the format cannot express; names them.
    """
    encoder = open_encoder(options, None)
    if options.table is None:
        check_events(schema)
        _check_times(schema, encoder, "commit_ts", "source_time")
        return
    check_changes(schema, options)
    rows = open_input(schema, options)
    assert isinstance(rows, ChangeInput)
    check_tables(encoder, [rows.table])
    prefix = options["metadataPrefix"]
    _check_times(schema, encoder, f"{prefix}commit_version", f"{prefix}commit_timestamp")


def _check_times(schema: StructType, encoder: MessageEncoder, commit_ts: str, time: str) -> None:
    """:raises OptionError: for a format that needs a commit_ts, and rows without the columns."""
    if not encoder.needs_commit_ts or commit_ts in schema.names:
        return
    lacks = f"the format needs a commit_ts, and the rows have no column {commit_ts}"
    if encoder.commit_ts is None:
        raise OptionError(f"{lacks}; with synthesizeCommitTs=true it is made from {time}")
    if time not in schema.names:
        raise OptionError(f"{lacks}, nor {time} to make one from: add one of them")


def open_input(schema: StructType, options: WriteOptions) -> EventInput | ChangeInput:
    """The converter of this schema's rows to events.

    :raises OptionError: for unsupported column types.
    """
    registry = default_registry()
    if options.table is not None:
        return ChangeInput(schema, options, registry.get_type_map(options["typeMap"] or "mysql"))
    tables = InputTables(
        registry, type_map=options["typeMap"], by_values=options["typesFrom"] == "values"
    )
    return EventInput(schema, tables, tuple(options["keyColumns"] or ()))


def open_encoder(
    options: WriteOptions, partitions: int | None, counts: Counter[str] | None = None
) -> MessageEncoder:
    add_ids(options.schema_ids)
    return MessageEncoder(
        options.values,
        options.codec,
        claim_checks=claim_check_writer(options.values, options.storage_options),
        partitions=partitions,
        counts=counts,
    )


def with_schema_ids(schema: StructType, options: WriteOptions) -> WriteOptions:
    """The options with the ids of the table's schemas, which are registered now, on the driver.

    The tables of events are in their rows: each process registers those that it meets.

    :raises EncodeError: for a type that the format lacks.
    :raises SinkError: if the schema registry refuses a schema, or does not answer.
    """
    rows = open_input(schema, options)
    if not isinstance(rows, ChangeInput):
        return options
    encoder = open_encoder(options, None)
    encoder.prepare(rows.table, register=True)
    return attrs.evolve(options, schema_ids=registered_ids(encoder.context.schema_registry))


@attrs.define
class EventWriter:
    """Encodes the rows of one task.

    :ivar refused: kinds of events that the sink cannot take, with the remedy.
    :ivar watermarks: the last watermark of each source, for the driver.
    :ivar statements: number of DDL statements, for the driver.
    :ivar by_kernel: whether the kernel may write rows.
    :ivar rows_by: numbers of rows written by the kernel and by the reference.
    :ivar wait: returns after the acknowledgement of all messages so far.
    """

    schema: StructType
    options: WriteOptions
    partitions: int | None = None
    refused: Mapping[Kind, str] = attrs.field(factory=dict)
    watermarks: Watermarks = attrs.field(factory=dict)
    statements: int = 0
    counts: Counter[str] = attrs.field(factory=Counter)
    by_kernel: bool = True
    rows_by: tuple[int, int] = (0, 0)
    wait: Callable[[], None] = lambda: None
    _seen: Cache[tuple[object, ...], bool] = attrs.field(
        init=False, factory=lambda: Cache(16 << 20)
    )
    _checked: bool = attrs.field(init=False, default=False)

    def parts(
        self, batches: Iterable[pa.RecordBatch], *, line_format: str | None = None
    ) -> Iterator[Message | Taken]:
        """The messages of the rows, in order, without watermarks; the kernel's in batches.

        :param line_format: the format of lines in files, for the kernel's messages.
        :raises EncodeError: for a row that cannot be written.
        """
        batches = with_offsets(iter(batches))
        rows = open_input(self.schema, self.options)
        encoder = open_encoder(self.options, self.partitions, self.counts)
        rules = row_rules(encoder) if self.by_kernel else None
        writer = RowWriter.open(rows, self.options, rules, line_format=line_format)
        order = OrderCheck() if self.options["ordered"] else None
        if writer is None:
            yield from self._encode(rows.events(batches), encoder, order)
        else:
            if order is not None:
                order.remember = writer.kernel.remember
            yield from self._by_kernel(writer, batches, rows, encoder, order)
        for read in rows.flush():
            yield from read.encoded(encoder.encode)
        yield from encoder.flush()

    def _by_kernel(
        self,
        writer: RowWriter,
        batches: Iterable[pa.RecordBatch],
        rows: EventInput | ChangeInput,
        encoder: MessageEncoder,
        order: OrderCheck | None,
    ) -> Iterator[Message | Taken]:
        try:
            for some, taken in chain.from_iterable(map(writer.write, batches)):
                if taken is None:
                    yield from self._encode(rows.events([some]), encoder, order)
                else:
                    for source in sources_of(some):
                        self.watermarks.setdefault(source, None)
                    yield taken
        finally:
            self.counts.update(writer.kernel.take_counts())
            self.rows_by = writer.rows_by
        logger.info("cdc: %d rows written by kernel, %d by reference", *self.rows_by)

    def _encode(
        self, events: Iterable[InputEvent], encoder: MessageEncoder, order: OrderCheck | None
    ) -> Iterator[Message]:
        takes_rows = "row" not in self.refused
        source = None
        for read in events:
            event = read.event
            if type(event) is RowChange and takes_rows:
                # Fast path: most events are rows.
                if read.source != source:
                    source = read.source
                    self.watermarks.setdefault(source, None)
                if order is not None:
                    order.check(read)
                yield from read.encoded(encoder.encode)
                continue
            kind = KIND_OF[type(event)]
            if kind in self.refused:
                self._refuse(kind, self.refused[kind])
                continue
            if isinstance(event, Watermark):
                if read.source[1:] == (None, None):
                    self._refuse(kind, _NO_PLACE)
                    continue
                if not self._checked:
                    # The driver writes watermarks later; check here that they can be encoded.
                    open_encoder(self.options, None).encode(event)
                    self._checked = True
                last = self.watermarks.get(read.source)
                self.watermarks[read.source] = max(last or 0, event.commit_ts)
                continue
            if isinstance(event, SchemaChange):
                self.watermarks.setdefault(read.source, None)
                if not self._is_new(event):
                    self.counts["copies of DDL statements, left out"] += 1
                    continue
                self.statements += 1
                # Rows of all partitions must stay before or after it.
                yield from encoder.flush()
                self.wait()
                yield from read.encoded(encoder.encode)
                self.wait()
                continue
            yield from read.encoded(encoder.encode)

    def _is_new(self, event: SchemaChange) -> bool:
        """Whether this is the first copy of a statement; producers send one to each partition."""
        if event.commit_ts is None:
            return True
        key = (event.commit_ts, event.database, event.schema, event.table, event.query)
        if self._seen.get(key):
            return False
        self._seen.add(key, True, text_size(event.database, event.schema, event.table, event.query))
        return True

    def _refuse(self, kind: Kind, why: str) -> None:
        if self.options["unsupportedEvents"] == "fail":
            raise UnsupportedEventError(
                f"{kind} events are not written here: {why}, or set unsupportedEvents=skip",
                protocol=self.options["protocol"],
            )
        self.counts[f"skipped: {kind} events"] += 1

    def log_counts(self) -> None:
        """Log the counts of changed and skipped events."""
        if self.counts:
            counts = ", ".join(f"{name}: {count}" for name, count in self.counts.items())
            logger.warning("cdc: %s", counts)


_NO_PLACE = (
    "without _source.partition or _source.path, one of a faster partition could precede rows: keep "
    "_source (decode: name topic and partition), leave them out by kind <> 'watermark'"
)


def check_statements(of_tasks: Sequence[int]) -> None:
    """Refuse DDL if several tasks write rows: its position among the rows is then unknown.

    :raises SinkError: if any of several tasks has DDL.
    """
    if len(of_tasks) > 1 and any(of_tasks):
        raise SinkError(
            f"{sum(of_tasks)} DDL statements must stay in order among the rows, but "
            f"{len(of_tasks)} tasks write rows: coalesce(1) before the write, or leave DDL out by "
            "kind <> 'ddl'"
        )


MAX_KEYS = 1 << 17
"""Maximum number of remembered keys (about 50 MB); at least half of them are kept.  A change
that is out of order by more keys is not detected."""

_ADVICE = (
    "changes of one key must be in order: repartition by the key and sortWithinPartitions by "
    "_sequence (changes) or commit_ts and _source (events), or set ordered=false"
)


class OrderCheck:
    """Remembers the last position of each key, by a hash of table and key."""

    def __init__(self, max_keys: int = MAX_KEYS) -> None:
        self.remember: Callable[[tuple[str, ...], Any, Any], Any] = self._remember
        self._half = max_keys // 2
        # The older half is dropped at once, which avoids bookkeeping per change.
        self._recent: dict[int, tuple[Any, Any]] = {}
        self._older: dict[int, tuple[Any, Any]] = {}

    def __len__(self) -> int:
        return len(self._recent) + len(self._older)

    def check(self, read: InputEvent) -> None:
        """:raises EncodeError: if this change is older than a written one of the same key."""
        event = read.event
        if read.order is None or not isinstance(event, RowChange):
            return
        names = event.table.key_columns
        image = event.after or event.before
        if image is None or not names:
            return
        key = [image.values.get(name) for name in names]
        self._check(read, event, key)
        before = None if event.before is None else event.before.values
        # An update of the key is a change of the old and of the new key.
        if before is not None and image is event.after and before.keys() >= set(names):
            previous = [before[name] for name in names]
            if previous != key:
                self._check(read, event, previous)

    def _check(self, read: InputEvent, event: RowChange, cells: list[Any]) -> None:
        table = event.table
        key = (table.database, table.schema or "", table.table, *map(key_text, cells))
        last = self.remember(key, read.order_by, read.order)
        if last is not None:
            raise EncodeError(
                f"a change at {_show(read.order)} comes after one of the same key at "
                f"{_show(last)}; {_ADVICE}",
                table=qualified(*table.name),
                commit_ts=event.commit_ts,
            )

    def _remember(self, names: tuple[str, ...], order_by: Any, order: Any) -> Any:
        """Remember the position of a key; returns the last position if that is later, else None."""
        key = hash(names)
        last = self._recent.get(key) or self._older.get(key)
        if last is not None and last[0] == order_by and order < last[1]:
            return last[1]
        self._recent[key] = order_by, order
        if len(self._recent) >= self._half:
            self._older, self._recent = self._recent, {}
        return None


def _show(order: Any) -> str:
    return f"({', '.join(map(str, order))})" if isinstance(order, tuple) else str(order)
