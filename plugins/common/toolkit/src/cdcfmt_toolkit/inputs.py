"""Inputs: files and topics as engines read them, divided into slices.

A broker needs only a :class:`~cdcfmt_core.transport.Source`, of which
:class:`~cdcfmt_toolkit.topic_input.TopicInput` makes an input.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, Literal

import attrs

from cdcfmt_core.codec import MarkedScan, ScanSchemas
from cdcfmt_core.errors import DecodeError, OptionError
from cdcfmt_core.events import Message
from cdcfmt_core.schemas.records import Search
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.transport import Progress
from cdcfmt_toolkit.topics.schema_search import SchemaSearch


@attrs.frozen
class BadLine:
    """A line of a file without a valid message.

    - ``error``: the reason, with file and offset.
    - ``offset``: the line's byte offset in the uncompressed file.
    - ``value``: the line, or its part before the file was cut off; None if it is too long.
    """

    error: DecodeError
    path: str | None
    offset: int | None
    value: bytes | None


@attrs.frozen
class Slice:
    """A part of an input, which one task reads in order; each kind of input has a subclass.

    - ``schemas``: the table schemas found before it.
    - ``low_watermark``: row changes with a smaller commit_ts are duplicates (``deduplicate``).
    """

    schemas: SchemaStore = attrs.field(factory=SchemaStore, kw_only=True, eq=False)
    low_watermark: int = attrs.field(default=0, kw_only=True)

    @property
    def size(self) -> int:
        """Its size, in the input's ``unit``."""
        return 0

    @property
    def paths(self) -> Sequence[str]:
        """The files that it is in; none for topics."""
        return ()

    def describe(self) -> Mapping[str, object]:
        """The place in the input, for the task's log line."""
        return {}

    def batch(self) -> tuple[str, int] | None:
        """In streams of topics, the partition, and the start of the batch in it."""
        return None

    def last(self, size: int) -> Slice | None:
        """Its end, of this size in the input's ``unit``; None if only all of it can be read."""
        return None


class Input(ABC):
    """Files or topics, as engines read them: divided into slices.

    It is pickled for the executors, and no text of it shows a secret.  Plans, checks and searches
    raise :class:`~cdcfmt_core.errors.SourceError` for a path or topic that does not exist, and if
    a broker does not answer.
    """

    unit: ClassVar[Literal["bytes", "messages"]] = "messages"
    """The unit of the slices' sizes."""
    can_search: ClassVar[bool] = False
    """Whether a task finds table schemas outside of its slice (:meth:`open_search`)."""

    def check(self) -> None:  # noqa: B027
        """Check, without a plan, that the input exists."""

    def check_stream(self) -> None:  # noqa: B027
        """:raises OptionError: for options that are not valid in a stream."""

    def check_duplicates(self) -> None:
        """:raises OptionError: if duplicates cannot be dropped by watermarks."""
        raise OptionError(
            "option deduplicate is for topics: files do not have the watermarks before them"
        )

    @abstractmethod
    def plan(self) -> list[Slice]:
        """The whole files or partitions of a batch, also empty ones; runs on the driver.

        :raises OptionError: for options that are not valid in a batch.
        """

    @abstractmethod
    def divide(self, slices: Sequence[Slice], pieces: int | None = None) -> list[Slice]:
        """The slices of tasks, from those of :meth:`plan` or :meth:`batch`, without empty ones.

        :param pieces: for one process that reads all slices, in order: about how many parts of
            files are enough.  None: as the options say.
        """

    def with_low_watermarks(
        self, slices: Sequence[Slice], watermark_of: Callable[[Message], int | None]
    ) -> Sequence[Slice]:
        """The slices of :meth:`plan` or :meth:`batch`, with their ``low_watermark``.

        :param watermark_of: returns the commit_ts of the last watermark in a message.
        """
        return slices

    @abstractmethod
    def read(
        self,
        slice_: Slice,
        counts: Counter[str] | None = None,
        marks: Sequence[bytes] = (),
    ) -> Iterator[Message | BadLine]:
        """Stream the messages of a slice in order.

        :param counts: counts skipped messages.
        :param marks: messages whose values contain none of these bytes may be skipped.
        """

    @abstractmethod
    def read_many(self, slice_: Slice, counts: Counter[str] | None = None) -> Iterator[Any]:
        """Like :meth:`read`, with many messages per item: columns, or a block of lines."""

    @abstractmethod
    def ends(
        self, slices: Sequence[Slice], *, seconds: float | None = None, thorough: bool = True
    ) -> Iterator[Message | BadLine]:
        """The first and last messages of every file or topic partition of ``slices``, lazily.

        May repeat a message.

        :param seconds: approximate maximum time.
        :param thorough: also read the last compressed files, which must be read completely.
        """

    def read_all(self, slices: Iterable[Slice]) -> Iterator[Message | BadLine]:
        """The messages of all slices."""
        return chain.from_iterable(map(self.read, slices))

    @abstractmethod
    def scanned(
        self, slices: Sequence[Slice], scan: MarkedScan[Any]
    ) -> Iterator[Message | BadLine]:
        """The messages of all slices that may have schemas."""

    def schema_search(self, slice_: Slice, scan: ScanSchemas, reach: int) -> SchemaSearch | None:
        """A search for table schemas around a slice; None for inputs without one."""
        return None

    def open_search(
        self, slice_: Slice, store: SchemaStore, scan: ScanSchemas, reach: int, run: str | None
    ) -> Search | None:
        """A search of a stream's task around its slice; None for inputs without one.

        :param store: gets what is found.
        :param run: identifies the query across restarts.
        """
        return None

    @abstractmethod
    def limits(self) -> tuple[int | None, int | None]:
        """The ``limit`` and ``least`` of :meth:`Progress.advance` that the options set."""

    @abstractmethod
    def open_progress(self) -> Progress:
        """A :class:`Progress`, which finds the end of each batch of a stream."""

    @abstractmethod
    def batch(
        self, start: dict[str, Any], end: dict[str, Any], check: Progress | None = None
    ) -> list[Slice]:
        """Like :meth:`plan`, for a stream's batch, by its offsets: always the same messages.

        :param check: checks a batch of an earlier run: its topics may have been recreated since.
        """

    def begin_at(self, partition: int, offset: int) -> Input:
        """A copy for this partition only, from this offset; itself if it reads several topics."""
        return self
