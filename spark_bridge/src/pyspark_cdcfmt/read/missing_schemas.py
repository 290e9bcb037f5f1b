"""What becomes of rows whose table schema is not known when they are decoded."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias

from cdcfmt_core import default_registry
from cdcfmt_core.caches import Cache, text_size
from cdcfmt_core.decoding import AUTO
from cdcfmt_core.errors import MissingSchemaError, OptionError, SourceError
from cdcfmt_core.events import Message, TableSchema
from cdcfmt_core.schema_scan import open_schema_scan
from cdcfmt_core.schema_store import SchemaRecord, SchemaStore
from cdcfmt_core.sources import KeptSchemaStore
from cdcfmt_core.sources.kafka import SchemaSearch
from cdcfmt_core.texts import open_logger
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.slices import Input, Share

logger = open_logger("pyspark_cdcfmt")

NO_STORE = (
    "a stream needs a folder for the table schemas that it meets, as a restart may begin "
    "behind them: set schemaStore to one that driver and executors can write"
)

Policy: TypeAlias = Literal["wait", "corrupt", "fail", "raw"]

_NAMES_BYTES = 8 << 20
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_BETWEEN_NEWS = 10.0

_Wanted: TypeAlias = tuple[str, str | None, str, tuple[Any, ...] | None]


def policy_of(options: ReadOptions, *, streaming: bool) -> Policy:
    """What ``onMissingSchema`` says, or means where it is not set.

    :raises OptionError: for ``wait`` where nothing more will come, and for ``raw`` where rows
        cannot be read so.
    """
    given: Policy | None = options["onMissingSchema"]
    protocol = options["protocol"]
    if given == "raw" and protocol.lower() != AUTO and _needs_schemas(protocol):
        raise OptionError(
            f"option onMissingSchema: a row of {protocol} cannot be read without its table's "
            "schema; wait, corrupt or fail"
        )
    if given == "wait" and not streaming:
        raise OptionError(
            "option onMissingSchema: nothing comes to a batch while it runs, so wait is for "
            "streams; corrupt or fail"
        )
    return given or ("wait" if streaming else "corrupt")


def check_stream(options: ReadOptions) -> None:
    """OptionError for a stream of a format that needs schemas, without a place for them."""
    protocol = options["protocol"]
    if options["schemaStore"] is not None or protocol.lower() == AUTO:
        return
    if _needs_schemas(protocol):
        raise OptionError(f"protocol {protocol}: {NO_STORE}")


def _needs_schemas(protocol: str) -> bool:
    return default_registry().get_codec(protocol).needs_schemas


class MissingSchemas:
    """Finds schemas for the rows of one share: in the schema store, then around the share.

    Which rows are given up is noted in the store, so that whoever reads the share again
    (a batch with two actions, a task that is run again) gets the same rows.
    """

    def __init__(
        self,
        policy: Policy,
        options: ReadOptions,
        store: SchemaStore,
        *,
        share: Share | None = None,
        source: Input | None = None,
        streaming: bool = False,
    ) -> None:
        self._policy = policy
        self._options = options
        self._store = store
        self._share = share
        self._source = source
        self._streaming = streaming
        self._search: SchemaSearch | None = None
        self._searched = False
        # What is forgotten is looked for again, with the same result.
        self._told: Cache[_Wanted, bool] = Cache(_NAMES_BYTES)
        self._given_up: Cache[_Wanted, bool] = Cache(_NAMES_BYTES)

    def find(self, error: MissingSchemaError, message: Message) -> bool:
        """Whether the store now has the schema that a row of ``message`` lacked.

        :raises SourceError: under ``fail``, and under ``wait`` when time is up.
        """
        wanted = _wanted(error)
        if self._given_up.get(wanted):
            return False
        known = error.exact and self._told.get(wanted)
        if known and isinstance(self._store, KeptSchemaStore):
            # More schemas are in use than the store may hold.
            self._store.reload(*_table_of(wanted))
            return True
        if self._streaming and not isinstance(self._store, KeptSchemaStore):
            raise SourceError(f"{error}; {NO_STORE}")
        if self._gave_up(wanted) or not self._find(wanted, error, message):
            self._given_up.add(wanted, True, _size_of(wanted))
            return False
        return True

    def _find(self, wanted: _Wanted, error: MissingSchemaError, message: Message) -> bool:
        started = said = time.monotonic()
        seconds = self._options["schemaWaitTimeout"].total_seconds()
        waits = self._policy == "wait"
        known = self._newest(error)
        while True:
            for _ in self._look(wanted, message, on=waits):
                if self._told.get(wanted) if error.exact else self._newest(error) is not known:
                    return True
                now = time.monotonic()
                if waits and now - started > seconds:
                    break
                if now - said > _SECONDS_BETWEEN_NEWS:
                    said = now
                    self._say(error, message, now - started)
            if not waits:
                break
            if time.monotonic() - started > seconds:
                raise SourceError(
                    f"{error}: it did not come within {seconds:g} s (schemaWaitTimeout). Nothing "
                    "is lost: start the query again once the producer has sent it, or set "
                    "onMissingSchema=corrupt to have such rows as corrupt ones"
                )
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        if self._policy == "fail":
            raise SourceError(
                f"{error} (onMissingSchema=fail): it is neither in the schema store nor in the "
                "topic around the row; onMissingSchema=corrupt goes on without such rows"
            )
        self._give_up(wanted)
        return False

    def _newest(self, error: MissingSchemaError) -> TableSchema | None:
        """What is known of the table at the row, where any schema before it will do."""
        if error.exact:
            return None
        place = error.database, error.table, error.position
        try:
            return self._store.find(*place, schema=error.schema, stream=error.stream)
        except MissingSchemaError:
            # It is forgotten, so whatever is found now is new.
            return None

    def _look(self, wanted: _Wanted, message: Message, *, on: bool) -> Iterator[None]:
        """Learns what is told in one place after the other."""
        if isinstance(self._store, KeptSchemaStore):
            # The store has these already, and its folder.
            self._note_told(self._store.reload(*_table_of(wanted)))
            yield
        if not self._searched:
            self._searched = True
            self._search = self._open_search()
        if self._search is not None:
            for records in self._search.look(message.timestamp, on=on):
                for record in records:
                    self._store.add(record)
                    self._note_told([record])
                yield

    def _note_told(self, records: Iterable[SchemaRecord]) -> None:
        for record in records:
            name = _name_of(record)
            self._told.add(name, True, _size_of(name))

    def _open_search(self) -> SchemaSearch | None:
        if self._source is None or self._share is None:
            return None
        scan = open_schema_scan(self._options.values, self._options.codec)
        if scan is None:
            return None
        reach = self._options["schemaSearchMessages"]
        return self._source.schema_search(self._share, scan, reach)

    def _say(self, error: MissingSchemaError, message: Message, waited: float) -> None:
        age = ""
        if message.timestamp is not None:
            age = f"; the row is {time.time() - message.timestamp / 1000:.0f} s old"
        logger.warning("cdc: %s: looking for it for %.0f s%s", error, waited, age)

    # What was given up stays so.

    def _gave_up(self, wanted: _Wanted) -> bool:
        return (
            self._policy == "corrupt"
            and isinstance(self._store, KeptSchemaStore)
            and self._share is not None
            and self._store.directory.noted(self._lookup(wanted), *_table_of(wanted))
        )

    def _give_up(self, wanted: _Wanted) -> None:
        if isinstance(self._store, KeptSchemaStore) and self._share is not None:
            self._store.directory.note(self._lookup(wanted), *_table_of(wanted))

    def _lookup(self, wanted: _Wanted) -> str:
        assert self._share is not None
        return f"no schema in {dict(self._share.describe())} of {wanted}"


def _wanted(error: MissingSchemaError) -> _Wanted:
    # Where any schema before a row will do, rows that lack one do so together.
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
