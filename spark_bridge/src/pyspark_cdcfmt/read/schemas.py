"""Table schemas: found before a read, or searched for a row without one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeAlias

from pyspark import TaskContext

from cdcfmt_core import default_registry
from cdcfmt_core.caches import Cache, text_size
from cdcfmt_core.codec import AUTO, MarkedScan
from cdcfmt_core.errors import MissingSchemaError, OptionError, SourceError
from cdcfmt_core.events import Message, TableSchema
from cdcfmt_core.schema_scan import open_input_scan, open_schema_scan
from cdcfmt_core.schemas.records import Note, SchemaRecord
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.texts import open_logger
from cdcfmt_files.sources import BadLine
from cdcfmt_files.sources.lines import marked_messages
from cdcfmt_toolkit.inputs import Input, Slice
from cdcfmt_toolkit.schema_directory import SchemaDirectory
from cdcfmt_toolkit.topics.schema_search import SchemaSearch
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.inputs import SECONDS_BETWEEN_NEWS, with_progress
from pyspark_cdcfmt.rows.read_task import ReadTask

logger = open_logger("pyspark_cdcfmt")

NO_STORE = (
    "a stream needs a folder for the table schemas that it finds, as a restart may begin "
    "after them: set schemaStore to one that driver and executors can write"
)

Policy: TypeAlias = Literal["wait", "corrupt", "fail", "raw"]

_NAMES_BYTES = 8 << 20
_SECONDS_BETWEEN_LOOKS = 1.0

_Wanted: TypeAlias = tuple[str, str | None, str, tuple[Any, ...] | None]


def open_store(options: ReadOptions) -> SchemaStore:
    """An empty store, or one over the folder ``schemaStore``, which is created if missing."""
    limit, folder = options["maxCachedSchemaBytes"], options["schemaStore"]
    if folder is None:
        return SchemaStore(limit)
    directory = SchemaDirectory(folder, options.storage_options)
    directory.check()
    return SchemaStore(limit, directory)


def find_schemas(
    options: ReadOptions,
    read: Callable[[MarkedScan[Any]], Iterable[Message | BadLine]],
    *,
    statements: bool = True,
) -> SchemaStore:
    """The table schemas of the messages, and those of ``schemaStore``.

    :param read: returns the messages, at least those that may have schemas; called only if a
        format needs schemas.
    :param statements: whether to use DDL, which may be out of date in a part of an input.
    """
    store = open_store(options)
    open_scan = open_input_scan if statements else open_schema_scan
    scan = open_scan(options.values, options.codec) if options["scanSchemas"] else None
    if scan is None:
        return store

    def on_progress(count: int) -> None:
        logger.warning(
            "cdc: looking for table schemas, %d messages read and %d schemas found so far; "
            "scanSchemas=false avoids this if messages carry their types",
            count,
            len(store),
        )

    for message in marked_messages(with_progress(read(scan), on_progress), scan.marks):
        if isinstance(message, Message):
            for record in scan(message):
                store.add(record)
    return store


def policy_of(options: ReadOptions) -> Policy:
    """The value of ``onMissingSchema``, or its default for this read.

    :raises OptionError: for ``wait`` in a batch, and for ``raw`` in formats without it.
    """
    given: Policy | None = options["onMissingSchema"]
    protocol = options["protocol"]
    if given == "raw" and protocol.lower() != AUTO and _needs_schemas(protocol):
        raise OptionError(
            f"option onMissingSchema: a row of {protocol} cannot be read without its table's "
            "schema; set wait, corrupt or fail"
        )
    if given == "wait" and not options.streaming:
        raise OptionError(
            "option onMissingSchema: wait is for streams, as a batch gets no new messages; set "
            "corrupt or fail"
        )
    return given or ("wait" if options.streaming else "corrupt")


def check_stream(options: ReadOptions) -> None:
    """:raises OptionError: for a stream of a format that needs schemas, without a schema store."""
    protocol = options["protocol"]
    if options["schemaStore"] is not None or protocol.lower() == AUTO:
        return
    if _needs_schemas(protocol):
        raise OptionError(f"protocol {protocol}: {NO_STORE}")


def _needs_schemas(protocol: str) -> bool:
    return default_registry().get_codec(protocol).needs_schemas


def query_id() -> str | None:
    """The id of a task's streaming query, which stays the same across restarts."""
    context = TaskContext.get()
    return None if context is None else context.getLocalProperty("sql.streaming.queryId")


class MissingSchemas:
    """Finds schemas for the rows of one slice: in the schema store, then around the slice.

    Abandoned rows are recorded in the store, so that a task that reads the slice again (a batch
    with two actions, a repeated task) gives the same rows.
    """

    def __init__(
        self,
        task: ReadTask,
        slice_: Slice | None = None,
        source: Input | None = None,
    ) -> None:
        self._policy = policy_of(task.options)
        self._options = task.options
        self._store = task.schemas
        self._slice = slice_
        self._source = source
        self._search: SchemaSearch | None = None
        self._searched = False
        # A forgotten entry is searched for again, with the same result.
        self._known: Cache[_Wanted, bool] = Cache(_NAMES_BYTES)
        self._given_up: Cache[_Wanted, bool] = Cache(_NAMES_BYTES)

    def find(self, error: MissingSchemaError, message: Message) -> bool:
        """Whether the store now has the schema that a row of ``message`` lacked.

        :raises SourceError: under ``fail``, and under ``wait`` when time is up.
        """
        wanted = _wanted(error)
        if self._given_up.get(wanted):
            return False
        known = error.exact and self._known.get(wanted)
        # More schemas may be in use than the store can hold.
        if known and self._store.reload(*_table_of(wanted)):
            return True
        if self._options.streaming and self._store.persistence is None:
            raise SourceError(f"{error}; {NO_STORE}")
        if self._gave_up(wanted) or not self._find(wanted, error, message):
            self._given_up.add(wanted, True, _size_of(wanted))
            return False
        return True

    def _find(self, wanted: _Wanted, error: MissingSchemaError, message: Message) -> bool:
        started = reported = time.monotonic()
        seconds = self._options["schemaWaitTimeout"].total_seconds()
        waits = self._policy == "wait"
        known = self._newest(error)
        while True:
            for _ in self._search_places(wanted, message, on=waits):
                if self._known.get(wanted) if error.exact else self._newest(error) is not known:
                    return True
                now = time.monotonic()
                if waits and now - started > seconds:
                    break
                if now - reported > SECONDS_BETWEEN_NEWS:
                    reported = now
                    self._say(error, message, now - started)
            if not waits:
                break
            if time.monotonic() - started > seconds:
                raise SourceError(
                    f"{error}: it did not arrive within {seconds:g} s (schemaWaitTimeout). Nothing "
                    "is lost: start the query again after the producer has sent it, or set "
                    "onMissingSchema=corrupt to get such rows as bad rows"
                )
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        if self._policy == "fail":
            raise SourceError(
                f"{error} (onMissingSchema=fail): it is neither in the schema store nor in the "
                "topic around the row; onMissingSchema=corrupt makes such rows bad rows"
            )
        self._give_up(wanted)
        return False

    def _newest(self, error: MissingSchemaError) -> TableSchema | None:
        """The newest schema of the table before the row."""
        if error.exact:
            return None
        place = error.database, error.table, error.position
        try:
            return self._store.find(*place, schema=error.schema, stream=error.stream)
        except MissingSchemaError:
            # The store has dropped it, so any schema found now is new.
            return None

    def _search_places(self, wanted: _Wanted, message: Message, *, on: bool) -> Iterator[None]:
        """Add the schemas of one place after another."""
        if self._store.persistence is not None:
            # The store and its folder already have these.
            self._note_known(self._store.reload(*_table_of(wanted)))
            yield
        if not self._searched:
            self._searched = True
            self._search = self._open_search()
        if self._search is not None:
            for records in self._search.search(message.timestamp, on=on):
                for record in records:
                    self._store.add(record)
                    self._note_known([record])
                yield

    def _note_known(self, records: Iterable[SchemaRecord]) -> None:
        for record in records:
            name = _name_of(record)
            self._known.add(name, True, _size_of(name))

    def _open_search(self) -> SchemaSearch | None:
        if self._source is None or self._slice is None:
            return None
        scan = open_schema_scan(self._options.values, self._options.codec)
        if scan is None:
            return None
        reach = self._options["schemaSearchMessages"]
        return self._source.schema_search(self._slice, scan, reach)

    def _say(self, error: MissingSchemaError, message: Message, waited: float) -> None:
        age = ""
        if message.timestamp is not None:
            age = f"; the row is {time.time() - message.timestamp / 1000:.0f} s old"
        logger.warning("cdc: %s: looking for it for %.0f s%s", error, waited, age)

    def _gave_up(self, wanted: _Wanted) -> bool:
        kept = self._store.persistence
        if self._policy != "corrupt" or kept is None or self._slice is None:
            return False
        return kept.noted(_note_of(wanted, self._slice))

    def _give_up(self, wanted: _Wanted) -> None:
        if self._store.persistence is not None and self._slice is not None:
            self._store.persistence.note(_note_of(wanted, self._slice))


def _note_of(wanted: _Wanted, slice_: Slice) -> Note:
    """The note that a slice has no schema for its rows."""
    query, batch = query_id(), slice_.batch()
    known = None if query is None or batch is None else (f"{query} {batch[0]}", batch[1])
    text = f"no schema in {dict(slice_.describe())} of {wanted}"
    return Note(text, *_table_of(wanted), batch=known)


def _wanted(error: MissingSchemaError) -> _Wanted:
    # If any earlier schema will do, all rows of a table lack it together.
    position = error.position if error.exact else None
    return error.database, error.schema, error.table, position


def _name_of(record: SchemaRecord) -> _Wanted:
    table = record.table
    return table.database, table.schema, table.table, record.position


def _size_of(wanted: _Wanted) -> int:
    return text_size(*wanted[:3])


def _table_of(wanted: _Wanted) -> tuple[str, str, str | None]:
    database, schema, table, _ = wanted
    return database, table, schema
