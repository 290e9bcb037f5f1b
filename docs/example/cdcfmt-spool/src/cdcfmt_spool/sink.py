"""A topic as sink: one writer at a time appends complete segments."""

from __future__ import annotations

import fcntl
import os
import time
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from cdcfmt_core.errors import OptionError, SinkError
from cdcfmt_core.events import Message
from cdcfmt_core.transport import Producer
from cdcfmt_files.sources import wrap_line
from cdcfmt_spool.folder import Folder, segment_path

LOCK_SECONDS = 15.0


@attrs.frozen
class SpoolSink:
    """An existing topic; a :class:`cdcfmt_core.transport.Sink`."""

    folder: Folder
    topic: str

    def path(self) -> Path:
        found = self.folder.topic(self.topic, SinkError)
        if found is None:
            raise SinkError(f"topic {self.topic} does not exist in {self.folder.path}: create it")
        return found

    def partitions(self) -> int:
        return len(self.folder.partitions(self.path()))

    @contextmanager
    def open(self) -> Iterator[SpoolProducer]:
        producer = SpoolProducer(self)
        yield producer
        producer.flush()


class SpoolProducer(Producer):
    """Buffers messages until :meth:`flush`."""

    def __init__(self, sink: SpoolSink) -> None:
        self._sink = sink
        self._count = sink.partitions()
        self._waiting: dict[int, list[bytes]] = defaultdict(list)

    def send(self, message: Message) -> None:
        partition = message.partition
        if partition is None:
            partition = zlib.crc32(message.key or b"") % self._count
        now = time.time_ns() // 1_000_000
        line = wrap_line(Message(message.key, message.value, message.headers, timestamp=now))
        self._waiting[partition].append(line + b"\n")

    def flush(self) -> None:
        topic = self._sink.path()
        with locked(topic / "lock"):
            for partition, lines in self._waiting.items():
                known = self._sink.folder.segments(self._sink.topic, partition)
                start = known[-1].end if known else 0
                write_whole(segment_path(topic, partition, start, start + len(lines)), lines)
        self._waiting.clear()


def write_whole(path: Path, lines: Iterable[bytes]) -> None:
    """Write a segment that readers see completely or not at all."""
    hidden = path.with_suffix(".writing")
    with hidden.open("wb") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())
    hidden.rename(path)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a topic; the system frees it if its holder fails.

    :raises SinkError: if another writer holds it for too long.
    """
    deadline = time.monotonic() + LOCK_SECONDS
    with path.open("rb") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise SinkError(
                        f"{path} has been locked for {LOCK_SECONDS:g} s: find the writer"
                    ) from None
                time.sleep(0.05)
        yield


def open_sink(values: Mapping[str, Any], settings: Mapping[str, str]) -> SpoolSink:
    """The sink of a :class:`~cdcfmt_core.transport.TransportSpec`."""
    if not values["topic"]:
        raise OptionError("option topic: name the topic to write to")
    return SpoolSink(Folder.of(settings), values["topic"])
