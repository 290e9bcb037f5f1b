"""Drain a queue into a folder: messages are committed on disk before they are acknowledged.

After a crash between the two steps the queue delivers messages again; repeated ones are dropped
if they have an identity.  The known identities are read back from the newest files of the folder,
the only state.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from hashlib import blake2b
from itertools import chain
from typing import Any, Final

from cdcfmt_core.errors import SinkError, SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.options import Option
from cdcfmt_core.transport import Drain
from cdcfmt_files.sinks import CommitId, FileSink, TaskFiles
from cdcfmt_files.sources import FileSplit, read_split, wrap_line
from cdcfmt_files.sources.compression import COMPRESSIONS
from cdcfmt_files.sources.options import STORAGE_OPTIONS

MESSAGES: Final = "messages"
REPEATED: Final = "repeated messages dropped"
"""The count of redelivered messages that the folder already has."""

REMEMBERED: Final = 200_000
"""Number of last messages whose identities are known; fewer if they have more than a GiB."""

_REMEMBERED_BYTES = 1 << 30
_WAIT_SECONDS = 1.0
_RETRY_SECONDS = 300.0

DRAINING_OPTIONS: Final = (
    Option(
        name="follow",
        type="bool",
        default=False,
        help="Wait for more messages forever, also if the broker is unavailable for minutes.",
    ),
    Option(
        name="idle",
        type="duration",
        default=timedelta(seconds=5),
        help="Without `follow`: end after this time without a message.",
    ),
    Option(
        name="rollSize",
        type="bytes",
        default=128 << 20,
        minimum=1,
        help="Commit and acknowledge the taken messages when they reach this size.",
    ),
    Option(
        name="rollInterval",
        type="duration",
        default=timedelta(minutes=1),
        help="Commit and acknowledge the taken messages at this age, or earlier if the queue "
        "waits a shorter time for the acknowledgement.",
    ),
    Option(
        name="compression",
        type="choice",
        choices=COMPRESSIONS,
        default="none",
        help="Compression of the files; `zstd` needs zstandard.",
    ),
    STORAGE_OPTIONS,
)


class Draining:
    """Moves the messages of a queue into a folder.

    :param open_drain: connects to the queue.
    :param values: validated :data:`DRAINING_OPTIONS`.
    :param written: called with the number of messages of each commit.
    :param trouble: called with each failure after which it reconnects.

    ``counts``: number of committed and dropped messages.
    """

    def __init__(
        self,
        open_drain: Callable[[], AbstractContextManager[Drain]],
        sink: FileSink,
        values: Mapping[str, Any],
        *,
        written: Callable[[int], object] = lambda _: None,
        trouble: Callable[[SourceError], object] = lambda _: None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._open_drain = open_drain
        self._sink = sink
        self._roll_size: int = values["rollSize"]
        self._roll_seconds: float = values["rollInterval"].total_seconds()
        self._follow: bool = values["follow"]
        self._idle_seconds: float = values["idle"].total_seconds()
        self._written = written
        self._trouble = trouble
        self._stopped = False
        self._has_taken = False
        self._failing_since: float | None = None

    def stop(self) -> None:
        """End :meth:`run` after one more commit and acknowledgement; for signal handlers."""
        self._stopped = True

    def run(self) -> None:
        """Drain until the queue is empty, or until :meth:`stop`.

        :raises SourceError: if the queue cannot be read.
        :raises SinkError: if the folder cannot be written, or another drain writes into it.
        """
        self._sink.prepare()
        self._sink.sweep()
        while True:
            try:
                with self._open_drain() as drain:
                    folder = _Folder(self._sink, drain)
                    while self._commit_next(drain, folder):
                        pass
                return
            except SourceError as error:
                if not self._has_taken or not self._follow or self._stopped:
                    raise
                now = time.monotonic()
                self._failing_since = self._failing_since or now
                if now - self._failing_since > _RETRY_SECONDS:
                    raise
                self._trouble(error)
                time.sleep(_WAIT_SECONDS)

    def _commit_next(self, drain: Drain, folder: _Folder) -> bool:
        """Collect, commit and acknowledge messages; False at the end."""
        files = folder.open()
        counts: Counter[str] = Counter()
        try:
            more = self._fill(drain, folder, files, counts)
            folder.commit(files)
        except BaseException:
            files.discard()
            raise
        if counts:
            self.counts += counts
            self._written(counts[MESSAGES])
            drain.acknowledge()
        return more

    def _fill(self, drain: Drain, folder: _Folder, files: TaskFiles, counts: Counter[str]) -> bool:
        # The other half of the time is for a slow disk or store.
        seconds = min(self._roll_seconds, drain.hold_seconds / 2)
        size = 0
        due = float("inf")
        last = time.monotonic()
        while counts.total() < drain.most and size < self._roll_size and time.monotonic() < due:
            if self._stopped:
                return False
            messages = drain.take(max(min(_WAIT_SECONDS, due - time.monotonic()), 0))
            self._has_taken, self._failing_since = True, None
            if messages:
                last = time.monotonic()
                due = min(due, last + seconds)
            elif not self._follow and time.monotonic() - last >= self._idle_seconds:
                return False
            for message in messages:
                line = folder.take(message)
                if line is None:
                    counts[REPEATED] += 1
                    continue
                counts[MESSAGES] += 1
                size += len(line)
                files.write(line)
        return True


class _Folder:
    """A queue's commits in the folder, and the identities of their messages."""

    def __init__(self, sink: FileSink, drain: Drain) -> None:
        self._sink = sink
        self._drain = drain
        # The same in each run, so that two concurrent drains cannot both commit.
        self._query = CommitId.of(f"drain of {drain.queue}").query
        self._batch, files = sink.last_commits(self._query)
        self._most = max(REMEMBERED, drain.most)
        self._order = deque(self._identities(files))
        self._known = set(self._order)

    def open(self) -> TaskFiles:
        return self._sink.open_task(self._id, 0)

    def take(self, message: Message) -> bytes | None:
        """The line of a message; None if the folder already has it."""
        digest = self._digest(message)
        if digest is not None:
            if digest in self._known:
                return None
            self._known.add(digest)
            self._order.append(digest)
            if len(self._order) > self._most:
                self._known.discard(self._order.popleft())
        return wrap_line(message)

    def commit(self, files: TaskFiles) -> None:
        """:raises SinkError: if it fails, or another process has made this commit."""
        names = files.close()
        if not names:
            return
        if not self._sink.commit(self._id, names):
            raise SinkError(
                f"{self._sink.path} already has commit {self._batch} of {self._drain.queue}: "
                "another drain of this queue writes there; use a folder for each, or stop one"
            )
        self._batch += 1

    @property
    def _id(self) -> CommitId:
        return CommitId(self._query, self._batch)

    def _digest(self, message: Message) -> bytes | None:
        identity = self._drain.identity(message)
        return None if identity is None else blake2b(identity, digest_size=16).digest()

    def _identities(self, files: list[str]) -> list[bytes]:
        """Identities of the last messages, oldest first; ``files``: newest first."""
        found: deque[list[bytes]] = deque()
        count = size = 0
        for path in files:
            if count >= self._most or size >= _REMEMBERED_BYTES:
                break
            split = FileSplit(path, 0, None, None)
            found.appendleft([])
            for message in read_split(split, storage_options=self._sink.storage_options):
                if isinstance(message, Message):
                    count += 1
                    size += len(message.value or b"")
                    digest = self._digest(message)
                    if digest is not None:
                        found[0].append(digest)
        return [*chain.from_iterable(found)][-self._most :]
