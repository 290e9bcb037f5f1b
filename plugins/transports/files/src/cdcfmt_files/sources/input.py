"""Files as an input: slices of splits, and the progress of a stream of new files."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar, Literal, TypeAlias

import attrs

from cdcfmt_core.codec import MarkedScan
from cdcfmt_core.errors import SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.texts import open_logger
from cdcfmt_core.transport import Progress
from cdcfmt_files.sources.compression import compression_of
from cdcfmt_files.sources.ends import read_ends
from cdcfmt_files.sources.file_offset import FileOffset
from cdcfmt_files.sources.files import FileInfo, check_paths, list_files
from cdcfmt_files.sources.lines import Lines
from cdcfmt_files.sources.options import parse_storage_options, read_parameters
from cdcfmt_files.sources.reader import ReadParameters, read_lines, read_split
from cdcfmt_files.sources.splits import FileSplit, plan_partitions
from cdcfmt_toolkit.inputs import BadLine, Input, Slice

Messages: TypeAlias = Iterator[Message | BadLine]

_AHEAD_BYTES = 1 << 20
"""Maximum bytes of values to buffer per source while an earlier one is read."""


def read_ahead(sources: Iterable[Messages], threads: int | None = None) -> Messages:
    """The messages of all sources, in order; threads start reading the next sources early.

    For searches with few hits: reading and searching a block of a file release Python's global
    lock.  ``threads``: number of processors by default.
    """
    threads = threads or os.cpu_count() or 1
    begun: deque[tuple[Future[deque[Message | BadLine]], Messages]] = deque()
    with ThreadPoolExecutor(threads, "cdcfmt-read") as pool:
        try:
            for source in sources:
                begun.append((pool.submit(_begin, source), source))
                if len(begun) > threads:
                    yield from _finish(*begun.popleft())
            while begun:
                yield from _finish(*begun.popleft())
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(source: Messages) -> deque[Message | BadLine]:
    """The first messages of a source, up to _AHEAD_BYTES of values."""
    begun: deque[Message | BadLine] = deque()
    size = 0
    while size < _AHEAD_BYTES and (message := next(source, None)) is not None:
        size += len(message.value or b"")
        begun.append(message)
        # Else the name would keep a large message while the next one is read.
        del message
    return begun


def _finish(begun: Future[deque[Message | BadLine]], source: Messages) -> Messages:
    messages = begun.result()
    while messages:
        yield messages.popleft()
    yield from source


logger = open_logger("cdcfmt_core")

_LEAST_PIECE = 16 << 20
"""Minimum bytes of a piece, since each piece border cuts a block of lines."""
_NAMES_IN_WARNING = 5


@attrs.frozen
class FilesSlice(Slice):
    """Splits of files that one task reads, in order."""

    splits: Sequence[FileSplit]

    @property
    def size(self) -> int:
        return sum(split.length for split in self.splits)

    @property
    def paths(self) -> Sequence[str]:
        return [split.path for split in self.splits]

    def describe(self) -> Mapping[str, object]:
        first = self.splits[0]
        return {"file": first.path, "from": first.start, "splits": len(self.splits)}


@attrs.frozen
class FilesInput(Input):
    """The files that ``path`` and ``paths`` select.

    - ``values``: validated options: those of :data:`~cdcfmt_files.sources.options.FILE_OPTIONS`,
      ``protocol`` and ``maxMessageBytes``, and those of
      :data:`~cdcfmt_files.sources.options.SOURCE_OPTIONS`.
    """

    unit: ClassVar[Literal["bytes", "messages"]] = "bytes"

    values: Mapping[str, Any] = attrs.field(repr=False)

    @property
    def _paths(self) -> list[str]:
        path = self.values["path"]
        return ([path] if path else []) + list(self.values["paths"])

    @property
    def _storage_options(self) -> dict[str, Any]:
        return parse_storage_options(self.values["storageOptions"])

    def check(self) -> None:
        check_paths(self._paths, storage_options=self._storage_options)

    def find(self, *, empty_globs: bool = False) -> list[FileInfo]:
        """List the current files; SourceError for a missing path."""
        return list_files(
            self._paths,
            storage_options=self._storage_options,
            path_glob_filter=self.values["pathGlobFilter"],
            empty_globs=empty_globs,
        )

    def plan(self) -> list[Slice]:
        return _whole(self.find())

    def divide(self, slices: Sequence[Slice], pieces: int | None = None) -> list[Slice]:
        files = [FileInfo(split.path, split.size) for each in slices for split in _splits(each)]
        if pieces is None:
            most = self.values["maxPartitionBytes"]
            least = self.values["minPartitions"] or os.cpu_count() or 1
        else:
            most, least = max(sum(each.size for each in slices) // pieces, _LEAST_PIECE), 1
        planned = plan_partitions(files, max_partition_bytes=most, min_partitions=least)
        if pieces is None:
            return [FilesSlice(splits) for splits in planned]
        return [FilesSlice((split,)) for splits in planned for split in splits]

    def read(
        self, slice_: Slice, counts: Counter[str] | None = None, marks: Sequence[bytes] = ()
    ) -> Iterator[Message | BadLine]:
        how: ReadParameters = {**read_parameters(self.values), "marks": marks}
        for split in _splits(slice_):
            yield from read_split(split, **how)

    def read_many(
        self, slice_: Slice, counts: Counter[str] | None = None
    ) -> Iterator[Message | BadLine | Lines]:
        how = read_parameters(self.values)
        for split in _splits(slice_):
            yield from read_lines(split, **how)

    def ends(
        self, slices: Sequence[Slice], *, seconds: float | None = None, thorough: bool = True
    ) -> Iterator[Message | BadLine]:
        files = {
            split.path: FileSplit(split.path, 0, None, split.size)
            for slice_ in slices
            for split in _splits(slice_)
            if split.size != 0
        }
        deadline = None if seconds is None else time.monotonic() + seconds
        how = read_parameters(self.values)
        for message in read_ends(files.values(), compressed_tails=thorough, **how):
            yield message
            if deadline is not None and time.monotonic() > deadline:
                return

    def scanned(
        self, slices: Sequence[Slice], scan: MarkedScan[Any]
    ) -> Iterator[Message | BadLine]:
        return read_ahead(self.read(slice_, marks=scan.marks) for slice_ in slices)

    def limits(self) -> tuple[int | None, int | None]:
        return self.values["maxFilesPerTrigger"], None

    def open_progress(self) -> FilesProgress:
        return FilesProgress(self)

    def batch(
        self, start: dict[str, Any], end: dict[str, Any], check: Progress | None = None
    ) -> list[Slice]:
        before, after = FileOffset.from_json(start), FileOffset.from_json(end)
        if before == after:
            return []
        if after.number != before.number + 1:
            raise SourceError(
                f"a micro-batch spans steps {before.number} to {after.number} of the stream of "
                "files, but an offset names the files of one step only"
            )
        return _whole(FileInfo(path, size) for path, size in after.batch.items())


def _whole(files: Iterable[FileInfo]) -> list[Slice]:
    return [FilesSlice((FileSplit(file.path, 0, None, file.size),)) for file in files]


def _splits(slice_: Slice) -> Sequence[FileSplit]:
    assert isinstance(slice_, FilesSlice)
    return slice_.splits


class FilesProgress:
    """Finds the next new files of a stream, each once, oldest first.

    A :class:`cdcfmt_core.transport.Progress`, whose offsets are :class:`FileOffset`: the end offset
    of a batch defines it completely, so a repeated one has the same files.
    """

    def __init__(self, source: FilesInput) -> None:
        self._source = source
        self._watch = Watch(fail=source.values["failOnDataLoss"])
        self._target: list[FileInfo] | None = None
        self._files: list[FileInfo] = []
        self._offset = FileOffset()

    def stop_at_latest(self) -> None:
        """Read the files that there are now (AvailableNow)."""
        self._target = self._source.find(empty_globs=True)

    def advance(
        self, start: dict[str, Any], limit: int | None, least: int | None
    ) -> dict[str, Any]:
        """The offset after the next files, at most ``limit``; ``start`` itself if none is new.

        :raises SourceError: for files that the stream will not read, if ``failOnDataLoss``.
        """
        offset = FileOffset.from_json(start)
        files = self._target
        self._files = self._source.find(empty_globs=True) if files is None else files
        self._watch.compare(self._files, offset)
        self._offset = offset.advance(
            self._files,
            limit=limit,
            # A trigger without limits has neither.
            max_bytes=None if limit is None else self._source.values["maxBytesPerTrigger"],
            max_age=self._source.values["maxFileAge"],
            now=time.time_ns() // 1000,
        )
        if self._offset is offset:
            # Without new files the offset must be identical.
            return start
        for path in self._offset.batch:
            # An unreadable file would stay in the checkpoint, also under other options.
            compression_of(path)
        return self._offset.to_json()

    def latest(self) -> dict[str, Any]:
        """The numbers of waiting files, and of files that are too late or were changed."""
        return {
            "waiting": len(self._offset.unread(self._files)),
            "tooLate": self._watch.too_late,
            "changed": self._watch.changed,
        }


class Watch:
    """Finds files that the stream will not read: an error with ``fail``, else a warning."""

    def __init__(self, *, fail: bool) -> None:
        self.too_late = 0
        self.changed = 0
        self._fail = fail
        self._known: set[str] | None = None
        self._warned: dict[str, float | None] = {}

    def compare(self, files: list[FileInfo], offset: FileOffset) -> None:
        """:raises SourceError: for such files, if the watch fails."""
        old = {file.path for file in offset.old_files(files)}
        if self._known is None:
            # Which of them are late is unknown: the offset has the names of newer files only.
            late, where = len(old) - offset.old, "while the query was not running"
        else:
            late, where = len(old - self._known), _some(old - self._known)
        if late > 0:
            self.too_late += late
            self._report(
                f"{late} files arrived too late, {where}: they are older than the newest file by "
                "more than maxFileAge; to read them, give them a new modification time (touch)"
            )
        self._known = {file.path for file in files}
        changed = [
            file
            for file in files
            if offset.is_changed(file) and self._warned.get(file.path) != file.mtime
        ]
        if changed:
            self.changed += len(changed)
            self._warned |= {file.path: file.mtime for file in changed}
            names = _some({file.path for file in changed})
            self._report(
                f"{len(changed)} files were changed after they were read: {names}; to read a file "
                "again, rename it; write files elsewhere and move them into the directory"
            )

    def _report(self, text: str) -> None:
        if self._fail:
            raise SourceError(f"{text}; failOnDataLoss=false continues without them")
        logger.warning("cdc: %s; continuing, as failOnDataLoss is false", text)


def _some(paths: set[str]) -> str:
    more = f" and {len(paths) - _NAMES_IN_WARNING} more" if len(paths) > _NAMES_IN_WARNING else ""
    return ", ".join(sorted(paths)[:_NAMES_IN_WARNING]) + more


def open_input(values: Mapping[str, Any], settings: Mapping[str, str]) -> FilesInput:
    """The input of a :class:`~cdcfmt_core.transport.TransportSpec`."""
    return FilesInput(values)
