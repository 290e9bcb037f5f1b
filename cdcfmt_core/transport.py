"""What a transport is to cdcfmt: a :class:`TransportSpec`, its sources, sinks and drains."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import repeat
from typing import Any, Literal, Protocol, Self, TypeAlias, get_args

import attrs

from cdcfmt_core.codec import API_VERSION
from cdcfmt_core.errors import PluginApiError, join_names
from cdcfmt_core.events import Message
from cdcfmt_core.lazy import function_of
from cdcfmt_core.offsets import OffsetRange, Offsets, TopicPartition
from cdcfmt_core.options import Option

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

    def as_json(self) -> dict[str, Any]:
        return attrs.asdict(self)


@attrs.frozen
class MessageColumns:
    """Messages of one partition, in order: each list has one value for each of them."""

    topic: str
    partition: int
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[tuple[tuple[str, bytes | None], ...]]
    offsets: Sequence[int]
    timestamps: Sequence[int | None]

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
        )


class Progress(Protocol):
    """Moves a stream from offset to offset; on the driver alone.

    An offset is JSON of a dictionary (:class:`cdcfmt_core.io.topics.StreamOffset`) and holds all
    that reading the batch that ends there takes.
    """

    def advance(
        self, start: dict[str, Any], limit: int | None, least: int | None
    ) -> dict[str, Any]:
        """The end of the batch that follows ``start``; ``start`` itself if nothing is new.

        ``limit`` is the most, ``least`` the fewest offsets of a batch; None for no bound.

        :raises SourceError: if no broker answers, or offsets are gone.
        """

    def latest(self) -> dict[str, Any] | None:
        """The ends of the partitions, as :meth:`advance` saw them last; for the query's metrics."""

    def stop_at_latest(self) -> None:
        """Read no further than to what is there at the first :meth:`advance` (AvailableNow)."""


class Source(Protocol):
    """Topics of a broker whose messages can be read again by their offsets.

    It is pickled, as executors read with it, and no text of it shows a secret.  Methods that ask
    a broker raise :class:`~cdcfmt_core.errors.SourceError`, in bounded time, that says why there
    is no answer.
    """

    def check_batch(self) -> None:
        """:raises OptionError: for options that make no sense in a batch."""

    def check_stream(self) -> None:
        """:raises OptionError: for options that make no sense in a stream."""

    def check_whole_topics(self) -> None:
        """:raises OptionError: for options that choose some partitions of a topic."""

    def plan(self) -> list[OffsetRange]:
        """The ranges of a batch, one of each partition, from the options' start to their end."""

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        """An offset for each EARLIEST, LATEST or time (milliseconds since the epoch).

        Of a time: that of the first message of this time or later; -1 where there is none.
        """

    def read(self, wanted: OffsetRange, counts: Counter[str] | None = None) -> Iterator[Message]:
        """The messages of a range, in order, each time the same; ``counts`` takes what is lost."""

    def read_columns(
        self, wanted: OffsetRange, counts: Counter[str] | None = None
    ) -> Iterator[MessageColumns] | None:
        """What :meth:`read` gives, many messages at a time; None where they come one by one."""

    def ends(
        self, ranges: Sequence[OffsetRange], *, seconds: float | None = None
    ) -> Iterator[Message]:
        """The first and last messages of each range, lazily, in about ``seconds`` at most."""

    def open_progress(self) -> Progress:
        """What finds the end of each batch of a stream."""

    def lenient(self) -> Self:
        """The same, which passes over offsets that are gone: for searches, not for rows."""

    def begin_at(self, partition: int, offset: int) -> Self:
        """This partition alone, from this offset on; the same where it reads several topics."""


class Producer(Protocol):
    """Sends messages, in order within each partition; methods raise SinkError.

    A class that inherits from it has :meth:`send_all`.
    """

    def send(self, message: Message) -> None:
        """Put a message on its way; its ``partition`` is set, or the transport chooses one."""

    def send_all(
        self,
        keys: Iterable[bytes | None],
        values: Iterable[bytes],
        partitions: Iterable[int],
    ) -> None:
        """Put messages without headers on their way."""
        for key, value, partition in zip(keys, values, partitions, strict=True):
            self.send(Message(key, value, partition=partition))

    def flush(self) -> None:
        """Wait until all messages are acknowledged."""


class Sink(Protocol):
    """A topic to write to.  It is pickled, and no text of it shows a secret."""

    def partitions(self) -> int:
        """How many partitions the topic has; SinkError where it cannot be written."""

    def open(self) -> AbstractContextManager[Producer]:
        """A producer; at the end all its messages are acknowledged, else SinkError."""


class Drain(Protocol):
    """A queue whose messages can be taken once: what is acknowledged is gone.

    One thread uses it.  What is taken and not acknowledged comes again, to this consumer or
    another one, once the connection is lost or ``hold_seconds`` are over.  Methods raise
    :class:`~cdcfmt_core.errors.SourceError`, in bounded time, that says why there is no answer.

    - ``queue``: the name that the queue has in texts and in the folder's commits: the same from
      any address, without secrets.
    - ``most``: how many messages the queue gives before it waits for their acknowledgement.
    - ``hold_seconds``: how long a message may stay unacknowledged.
    """

    @property
    def queue(self) -> str: ...

    @property
    def most(self) -> int: ...

    @property
    def hold_seconds(self) -> float: ...

    def take(self, seconds: float) -> Sequence[Message]:
        """The next messages as soon as there are any; none if none came for so long."""

    def acknowledge(self) -> None:
        """Remove from the queue all messages that were taken so far."""

    def identity(self, message: Message) -> bytes | None:
        """What only repetitions of this message have as well; None if it has no such thing.

        It is asked of messages that were taken, and of those that a file gave back: ``key``,
        ``value``, ``headers``, ``topic``, ``partition`` and ``timestamp`` are the same then, and
        ``offset`` where it was set.
        """


@attrs.frozen
class TransportSpec:
    """A transport: its name, its options and how to open its ends.

    Every function may be given by its path, ``"package.module:function"``; it is imported when it
    is first called.

    - ``title``: the name in texts.
    - ``abilities``: what messages have beside a value (``keys``, ``headers``), whether a partition
      keeps their order (``ordering``), and whether only committed ones are read (``transactions``).
    - ``prefix``: how the options of its client begin, ``NAME.`` by default.
    - ``options``, ``sink_options``, ``drain_options``: the others, for reading, for writing and
      for ``cdcfmt drain``.
    - ``chosen_by``: those among them of which one alone asks for this transport.
    - ``open_source(values, settings)``, ``open_sink(values, settings)``: ``values`` are validated
      options by declared name, ``settings`` those of the client without prefix, in lower case.
    - ``open_drain(values, settings)``: connects; at the end of the block, the connection is closed.
    - ``options_of_url(url)``: the options that the address ``NAME://…`` stands for, on the
      command line.
    - ``explain(address)``: for ``cdcfmt doctor --NAME ADDRESS``: reach, login, topics.
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
    open_sink: Callable[[Mapping[str, Any], Mapping[str, str]], Sink] | None = attrs.field(
        default=None, converter=function_of
    )
    open_drain: (
        Callable[[Mapping[str, Any], Mapping[str, str]], AbstractContextManager[Drain]] | None
    ) = attrs.field(default=None, converter=function_of)
    options_of_url: Callable[[str], Mapping[str, str]] | None = attrs.field(
        default=None, converter=function_of
    )
    explain: Callable[[str], Iterable[Check]] | None = attrs.field(
        default=None, converter=function_of
    )
    api_version: int = API_VERSION

    def __new__(cls, *_: Any, api_version: int = API_VERSION, **__: Any) -> Self:
        """:raises PluginApiError: for another API, whose arguments may be unknown here."""
        if api_version != API_VERSION:
            raise PluginApiError(f"plugin API {api_version}, this cdcfmt-core has {API_VERSION}")
        return super().__new__(cls)

    def __attrs_post_init__(self) -> None:
        """:raises ValueError: for names that users cannot write, and unknown abilities."""
        owner = f"transport {self.name}"
        if _NAME.fullmatch(self.name) is None:
            raise ValueError(
                f"transport {self.name!r}: a name has lower-case letters, digits and dashes between"
            )
        if _PREFIX.fullmatch(self.prefix) is None:
            raise ValueError(f"{owner}: the prefix {self.prefix!r} is not a name with a dot behind")
        if other := self.abilities - set(get_args(Ability)):
            raise ValueError(f"{owner}: unknown abilities: {join_names(other)}")
        for options in (self.options, self.sink_options, self.drain_options):
            names = Counter(option.name.lower() for option in options)
            if twice := [name for name, count in names.items() if count > 1]:
                raise ValueError(f"{owner}: options declared twice: {join_names(twice)}")
        declared = {option.name for option in (*self.options, *self.sink_options)}
        if unknown := set(self.chosen_by) - declared:
            raise ValueError(f"{owner}: chosen by options that it lacks: {join_names(unknown)}")
        if not (self.open_source or self.open_sink or self.open_drain):
            raise ValueError(f"{owner}: it has none of open_source, open_sink and open_drain")
