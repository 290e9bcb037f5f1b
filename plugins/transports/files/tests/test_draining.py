"""Draining a queue into a folder: acknowledged messages are committed, and none is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import attrs
import pytest

from cdcfmt_core.errors import SinkError, SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.transport import Drain
from cdcfmt_files.draining import DRAINING_OPTIONS, MESSAGES, REPEATED, Draining
from cdcfmt_files.sinks import FileSink
from cdcfmt_files.sources import FileSplit, list_files, read_split

DEFAULTS = {option.name: option.default for option in DRAINING_OPTIONS}
QUICK = {**DEFAULTS, "idle": timedelta(0)}
FOLLOW = {**DEFAULTS, "follow": True}


@attrs.define(slots=False)
class Queue:
    """A queue in memory: unacknowledged messages are delivered again at the next opening.

    ``fails`` are the calls of acknowledge() and take() that raise, by number.
    """

    messages: list[Message]
    most: int = 3
    hold_seconds: float = 60.0
    queue: str = "orders"
    with_ids: bool = True
    fails: dict[str, list[int]] = attrs.field(factory=dict)
    calls: dict[str, int] = attrs.field(factory=dict)
    taken: int = 0

    @contextmanager
    def open(self) -> Iterator[Drain]:
        self._called("open")
        self.taken = 0
        yield self

    def take(self, seconds: float) -> Sequence[Message]:
        self._called("take")
        assert self.taken < self.most, "more than may be unacknowledged"
        found = self.messages[self.taken : self.taken + 1]
        self.taken += len(found)
        return found

    def acknowledge(self) -> None:
        self._called("acknowledge")
        del self.messages[: self.taken]
        self.taken = 0

    def identity(self, message: Message) -> bytes | None:
        return dict(message.headers)["id"] if self.with_ids else None

    def _called(self, name: str) -> None:
        self.calls[name] = self.calls.get(name, 0) + 1
        if self.calls[name] in self.fails.get(name, ()):
            raise SourceError(f"{name} {self.calls[name]} fails")


def numbered(count: int) -> list[Message]:
    return [
        Message(b"k%d" % n, b"v%d" % n, (("id", b"%d" % n), ("none", None)), "orders", timestamp=n)
        for n in range(count)
    ]


def drain(queue: Queue, folder: Path, values: Mapping[str, object] = QUICK) -> Mapping[str, int]:
    draining = Draining(queue.open, FileSink(str(folder)), values)
    draining.run()
    return draining.counts


def content(folder: Path) -> list[Message]:
    """The messages found by a reader, without fields of files."""
    return [
        attrs.evolve(message, path=None, offset=None)
        for file in list_files(str(folder))
        for message in read_split(FileSplit(file.path, 0, None, file.size))
        if isinstance(message, Message)
    ]


def test_messages_are_drained_completely_and_in_order(tmp_path: Path) -> None:
    queue = Queue(numbered(10))
    assert drain(queue, tmp_path) == {MESSAGES: 10}
    assert not queue.messages
    assert queue.calls["acknowledge"] == 4
    queue.messages = numbered(12)[10:]
    drain(queue, tmp_path)
    assert content(tmp_path) == numbered(12)


@pytest.mark.parametrize("fails", [{"acknowledge": [2]}, {"take": [5]}, {"take": [3]}], ids=str)
def test_failures_neither_lose_nor_duplicate_messages(
    tmp_path: Path, fails: dict[str, list[int]]
) -> None:
    queue = Queue(numbered(10), fails=fails)
    with pytest.raises(SourceError, match="fails"):
        drain(queue, tmp_path)
    kept = len(content(tmp_path))
    assert kept in (0, 3, 6)
    counts = drain(queue, tmp_path)
    assert counts[MESSAGES] == 10 - kept
    assert counts[REPEATED] == (3 if "acknowledge" in fails else 0)
    assert content(tmp_path) == numbered(10)


def test_without_identities_it_is_at_least_once(tmp_path: Path) -> None:
    queue = Queue(numbered(4), with_ids=False, fails={"acknowledge": [1]})
    with pytest.raises(SourceError):
        drain(queue, tmp_path)
    drain(queue, tmp_path)
    assert content(tmp_path) == numbered(3) + numbered(4)


def test_drain_survives_loss_of_its_broker(tmp_path: Path) -> None:
    queue = Queue(numbered(7), fails={"take": [3, 9], "open": [3], "acknowledge": [2]})
    draining = Draining(queue.open, FileSink(str(tmp_path)), FOLLOW, trouble=print)
    take = queue.take

    def take_until_empty(seconds: float) -> Sequence[Message]:
        if not (found := take(seconds)):
            draining.stop()
        return found

    queue.take = take_until_empty  # type: ignore[method-assign]
    draining.run()
    assert content(tmp_path) == numbered(7)
    assert draining.counts[REPEATED] == 3


def test_drain_ends_if_the_broker_stays_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdcfmt_files.draining._RETRY_SECONDS", 0)
    queue = Queue(numbered(2), fails={"take": [3, 5], "open": [3]})
    draining = Draining(queue.open, FileSink(str(tmp_path)), FOLLOW)
    with pytest.raises(SourceError, match="open 3 fails"):
        draining.run()
    # It continues after each failure that does not recur.
    assert queue.calls["open"] == 3


def test_unreachable_broker_is_an_immediate_error(tmp_path: Path) -> None:
    queue = Queue([], fails={"open": [1]})
    with pytest.raises(SourceError, match="open 1 fails"):
        drain(queue, tmp_path, FOLLOW)


def test_two_drains_of_a_queue_cannot_both_commit(tmp_path: Path) -> None:
    first, second = Queue(numbered(2)), Queue(numbered(4)[2:])

    @contextmanager
    def slow() -> Iterator[Drain]:
        with second.open() as opened:
            yield opened
            pytest.fail("it ended well")

    take = second.take

    def overtaken(seconds: float) -> Sequence[Message]:
        if first.messages:
            drain(first, tmp_path)
        return take(seconds)

    second.take = overtaken  # type: ignore[method-assign]
    with pytest.raises(SinkError, match="another drain of this queue writes there"):
        Draining(slow, FileSink(str(tmp_path)), QUICK).run()
    assert len(second.messages) == 2
    assert content(tmp_path) == numbered(2)


@pytest.mark.parametrize(
    ("given", "commits"), [({"rollSize": 1}, 10), ({"rollInterval": timedelta(0)}, 10)]
)
def test_commits_are_rolled(tmp_path: Path, given: dict[str, object], commits: int) -> None:
    queue = Queue(numbered(10), most=100)
    drain(queue, tmp_path, {**QUICK, **given})
    assert queue.calls["acknowledge"] == commits
    assert content(tmp_path) == numbered(10)
