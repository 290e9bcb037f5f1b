"""Create files atomically."""

from __future__ import annotations

import contextlib
import os
import re
import uuid

from cdcfmt_toolkit.filesystem import FileSystem, is_local

_UNFINISHED = re.compile(r"\.[\w-]+\.json\.[0-9a-f]{32}").fullmatch


def is_unfinished(name: str) -> bool:
    """Whether the name is that of an unfinished file of :func:`create`."""
    return _UNFINISHED(name) is not None


def move(filesystem: FileSystem, source: str, target: str) -> None:
    if is_local(filesystem):
        os.rename(source, target)
    else:
        filesystem.mv(source, target)


def remove(filesystem: FileSystem, path: str) -> None:
    """Remove a file, ignoring failures."""
    with contextlib.suppress(OSError):
        filesystem.rm_file(path)


def sync_folder(filesystem: FileSystem, folder: str) -> None:
    """Make the names of new files in a local folder survive a crash."""
    if not is_local(filesystem):
        return
    # Some filesystems cannot sync folders, and Windows cannot open them.
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def create(filesystem: FileSystem, path: str, data: bytes) -> None:
    """Create a file completely or not at all; FileExistsError if it exists."""
    if not is_local(filesystem):
        if filesystem.exists(path):
            raise FileExistsError(path)
        # Object stores show a file only when it is complete.
        with filesystem.open(path, "wb") as file:
            file.write(data)
        return
    folder, _, name = path.rpartition("/")
    aside = f"{folder}/.{name}.{uuid.uuid4().hex}"
    try:
        with open(aside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(aside, path)
        except FileExistsError:
            raise
        except OSError:
            # A filesystem without hard links.
            if os.path.exists(path):
                raise FileExistsError(path) from None
            os.rename(aside, path)
        sync_folder(filesystem, folder)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(aside)
