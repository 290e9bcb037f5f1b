"""Files as input: which task reads what, and the messages in it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence

import attrs

from cdcfmt_core.events import Message
from cdcfmt_core.sources import (
    BadLine,
    FileSplit,
    list_files,
    plan_partitions,
    read_split,
)
from pyspark_cdcfmt.inputs import Input, Share
from pyspark_cdcfmt.options import ReadOptions


@attrs.frozen
class FilesPartition(Share):
    """Splits of files that one task reads, in order."""

    splits: Sequence[FileSplit]


@attrs.frozen
class FilesInput(Input):
    """The files behind the options' paths."""

    options: ReadOptions

    def plan(self) -> list[Share]:
        options = self.options
        files = list_files(
            options.paths,
            storage_options=options.storage_options,
            path_glob_filter=options["pathGlobFilter"],
        )
        planned = plan_partitions(
            files,
            max_partition_bytes=options["maxPartitionBytes"],
            min_partitions=options["minPartitions"] or os.cpu_count() or 1,
        )
        return [FilesPartition(splits) for splits in planned]

    def read(self, share: Share, counts: Counter[str] | None = None) -> Iterator[Message | BadLine]:
        assert isinstance(share, FilesPartition)
        options = self.options
        separator = options["lineSep"]
        for split in share.splits:
            yield from read_split(
                split,
                storage_options=options.storage_options,
                line_separator=None if separator is None else separator.encode(),
                max_message_bytes=options["maxMessageBytes"],
                line_format=options["lineFormat"],
            )
