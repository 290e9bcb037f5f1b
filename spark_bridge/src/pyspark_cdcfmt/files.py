"""Files as input: which task reads what, and the messages in it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import attrs
from pyspark.sql.datasource import InputPartition

from cdcfmt_core.events import Message
from cdcfmt_core.schema_store import SchemaStore
from cdcfmt_core.sources import (
    BadLine,
    FileInfo,
    FileSplit,
    list_files,
    plan_partitions,
    read_split,
)
from pyspark_cdcfmt.options import ReadOptions


@attrs.frozen
class FilesPartition(InputPartition):
    """Splits of files that one task reads, in order, and the schemas of the whole input."""

    splits: Sequence[FileSplit]
    schemas: SchemaStore = attrs.field(factory=SchemaStore)


def plan_files(options: ReadOptions) -> list[list[FileSplit]]:
    """The partitions of the input; SourceError for a path that does not exist."""
    return share_out(find_files(options), options)


def find_files(options: ReadOptions, *, empty_globs: bool = False) -> list[FileInfo]:
    """The files of the input as of now."""
    return list_files(
        options.paths,
        storage_options=options.storage_options,
        path_glob_filter=options["pathGlobFilter"],
        empty_globs=empty_globs,
    )


def share_out(files: Iterable[FileInfo], options: ReadOptions) -> list[list[FileSplit]]:
    """Which task reads what of the files."""
    return plan_partitions(
        files,
        max_partition_bytes=options["maxPartitionBytes"],
        min_partitions=options["minPartitions"] or os.cpu_count() or 1,
    )


def read_messages(splits: Sequence[FileSplit], options: ReadOptions) -> Iterator[Message | BadLine]:
    """The messages of some splits, in order, streamed."""
    separator = options["lineSep"]
    for split in splits:
        yield from read_split(
            split,
            storage_options=options.storage_options,
            line_separator=None if separator is None else separator.encode(),
            max_message_bytes=options["maxMessageBytes"],
            line_format=options["lineFormat"],
        )


def read_all(
    planned: Iterable[Sequence[FileSplit]], options: ReadOptions
) -> Iterator[Message | BadLine]:
    """The messages of all partitions."""
    return chain.from_iterable(read_messages(splits, options) for splits in planned)
