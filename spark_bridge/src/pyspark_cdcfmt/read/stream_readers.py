"""The stream readers over topics and files: offsets on the driver, batches on the executors."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from cdcfmt_core.errors import SourceError
from cdcfmt_core.texts import open_logger
from cdcfmt_core.transport import Progress, Source
from cdcfmt_files.sources import FileInfo, FileOffset
from cdcfmt_files.sources.compression import compression_of
from cdcfmt_toolkit.topics.stream_offset import INITIAL, StreamOffset
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.batch_reader import Work, plan_tasks, read_slice
from pyspark_cdcfmt.read.checks import StreamCheck
from pyspark_cdcfmt.read.inputs import (
    FilesInput,
    TopicInput,
    begins_around,
    find_files,
    slices_of,
)
from pyspark_cdcfmt.read.schemas import check_stream, open_store
from pyspark_cdcfmt.read.slices import Input, Slice
from pyspark_cdcfmt.rows.read_task import ReadTask


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Base class: the check of the options, and the work of a task."""

    def __init__(
        self,
        schema: StructType,
        options: ReadOptions,
        source: Input,
        *,
        inferred: bool = False,
        work: Work = read_slice,
    ) -> None:
        check_stream(options)
        self._options = options
        self._task = ReadTask(schema, options.in_stream(), inferred=inferred)
        self._work = work
        self._check = StreamCheck(ReadTask(schema, options, inferred=inferred))
        self._input = source

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, Slice)
        return self._work(self._input, partition, self._task)


class TopicStreamReader(_StreamReader):
    """Stream reader of topics.

    Spark keeps one on the driver for each run of a query, the only one with a client.  Executors
    get copies with the options; everything else is in the partitions of a batch.
    """

    def __init__(
        self,
        schema: StructType,
        options: ReadOptions,
        source: Source,
        **how: Any,
    ) -> None:
        source.check_stream()
        super().__init__(schema, options, TopicInput(source, options), **how)
        self._source = source
        self._has_advanced = False

    def initialOffset(self) -> dict[str, Any]:
        # Offsets by timestamp would lose rows: Spark calls this again if batch 0 is repeated.
        return dict(INITIAL)

    def prepareForTriggerAvailableNow(self) -> None:
        self._progress.stop_at_latest()

    def getDefaultReadLimit(self) -> ReadLimit:
        most, least = self._options["maxOffsetsPerTrigger"], self._options["minOffsetsPerTrigger"]
        if most is not None:
            return ReadMaxRows(most)
        # Spark has no limit with both a minimum and a maximum; advance() applies the minimum.
        return ReadAllAvailable() if least is None else ReadMinRows(least)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        limited = not isinstance(limit, ReadAllAvailable)
        least = self._options["minOffsetsPerTrigger"] if limited else None
        self._has_advanced = True
        return self._progress.advance(start, most, least)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return self._progress.latest()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        # Only the end offset counts: a repeated batch must read the same messages.
        offset = StreamOffset.of_json(end)
        ranges = offset.ranges()
        if not self._has_advanced:
            # The batch is from an earlier run: its topics may have been recreated since.
            now = StreamOffset.of_json(self._progress.advance(end, None, None)).ids
            ranges = [r for r in ranges if offset.ids.get(r.topic) in (None, now.get(r.topic))]
        slices = slices_of(ranges, self._options, self._source)
        self._check.check(self._input, slices)
        schemas = open_store(self._options)
        return [
            attrs.evolve(slice_, schemas=schemas, begins=begins_around(slice_.range, offset.starts))
            for slice_ in slices
        ]

    @functools.cached_property
    def _progress(self) -> Progress:
        return self._source.open_progress()


logger = open_logger("pyspark_cdcfmt")

_NAMES_IN_WARNING = 5


class FileStreamReader(_StreamReader):
    """Stream reader of a directory: each new file once, oldest first.

    The end offset of a micro-batch defines it completely, so a repeated one has the same files.
    """

    def __init__(self, schema: StructType, options: ReadOptions, **how: Any) -> None:
        self._files_input = FilesInput(options)
        super().__init__(schema, options, self._files_input, **how)
        self._watch = Watch(fail=options["failOnDataLoss"])
        self._target: list[FileInfo] | None = None
        self._files: list[FileInfo] = []
        self._offset = FileOffset()

    def initialOffset(self) -> dict[str, Any]:
        return FileOffset().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxFiles(self._options["maxFilesPerTrigger"])

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._list()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        offset = FileOffset.from_json(start)
        self._files = self._target if self._target is not None else self._list()
        self._watch.compare(self._files, offset)
        files = _files_of(limit)
        self._offset = offset.advance(
            self._files,
            limit=files,
            # Spark has no limit of both; a trigger without limits has neither.
            max_bytes=None if files is None else self._options["maxBytesPerTrigger"],
            max_age=self._options["maxFileAge"],
            now=time.time_ns() // 1000,
        )
        if self._offset is offset:
            # Without new files the offset must be identical.
            return start
        for path in self._offset.batch:
            # An unreadable file would stay in the checkpoint, also under other options.
            compression_of(path)
        return self._offset.to_json()

    def reportLatestOffset(self) -> dict[str, Any]:
        """For the query's progress: numbers of waiting files, and of files that are too late."""
        return {
            "waiting": len(self._offset.unread(self._files)),
            "tooLate": self._watch.too_late,
            "changed": self._watch.changed,
        }

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        before, after = FileOffset.from_json(start), FileOffset.from_json(end)
        if before == after:
            return []
        if after.number != before.number + 1:
            raise SourceError(
                f"a micro-batch spans steps {before.number} to {after.number} of the stream of "
                "files, but an offset names the files of one step only"
            )
        files = [FileInfo(path, size) for path, size in after.batch.items()]
        slices = self._files_input.slices_of(files)
        self._check.check(self._input, slices)
        if self._options["schemaStore"] is None:
            # The schemas in the batch's own files would depend on its end.
            return slices
        return plan_tasks(self._input, slices, self._options, streaming=True)

    def _list(self) -> list[FileInfo]:
        return find_files(self._options, empty_globs=True)


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


def _files_of(limit: ReadLimit) -> int | None:
    if isinstance(limit, ReadMaxFiles):
        return limit.max_files
    if isinstance(limit, ReadAllAvailable):
        return None
    raise SourceError(f"a stream of files cannot be limited by {type(limit).__name__}")
