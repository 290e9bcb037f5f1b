"""Merge the manifests of many commits into few files.

A stream that runs for months writes a manifest per batch, and readers open all of them.  So ten
of them become one file, ten such files a larger one, and so on: a million commits take about fifty
files, and each manifest is copied six times.  A merged file holds manifests unchanged, and its
parts are removed after it is created.  A process that reads both, stops at any step, or merges
concurrently sees the same commits.
"""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from typing import Final

import attrs

from cdcfmt_files.sinks.placing import create, remove
from cdcfmt_files.sources.commits import (
    COMMITS,
    MARKER,
    MERGED,
    Manifest,
    is_ours,
    list_manifest_files,
    merged_to_json,
    read_manifest_file,
)
from cdcfmt_toolkit.filesystem import FileSystem

MERGE_AT: Final = 10
"""The number of files to merge into one, as in Spark's own file sink."""

_ONCE = "once"
_SINGLE = re.compile(r"([0-9a-f]{32})-(\d{20})\.json").fullmatch
_SINGLE_ONCE = re.compile(r"once-[0-9a-f]{32}\.json").fullmatch
_MERGED = re.compile(rf"{MERGED}(\d+)-(once|[0-9a-f]{{32}})-(\d+)-(\d+)-(\d+)-\w+\.json").fullmatch


@attrs.frozen
class CommitId:
    """The id of a commit.

    - ``query``: 32 hexadecimal digits; ``batch``: increases within a query.
    - ``once``: no later run has this id, as ``query`` was generated for a single write.
    """

    query: str
    batch: int = 0
    once: bool = False

    @classmethod
    def of(cls, name: str, batch: int = 0) -> CommitId:
        """The id of a batch of a query of any name."""
        try:
            return cls(uuid.UUID(name).hex, batch)
        except ValueError:
            return cls(uuid.uuid5(uuid.NAMESPACE_OID, name).hex, batch)

    @classmethod
    def new(cls) -> CommitId:
        """A new id, for a write that is never retried."""
        return cls(uuid.uuid4().hex, once=True)

    @classmethod
    def parse(cls, manifest: str) -> CommitId | None:
        """The id from the name of a manifest; None for a write without batches."""
        found = _SINGLE(manifest)
        return None if found is None else cls(found[1], int(found[2]))

    @property
    def manifest(self) -> str:
        return f"{_ONCE}-{self.query}.json" if self.once else f"{self.query}-{self.batch:020d}.json"


@attrs.frozen
class _ManifestFile:
    """The parsed name of a manifest file: batches ``first`` to ``last`` of a query.

    There may be gaps, as versions that users give need not be consecutive.
    """

    name: str
    level: int
    query: str
    first: int
    last: int
    count: int

    @classmethod
    def parse(cls, name: str) -> _ManifestFile | None:
        if single := _SINGLE(name):
            batch = int(single[2])
            return cls(name, 0, single[1], batch, batch, 1)
        if _SINGLE_ONCE(name):
            return cls(name, 0, _ONCE, 0, 0, 1)
        if merged := _MERGED(name):
            level, first, last, count = (int(merged[group]) for group in (1, 3, 4, 5))
            return cls(name, level, merged[2], first, last, count)
        return None


def commit_copied_files(filesystem: FileSystem, root: str) -> None:
    """Commit the files of a folder without a marker, which were copied from another folder.

    Readers see them, but would not see uncommitted files after the marker exists.
    """
    filesystem.invalidate_cache()
    try:
        listed = filesystem.ls(root, detail=False)
    except FileNotFoundError:
        return
    names = sorted(filter(is_ours, (str(path).rpartition("/")[2] for path in listed)))
    # Meanwhile another writer may have created the marker and its files.
    if names and not filesystem.exists(f"{root}/{MARKER}"):
        manifest = f"{root}/{COMMITS}/{CommitId.new().manifest}"
        create(filesystem, manifest, Manifest(tuple(names)).to_json())


def in_merged(filesystem: FileSystem, root: str, commit_id: CommitId) -> bool:
    """Whether the manifest of a commit is merged."""
    return not commit_id.once and _is_in_merged(
        filesystem, root, list_manifest_files(filesystem, root), commit_id
    )


def _is_in_merged(filesystem: FileSystem, root: str, names: set[str], commit_id: CommitId) -> bool:
    for file in map(_ManifestFile.parse, names):
        if (
            file is not None
            and file.level > 0
            and file.query == commit_id.query
            and file.first <= commit_id.batch <= file.last
        ):
            if file.count == file.last - file.first + 1:
                return True
            try:
                if commit_id.manifest in _read(filesystem, root, file.name):
                    return True
            except FileNotFoundError:
                # It was merged again after the listing.
                return in_merged(filesystem, root, commit_id)
    return False


def merge_manifests(filesystem: FileSystem, root: str) -> None:
    """Merge manifests if there are enough.

    :raises OSError: if it fails, which is harmless.
    :raises SourceError: if a manifest cannot be read.
    """
    while True:
        names = list_manifest_files(filesystem, root)
        groups: dict[tuple[int, str], list[_ManifestFile]] = defaultdict(list)
        for file in map(_ManifestFile.parse, names):
            if file is not None:
                groups[file.level, file.query].append(file)
        full = [parts for parts in groups.values() if len(parts) >= MERGE_AT]
        if not full:
            return
        for parts in full:
            _merge(filesystem, root, names, sorted(parts, key=lambda part: part.first))


def _merge(filesystem: FileSystem, root: str, names: set[str], parts: list[_ManifestFile]) -> None:
    manifests: dict[str, Manifest] = {}
    for part in parts:
        # The first commit of an id, which is already merged, is the valid one.
        known = (
            part.level == 0
            and part.query != _ONCE
            and _is_in_merged(filesystem, root, names, CommitId(part.query, part.first))
        )
        if not known:
            manifests.update(_read(filesystem, root, part.name))
    if manifests:
        level, query = parts[0].level + 1, parts[0].query
        batches = [int(found[2]) for found in map(_SINGLE, manifests) if found] or [0]
        name = (
            f"{MERGED}{level}-{query}-{min(batches)}-{max(batches)}-{len(manifests)}-"
            f"{uuid.uuid4().hex}.json"
        )
        create(filesystem, f"{root}/{COMMITS}/{name}", merged_to_json(manifests))
    for part in parts:
        remove(filesystem, f"{root}/{COMMITS}/{part.name}")


def _read(filesystem: FileSystem, root: str, name: str) -> dict[str, Manifest]:
    return read_manifest_file(filesystem, f"{root}/{COMMITS}/{name}")
