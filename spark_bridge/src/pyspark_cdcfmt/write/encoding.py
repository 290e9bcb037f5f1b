"""From the rows of one task to messages: what every sink does the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs
import pyarrow as pa
from pyspark.sql.types import StructType

from cdcfmt_core import default_registry
from cdcfmt_core.caches import Cache, text_size
from cdcfmt_core.encoding import MessageEncoder, open_message_encoder
from cdcfmt_core.errors import SinkError, UnsupportedEventError
from cdcfmt_core.events import KIND_OF, Kind, Message, RowChange, SchemaChange, Watermark
from cdcfmt_core.sources import open_claim_check_writer
from cdcfmt_core.texts import open_logger
from pyspark_cdcfmt.rows.changes_to_events import ChangeInput, check_changes
from pyspark_cdcfmt.rows.columns import check_events
from pyspark_cdcfmt.rows.input_tables import InputTables
from pyspark_cdcfmt.rows.rows_to_events import EventInput, Source
from pyspark_cdcfmt.write.order_check import OrderCheck
from pyspark_cdcfmt.write_options import WriteOptions

logger = open_logger("pyspark_cdcfmt")

Watermarks: TypeAlias = dict[Source, int | None]
"""The last watermark of each topic partition (or file) that rows were read from."""


def check_rows(schema: StructType, options: WriteOptions) -> None:
    """:raises OptionError: for columns that cannot be written, naming one."""
    if options.table is None:
        check_events(schema)
    else:
        check_changes(schema, options)
        open_input(schema, options)


def open_input(schema: StructType, options: WriteOptions) -> EventInput | ChangeInput:
    """What makes events of rows of this schema.

    :raises OptionError: for column types that cannot be.
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
    """The encoder that the options ask for."""
    uri = options["claimCheckStorageUri"]
    return open_message_encoder(
        options.values,
        options.codec,
        claim_checks=None
        if uri is None
        else open_claim_check_writer(
            uri, options.storage_options, raw_value=options["claimCheckRawValue"]
        ),
        partitions=partitions,
        counts=counts,
    )


@attrs.define
class EventWriter:
    """Encodes the rows of one task.

    What the driver has to know of them: ``watermarks``, and the number of DDL ``statements``.
    ``refused`` are kinds that cannot be written where the messages go, and what to do.
    ``wait`` returns when all messages so far are where they shall be.
    """

    schema: StructType
    options: WriteOptions
    partitions: int | None = None
    refused: Mapping[Kind, str] = attrs.field(factory=dict)
    watermarks: Watermarks = attrs.field(factory=dict)
    statements: int = 0
    counts: Counter[str] = attrs.field(factory=Counter)
    wait: Callable[[], None] = lambda: None

    def messages(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
        """The messages of the rows, in order, without watermarks.

        :raises EncodeError: for a row that cannot be written.
        """
        rows = open_input(self.schema, self.options)
        encoder = open_encoder(self.options, self.partitions, self.counts)
        order = OrderCheck() if self.options["ordered"] else None
        statements = _Statements()
        told = False
        takes_rows = "row" not in self.refused
        source = None
        for read in rows.events(batches):
            event = read.event
            if type(event) is RowChange and takes_rows:
                # Most are: spare them the questions below.
                if read.source != source:
                    source = read.source
                    self.watermarks.setdefault(source, None)
                if order is not None:
                    order.check(read)
                yield from encoder.encode(event)
                continue
            if KIND_OF[type(event)] in self.refused:
                self._refuse(KIND_OF[type(event)])
                continue
            if isinstance(event, Watermark):
                if not told:
                    # The driver writes them; what it cannot write shall fail before that.
                    open_encoder(self.options, None).encode(event)
                    told = True
                last = self.watermarks.get(read.source)
                self.watermarks[read.source] = max(last or 0, event.commit_ts)
                continue
            if isinstance(event, SchemaChange):
                self.watermarks.setdefault(read.source, None)
                if not statements.is_new(event):
                    self.counts["copies of DDL statements, left out"] += 1
                    continue
                self.statements += 1
                # It must overtake no row, and no row overtake it, in other partitions either.
                yield from encoder.flush()
                self.wait()
                yield from encoder.encode(event)
                self.wait()
                continue
            yield from encoder.encode(event)
        for read in rows.flush():
            yield from encoder.encode(read.event)
        yield from encoder.flush()

    def _refuse(self, kind: Kind) -> None:
        if self.options["unsupportedEvents"] == "fail":
            raise UnsupportedEventError(
                f"{kind} events are not written here: {self.refused[kind]}, or set "
                "unsupportedEvents=skip",
                protocol=self.options["protocol"],
            )
        self.counts[f"skipped: {kind} events"] += 1

    def log_counts(self) -> None:
        """What was done to events without being an error."""
        if self.counts:
            counts = ", ".join(f"{name}: {count}" for name, count in self.counts.items())
            logger.warning("cdc: %s", counts)


class _Statements:
    """The DDL that was met: producers send it to every partition."""

    def __init__(self) -> None:
        self._seen: Cache[tuple[object, ...], bool] = Cache(16 << 20)

    def is_new(self, event: SchemaChange) -> bool:
        """Whether the statement was not met yet; without a commit_ts nobody can tell."""
        if event.commit_ts is None:
            return True
        key = (event.commit_ts, event.database, event.table, event.query)
        if self._seen.get(key):
            return False
        self._seen.add(key, True, text_size(event.database, event.table, event.query))
        return True


def check_statements(of_tasks: Sequence[int]) -> None:
    """DDL has its place between the rows, which nobody knows if several tasks write them.

    :raises SinkError: if one of several tasks met DDL.
    """
    if len(of_tasks) > 1 and any(of_tasks):
        raise SinkError(
            f"{sum(of_tasks)} DDL statements have their place between rows that "
            f"{len(of_tasks)} tasks write: coalesce(1) before the write, or leave them out by "
            "kind <> 'ddl'"
        )


def merge_watermarks(reports: Iterable[Watermarks]) -> Watermarks:
    """The last watermark of each source; None where none of the reports has one."""
    merged: Watermarks = {}
    for report in reports:
        for source, commit_ts in report.items():
            known = merged.get(source)
            merged[source] = commit_ts if known is None else max(known, commit_ts or 0)
    return merged


def lowest_watermark(reports: Iterable[Watermarks]) -> int | None:
    """What all tasks together may promise: None while a source that has rows told nothing."""
    values = list(merge_watermarks(reports).values())
    if not values or None in values:
        return None
    return min(value for value in values if value is not None)
