"""INPUT: messages in order from files, standard input, or topics."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import cast

from cdcfmt_core.cli.input_base import Input
from cdcfmt_core.cli.settings import Settings
from cdcfmt_core.errors import OptionError, SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.io.sources import (
    BadLine,
    FileSplit,
    Lines,
    list_files,
    plan_partitions,
    read_ends,
    read_lines,
    read_split,
)
from cdcfmt_core.io.sources.lines import line_parser
from cdcfmt_core.io.sources.options import read_parameters
from cdcfmt_core.io.sources.reader import cut_lines
from cdcfmt_core.registry import KNOWN_TRANSPORTS, default_registry
from cdcfmt_core.transport import TransportSpec

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
        scheme in KNOWN_TRANSPORTS or scheme in default_registry().transports()
    )


def _scheme(path: str) -> str:
    scheme, mark, _ = path.partition("://")
    return scheme.lower() if mark else ""


def public(paths: Sequence[str]) -> list[str]:
    """The inputs without their options, which may hold secrets."""
    return [
        f"{path.partition('?')[0]}?…" if is_topic(path) and "?" in path else path for path in paths
    ]


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
        from cdcfmt_core.cli.topic_input import TopicInput

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
        lines = cut_lines(
            iter(lambda: stdin.read1(_BLOCK), b""),
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
