"""The offset of a stream of files, of bounded size for any number of files."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import accumulate
from typing import Any

import attrs

from cdcfmt_core.errors import SourceError
from cdcfmt_files.sources.files import FileInfo

VERSION = 1
_MICROSECOND = timedelta(microseconds=1)


@attrs.frozen
class FileOffset:
    """The files of a directory that have been read; times are microseconds since 1970.

    - ``number``: the number of the step.
    - ``floor``: files modified at or before this time count as read.
    - ``old``: the number of these files at the end of the step.
    - ``read``: modification times of the read files modified later, by path.
    - ``batch``: sizes (None: unknown) of the files of the step that ended here, by path, in reading
      order: a repeated step has exactly the same files, whatever has arrived since.
    """

    number: int = 0
    floor: int | None = None
    old: int = 0
    read: Mapping[str, int] = attrs.field(factory=dict)
    batch: Mapping[str, int | None] = attrs.field(factory=dict)

    def is_read(self, file: FileInfo) -> bool:
        """Whether the stream has read this file, or skips it because it arrived too late."""
        return file.path in self.read or self.is_old(file)

    def is_old(self, file: FileInfo) -> bool:
        """Whether the file counts as read by its time."""
        return self.floor is not None and modified(file) <= self.floor

    def old_files(self, files: Iterable[FileInfo]) -> list[FileInfo]:
        """Files not in ``read`` that count as read, being no newer than ``floor``; if more than
        ``old``, some of them arrived late and were never read."""
        return [
            file
            for file in files
            if file.size != 0 and file.path not in self.read and self.is_old(file)
        ]

    def is_changed(self, file: FileInfo) -> bool:
        """Whether the file was modified or replaced after it was read."""
        return file.path in self.read and modified(file) != self.read[file.path]

    def unread(self, files: Iterable[FileInfo]) -> list[FileInfo]:
        """The unread files, by time and path, without empty files, which may still be written."""
        waiting = [file for file in files if file.size != 0 and not self.is_read(file)]
        return sorted(waiting, key=lambda file: (modified(file), file.path))

    def advance(
        self,
        files: Iterable[FileInfo],
        *,
        limit: int | None,
        max_bytes: int | None = None,
        max_age: timedelta,
        now: int,
    ) -> FileOffset:
        """The offset after the next files, at most ``limit``; itself if all are read.

        Together they have at most ``max_bytes``; a larger file comes alone.

        The floor is ``max_age`` before the newest read file, or before ``now`` if that is earlier
        (a file from the future must not exclude others), and always below unread files.
        """
        files = list(files)
        waiting = self.unread(files)
        if not waiting:
            return self
        batch = _limited(waiting, limit, max_bytes)
        # A file changed after reading still counts as read, with its new time.
        known = [file for file in files if file.path in self.read]
        read = {**self.read, **{file.path: modified(file) for file in (*known, *batch)}}
        floor = min(max(read.values()), now) - max_age // _MICROSECOND
        if len(batch) < len(waiting):
            floor = min(floor, modified(waiting[len(batch)]) - 1)
        if self.floor is not None:
            floor = max(floor, self.floor)
        offset = FileOffset(
            self.number + 1,
            floor,
            0,
            {path: time for path, time in read.items() if time > floor},
            {file.path: file.size for file in batch},
        )
        return attrs.evolve(offset, old=len(offset.old_files(files)))

    def to_json(self) -> dict[str, Any]:
        """The offset as a JSON object; a stream's start is ``{"v": 1}``."""
        if not self.number:
            return {"v": VERSION}
        paths = [*self.read, *self.batch]
        # It only shortens the JSON, and URLs have no path components.
        folder = os.path.commonprefix(paths).rpartition("/")[0]  # noqa: RUF071
        cut = len(folder)
        return {
            "v": VERSION,
            "number": self.number,
            "floor": self.floor,
            "old": self.old,
            "folder": folder,
            "read": {path[cut:]: time for path, time in self.read.items()},
            "batch": {path[cut:]: size for path, size in self.batch.items()},
        }

    @classmethod
    def from_json(cls, offset: Any) -> FileOffset:
        """:raises SourceError: if it is damaged, or not from a file stream of this version."""
        if offset == {"v": VERSION}:
            return cls()
        # An offset of topics has the same version and another content.
        if type(offset) is not dict or offset.get("v") != VERSION or "old" not in offset:
            raise SourceError(
                "the checkpoint's offset is not from a stream of files of this version, but from "
                "another version or another source: set a new checkpointLocation, from which all "
                "files are read again"
            )
        try:
            folder = offset["folder"]
            found = cls(
                offset["number"],
                offset["floor"],
                offset["old"],
                {folder + name: time for name, time in offset["read"].items()},
                {folder + name: size for name, size in offset["batch"].items()},
            )
            numbers = (found.number, found.old, *found.read.values())
            or_none = (found.floor, *found.batch.values())
            if not all(type(each) is int for each in numbers) or not all(
                each is None or type(each) is int for each in or_none
            ):
                raise TypeError("a number that is not an integer")
        except (KeyError, TypeError, AttributeError) as error:
            raise SourceError(
                f"the checkpoint's offset is damaged ({error!r:.200}): restore the checkpoint, or "
                "set a new checkpointLocation, from which all files are read again"
            ) from error
        return found


def _limited(
    files: Sequence[FileInfo], limit: int | None, max_bytes: int | None
) -> Sequence[FileInfo]:
    files = files[:limit]
    if max_bytes is None:
        return files
    sizes = accumulate(file.size or 0 for file in files)
    return files[: max(1, bisect_right([*sizes], max_bytes))]


def modified(file: FileInfo) -> int:
    """The file's modification time, in microseconds since 1970.

    :raises SourceError: if its filesystem does not report it.
    """
    if file.mtime is None:
        raise SourceError(
            f"file {file.path} has no modification time, which a stream needs to find new files; "
            "its filesystem can be read in batch only"
        )
    return round(file.mtime * 1_000_000)
