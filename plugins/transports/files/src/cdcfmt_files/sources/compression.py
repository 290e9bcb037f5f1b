"""Decompress files as streams of bytes, in bounded memory, and compress them while writing.

For every input, a decompressed piece has at most the size of one read, or of one zstd block.
"""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, Final, Literal, TypeAlias

from cdcfmt_core.errors import DecodeError, MissingDependencyError, SourceError
from cdcfmt_toolkit.foreign import BY_DATAFRAME, EXTRACT, RECOMPRESS

Compression: TypeAlias = Literal["gzip", "zstd", "bzip2"]

_SUFFIXES: dict[str, Compression] = {
    ".gz": "gzip",
    ".gzip": "gzip",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".bz2": "bzip2",
}
# Read as plain text, these would only give bad lines.
_UNREADABLE_COMPRESSIONS = (".xz", ".lz4", ".snappy", ".lzo", ".br", ".deflate", ".zip", ".7z")
_ARCHIVES = (".tar", ".tgz", ".tar.gz", ".tar.zst", ".tar.bz2")
_TABLES = (".parquet", ".orc", ".avro")
_UNREADABLE_SUFFIXES = {
    **dict.fromkeys(_UNREADABLE_COMPRESSIONS, RECOMPRESS),
    **dict.fromkeys(_ARCHIVES, EXTRACT),
    **dict.fromkeys(_TABLES, BY_DATAFRAME),
}

_BZIP2_BYTES = 1 << 18
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_MAGICS: dict[bytes, Compression] = {
    b"\x1f\x8b\x08": "gzip",
    _ZSTD_MAGIC: "zstd",
    b"BZh": "bzip2",
}
_ZSTD_DICTIONARY_SIZES = (0, 1, 2, 4)


def compression_of(path: str) -> Compression | None:
    """The compression by the file's name; None for a plain file.

    :raises SourceError: for a file type that cannot be read.
    """
    name = path.lower()
    for suffix, remedy in _UNREADABLE_SUFFIXES.items():
        if name.endswith(suffix):
            raise SourceError(
                f"file {path}: {suffix} files cannot be read; {remedy}, or leave it out with "
                "pathGlobFilter"
            )
    for suffix, compression in _SUFFIXES.items():
        if name.endswith(suffix):
            return compression
    return None


def compression_of_head(head: bytes) -> Compression | None:
    """The compression of data without a name, by its first bytes; None if it is plain."""
    return next((name for magic, name in _MAGICS.items() if head.startswith(magic)), None)


def may_begin_compressed(head: bytes) -> bool:
    """Whether more bytes are needed to know the compression."""
    return any(len(head) < len(magic) and magic.startswith(head) for magic in _MAGICS)


def decompress(file: io.RawIOBase, compression: Compression, piece_bytes: int) -> Iterator[bytes]:
    """The content of ``file`` in pieces, from all its members or frames.

    :raises DecodeError: after the last readable piece, if the data is damaged or cut off.
    :raises MissingDependencyError: if zstandard is needed and missing.
    """
    return _READERS[compression](file, piece_bytes)


def _gzip(file: io.RawIOBase, piece_bytes: int) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=file, mode="rb") as stream:
        while True:
            try:
                # Not read(), which loses the data before the damage.
                piece = stream.read1(piece_bytes)
            except EOFError as error:
                raise _cut_off("gzip") from error
            except (OSError, zlib.error) as error:
                raise _damaged("gzip", error) from error
            if not piece:
                return
            yield piece


def _bzip2(file: io.RawIOBase, piece_bytes: int) -> Iterator[bytes]:
    """Decompress stream by stream: BZ2File treats a damaged stream as the end of the file."""
    while data := file.read(_BZIP2_BYTES):
        while data:
            decompressor = bz2.BZ2Decompressor()
            while not decompressor.eof:
                try:
                    piece = decompressor.decompress(data, piece_bytes)
                except OSError as error:
                    raise _damaged("bzip2", error) from error
                if piece:
                    yield piece
                data = b""
                if decompressor.needs_input and not (data := file.read(_BZIP2_BYTES) or b""):
                    raise _cut_off("bzip2")
            data = decompressor.unused_data


def _zstd(file: io.RawIOBase, _: int) -> Iterator[bytes]:
    """Walk the frames (RFC 8878) and decompress them block by block.

    zstandard's own stream reader accepts a cut-off frame as complete, and its ``decompressobj``
    returns the whole decompressed input at once.
    """
    zstandard = _import_zstandard("reading")
    decompressor = zstandard.ZstdDecompressor()
    buffered = io.BufferedReader(file, 1 << 18)

    def take(count: int) -> bytes:
        data = buffered.read(count)
        if len(data) < count:
            raise _cut_off("zstd")
        return data

    while magic := buffered.read(4):
        if len(magic) == 4 and magic[1:] == b"\x2a\x4d\x18" and magic[0] >> 4 == 5:
            _skip(take, int.from_bytes(take(4), "little"))
        elif magic == _ZSTD_MAGIC:
            try:
                yield from _zstd_frame(decompressor.decompressobj(), take)
            except zstandard.ZstdError as error:
                raise _damaged("zstd", error) from error
        elif _ZSTD_MAGIC.startswith(magic):
            raise _cut_off("zstd")
        else:
            raise _damaged("zstd", f"{magic!r} does not start a frame")


def _zstd_frame(decompressor: Any, take: Callable[[int], bytes]) -> Iterator[bytes]:
    descriptor = take(1)
    flags = descriptor[0]
    single_segment = flags >> 5 & 1
    size_code = flags >> 6
    header = (
        (0 if single_segment else 1)
        + _ZSTD_DICTIONARY_SIZES[flags & 3]
        + (1 << size_code if size_code else single_segment)
    )
    data = _ZSTD_MAGIC + descriptor + take(header)
    last = 0
    while not last:
        block = take(3)
        value = int.from_bytes(block, "little")
        last, kind, size = value & 1, value >> 1 & 3, value >> 3
        data += block + take(1 if kind == 1 else size)
        if last and flags & 4:
            data += take(4)
        if piece := decompressor.decompress(data):
            yield piece
        data = b""


def _skip(take: Callable[[int], bytes], count: int) -> None:
    while count:
        count -= len(take(min(count, 1 << 16)))


def _import_zstandard(what: str) -> Any:
    try:
        return importlib.import_module("zstandard")
    except ImportError as error:
        raise MissingDependencyError(
            f"{what} .zst files needs zstandard: pip install cdcfmt-files"
        ) from error


def _cut_off(name: str) -> DecodeError:
    return DecodeError(f"the {name} data is cut off, the rest is lost; write the file again")


def _damaged(name: str, error: object) -> DecodeError:
    return DecodeError(
        f"the {name} data is damaged ({error}), the rest is lost; write the file again"
    )


_READERS: dict[Compression, Callable[[io.RawIOBase, int], Iterator[bytes]]] = {
    "gzip": _gzip,
    "zstd": _zstd,
    "bzip2": _bzip2,
}


COMPRESSIONS: Final = ("none", "gzip", "zstd")
SUFFIXES: Final = {"none": "", "gzip": ".gz", "zstd": ".zst"}


def open_compressed(file: IO[bytes], compression: str) -> Any:
    """A file to write to; closing it leaves ``file`` open.

    :raises MissingDependencyError: if zstandard is needed and missing.
    """
    return _WRITERS[compression](file)


def _open_gzip(file: IO[bytes]) -> Any:
    # Without time and name, so that equal messages give equal files.
    return gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)


def _open_zstd(file: IO[bytes]) -> Any:
    return _import_zstandard("writing").ZstdCompressor().stream_writer(file, closefd=False)


class _Unclosed:
    def __init__(self, file: IO[bytes]) -> None:
        self.write = file.write

    def close(self) -> None:
        pass


_WRITERS: dict[str, Callable[[IO[bytes]], Any]] = {
    "none": _Unclosed,
    "gzip": _open_gzip,
    "zstd": _open_zstd,
}
