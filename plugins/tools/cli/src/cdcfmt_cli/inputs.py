"""INPUT: messages in order from files, standard input, pipes, or topics."""

from __future__ import annotations

import io
import os
import re
import stat
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

from cdcfmt_cli.settings import Settings
from cdcfmt_core.errors import OptionError, SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.known import packages
from cdcfmt_core.registry import default_registry
from cdcfmt_core.texts import without_secrets
from cdcfmt_core.transport import TransportSpec
from cdcfmt_files import FILES
from cdcfmt_files.sources import BadLine, Lines
from cdcfmt_files.sources.compression import (
    compression_of_head,
    decompress,
    may_begin_compressed,
)
from cdcfmt_files.sources.lines import line_parser
from cdcfmt_files.sources.reader import checked, cut_lines, foreign
from cdcfmt_toolkit.inputs import Input, Slice
from cdcfmt_toolkit.topic_input import open_input as open_transport
from cdcfmt_toolkit.topics.options import ASSIGN, SUBSCRIBE, SUBSCRIBE_PATTERN
from cdcfmt_toolkit.topics.stream_offset import INITIAL
from cdcfmt_toolkit.transport_opening import split_options


class CommandInput(ABC):
    """Messages of the input of a command, which reads all of them in one process."""

    again = True
    """Whether the messages can be read a second time."""
    live = False
    """Whether messages arrive one by one."""
    unit = "bytes"
    """``bytes`` or ``messages``, for ``total``."""
    paths: Collection[str] = ()
    """The files that are read."""

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

    def heads(self, count: int) -> Iterator[Message | BadLine]:
        """The first ``count`` messages of every file or partition."""
        return islice(self.messages(lambda _: None), count)

    def ends(self, *, thorough: bool = True) -> Iterator[Message | BadLine]:
        """The first and last messages of every file or partition; none if ``again`` is false.

        :param thorough: also of compressed files, which must be read completely.
        """
        return iter(())

    def slices(self) -> Sequence[Slice]:
        """The whole files or partitions; none for what arrives one by one."""
        return ()

    def read(self, slice_: Slice) -> Iterator[Message | BadLine]:
        """The messages of a slice."""
        raise NotImplementedError

    def begin_at(self, partition: int, offset: int) -> None:  # noqa: B027
        """Skip messages before this offset, if possible without reading them."""


STDIN = "-"
_SELECTING = {option.name.lower() for option in (SUBSCRIBE, SUBSCRIBE_PATTERN, ASSIGN)}
"""Options that select topics, of the transports that declare them."""

_STDIN_NAME = "<stdin>"
_ADDRESS = re.compile(r"(?:[a-z]+:/?)?[\w.-]+:\d+(?:,[\w.-]+:\d+)*/[^/]+")
"""Host, port and topic, without the transport in front."""
_BLOCK = 1 << 20
_PIECES = 200
"""Number of pieces of the input that are enough for the progress bar."""
_POLL_SECONDS = 0.5


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


def open_input(paths: Sequence[str], settings: Settings, *, follow: bool = False) -> CommandInput:
    """Open the input that a command's arguments name; ``follow`` waits for new messages forever.

    :raises SourceError: for a path that does not exist, or has no file.
    :raises OptionError: for inputs of different kinds, and for options that do not apply.
    """
    for path in paths:
        transport = transport_of_url(path)
        if transport is None:
            continue
        if len(paths) > 1:
            raise OptionError(f"{_scheme(path)}:// is read alone; it may name several topics")
        if transport.options_of_url is None:
            raise OptionError(f"{transport.title} has no addresses that the command line can read")
        given = {**transport.options_of_url(path), **settings.topic}
        selecting = {option.name.lower() for option in transport.options} & _SELECTING
        if selecting and selecting.isdisjoint(map(str.lower, given)):
            address, mark, options = path.partition("?")
            whole = f"{public([address])[0].rstrip('/')}/orders{mark}{options and '…'}"
            raise OptionError(f"the address names no topic; with one: {whole}")
        topics = open_transport(transport, *split_options(transport, given))
        return SlicedInput(topics, follow=follow)
    if follow:
        raise OptionError("--follow is for topics, such as kafka://…; pipe a growing file into -")
    for path in paths:
        if _ADDRESS.fullmatch(path) and not os.path.exists(path):
            raise OptionError(
                f"{path} is no path; a topic is, for example, kafka://host:9092/topic"
            )
        if path == STDIN or _is_pipe(path):
            if len(paths) > 1:
                raise OptionError("standard input (-) and pipes are read alone")
            return StreamInput(settings, path)
    files = SlicedInput(
        open_transport(FILES, {**settings.values, "path": None, "paths": paths}, {})
    )
    if not files.paths:
        name = settings["pathGlobFilter"]
        matching = "" if name is None else f" matches pathGlobFilter {name}"
        raise SourceError(
            f"no file in {', '.join(paths)}{matching}; names that start with _ or . are hidden"
        )
    return files


def _is_pipe(path: str) -> bool:
    """Whether an input is a named pipe, or what a shell makes of ``<(command)``."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def is_input_file(path: Path, source: CommandInput) -> bool:
    """Whether the input includes this file, under any name."""
    return any(os.path.exists(file) and os.path.samefile(file, path) for file in source.paths)


class SlicedInput(CommandInput):
    """Files or topics, slice by slice; without end if ``follow``."""

    def __init__(self, source: Input, *, follow: bool = False) -> None:
        self._source = source
        self.unit = source.unit
        self.again, self.live = not follow, follow
        self._whole: list[Slice] = []
        if follow:
            source.check_stream()
        else:
            # Planned once, so that a second pass reads the same messages.
            self._whole = source.plan()
        self.paths = {path for slice_ in self._whole for path in slice_.paths}

    @property
    def total(self) -> int | None:
        return None if self.live else sum(slice_.size for slice_ in self._whole)

    def messages(self, advance: Callable[[int], object]) -> Iterator[Message | BadLine]:
        return self._read(self._source.read, advance)

    def blocks(self, advance: Callable[[int], object]) -> Iterator[Message | BadLine | Lines]:
        read = self._source.read_many if self.unit == "bytes" else self._source.read
        return self._read(read, advance)

    def heads(self, count: int) -> Iterator[Message | BadLine]:
        for slice_ in self._whole:
            yield from islice(self._source.read(slice_), count)

    def ends(self, *, thorough: bool = True) -> Iterator[Message | BadLine]:
        return self._source.ends(self._whole, thorough=thorough)

    def slices(self) -> Sequence[Slice]:
        return self._whole

    def read(self, slice_: Slice) -> Iterator[Message | BadLine]:
        return self._source.read(slice_)

    def begin_at(self, partition: int, offset: int) -> None:
        self._source = self._source.begin_at(partition, offset)
        self._whole = self._source.plan()

    def _read(
        self, read: Callable[[Slice], Iterator[Any]], advance: Callable[[int], object]
    ) -> Iterator[Any]:
        slices = self._new() if self.live else self._source.divide(self._whole, _PIECES)
        for slice_ in slices:
            left = slice_.size
            if self.unit == "bytes":
                yield from read(slice_)
            else:
                for message in read(slice_):
                    yield message
                    advance(1)
                    left -= 1
            # Some offsets have no message.
            advance(left)

    def _new(self) -> Iterator[Slice]:
        progress = self._source.open_progress()
        at: dict[str, Any] = dict(INITIAL)
        while True:
            moved = progress.advance(at, None, None)
            if moved == at:
                time.sleep(_POLL_SECONDS)
                continue
            yield from self._source.batch(at, moved)
            at = moved


class StreamInput(CommandInput):
    """Lines of standard input or of a pipe, as they arrive, compressed or not."""

    again = False
    live = True

    def __init__(self, settings: Settings, path: str) -> None:
        self._settings = settings
        self._path = path

    def messages(self, advance: Callable[[int], object]) -> Iterator[Message | BadLine]:
        separator = self._settings["lineSep"]
        name = _STDIN_NAME if self._path == STDIN else self._path
        parse = line_parser(self._settings["lineFormat"], name)
        protocol = self._settings["protocol"]
        lines = cut_lines(
            checked(self._pieces(), partial(foreign, protocol=protocol, lines=separator is None)),
            offset=0,
            separator=b"\n" if separator is None else separator.encode(),
            limit=self._settings["maxMessageBytes"],
            strip_cr=separator is None,
            path=name,
        )
        for offset, line in lines:
            if isinstance(line, BadLine):
                yield line
            elif isinstance(line, bytes) and line and not line.isspace():
                yield parse(line, offset)
            advance(0)

    def _pieces(self) -> Iterator[bytes]:
        with (
            nullcontext(sys.stdin.buffer) if self._path == STDIN else open(self._path, "rb") as file
        ):
            stream = cast(io.BufferedReader, file)
            # read() would wait for a whole block.
            head = stream.read1(_BLOCK)
            while may_begin_compressed(head) and (more := stream.read1(_BLOCK)):
                head += more
            compression = compression_of_head(head)
            if compression is not None:
                yield from decompress(_Rest(head, stream), compression, _BLOCK)
                return
            while head:
                yield head
                head = stream.read1(_BLOCK)


class _Rest(io.RawIOBase):
    """A stream whose first bytes were read."""

    def __init__(self, head: bytes, stream: io.BufferedReader) -> None:
        self._head = head
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._head[: len(buffer)] or self._stream.read1(len(buffer))
        self._head = self._head[len(piece) :]
        buffer[: len(piece)] = piece
        return len(piece)
