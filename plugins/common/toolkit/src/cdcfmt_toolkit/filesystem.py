"""Filesystems for any path that fsspec can open, or pyarrow if fsspec's library is missing."""

from __future__ import annotations

import functools
import importlib
import io
import os
import posixpath
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from cdcfmt_core.errors import CdcfmtError, MissingDependencyError, OptionError, SourceError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://([^/]*)")

# Hadoop's names for its S3 clients, which read the same buckets.
_HADOOP_SCHEMES = {"s3a": "s3", "s3n": "s3"}

_TIME_KEYS = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")


class FileSystem(Protocol):
    """The used part of fsspec's ``AbstractFileSystem``."""

    def info(self, path: str) -> dict[str, Any]: ...
    def ls(self, path: str, detail: bool = ...) -> list[dict[str, Any]]: ...
    def find(self, path: str, *, detail: bool = ...) -> dict[str, dict[str, Any]]: ...
    def open(self, path: str, mode: str = ...) -> Any: ...
    def exists(self, path: str) -> bool: ...
    def isdir(self, path: str) -> bool: ...
    def makedirs(self, path: str, exist_ok: bool = ...) -> None: ...
    def mv(self, path1: str, path2: str) -> None: ...
    def rm_file(self, path: str) -> None: ...
    def invalidate_cache(self) -> None: ...


def open_filesystem(
    path: str, storage_options: Mapping[str, Any] | None = None
) -> tuple[FileSystem, str]:
    """The filesystem of ``path``, and the path in that filesystem's form.

    ``path`` is a local path, a ``file:`` URL or a URL of any fsspec protocol; Hadoop's ``s3a`` and
    ``s3n`` mean ``s3``.  ``storage_options`` are passed to fsspec unchanged.  If the library for a
    scheme is missing and there are no options, pyarrow's filesystem is used instead.

    :raises MissingDependencyError: if a library is missing; the text names it.
    :raises OptionError: if the path is empty, or the filesystem does not accept the options.
    :raises SourceError: if the scheme is unknown or the filesystem cannot be opened.
    """
    if not path:
        raise OptionError("the path is empty; the current folder is .")
    fsspec = _import_fsspec()
    options = dict(storage_options or {})
    match = _SCHEME.match(path)
    scheme = match[1].lower() if match else "file"
    scheme = _HADOOP_SCHEMES.get(scheme, scheme)
    url = scheme + path[match.end(1) :] if match else path
    try:
        implementation = fsspec.get_filesystem_class(scheme)
        # Some schemes have host, port and user in the URL; the user's options win.
        given = {**implementation._get_kwargs_from_urls(url), **options}
        opened: FileSystem = fsspec.filesystem(scheme, **given)
        inner = implementation._strip_protocol(url)
        return opened, _one_spelling(inner) if is_local(opened) else inner
    except ImportError as error:
        return _open_with_pyarrow(scheme, url, options, error)
    except ValueError as error:
        if scheme in fsspec.available_protocols():
            raise SourceError(f"path {path} cannot be opened: {error}") from error
        return _open_with_pyarrow(scheme, url, options, error)
    except TypeError as error:
        raise OptionError(f"storage options for {scheme}://: {error}") from error
    except OSError as error:
        raise SourceError(f"path {path} cannot be opened: {error}") from error


def _one_spelling(path: str) -> str:
    """The one spelling of an absolute path: without ``.``, ``..`` and empty parts."""
    normal = posixpath.normpath("//" + path)
    # Behind a link, ``..`` is another folder.
    is_same = normal == path or os.path.realpath(normal) == os.path.realpath(path)
    return normal if is_same else path


def is_local(filesystem: FileSystem) -> bool:
    """Whether paths of this filesystem are paths of this machine."""
    return isinstance(filesystem, _import_fsspec().implementations.local.LocalFileSystem)


def is_relative(path: str) -> bool:
    """Whether a path means another file in another working folder; URLs do not."""
    return not os.path.isabs(os.path.expanduser(path)) and ":" not in path.partition("/")[0]


def modified_at(info: dict[str, Any]) -> float | None:
    """A listed file's modification time in seconds since the epoch; None if unknown."""
    value = next((info[key] for key in _TIME_KEYS if info.get(key) is not None), None)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            return None
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return aware.timestamp()
    return float(value) if isinstance(value, (int, float)) else None


class SourceFile(io.RawIOBase):
    """A file open for reading; read failures are SourceErrors that name the file.

    This distinguishes them from bad compressed data, which decompressors report as OSError.
    """

    def __init__(self, path: str, storage_options: Mapping[str, Any] | None = None) -> None:
        self.path = path
        filesystem, inner = open_filesystem(path, storage_options)
        try:
            self._file = filesystem.open(inner, "rb")
            self._is_local = is_local(filesystem)
        except OSError as error:
            raise self._failure(error) from error

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Up to ``size`` bytes; empty at the end of the file."""
        try:
            data: bytes = self._file.read(size)
        except OSError as error:
            raise self._failure(error) from error
        return data

    def read_lines(self, size: int, reach: int) -> bytes:
        r"""Like :meth:`read`, plus the rest of the last line if that has at most ``reach`` bytes.

        Lines end with ``\n``.  For remote files equal to :meth:`read`, as looking ahead costs a
        request.
        """
        if not self._is_local:
            return self.read(size)
        try:
            start = self._file.tell()
            self._file.seek(start + size - 1)
            rest: bytes = self._file.readline(reach + 1)
            self._file.seek(start)
        except OSError as error:
            raise self._failure(error) from error
        return self.read(size - 1 + len(rest) if rest.endswith(b"\n") else size)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def seek(self, position: int, whence: int = os.SEEK_SET, /) -> int:
        try:
            return int(self._file.seek(position, whence))
        except (OSError, ValueError) as error:
            raise self._failure(error) from error

    def close(self) -> None:
        # ``_file`` is missing if the constructor failed; close() is called even then.
        file = self.__dict__.get("_file")
        if file is not None and not self.closed:
            file.close()
        super().close()

    def _failure(self, error: Exception) -> SourceError:
        if isinstance(error, FileNotFoundError):
            return SourceError(
                f"file no longer exists: {self.path}; it was removed after it was "
                "listed, so list the input again"
            )
        return SourceError(f"file {self.path} cannot be read: {error}")


def _import_fsspec() -> Any:
    # fsspec has no type stubs; FileSystem types the results.
    try:
        importlib.import_module("fsspec.implementations.local")
        return importlib.import_module("fsspec")
    except ImportError as error:
        raise MissingDependencyError(
            "reading files needs fsspec: pip install cdcfmt-files"
        ) from error


def _open_with_pyarrow(
    scheme: str, url: str, options: Mapping[str, Any], reason: Exception
) -> tuple[FileSystem, str]:
    match = _SCHEME.match(url)
    root = match[0] if match else url
    try:
        if options:
            # pyarrow would open the path without them, as an unknown user.
            raise reason
        filesystem, base = _pyarrow_filesystem(root, os.getpid())
    except (ImportError, ValueError) as error:
        raise _no_filesystem(scheme, url, reason) from error
    except OSError as error:
        raise SourceError(f"path {url} cannot be opened: {error}") from error
    inner = url[len(root) :].strip("/")
    return filesystem, f"{base.rstrip('/')}/{inner}" if inner else base


@functools.lru_cache(maxsize=32)
def _pyarrow_filesystem(root: str, _process: int) -> tuple[FileSystem, str]:
    # Cached, because opening asks the store for its region; per process, because a fork does not
    # copy the clients' threads.  Only the root is parsed, as pyarrow cannot parse all file names
    # as part of a URI.
    pyarrow_fs = importlib.import_module("pyarrow.fs")
    wrapper = importlib.import_module("fsspec.implementations.arrow").ArrowFSWrapper
    filesystem, base = pyarrow_fs.FileSystem.from_uri(root)
    return wrapper(filesystem), base


def _no_filesystem(scheme: str, path: str, reason: Exception) -> CdcfmtError:
    # Not ``fsspec.registry``, which is the dict of loaded classes.
    registry = importlib.import_module("fsspec.registry")
    known = registry.known_implementations.get(scheme)
    if known is None:
        return SourceError(
            f"path {path}: no filesystem is known for {scheme}://; check the spelling, or "
            "install the package that registers it with fsspec"
        )
    package = known["class"].partition(".")[0]
    # For fsspec's own classes, only the error names the missing library.
    command = "" if package == "fsspec" else f"; pip install {package}"
    return MissingDependencyError(
        f"{scheme}:// paths need a library that is not installed: {reason}{command}"
    )
