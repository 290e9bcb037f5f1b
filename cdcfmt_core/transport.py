"""The plugin API for transports: :class:`TransportSpec`, its sources, sinks and drains."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import repeat
from typing import Any, Literal, Protocol, Self, TypeAlias, get_args

import attrs

from cdcfmt_core.errors import join_names
from cdcfmt_core.events import Message
from cdcfmt_core.lazy import function_of
from cdcfmt_core.offsets import OffsetRange, Offsets, TopicPartition
from cdcfmt_core.options import Option, Versioned, check_declared

Ability: TypeAlias = Literal["keys", "headers", "ordering", "transactions"]

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_PREFIX = re.compile(r"[a-z][a-z0-9-]*\.")


@attrs.frozen
class Check:
    """One finding of ``cdcfmt doctor``; ``remedy`` is what to do, as a command where possible."""

    subject: str
    state: Literal["ok", "warn", "bad"]
    text: str
    remedy: str = ""


@attrs.frozen
class MessageColumns:
    """Messages of one partition, in order, as columns of equal length."""

    topic: str
    partition: int
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[tuple[tuple[str, bytes | None], ...]]
    offsets: Sequence[int]
    timestamps: Sequence[int | None]
    epoch: int = 0

    def __iter__(self) -> Iterator[Message]:
        return map(
            Message,
            self.keys,
            self.values,
            self.headers,
            repeat(self.topic),
            repeat(self.partition),
            self.offsets,
            self.timestamps,
            repeat(None),
            repeat(self.epoch),
        )


class Progress(Protocol):
    """Computes the offsets of a stream's batches; runs only on the driver.

    An offset is a JSON dictionary with everything needed to read the batch that ends there; that
    of topics is a :class:`cdcfmt_toolkit.topics.StreamOffset`.
    """

    def advance(
        self, start: dict[str, Any], limit: int | None, least: int | None
    ) -> dict[str, Any]:
        """The end of the batch that begins at ``start``; ``start`` itself if nothing is new.

        Before a batch of an earlier run is read again, it is called on a new progress for the
        offsets after that batch, to check that the topics are still the same.

        ``limit``, ``least``: maximum and minimum number of offsets (of files, for an input of
        files) in a batch; None: no bound.

        :raises SourceError: if no broker answers, or offsets no longer exist.
        """

    def latest(self) -> dict[str, Any] | None:
        """The partition ends that :meth:`advance` last saw, for the query's metrics."""

    def stop_at_latest(self) -> None:
        """Stop at the partition ends that the first :meth:`advance` sees (AvailableNow)."""


class Source(Protocol):
    """Topics of a broker whose messages can be read repeatedly, by offset.

    It is pickled for the executors, and no text of it shows a secret.  If the broker does not
    answer, methods raise :class:`~cdcfmt_core.errors.SourceError` with the reason, in bounded time.
    """

    def check_batch(self) -> None:
        """:raises OptionError: for options that are not valid in a batch."""

    def check_stream(self) -> None:
        """:raises OptionError: for options that are not valid in a stream."""

    def check_whole_topics(self) -> None:
        """:raises OptionError: for options that select only some partitions of a topic."""

    def plan(self) -> list[OffsetRange]:
        """The ranges of a batch, one per partition, from the options' start to their end."""

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        """The offset for each EARLIEST, LATEST or time (milliseconds since the epoch).

        For a time: the offset of the first message at or after it; -1 if there is none.
        """

    def read(self, wanted: OffsetRange, counts: Counter[str] | None = None) -> Iterator[Message]:
        """The messages of a range, in order, the same on each call; ``counts``: lost messages."""

    def read_columns(
        self, wanted: OffsetRange, counts: Counter[str] | None = None
    ) -> Iterator[MessageColumns] | None:
        """The messages of :meth:`read` in batches; None if the source reads them one by one."""

    def ends(
        self, ranges: Sequence[OffsetRange], *, seconds: float | None = None
    ) -> Iterator[Message]:
        """The first and last messages of each range, lazily, within about ``seconds``."""

    def open_progress(self) -> Progress:
        """A :class:`Progress`, which finds the end of each batch of a stream."""

    def lenient(self) -> Self:
        """A copy that skips offsets that no longer exist: for searches, not for rows."""

    def begin_at(self, partition: int, offset: int) -> Self:
        """A copy for this partition only, from this offset; itself if it reads several topics."""


class Producer(Protocol):
    """Sends messages, in order within each partition; methods raise SinkError.

    Subclasses inherit :meth:`send_all`.
    """

    def send(self, message: Message) -> None:
        """Start sending a message to its ``partition``; None: the transport chooses one."""

    def send_all(
        self, keys: Iterable[bytes | None], values: Iterable[bytes], partitions: Iterable[int]
    ) -> None:
        """Start sending messages without headers."""
        for key, value, partition in zip(keys, values, partitions, strict=True):
            self.send(Message(key, value, partition=partition))

    def flush(self) -> None:
        """Wait until all messages are acknowledged."""


class Sink(Protocol):
    """A topic to write to.  It is pickled, and no text of it shows a secret."""

    def partitions(self) -> int:
        """The topic's number of partitions; SinkError if it cannot be written."""

    def open(self) -> AbstractContextManager[Producer]:
        """A producer; the block ends when all its messages are acknowledged, else SinkError."""


class Drain(Protocol):
    """A queue that removes acknowledged messages, so that each can be read only once.

    Used by one thread.  If the connection is lost or ``hold_seconds`` pass, the queue delivers
    unacknowledged messages again, to this or another consumer.  If it does not answer, methods
    raise :class:`~cdcfmt_core.errors.SourceError` with the reason, in bounded time.

    - ``queue``: the queue's name in texts and in the folder's commits, the same for every address,
      without secrets.
    - ``most``: maximum number of unacknowledged messages that the queue delivers.
    - ``hold_seconds``: maximum time a message may stay unacknowledged.
    """

    @property
    def queue(self) -> str: ...

    @property
    def most(self) -> int: ...

    @property
    def hold_seconds(self) -> float: ...

    def take(self, seconds: float) -> Sequence[Message]:
        """The next messages, as soon as there are any; empty after ``seconds`` without one."""

    def acknowledge(self) -> None:
        """Remove all messages taken so far from the queue."""

    def identity(self, message: Message) -> bytes | None:
        """An identity that only redeliveries of this message share; None if it has none.

        The message is one just taken, or one read back from a file, with the same ``key``,
        ``value``, ``headers``, ``topic``, ``partition`` and ``timestamp``, and ``offset`` if set.
        """


@attrs.frozen
class TransportSpec(Versioned):
    """A transport: its name, its options and how to open it for reading and writing.

    Every function may be given as a path, ``"package.module:function"``, which is imported on the
    first call.

    - ``title``: the name in texts.
    - ``abilities``: messages have ``keys`` or ``headers``, partitions keep their order
      (``ordering``), only committed messages are read (``transactions``).
    - ``prefix``: the prefix of its client's options, ``NAME.`` by default.
    - ``options``, ``sink_options``, ``drain_options``: its other options, for reading, for writing
      and for ``cdcfmt drain``.
    - ``chosen_by``: options of which one is enough to choose this transport.
    - ``open_source(values, settings)``, ``open_sink(values, settings)``: ``values`` are validated
      options by declared name, ``settings`` those of the client without prefix, in lower case.
    - ``open_input(values, settings)``: instead of ``open_source``, for a transport without offsets
      per partition: a :class:`cdcfmt_toolkit.inputs.Input`.
    - ``open_drain(values, settings)``: connects; the connection is closed at the block's end.
    - ``options_of_url(url)``: the options for an address ``NAME://…`` on the command line.
    - ``diagnose(address)``: the checks of ``cdcfmt doctor --NAME ADDRESS``: connection, login,
      topics.
    """

    name: str
    title: str
    summary: str
    abilities: frozenset[Ability]
    prefix: str = attrs.field(default=attrs.Factory(lambda self: f"{self.name}.", takes_self=True))
    options: tuple[Option, ...] = ()
    sink_options: tuple[Option, ...] = ()
    drain_options: tuple[Option, ...] = ()
    chosen_by: tuple[str, ...] = ()
    open_source: Callable[[Mapping[str, Any], Mapping[str, str]], Source] | None = attrs.field(
        default=None, converter=function_of
    )
    open_input: Callable[[Mapping[str, Any], Mapping[str, str]], object] | None = attrs.field(
        default=None, converter=function_of
    )
    open_sink: Callable[[Mapping[str, Any], Mapping[str, str]], Sink] | None = attrs.field(
        default=None, converter=function_of
    )
    open_drain: (
        Callable[[Mapping[str, Any], Mapping[str, str]], AbstractContextManager[Drain]] | None
    ) = attrs.field(default=None, converter=function_of)
    options_of_url: Callable[[str], Mapping[str, str]] | None = attrs.field(
        default=None, converter=function_of
    )
    diagnose: Callable[[str], Iterable[Check]] | None = attrs.field(
        default=None, converter=function_of
    )
    api_version: int = attrs.field(kw_only=True)

    def __attrs_post_init__(self) -> None:
        """:raises ValueError: for invalid names and options, and for unknown abilities."""
        owner = f"transport {self.name}"
        if _NAME.fullmatch(self.name) is None:
            raise ValueError(
                f"transport {self.name!r}: use lower-case letters, digits and dashes between"
            )
        if _PREFIX.fullmatch(self.prefix) is None:
            raise ValueError(f"{owner}: the prefix {self.prefix!r} is not a name followed by a dot")
        if isinstance(self.chosen_by, str) or not isinstance(self.abilities, frozenset | set):
            raise TypeError(f"{owner}: chosen_by must be a tuple, abilities a frozenset")
        if other := self.abilities - set(get_args(Ability)):
            raise ValueError(f"{owner}: unknown abilities: {join_names(other)}")
        for options in (self.options, self.sink_options, self.drain_options):
            check_declared(options, owner)
        declared = {option.name for option in (*self.options, *self.sink_options)}
        if unknown := set(self.chosen_by) - declared:
            raise ValueError(f"{owner}: chosen_by names unknown options: {join_names(unknown)}")
        if not (self.open_source or self.open_input or self.open_sink or self.open_drain):
            raise ValueError(f"{owner}: declare open_source, open_input, open_sink or open_drain")
