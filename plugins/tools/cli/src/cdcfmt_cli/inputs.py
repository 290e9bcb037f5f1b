"""INPUT: messages in order from files, standard input, or topics."""

from __future__ import annotations

import io
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

from cdcfmt_cli.settings import Settings
from cdcfmt_core.errors import OptionError, SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.known import packages
from cdcfmt_core.offsets import OffsetRange
from cdcfmt_core.registry import default_registry
from cdcfmt_core.texts import without_secrets
from cdcfmt_core.transport import TransportSpec
from cdcfmt_core.transport_opening import open_source, split_options
from cdcfmt_files.sources import (
    BadLine,
    FileSplit,
    Lines,
    list_files,
    plan_partitions,
    read_ends,
    read_lines,
    read_split,
)
from cdcfmt_files.sources.lines import line_parser
from cdcfmt_files.sources.options import read_parameters
from cdcfmt_files.sources.reader import checked, cut_lines, foreign
from cdcfmt_toolkit.topics.stream_offset import INITIAL, StreamOffset


class Input(ABC):
    """Messages of one input."""

    again = True
    """Whether the messages can be read a second time."""
    live = False
    """Whether messages arrive one by one."""
    unit = "bytes"
    """``bytes`` or ``messages``, for ``total``."""

    @property
    def total(self) -> int | None:
        """The sum that :meth:`messages` will report through ``advance``; None if unknown."""
        return None

    @abstractmethod
    def messages(self, advance: Callable[[int], object]) -> Iterator[Message | BadLine]:
        """The messages in order."""

    def blocks(self, advance: Callable[[int], object]) -> Iterator[Message | BadLine | Lines]:
        """Like :meth:`messages`, but may yield unsplit blocks of lines."""
        return self.messages(advance)

    @abstractmethod
    def heads(self, count: int) -> Iterator[Message | BadLine]:
        """The first ``count`` messages of every file or partition."""

    def ends(self) -> Iterator[Message | BadLine]:
        """The first and last messages of every file or partition; none if ``again`` is false."""
        return iter(())

    def begin_at(self, partition: int, offset: int) -> None:  # noqa: B027
        """Skip messages before this offset, if possible without reading them."""


STDIN = "-"
_STDIN_NAME = "<stdin>"
_BLOCK = 1 << 20
_PIECES = 200
"""Maximum number of pieces of the input, for the progress bar."""
_PIECE = 16 << 20
"""Minimum bytes of a piece, since each piece border cuts a block of lines."""


def transport_of_url(path: str) -> TransportSpec | None:
    """The transport of an input such as ``kafka://…``; None for files.

    :raises CdcfmtError: if the transport is not installed; says what to install.
    """
    return default_registry().get_transport(_scheme(path)) if is_topic(path) else None


def is_topic(path: str) -> bool:
    """Whether an input is the address of a transport, installed or not."""
    scheme = _scheme(path)
    return bool(scheme) and (
        scheme in packages("transports") or scheme in default_registry().transports()
    )


def _scheme(path: str) -> str:
    scheme, mark, _ = path.partition("://")
    return scheme.lower() if mark else ""


def public(paths: Sequence[str]) -> list[str]:
    """The inputs without passwords and options, which may hold secrets."""
    return list(map(without_secrets, paths))


def open_input(paths: Sequence[str], settings: Settings, *, follow: bool = False) -> Input:
    """Open the input that a command's arguments name; ``follow`` waits for new messages forever.

    :raises SourceError: for a path that does not exist.
    :raises OptionError: for inputs of different kinds, and for options that do not apply.
    """
    for path in paths:
        transport = transport_of_url(path)
        if transport is None:
            continue
        if len(paths) > 1:
            raise OptionError(f"{_scheme(path)}:// is read alone; it may name several topics")
        return TopicInput(path, transport, settings.topic, follow=follow)
    if follow:
        raise OptionError("--follow is for topics, such as kafka://…; pipe a growing file into -")
    if STDIN in paths:
        if len(paths) > 1:
            raise OptionError("standard input (-) is read alone")
        return StdinInput(settings)
    return FilesInput(paths, settings)


def is_input_file(path: Path, source: Input) -> bool:
    """Whether the input includes this file, under any name."""
    return isinstance(source, FilesInput) and any(
        os.path.exists(file) and os.path.samefile(file, path) for file in source.paths
    )


class FilesInput(Input):
    """Files, directories and globs."""

    def __init__(self, paths: Sequence[str], settings: Settings) -> None:
        self._how = read_parameters(settings.values)
        files = list_files(
            paths,
            storage_options=settings.storage_options,
            path_glob_filter=settings["pathGlobFilter"],
        )
        if not files:
            name = settings["pathGlobFilter"]
            matching = "" if name is None else f" matches pathGlobFilter {name}"
            raise SourceError(
                f"no file in {', '.join(paths)}{matching}; names that start with _ or . are hidden"
            )
        self.paths = [file.path for file in files]
        size = sum(file.size or 0 for file in files)
        planned = plan_partitions(
            files, max_partition_bytes=max(size // _PIECES, _PIECE), min_partitions=1
        )
        self._splits = [split for splits in planned for split in splits]

    @property
    def total(self) -> int:
        return sum(split.length for split in self._splits)

    def messages(self, advance: Callable[[int], object]) -> Iterator[Message | BadLine]:
        for split in self._splits:
            yield from self._read(split)
            advance(split.length)

    def blocks(self, advance: Callable[[int], object]) -> Iterator[Message | BadLine | Lines]:
        for split in self._splits:
            yield from read_lines(split, **self._how)
            advance(split.length)

    def ends(self) -> Iterator[Message | BadLine]:
        sizes = {split.path: split.size for split in self._splits}
        files = (FileSplit(path, 0, None, size) for path, size in sizes.items())
        return read_ends(files, **self._how)

    def _read(self, split: FileSplit) -> Iterator[Message | BadLine]:
        return read_split(split, **self._how)

    def heads(self, count: int) -> Iterator[Message | BadLine]:
        of_file: dict[str, list[FileSplit]] = {}
        for split in self._splits:
            of_file.setdefault(split.path, []).append(split)
        for splits in of_file.values():
            yield from islice(chain.from_iterable(map(self._read, splits)), count)


class StdinInput(Input):
    """Lines of standard input, as they arrive."""

    again = False
    live = True

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def messages(self, advance: Callable[[int], object]) -> Iterator[Message | BadLine]:
        separator = self._settings["lineSep"]
        parse = line_parser(self._settings["lineFormat"], _STDIN_NAME)
        # read() would wait for a whole block.
        stdin = cast(io.BufferedReader, sys.stdin.buffer)
        protocol = self._settings["protocol"]
        lines = cut_lines(
            checked(
                iter(lambda: stdin.read1(_BLOCK), b""),
                partial(foreign, protocol=protocol, lines=separator is None),
            ),
            offset=0,
            separator=b"\n" if separator is None else separator.encode(),
            limit=self._settings["maxMessageBytes"],
            strip_cr=separator is None,
            path=_STDIN_NAME,
        )
        for offset, line in lines:
            if isinstance(line, BadLine):
                yield line
            elif isinstance(line, bytes) and line and not line.isspace():
                yield parse(line, offset)
            advance(0)

    def heads(self, count: int) -> Iterator[Message | BadLine]:
        return islice(self.messages(lambda _: None), count)


_POLL_SECONDS = 0.5


class TopicInput(Input):
    """The topics of one cluster, partition by partition; without end if ``follow``.

    ``total`` and ``advance`` count offsets, not bytes.
    """

    unit = "messages"

    def __init__(
        self, url: str, transport: TransportSpec, options: Mapping[str, str], *, follow: bool
    ) -> None:
        if transport.options_of_url is None:
            raise OptionError(f"{transport.title} has no addresses that the command line can read")
        given = {**transport.options_of_url(url), **options}
        values, settings = split_options(transport, given)
        self._source = open_source(transport, values, settings)
        self.again, self.live = not follow, follow
        self._ranges: list[OffsetRange] | None = None
        if follow:
            self._source.check_stream()
        else:
            self._source.check_batch()

    @property
    def total(self) -> int | None:
        return None if self.live else sum(each.size for each in self._planned())

    def messages(self, advance: Callable[[int], object]) -> Iterator[Message]:
        ranges = self._new_ranges() if self.live else self._planned()
        for each in ranges:
            done = each.start
            for message in self._source.read(each):
                yield message
                assert message.offset is not None
                advance(message.offset + 1 - done)
                done = message.offset + 1
            advance(each.end - done)

    def heads(self, count: int) -> Iterator[Message]:
        for each in self._planned():
            yield from islice(self._source.read(each), count)

    def ends(self) -> Iterator[Message]:
        return self._source.ends(self._planned())

    def begin_at(self, partition: int, offset: int) -> None:
        """Read only this partition, starting at this offset."""
        self._source = self._source.begin_at(partition, offset)
        self._ranges = None

    def _planned(self) -> list[OffsetRange]:
        # Planned once, so that a second pass reads the same messages.
        if self._ranges is None:
            self._ranges = self._source.plan()
        return self._ranges

    def _new_ranges(self) -> Iterator[OffsetRange]:
        progress = self._source.open_progress()
        at: dict[str, Any] = dict(INITIAL)
        while True:
            moved = progress.advance(at, None, None)
            if moved == at:
                time.sleep(_POLL_SECONDS)
                continue
            at = moved
            yield from (each for each in StreamOffset.of_json(at).ranges() if each.size > 0)
