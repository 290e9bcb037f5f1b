"""Files as output: staged, then moved and listed in a manifest.

The manifest is the commit: files are moved first, and readers see all of them at once when the
manifest lists them (:mod:`cdcfmt_files.sources.commits`).  A commit id is committed only once,
however often it is tried, even if its manifest was merged since
(:mod:`cdcfmt_files.sinks.merging`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from cdcfmt_core.errors import SinkError, SourceError
from cdcfmt_files.sinks.merging import CommitId, commit_copied_files, in_merged, merge_manifests
from cdcfmt_files.sinks.placing import create, is_unfinished, move, remove, sync_folder
from cdcfmt_files.sources.commits import (
    COMMITS,
    MARKER,
    STAGED,
    Manifest,
    committed_files,
    is_ours,
    read_manifests,
)
from cdcfmt_files.sources.compression import SUFFIXES, open_compressed
from cdcfmt_files.sources.files import list_files
from cdcfmt_toolkit.filesystem import FileSystem, is_local, modified_at, open_filesystem

LEFTOVER_SECONDS: Final = 7 * 24 * 3600
"""Age at which uncommitted files are removed; no task writes that long."""

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@attrs.frozen
class FileSink:
    """A folder to write files to.  It can be pickled.

    ``path``: any path that fsspec can open; a missing local folder is created.
    """

    path: str
    storage_options: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    compression: str = "none"
    max_records_per_file: int = 0

    def prepare(self) -> None:
        """Create the folder, before any task writes.

        :raises SinkError: if it cannot be written.
        """
        filesystem, root = self._open()
        with self._failures("folder"):
            if is_local(filesystem):
                for folder in (STAGED, COMMITS):
                    os.makedirs(f"{root}/{folder}", exist_ok=True)
            if not filesystem.exists(f"{root}/{MARKER}"):
                commit_copied_files(filesystem, root)
                with filesystem.open(f"{root}/{MARKER}", "wb") as file:
                    file.write(b'{"version": 1}\n')

    def visible_files(self) -> list[str]:
        """The paths of the files that readers find."""
        filesystem, root = self._open()
        if not filesystem.exists(root):
            return []
        return [file.path for file in list_files(self.path, storage_options=self.storage_options)]

    def open_task(self, commit_id: CommitId, task: int | str) -> TaskFiles:
        """The files of one attempt of one task."""
        # An attempt of an earlier run may still write with the same number.
        token = uuid.uuid4().hex[:12]
        number = f"{task:05d}" if isinstance(task, int) else task
        return TaskFiles(self, f"part-{commit_id.query}-{commit_id.batch:08d}-{number}-{token}")

    def is_committed(self, commit_id: CommitId) -> bool:
        filesystem, root = self._open()
        filesystem.invalidate_cache()
        # In this order: a manifest is removed after the merged one is created.
        return filesystem.exists(f"{root}/{COMMITS}/{commit_id.manifest}") or in_merged(
            filesystem, root, commit_id
        )

    def last_commits(self, query: str) -> tuple[int, list[str]]:
        """A query's next batch number, and the files of its batches, newest first.

        Overwritten batches keep their numbers.
        """
        filesystem, root = self._open()
        valid = read_manifests(filesystem, root)
        known = [*valid, *(name for manifest in valid.values() for name in manifest.replaces)]
        batches = {
            found.batch: valid.get(name)
            for name in known
            if (found := CommitId.parse(name)) is not None and found.query == query
        }
        files = [
            f"{self.path.rstrip('/')}/{name}"
            for _, manifest in sorted(batches.items(), reverse=True)
            if manifest is not None
            for name in reversed(manifest.files)
        ]
        return max(batches, default=-1) + 1, files

    def commit(self, commit_id: CommitId, names: Sequence[str], *, overwrite: bool = False) -> bool:
        """Make staged files visible, all at once; False if this id is already committed.

        ``overwrite``: remove the files of all earlier commits.

        :raises SinkError: if it fails; then no file is visible.
        """
        filesystem, root = self._open()
        if self.is_committed(commit_id):
            self._leave(names)
            return False
        earlier = read_manifests(filesystem, root) if overwrite else {}
        with self._failures("commit"):
            for name in names:
                move(filesystem, f"{root}/{STAGED}/{name}", f"{root}/{name}")
            # After a crash no manifest may exist without its files.
            sync_folder(filesystem, root)
            manifest = Manifest(tuple(names), tuple(sorted(earlier)))
            data = manifest.to_json(query=commit_id.query, batch=commit_id.batch)
            path = f"{root}/{COMMITS}/{commit_id.manifest}"
            try:
                create(filesystem, path, data)
            except FileExistsError:
                self._leave(names)
                return False
        if in_merged(filesystem, root, commit_id):
            # Another driver was so much faster that its manifest is already merged.
            remove(filesystem, path)
            self._leave(names)
            return False
        for name in committed_files(earlier.values()):
            remove(filesystem, f"{root}/{name}")
        with contextlib.suppress(OSError, SourceError):
            # If merging fails, the next commit tries again.
            merge_manifests(filesystem, root)
        return True

    def _leave(self, names: Sequence[str]) -> None:
        """Remove the files of a commit whose id is committed, except committed files."""
        filesystem, root = self._open()
        visible = committed_files(read_manifests(filesystem, root).values())
        self.discard(name for name in names if name not in visible)

    def discard(self, names: Iterable[str]) -> None:
        """Remove uncommitted files, ignoring failures."""
        filesystem, root = self._open()
        for name in names:
            remove(filesystem, f"{root}/{STAGED}/{name}")
            remove(filesystem, f"{root}/{name}")

    def abort(self, commit_id: CommitId, names: Iterable[str]) -> None:
        """Remove the files of a failed commit, unless it succeeded after all."""
        if not self.is_committed(commit_id):
            self.discard(names)

    def sweep(self, older_than: float | None = None) -> None:
        """Remove the leftovers of failed tasks and commits; ``older_than``: a Unix time."""
        if older_than is None:
            older_than = time.time() - LEFTOVER_SECONDS
        filesystem, root = self._open()
        visible = committed_files(read_manifests(filesystem, root).values())
        commits = f"{root}/{COMMITS}"
        for folder in (root, f"{root}/{STAGED}", commits):
            try:
                listed = filesystem.ls(folder, detail=True)
            except OSError:
                continue
            for info in listed:
                path = str(info["name"])
                name = path.rpartition("/")[2]
                modified = modified_at(info)
                is_left = is_unfinished(name) if folder == commits else is_ours(name)
                if (
                    is_left
                    and not (folder == root and name in visible)
                    and modified is not None
                    and modified < older_than
                ):
                    remove(filesystem, path)

    def _open(self) -> tuple[FileSystem, str]:
        filesystem, root = open_filesystem(self.path, self.storage_options)
        return filesystem, root.rstrip("/")

    @contextlib.contextmanager
    def _failures(self, what: str) -> Any:
        try:
            yield
        except OSError as error:
            raise failure(f"{what} in {self.path}", error) from error


class TaskFiles:
    """The staged files of one attempt of one task; none until the first write."""

    def __init__(self, sink: FileSink, stem: str) -> None:
        self._sink = sink
        self._stem = stem
        self._filesystem, root = open_filesystem(sink.path, sink.storage_options)
        self._folder = f"{root.rstrip('/')}/{STAGED}"
        self._names: list[str] = []
        self._raw: Any = None
        self._file: Any = None
        self._records = 0

    def write(self, line: bytes) -> None:
        """:raises SinkError: if it cannot be written."""
        self.write_lines(line + b"\n", 1)

    def write_lines(self, lines: bytes, count: int) -> None:
        """Write ``count`` lines, each with a line end.

        :raises SinkError: if they cannot be written.
        """
        if not count:
            # An encoder keeps its last messages back, so a batch of rows may have none.
            return
        if self._file is None:
            self._start()
        most = self._sink.max_records_per_file
        if most and self._records + count > most:
            for line in lines.split(b"\n")[:-1]:
                self.write(line)
            return
        try:
            self._file.write(lines)
        except OSError as error:
            raise failure(f"file {self._names[-1]} under {self._sink.path}", error) from error
        self._records += count
        if self._records == most:
            self._end()

    def close(self) -> list[str]:
        """Complete the files, and return their names."""
        self._end()
        return self._names

    def discard(self) -> None:
        """Abort: remove the written files, ignoring failures."""
        for file in (self._file, self._raw):
            with contextlib.suppress(Exception):
                if file is not None:
                    file.close()
        self._file = self._raw = None
        for name in self._names:
            remove(self._filesystem, f"{self._folder}/{name}")

    def _start(self) -> None:
        suffix = SUFFIXES[self._sink.compression]
        name = f"{self._stem}-{len(self._names):04d}.jsonl{suffix}"
        self._records = 0
        try:
            if is_local(self._filesystem):
                os.makedirs(self._folder, exist_ok=True)
            self._raw = self._filesystem.open(f"{self._folder}/{name}", "wb")
        except OSError as error:
            raise failure(f"file {name} under {self._sink.path}", error) from error
        self._names.append(name)
        self._file = open_compressed(self._raw, self._sink.compression)

    def _end(self) -> None:
        if self._file is None:
            return
        try:
            self._file.close()
            if is_local(self._filesystem):
                # After a crash no manifest may exist without its files.
                self._raw.flush()
                os.fsync(self._raw.fileno())
            self._raw.close()
        except OSError as error:
            raise failure(f"file {self._names[-1]} under {self._sink.path}", error) from error
        self._file = self._raw = None


def failure(what: str, error: OSError) -> SinkError:
    """The error for something that cannot be written."""
    hint = "check that the path is writable, and run again"
    if error.errno in _NO_ROOM:
        hint = "there is no room left: make room, or write elsewhere, and run again"
    return SinkError(f"{what} cannot be written ({error}); nothing of it is visible; {hint}")
