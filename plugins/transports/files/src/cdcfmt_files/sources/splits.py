"""Divide files into splits, and group splits into partitions."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

import attrs

from cdcfmt_files.sources.compression import compression_of
from cdcfmt_files.sources.files import FileInfo

DEFAULT_OPEN_COST_BYTES = 4 << 20


@attrs.frozen
class FileSplit:
    """The lines of ``path`` whose first byte is in ``[start, end)``.

    - ``end``: None to read to the end of the file.
    - ``size``: the file's listed size in bytes; None if unknown.  A plain file that proves to be
      shorter is an error.
    """

    path: str
    start: int
    end: int | None
    size: int | None

    @property
    def length(self) -> int:
        """The number of stored bytes in this split; 0 if unknown."""
        return max((self.end if self.end is not None else self.size or 0) - self.start, 0)


def plan_partitions(
    files: Iterable[FileInfo],
    *,
    max_partition_bytes: int,
    min_partitions: int,
    open_cost_bytes: int = DEFAULT_OPEN_COST_BYTES,
) -> list[list[FileSplit]]:
    """Divide ``files`` into partitions of equal size.

    - Partitions: as many as ``max_partition_bytes`` requires, rounded up to a multiple of
      ``min_partitions``, so that no core waits while another reads the last one; fewer where a
      partition would be smaller than ``open_cost_bytes``.
    - Plain files are divided into equal splits of at most that size; compressed files are not
      split.  Splits are packed into partitions up to that size.
    - The total includes ``open_cost_bytes`` per file, as Spark's does.
    - The order of files and bytes is kept.  Empty files are skipped.

    :raises SourceError: for a file whose compression cannot be read.
    """
    files = [file for file in files if file.size != 0]
    total = sum((file.size or 0) + open_cost_bytes for file in files)
    at_once = max(min_partitions, 1)
    rounds = max(ceil(total / (max_partition_bytes * at_once)), 1)
    equal = ceil(total / (rounds * at_once))
    limit = max(min(max_partition_bytes, max(open_cost_bytes, equal)), 1)
    partitions: list[list[FileSplit]] = []
    room = 0
    for file in files:
        for split in _splits(file, limit):
            if not partitions or split.length > room:
                partitions.append([])
                room = limit
            partitions[-1].append(split)
            room -= split.length + open_cost_bytes
    return partitions


def _splits(file: FileInfo, limit: int) -> Iterable[FileSplit]:
    compressed = compression_of(file.path) is not None
    if compressed or file.size is None:
        return [FileSplit(file.path, 0, None, file.size)]
    length = ceil(file.size / ceil(file.size / limit))
    return (
        FileSplit(file.path, start, min(start + length, file.size), file.size)
        for start in range(0, file.size, length)
    )
