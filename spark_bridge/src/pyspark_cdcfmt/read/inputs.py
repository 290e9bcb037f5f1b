"""Files as input: which task reads what, and the messages in it."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from cdcfmt_core.events import Message
from cdcfmt_core.sources import (
    BadLine,
    FileInfo,
    FileSplit,
    HowToRead,
    Lines,
    list_files,
    plan_partitions,
    read_ends,
    read_lines,
    read_split,
)
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.slices import Input, Share


@attrs.frozen
class FilesPartition(Share):
    """Splits of files that one task reads, in order."""

    splits: Sequence[FileSplit]

    def describe(self) -> Mapping[str, object]:
        first = self.splits[0]
        return {"file": first.path, "from": first.start, "splits": len(self.splits)}


def find_files(options: ReadOptions, *, empty_globs: bool = False) -> list[FileInfo]:
    """The files of the input as of now; SourceError for a path that does not exist."""
    return list_files(
        options.paths,
        storage_options=options.storage_options,
        path_glob_filter=options["pathGlobFilter"],
        empty_globs=empty_globs,
    )


@attrs.frozen
class FilesInput(Input):
    """The files behind the options' paths."""

    options: ReadOptions

    def plan(self) -> list[Share]:
        return self.share_out(find_files(self.options))

    def share_out(self, files: Iterable[FileInfo]) -> list[Share]:
        """Which task reads what of these files."""
        planned = plan_partitions(
            files,
            max_partition_bytes=self.options["maxPartitionBytes"],
            min_partitions=self.options["minPartitions"] or os.cpu_count() or 1,
        )
        return [FilesPartition(splits) for splits in planned]

    def read(
        self,
        share: Share,
        counts: Counter[str] | None = None,
        marks: Sequence[bytes] = (),
    ) -> Iterator[Message | BadLine]:
        assert isinstance(share, FilesPartition)
        how: HowToRead = {**self._how(), "marks": marks}
        for split in share.splits:
            yield from read_split(split, **how)

    def ends(
        self, shares: Sequence[Share], *, seconds: float, thorough: bool
    ) -> Iterator[Message | BadLine]:
        files: dict[str, FileSplit] = {}
        for share in shares:
            assert isinstance(share, FilesPartition)
            for split in share.splits:
                files[split.path] = FileSplit(split.path, 0, None, split.size)
        deadline = time.monotonic() + seconds
        for message in read_ends(files.values(), compressed_tails=thorough, **self._how()):
            yield message
            if time.monotonic() > deadline:
                return

    def has_many_files(self, shares: Sequence[Share]) -> bool:
        splits = (share.splits for share in shares if isinstance(share, FilesPartition))
        return len({split.path for each in splits for split in each}) > 1

    def read_lines(
        self, share: Share, counts: Counter[str] | None = None
    ) -> Iterator[Message | BadLine | Lines]:
        assert isinstance(share, FilesPartition)
        how = self._how()
        for split in share.splits:
            yield from read_lines(split, **how)

    def _how(self) -> HowToRead:
        options = self.options
        separator = options["lineSep"]
        return {
            "storage_options": options.storage_options,
            "line_separator": None if separator is None else separator.encode(),
            "max_message_bytes": options["maxMessageBytes"],
            "line_format": options["lineFormat"],
        }
