"""The input of a task, and its counts and findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC

import attrs
from pyspark.sql.types import StructType

from cdcfmt_core.codec import Projection
from cdcfmt_core.errors import MissingSchemaError
from cdcfmt_core.events import Message
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.schemas.store import SchemaStore
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.rows.policy import ValuePolicy


@attrs.frozen(eq=False)
class ReadTask:
    """The input of a task.  The driver makes it, and Spark sends it to the executors.

    :ivar schema: schema of the rows.
    :ivar inferred: whether ``schema`` was inferred, not given by the user; a column that it lacks
        is then a schema change, not a projection.
    :ivar event_filter: the events to decode; by default those of the options.
    :ivar schemas: table schemas found before decoding.
    :ivar low_watermark: row changes with a smaller commit_ts are dropped as duplicates.
    """

    schema: StructType
    options: ReadOptions
    inferred: bool = False
    event_filter: EventFilter = attrs.field()
    schemas: SchemaStore = attrs.field(factory=SchemaStore)
    low_watermark: int = 0

    @event_filter.default
    def _filter_of_options(self) -> EventFilter:
        event_filter = self.options.event_filter()
        # A statement of another table may empty the wanted one.
        event_filter.every_statement = self.options.table is not None
        return event_filter

    @property
    def projection(self) -> Projection:
        """The images and columns to decode; valid on executors only (see ``case_sensitive``)."""
        options = self.options
        columns = None
        if options["images"] == "none":
            columns = frozenset[str]()
        elif options.table is not None and not self.inferred:
            columns = frozenset(self.schema.names)
        return Projection(
            columns,
            options["images"] == "both",
            tuple(options["keyColumns"]),
            options.case_sensitive,
        )


@attrs.define(eq=False)
class TaskState:
    """What one run of a task counts and learns.

    :ivar event_filter: the task's filter, with counts of its own.
    :ivar policy: handling of values that types cannot hold.
    :ivar find_schema: searches the table schema that a row lacks; whether the store now has it.
        None if there is no place to search.
    :ivar zoneless: databases and tables with TIMESTAMP columns of an unknown time zone.
    """

    event_filter: EventFilter
    policy: ValuePolicy
    find_schema: Callable[[MissingSchemaError, Message], bool] | None = None
    zoneless: set[tuple[str, str]] = attrs.field(factory=set)

    @classmethod
    def of(
        cls,
        task: ReadTask,
        find_schema: Callable[[MissingSchemaError, Message], bool] | None = None,
    ) -> TaskState:
        """The state at the start of a task."""
        options = task.options
        policy = ValuePolicy(
            options["invalidValues"],
            options["invalidText"],
            UTC if options["sourceTimeZone"] is None else options["sourceTimeZone"],
        )
        return cls(attrs.evolve(task.event_filter), policy, find_schema)

    @property
    def counts(self) -> Counter[str]:
        """Counts of changed messages and values, by description of the change."""
        return self.policy.counts

    def note_zoneless(self, database: str, table: str) -> None:
        self.zoneless.add((database, table))
