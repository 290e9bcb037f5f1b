"""The transport under test: its spec, its broker, and sources and sinks for them."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, TypeVar

import attrs

from cdcfmt_core.errors import CdcfmtError
from cdcfmt_core.events import Message
from cdcfmt_core.offsets import OffsetRange
from cdcfmt_core.options import Option
from cdcfmt_core.transport import Sink, Source, TransportSpec
from cdcfmt_testing.limits import time_limit
from cdcfmt_testing.outcome import expect
from cdcfmt_testing.transports.harness import Harness, NotOfferedError
from cdcfmt_toolkit import transport_opening

_HEADERS: Final = (("first", b"1"), ("second", b"\x00\xff"))

SAMPLES: Final = {
    "usual": Message(b'{"id":1}', b'{"id":1,"name":"a"}', _HEADERS, partition=0),
    "any bytes": Message(b"k", bytes(range(256)) * 8, partition=0),
    "binary key": Message(bytes(range(256)), b"v", partition=0),
    "no key": Message(None, b"v", partition=0),
    "empty key": Message(b"", b"v", partition=0),
    "empty value": Message(b"k", b"", partition=0),
    "no value": Message(b"k", None, partition=0),
    "empty header": Message(b"k", b"v", (("empty", b""),), partition=0),
    "header without value": Message(b"k", b"v", (("none", None),), partition=0),
    "headers of one name": Message(b"k", b"v", (("h", b"1"), ("h", b"2")), partition=0),
    "header in Unicode": Message(b"k", b"v", (("größe 数", b"1"),), partition=0),
    "large value": Message(b"k", bytes(range(251)) * 3_000, partition=0),
}
"""The samples by name.  Without its ability, keys or headers are removed."""


SECONDS = 30.0
"""Maximum seconds for one request to a broker, or for reading a few messages."""

_T = TypeVar("_T")

Content = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
"""Key, value and headers."""

LOST: Final = "offsets lost"
"""The count of lost offsets, if the user accepts lost messages."""


class TransportSubject:
    """A transport under test."""

    def __init__(self, spec: TransportSpec, harness: Harness) -> None:
        self.spec = spec
        self.harness = harness

    def source(self, topic: str, more: Mapping[str, str] = {}) -> Source:
        """A source that reads a topic from its beginning; ``more``: options as users spell them.

        :raises NotOfferedError: for a transport that cannot be read repeatedly.
        """
        spec = self.spec
        if spec.open_source is None:
            raise NotOfferedError(f"{spec.name} has no source with ranges of offsets")
        given = {**self.harness.reading(topic), **_known(spec, spec.options, more)}
        return transport_opening.open_source(spec, *transport_opening.split_options(spec, given))

    def sink(self, topic: str, more: Mapping[str, str] = {}) -> Sink:
        """A sink that writes to a topic; ``more``: options as users spell them.

        :raises NotOfferedError: for a read-only transport.
        """
        spec = self.spec
        if spec.open_sink is None:
            raise NotOfferedError(f"{spec.name} is read-only")
        given = {**self.harness.writing(topic), **_known(spec, spec.sink_options, more)}
        return transport_opening.open_sink(
            spec, *transport_opening.split_options(spec, given, writing=True)
        )

    def carried(self, message: Message) -> Message:
        """The message, without key or headers if the transport lacks that ability."""
        abilities = self.spec.abilities
        return attrs.evolve(
            message,
            key=message.key if "keys" in abilities else None,
            headers=message.headers if "headers" in abilities else (),
        )

    def numbered(self, count: int, *, partition: int = 0, start: int = 0) -> list[Message]:
        """Distinct messages of a partition."""
        return [
            self.carried(
                Message(
                    b"k%d" % n,
                    b'{"partition":%d,"n":%d}' % (partition, n),
                    (("n", b"%d" % n),),
                    partition=partition,
                )
            )
            for n in range(start, start + count)
        ]

    def filled_topic(self, partitions: int, each: int) -> str:
        """A new topic with :meth:`numbered` messages in each partition."""
        topic = self.harness.create_topic(partitions)
        for partition in range(partitions):
            self.harness.append(topic, self.numbered(each, partition=partition))
        return topic

    def plan(self, source: Source) -> list[OffsetRange]:
        """The ranges of a batch."""
        with self.in_time("plan()"):
            return source.plan()

    def whole(self, source: Source, partition: int = 0) -> OffsetRange:
        """The range of a partition in a batch."""
        found = [each for each in self.plan(source) if each.partition == partition]
        expect(len(found) == 1, f"plan() has {len(found)} ranges of partition {partition}, not 1")
        return found[0]

    def read(
        self, source: Source, wanted: OffsetRange, counts: Counter[str] | None = None
    ) -> list[Message]:
        """The messages of a range; checks that their positions are correct."""
        where = show(wanted)
        with self.in_time(f"reading {where}"):
            found = list(source.read(wanted, counts))
        last = wanted.start - 1
        for message in found:
            place = message.topic, message.partition
            expect(
                place == (wanted.topic, wanted.partition),
                f"{where} returns a message of {place[0]}-{place[1]}",
            )
            expect(message.offset is not None, f"{where} returns a message without an offset")
            offset = message.offset or 0
            expect(
                offset > last, f"{where}: offset {offset} comes after {last}, expected a later one"
            )
            expect(
                offset < wanted.end, f"{where} returns offset {offset}, which is not before its end"
            )
            last = offset
        return found

    def read_all(self, source: Source) -> list[Message]:
        """The messages of a batch, partition by partition."""
        return [message for each in self.plan(source) for message in self.read(source, each)]

    def in_time(self, what: str) -> AbstractContextManager[None]:
        """AssertionError if the block hangs."""
        return time_limit(what, SECONDS)

    def error(self, what: str, call: Callable[[], object], wanted: type[CdcfmtError]) -> str:
        """The text of the error that a call must raise, in time."""
        with self.in_time(what):
            try:
                result = call()
            except wanted as error:
                copy = pickle.loads(pickle.dumps(error))
                expect(str(copy) == str(error), f"{what}: its error changes when pickled: {copy}")
                return str(error)
            except Exception as error:
                raise AssertionError(
                    f"{what} raises {error!r}, expected {wanted.__name__}"
                ) from error
        raise AssertionError(f"{what} returns {result!r:.300}, expected {wanted.__name__}")

    def expect_remedy(self, what: str, text: str) -> None:
        """The text of an error must name an option for the user to correct."""
        options = (*self.spec.options, *self.spec.sink_options)
        names = {self.spec.prefix, *(option.name for option in options)}
        expect(
            any(name in text for name in names),
            f"{what}: the error names no option to look at: {text}",
        )

    def expect_same(self, sent: Iterable[Message], found: Iterable[Message], where: str) -> None:
        """The found messages are those sent, each once, in order if the transport keeps it."""
        expected, got = [content(m) for m in sent], [content(m) for m in found]
        if "ordering" not in self.spec.abilities:
            expected, got = sorted(expected, key=repr), sorted(got, key=repr)
        if expected == got:
            return
        missing, more = Counter(expected) - Counter(got), Counter(got) - Counter(expected)
        pairs = zip(expected, got, strict=False)
        shorter = min(len(expected), len(got))
        at = next((n for n, (one, other) in enumerate(pairs) if one != other), shorter)
        raise AssertionError(
            f"{where}: expected {len(expected)} messages, got {len(got)}; missing: "
            f"{_some(missing)}; too many or changed: {_some(more)}; they differ from number {at} "
            f"on: expected {_nth(expected, at)}, got {_nth(got, at)}"
        )


def _known(
    spec: TransportSpec, options: Iterable[Option], given: Mapping[str, str]
) -> dict[str, str]:
    """The given options that the transport has for this direction."""
    names = {option.name.lower() for option in options}
    return {
        name: value
        for name, value in given.items()
        if name.lower() in names or name.lower().startswith(spec.prefix)
    }


def content(message: Message) -> Content:
    """A message's content, without position and time."""
    return message.key, message.value, message.headers


def show(wanted: OffsetRange) -> str:
    """A range as text for errors."""
    return f"{wanted.topic}-{wanted.partition}, offsets {wanted.start} to {wanted.end - 1}"


def _some(contents: Counter[Content]) -> str:
    shown = ", ".join(f"{each!r:.200}" for each in list(contents.elements())[:3])
    return f"{shown or 'none'} ({contents.total()})"


def _nth(contents: Sequence[Content], at: int) -> str:
    return f"{contents[at]!r:.200}" if at < len(contents) else "no more"
