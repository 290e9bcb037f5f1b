"""Read the lines of a split as messages, in bounded memory.

Memory holds one block of the file, one line and, for compressed files, the decompressor's window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypedDict, Unpack, cast

from cdcfmt_core.codec import AUTO, DEFAULT_MAX_MESSAGE_BYTES
from cdcfmt_core.errors import SAMPLE_BYTES, DecodeError, OptionError, SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.recognition import recognise
from cdcfmt_core.registry import default_registry
from cdcfmt_files.sources.compression import compression_of, decompress
from cdcfmt_files.sources.lines import LineFormat, Lines, line_parser, marked_lines
from cdcfmt_files.sources.splits import FileSplit
from cdcfmt_toolkit.filesystem import SourceFile
from cdcfmt_toolkit.foreign import HEAD_BYTES, foreign_file
from cdcfmt_toolkit.inputs import BadLine

DEFAULT_BLOCK_BYTES = 1 << 19

_BOM = b"\xef\xbb\xbf"
# Read size around a split or a block, when searching for a line border.
_TAIL_BYTES = 1 << 16


class ReadParameters(TypedDict, total=False):
    """Parameters of :func:`read_split`."""

    storage_options: Mapping[str, Any] | None
    line_separator: bytes | None
    max_message_bytes: int
    line_format: LineFormat
    block_bytes: int
    marks: Sequence[bytes]
    protocol: str


def read_split(split: FileSplit, **how: Unpack[ReadParameters]) -> Iterator[Message | BadLine]:
    r"""The messages of the lines that begin in ``split``, in order.

    Lines end with ``\n`` or ``\r\n``, or exactly with ``line_separator``; the end of the last one
    is optional.  Blank lines and a byte order mark at the file's start are dropped.  A line of more
    than ``max_message_bytes``, or one that is invalid for ``line_format``, becomes a
    :class:`BadLine`, and reading continues; damaged compressed data ends with a BadLine, and a file
    of another kind (Parquet, UTF-16, CSV) is a single one.

    A message's offset is its line's byte offset in the uncompressed file, unless the line
    is a whole message with its own offset.

    ``protocol`` names the format, whose lines are never taken for another kind.

    With ``marks``, only messages whose value has one of these bytes are needed; others may be
    returned too.

    :raises SourceError: if the file no longer exists, is shorter than when it was listed, or
        cannot be read.
    :raises OptionError: if the separator is empty or the line format unknown.
    """
    return cast(Iterator[Message | BadLine], _read(split, whole=False, **how))


def read_lines(
    split: FileSplit, **how: Unpack[ReadParameters]
) -> Iterator[Message | BadLine | Lines]:
    """Like :func:`read_split`, but may yield the lines of a block unsplit, as :class:`Lines`.

    Never with a ``line_separator``, with ``marks``, or with line format ``message``.
    """
    return _read(split, whole=True, **how)


def _read(
    split: FileSplit,
    *,
    whole: bool,
    storage_options: Mapping[str, Any] | None = None,
    line_separator: bytes | None = None,
    max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
    line_format: LineFormat = "auto",
    block_bytes: int = DEFAULT_BLOCK_BYTES,
    marks: Sequence[bytes] = (),
    protocol: str = AUTO,
) -> Iterator[Message | BadLine | Lines]:
    if line_separator == b"":
        raise OptionError("the line separator is empty; leave it out for \\n and \\r\\n")
    separator = line_separator or b"\n"
    parse = line_parser(line_format, split.path)
    compression = compression_of(split.path)
    start, end = split.start, split.end
    with SourceFile(split.path, storage_options) as file:
        look = partial(foreign, protocol=protocol, lines=line_separator is None)
        if compression is not None:
            position = 0
            pieces = checked(decompress(file, compression, block_bytes), look)
        else:
            reason = look(file.read(HEAD_BYTES))
            if reason is not None:
                if not start:
                    # The other splits of the file have nothing.
                    error = DecodeError(reason).at(path=split.path, offset=0)
                    yield BadLine(error, split.path, 0, None)
                return
            position = _seek(file, start, separator) if start else file.seek(0)
            read = file.read if line_separator else partial(file.read_lines, reach=_TAIL_BYTES)
            pieces = _read_plain(read, position, split, separator, block_bytes)
        wanted = marked_lines(marks, line_format, separator)
        cut = partial(
            cut_lines,
            separator=separator,
            limit=max_message_bytes,
            strip_cr=line_separator is None,
            path=split.path,
        )
        if not whole or line_separator is not None or marks or line_format == "message":
            lines = cut(pieces, offset=position, wanted=wanted)
            yield from _messages(lines, parse, start, end)
            return

        def keep(data: bytes, offset: int) -> Lines | None:
            last = offset + data.rfind(b"\n", 0, -1) + 1
            if offset < start or (end is not None and last >= end):
                return None

            def messages() -> Iterator[Message | BadLine]:
                return _messages(cut(iter((data,)), offset=offset), parse)

            return Lines(data, offset, split.path, line_format == "value", parse, messages)

        yield from _messages(cut(pieces, offset=position, keep=keep), parse, start, end)


def foreign(head: bytes, *, protocol: str, lines: bool) -> str | None:
    """The kind of a file that has no messages, and what to do; see :func:`foreign_file`."""

    def recognises(line: bytes) -> bool:
        codecs = default_registry().codecs_of(protocol)
        return recognise(codecs, Message(None, line)) is not None

    return foreign_file(head[:HEAD_BYTES], lines=lines, recognises=recognises)


def checked(pieces: Iterator[bytes], look: Callable[[bytes], str | None]) -> Iterator[bytes]:
    """The pieces of a file.

    :raises DecodeError: if ``look`` finds that the first one has no messages.
    """
    for piece in pieces:
        if (reason := look(piece)) is not None:
            raise DecodeError(reason)
        yield piece
        # Else the name would keep it while the next one is read.
        del piece
        break
    yield from pieces


def _messages(
    lines: Iterator[tuple[int, bytes | BadLine | Lines]],
    parse: Callable[[bytes, int], Message | BadLine],
    start: int = 0,
    end: int | None = None,
) -> Iterator[Any]:
    """The messages of the non-blank lines that begin in ``[start, end)``."""
    for offset, line in lines:
        if offset < start:
            continue
        if end is not None and offset >= end:
            return
        if type(line) is not bytes:
            yield line
            continue
        if not offset and line.startswith(_BOM):
            line, offset = line[len(_BOM) :], len(_BOM)
        if line and not line.isspace():
            message = [parse(line, offset)]
            # Else the names would keep line and message until the next one is requested.
            del line
            yield message.pop()


def cut_lines(
    pieces: Iterator[bytes],
    *,
    offset: int,
    separator: bytes,
    limit: int,
    strip_cr: bool,
    path: str,
    wanted: Callable[[bytes], bool] | None = None,
    keep: Callable[[bytes, int], Lines | None] | None = None,
) -> Iterator[tuple[int, bytes | BadLine | Lines]]:
    """Every line of ``pieces`` with its byte offset; the first one begins at ``offset``.

    A line longer than ``limit`` bytes becomes a BadLine and is never buffered.  A DecodeError from
    ``pieces`` becomes the last BadLine, with the existing part of its line.

    :param wanted: lines of a block that it rejects are left out.
    :param keep: its result for a block and offset, unless None, replaces the block's lines.
    """
    width = len(separator)
    overlap = width - 1
    # The unfinished line, unless too long, in one buffer: an allocator may keep many pieces.
    held = bytearray()
    size, head = 0, b""  # its length so far, buffered or not, and its first bytes
    rest = b""  # its last bytes, not counted yet: a separator may start in them

    def finish(last: bytes) -> bytes | BadLine:
        if not held and not size:
            line = last
        elif size + len(last) > limit + 1:
            return _too_long(size + len(last), limit, head or last, path, offset)
        else:
            held.extend(last)
            line = bytes(held)
            held.clear()
        if strip_cr and line.endswith(b"\r"):
            line = line[:-1]
        return line if len(line) <= limit else _too_long(len(line), limit, line, path, offset)

    while True:
        try:
            piece = next(pieces, None)
        except DecodeError as error:
            fragment = bytes(held + rest) if size <= limit else None
            where = error.at(path=path, offset=offset)
            yield offset, BadLine(where, path, offset, fragment or None)
            return
        if piece is None:
            break
        data = rest + piece if rest else piece
        # Parts of the first and the last line may be in other pieces.
        start = data.find(separator) + width if size else 0
        last = data.rfind(separator) + width
        left_out = 0
        kept = None
        # A line of many blocks is not joined with others, so that it is in memory only once.
        if keep is not None and last >= width and bool(held) == bool(size) and size <= len(data):
            # A block of complete lines, the usual case, is not copied.
            kept = keep(b"".join((held, memoryview(data)[:last])) if held else data[:last], offset)
        if kept is not None:
            yield offset, kept
            offset += len(kept.data)
            held.clear()
            size, head = 0, b""
            lines = [data[last:]]
        elif wanted is not None and start < last and not wanted(data[start:last]):
            if start:
                lines, left_out = [data[: start - width], data[last:]], last - start
            else:
                lines, offset = [data[last:]], offset + last
        else:
            lines = data.split(separator)
        tail = lines.pop()
        if lines:
            length = size + len(lines[0])
            yield offset, finish(lines.pop(0))
            offset += length + width + left_out
            held.clear()
            size, head = 0, b""
        for line in lines:
            length = len(line)
            if strip_cr and length and line[-1] == 13:
                line = line[:-1]
            if len(line) > limit:
                yield offset, _too_long(len(line), limit, line, path, offset)
            else:
                yield offset, line
            offset += length + width
        if overlap:
            tail, rest = tail[:-overlap], tail[-overlap:]
        if tail:
            head += tail[: max(SAMPLE_BYTES - len(head), 0)]
            size += len(tail)
            if size > limit + 1:
                held.clear()
            else:
                held.extend(tail)
    if size or rest:
        yield offset, finish(rest)


def _read_plain(
    read: Callable[[int], bytes], position: int, split: FileSplit, separator: bytes, most: int
) -> Iterator[bytes]:
    end, inside = split.end, position > 0
    while True:
        left = most if end is None else end - position
        piece = read(min(left if left > 0 else _TAIL_BYTES, most))
        if not piece:
            break
        position += len(piece)
        yield piece
        # A line that begins before the split is read by another one, to its end.
        inside = inside and separator not in piece
        # All lines of the split are read; only longer separators may overlap.
        ended = end is not None and position >= end and len(separator) < 2
        if ended and (inside or piece.endswith(separator)):
            return
    if split.size is not None and position < split.size:
        raise SourceError(
            f"file {split.path} ends at byte {position}, but had {split.size} bytes when it was "
            "listed; it was written to in between, so list the input again"
        )


def _seek(file: SourceFile, start: int, separator: bytes) -> int:
    """Seek to a position from which the first line that begins at or after ``start`` is found.

    It is a little before ``start`` and not inside of a separator: reading from there finds the
    same separators as reading from the file's start, even for one that can overlap itself
    (``||`` in ``|||``).
    """
    width = len(separator)
    position = low = max(start - width, 0)
    window = b""  # the bytes from ``low`` on
    while width > 1 and position > 0:
        if low > max(position - width + 1, 0):
            low = max(position - _TAIL_BYTES, 0)
            file.seek(low)
            window = file.read(position - low + width - 1)
        here = position - low
        found = window.rfind(separator, max(here - width + 1, 0), here + width - 1)
        if found < 0:
            break
        position = low + found
    file.seek(position)
    return position


def _too_long(length: int, limit: int, head: bytes, path: str, offset: int) -> BadLine:
    error = DecodeError(
        f"the line has {length} bytes, more than {limit}; raise maxMessageBytes if it is real",
        sample=head[:SAMPLE_BYTES],
    )
    return BadLine(error.at(path=path, offset=offset), path, offset, None)
