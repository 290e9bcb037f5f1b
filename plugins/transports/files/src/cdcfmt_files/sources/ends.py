"""Read the first and last messages of files, without the middle."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import TypeVar, Unpack

from cdcfmt_core.events import Message
from cdcfmt_files.sources.compression import compression_of
from cdcfmt_files.sources.reader import DEFAULT_BLOCK_BYTES, ReadParameters, read_split
from cdcfmt_files.sources.splits import FileSplit
from cdcfmt_toolkit.inputs import BadLine
from cdcfmt_toolkit.topics.ranges import messages_at_end

MAX_FILES = 100
"""Maximum number of files to open, spread evenly over all."""

_BLOCK_BYTES = 1 << 16
_TAIL_BYTES = (1 << 16, 1 << 20, 1 << 24)
"""Bytes before a plain file's end to search for its last lines; the next size if none is found."""

_MAX_COMPRESSED_BYTES = 64 << 20
"""Maximum stored bytes of compressed files, in total, to read for their last lines."""

_MAX_HELD_BYTES = 16 << 20
"""Maximum bytes of a file's last messages, which are buffered together."""

_T = TypeVar("_T")


def spread(items: Sequence[_T], most: int) -> list[_T]:
    """At most ``most`` items, evenly spread, including the first and the last."""
    if len(items) <= most:
        return list(items)
    return [items[index * (len(items) - 1) // (most - 1)] for index in range(most)]


def read_ends(
    files: Iterable[FileSplit],
    each: int | None = None,
    *,
    compressed_tails: bool = True,
    **how: Unpack[ReadParameters],
) -> Iterator[Message | BadLine]:
    """The first and last messages of whole ``files``, lazily.

    The first file's beginning and the last file's end come first, then the other files.  A message
    may be repeated.

    :param each: number of messages at each end; by default fewer for many files.
    :param compressed_tails: also read the ends of the last compressed files, which requires reading
        them completely, up to 64 MiB of stored bytes; otherwise only their beginnings.
    :raises SourceError: if a file cannot be read.
    """
    how = {**how, "block_bytes": _BLOCK_BYTES}
    chosen = spread(list(files), MAX_FILES)
    if not chosen:
        return
    each = messages_at_end(len(chosen)) if each is None else each
    plain = {file.path for file in chosen if compression_of(file.path) is None}
    yield from _head(chosen[0], each, how)
    if chosen[-1].path in plain:
        yield from _tail(chosen[-1], each, how)
    for file in chosen:
        if file is not chosen[0]:
            yield from _head(file, each, how)
        if file is not chosen[-1] and file.path in plain:
            yield from _tail(file, each, how)
    left = _MAX_COMPRESSED_BYTES if compressed_tails else 0
    for file in reversed(chosen):
        if left > 0 and file.path not in plain:
            stored = file.size or _MAX_COMPRESSED_BYTES
            if stored <= left:
                through: ReadParameters = {**how, "block_bytes": DEFAULT_BLOCK_BYTES}
                yield from _last(read_split(file, **through), each)
            left -= stored


def _head(file: FileSplit, each: int, how: ReadParameters) -> Iterator[Message | BadLine]:
    with closing(read_split(file, **how)) as messages:  # type: ignore[type-var]
        yield from islice(messages, each)


def _tail(file: FileSplit, each: int, how: ReadParameters) -> Iterator[Message | BadLine]:
    if file.size is None:
        return
    for size in _TAIL_BYTES:
        start = max(file.size - size, 0)
        split = FileSplit(file.path, start, file.size, file.size)
        last = _last(read_split(split, **how), each)
        if last:
            yield from last
            return
        if start == 0:
            return


def _last(messages: Iterable[Message | BadLine], each: int) -> deque[Message | BadLine]:
    """The last ``each`` messages; fewer if they are large."""
    last: deque[Message | BadLine] = deque()
    held = 0
    for message in messages:
        last.append(message)
        held += len(message.value or b"")
        while len(last) > each or (held > _MAX_HELD_BYTES and len(last) > 1):
            held -= len(last.popleft().value or b"")
    return last
