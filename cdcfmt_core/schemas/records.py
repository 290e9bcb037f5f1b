"""Table schemas and DDL statements with their positions, and where a store keeps and finds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol, Self, TypeVar

import attrs

from cdcfmt_core.caches import TableKey
from cdcfmt_core.events import TableSchema
from cdcfmt_core.schemas.versions import Position

_M = TypeVar("_M")

_ONE_MILLISECOND: Final = 1 << 18


@attrs.frozen
class Statement:
    """A DDL statement.

    - ``start``, ``end``: rows before ``start`` are older, rows from ``end`` on are newer; for rows
      between, the order is unknown.  Both are numbers that order rows, such as a commit_ts.
    - ``database``, ``table``: the names in the message.
    """

    query: str
    database: str
    table: str
    start: int
    end: int

    @classmethod
    def after(
        cls, query: str, database: str, table: str, commit_ts: int | None, milliseconds: int | None
    ) -> Self | None:
        """The statement, in force after its commit_ts; None if it has no position.

        :param milliseconds: the start of the statement's millisecond as a commit_ts, if only that
            is known.
        """
        if commit_ts is not None:
            # Producers send rows with the statement's own commit_ts before the statement.
            return cls(query, database, table, commit_ts + 1, commit_ts + 1)
        if milliseconds is None:
            return None
        return cls(query, database, table, milliseconds, milliseconds + _ONE_MILLISECOND)


@attrs.frozen
class SchemaRecord:
    """A table schema that is valid from ``position`` on, in the stream named ``stream``."""

    table: TableSchema
    position: Position
    stream: str = ""


@attrs.frozen
class Note:
    """A note about a table: which schema was searched, where, and by which query.

    A task that reads the same messages again obeys it, even if schemas were added since.

    :ivar batch: the name of a query, and a number that grows with its batches.
    """

    text: str
    database: str
    table: str
    schema: str | None = None
    batch: tuple[str, int] | None = None


class Persistence(Protocol):
    """Schemas beyond the memory of one process; it can be pickled.

    Every method raises SourceError if the schemas cannot be read or written.
    """

    def save(self, record: SchemaRecord) -> object:
        """Keep a schema."""

    def load(self, database: str, table: str, schema: str | None = None) -> Sequence[SchemaRecord]:
        """All schemas of one table, in no particular order."""

    def note(self, note: Note) -> None:
        """Keep a note; those of earlier batches of its query may be dropped."""

    def keep(self, folder: str, data: bytes) -> object:
        """Keep data of a format, once, with others of the same relative folder."""

    def kept(self, folder: str) -> Sequence[bytes]:
        """The data kept in a folder, in no particular order."""

    def noted(self, note: Note) -> bool:
        """Whether the note is kept."""


class Search(Protocol):
    """A search for the schemas of a table, when its first row needs them.

    The first two methods add what they find to the store, and do nothing the second time.
    """

    def find_nearest(self, key: TableKey, position: Position | None) -> None:
        """Find the schema that is nearest before the position."""

    def find_first(self, key: TableKey, position: Position | None) -> None:
        """Find a schema at or before the position, however far back."""

    def follow(self, messages: Iterable[_M]) -> Iterator[_M]:
        """The messages that are read; before each one, it may add schemas that precede it."""


class LookupLog(Protocol):
    """Records which tables' schemas were requested from a store, and added to it."""

    def record_lookup(self, key: TableKey) -> None: ...

    def record_addition(self, key: TableKey) -> None: ...
