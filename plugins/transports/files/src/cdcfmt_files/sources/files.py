"""List the files of an input: files, directories and globs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

import attrs

from cdcfmt_core.errors import CdcfmtError, OptionError, SourceError
from cdcfmt_files.sources.commits import Committed
from cdcfmt_files.sources.globs import compile_name, expand_braces, has_magic
from cdcfmt_toolkit.filesystem import (
    FileSystem,
    is_local,
    is_relative,
    modified_at,
    open_filesystem,
)

FILES_WITHOUT_MESSAGES: tuple[tuple[str | None, str, str], ...] = (
    (None, "metadata", "TiCDC's storage sink: its checkpoint"),
    ("meta", "schema_*.json", "TiCDC's storage sink: table definitions"),
    ("meta", "CDC*.index", "TiCDC's storage sink: the name of the newest file"),
)
"""Files to skip next to the data: folder (None: any), glob on the name, and reason."""


@attrs.frozen
class FileInfo:
    """A file of the input.

    - ``path``: an absolute path, or a URL as the user spelt it.
    - ``size``: stored bytes; None if the filesystem does not report it.
    - ``mtime``: modification time in seconds since the epoch; None if unknown.
    """

    path: str
    size: int | None
    mtime: float | None = None


def list_files(
    paths: str | Iterable[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
    path_glob_filter: str | None = None,
    empty_globs: bool = False,
) -> list[FileInfo]:
    """The files of ``paths``, sorted by path, without duplicates.

    A path is a file, a directory (with everything below it) or a glob; the name of an existing
    file or directory is not a glob.  Below the given path, names that Spark hides (``_x``, ``.x``)
    are skipped unless the glob spells them out, and :data:`FILES_WITHOUT_MESSAGES` are skipped
    unless the path is the file itself.

    :param path_glob_filter: a glob on the file name.
    :param empty_globs: accept a glob without matches.
    :raises SourceError: if a path does not exist, a glob matches nothing, or something
        cannot be listed.
    :raises OptionError: if a glob is malformed.
    """
    if path_glob_filter is not None and (not path_glob_filter or "/" in path_glob_filter):
        raise OptionError(
            f"option pathGlobFilter: {path_glob_filter!r} is not a glob on file names; to select "
            "folders, use a glob as the path"
        )
    wanted = None if path_glob_filter is None else compile_name(path_glob_filter)
    found: dict[str, FileInfo] = {}
    for path in [paths] if isinstance(paths, str) else paths:
        with _listing(path):
            for file in _expand(path, storage_options, empty_globs=empty_globs):
                if wanted is None or wanted.fullmatch(_name(file.path)):
                    found[file.path] = file
    return [found[path] for path in sorted(found)]


def check_paths(paths: Iterable[str], *, storage_options: Mapping[str, Any] | None = None) -> None:
    """Check, without listing folders, that paths exist; globs may match later.

    :raises SourceError: for a path that does not exist or cannot be opened.
    """
    for path in paths:
        with _listing(path):
            if not has_magic(path) and _find(path, storage_options)[2] is None:
                raise _missing(path)


@contextmanager
def _listing(path: str) -> Iterator[None]:
    try:
        yield
    except CdcfmtError:
        raise
    except Exception as error:
        # Clients of object stores have exceptions of their own.
        raise SourceError(f"path {path} cannot be listed: {error}") from error


def _missing(path: str) -> SourceError:
    place = f", relative to {os.getcwd()}" if is_relative(path) else ""
    return SourceError(f"path does not exist: {path}{place}")


def is_hidden(name: str) -> bool:
    """Whether Spark hides a file or folder of this name; ``_a=1`` is a partition, not hidden."""
    return (
        name.startswith(".")
        or (name.startswith("_") and "=" not in name)
        or name.endswith("._COPYING_")
    )


def _expand(
    path: str, options: Mapping[str, Any] | None, *, empty_globs: bool
) -> Iterator[FileInfo]:
    filesystem, inner, info = _find(path, options)
    if info is not None:
        yield from _files(filesystem, info, _Naming(filesystem, path, inner), literal=True)
        return
    matches = 0
    if has_magic(path):
        for pattern in expand_braces(path):
            base, parts = _split_glob(pattern)
            filesystem, inner = open_filesystem(base, options)
            naming = _Naming(filesystem, base, inner)
            for info in _match(filesystem, inner, parts, naming.committed):
                matches += 1
                yield from _files(filesystem, info, naming, literal=False)
    if not has_magic(path):
        raise _missing(path)
    if not matches and not empty_globs:
        raise SourceError(f"path does not exist: {path}; the glob matches nothing")


def _find(
    path: str, options: Mapping[str, Any] | None
) -> tuple[FileSystem, str, dict[str, Any] | None]:
    """The filesystem of a path, the path's form there, and the entry of this very name."""
    filesystem, inner = open_filesystem(path, options)
    # Remote filesystems cache listings; a stream that polls must see new files.
    filesystem.invalidate_cache()
    return filesystem, inner, _info(filesystem, inner)


class _Naming:
    """Converts a filesystem's own path back to one that can be opened.

    The part before the filesystem's path (scheme, host, account) is taken from the user's path, as
    filesystems do not report it.  ``committed`` decides which files of a folder are visible.
    """

    def __init__(self, filesystem: FileSystem, url: str, inner: str) -> None:
        self._local = is_local(filesystem)
        self.committed = Committed(filesystem)
        self._url, self._inner = url, inner.rstrip("/")
        scheme, mark, rest = url.rpartition("://")
        self._folder = scheme + mark + (rest.rstrip("/") + "/" if rest else "")

    def __call__(self, inner: str) -> str:
        if self._local:
            return inner
        below = inner[len(self._inner) :].lstrip("/")
        return self._folder + below if below else self._url


def _files(
    filesystem: FileSystem, info: dict[str, Any], naming: _Naming, *, literal: bool
) -> Iterator[FileInfo]:
    if info["type"] == "directory":
        for child in _files_below(filesystem, _path(info), naming.committed):
            if not _without_messages(_path(child)) and naming.committed.shows(_path(child)):
                yield _file_info(child, naming)
    elif info["type"] == "file":
        shown = not _without_messages(_path(info)) and naming.committed.shows(_path(info))
        if literal or shown:
            yield _file_info(info, naming)
    elif literal:
        raise SourceError(f"path {naming(_path(info))} is neither a file nor a directory")


def _files_below(
    filesystem: FileSystem, folder: str, committed: Committed
) -> Iterator[dict[str, Any]]:
    if is_local(filesystem):
        for _, children in _walk(filesystem, folder, committed):
            yield from (child for child in children if child["type"] == "file")
        return
    # Object stores list a whole tree with few requests.
    for name, info in committed.find(folder).items():
        below = name[len(folder.rstrip("/")) :].strip("/")
        if info["type"] == "file" and not any(map(is_hidden, below.split("/"))):
            yield info


def _walk(
    filesystem: FileSystem, folder: str, committed: Committed
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """``folder`` and every folder below it that is not hidden, with their visible entries."""
    local = is_local(filesystem)
    stack, seen = [folder], set()
    while stack:
        folder = stack.pop()
        if local:
            # Links may form a loop.
            identity = os.path.realpath(folder)
            if identity in seen:
                continue
            seen.add(identity)
        listed = _children(filesystem, folder, committed)
        children = [child for child in listed if not is_hidden(_name(_path(child)))]
        yield folder, children
        stack.extend(_path(child) for child in children if child["type"] == "directory")


def _match(
    filesystem: FileSystem, folder: str, parts: list[str], committed: Committed
) -> Iterator[dict[str, Any]]:
    """The matches for the glob components ``parts`` below ``folder``."""
    info = _info(filesystem, folder)
    if info is None or not parts:
        if info is not None:
            yield info
        return
    if info["type"] != "directory":
        return
    part, rest = parts[0], parts[1:]
    if part == "**":
        walked = _walk(filesystem, folder, committed)
        folders = [inner for inner, _ in walked] if rest else [folder]
        for inner in folders:
            yield from _match(filesystem, inner, rest, committed)
    elif not has_magic(part):
        yield from _match(filesystem, f"{folder.rstrip('/')}/{part}", rest, committed)
    else:
        pattern, spelt_out = compile_name(part), part[:1] in ("_", ".")
        for child in _children(filesystem, folder, committed):
            name = _name(_path(child))
            if pattern.fullmatch(name) and (spelt_out or not is_hidden(name)):
                if not rest:
                    yield child
                elif child["type"] == "directory":
                    yield from _match(filesystem, _path(child), rest, committed)


def _children(
    filesystem: FileSystem, folder: str, committed: Committed
) -> Iterator[dict[str, Any]]:
    for info in committed.ls(folder):
        if info.get("islink"):
            # The listing describes the link; its target is needed.
            name = _path(info)
            target = None if is_hidden(_name(name)) else _info(filesystem, name)
            if target is None and not is_hidden(_name(name)):
                raise SourceError(f"path does not exist: {name} is a broken link")
            info = target or info
        if _path(info) != folder.rstrip("/"):
            yield info


def _split_glob(pattern: str) -> tuple[str, list[str]]:
    """The part before the first glob component, and the components from that one on."""
    scheme, mark, rest = pattern.rpartition("://") if "://" in pattern else ("", "", pattern)
    parts = rest.split("/")
    first = next((i for i, part in enumerate(parts) if has_magic(part)), len(parts))
    base = "/".join(parts[:first]) or ("/" if first else "" if mark else ".")
    return scheme + mark + base, [part for part in parts[first:] if part]


def _info(filesystem: FileSystem, path: str) -> dict[str, Any] | None:
    try:
        return filesystem.info(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _file_info(info: dict[str, Any], naming: _Naming) -> FileInfo:
    size = info.get("size")
    return FileInfo(naming(_path(info)), None if size is None else int(size), modified_at(info))


def _without_messages(path: str) -> bool:
    parent, _, name = path.rstrip("/").rpartition("/")
    return any(
        fnmatchcase(name, pattern) and folder in (None, _name(parent))
        for folder, pattern, _ in FILES_WITHOUT_MESSAGES
    )


def _path(info: dict[str, Any]) -> str:
    return str(info["name"]).rstrip("/")


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
