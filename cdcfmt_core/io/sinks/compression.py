"""Compression of files while writing."""

from __future__ import annotations

import gzip
import importlib
from collections.abc import Callable
from typing import IO, Any, Final

from cdcfmt_core.errors import MissingDependencyError

COMPRESSIONS: Final = ("none", "gzip", "zstd")
SUFFIXES: Final = {"none": "", "gzip": ".gz", "zstd": ".zst"}


def open_compressed(file: IO[bytes], compression: str) -> Any:
    """A file to write to; closing it leaves ``file`` open.

    :raises MissingDependencyError: if zstandard is needed and missing.
    """
    return _WRITERS[compression](file)


def _plain(file: IO[bytes]) -> Any:
    return _Unclosed(file)


def _gzip(file: IO[bytes]) -> Any:
    # Without time and name, so that equal messages give equal files.
    return gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)


def _zstd(file: IO[bytes]) -> Any:
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError as error:
        raise MissingDependencyError(
            "writing .zst files needs zstandard: pip install 'cdcfmt-core[files]'"
        ) from error
    return zstandard.ZstdCompressor().stream_writer(file, closefd=False)


class _Unclosed:
    def __init__(self, file: IO[bytes]) -> None:
        self.write = file.write

    def close(self) -> None:
        pass


_WRITERS: dict[str, Callable[[IO[bytes]], Any]] = {"none": _plain, "gzip": _gzip, "zstd": _zstd}
