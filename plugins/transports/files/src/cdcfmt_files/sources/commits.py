"""The committed files of a folder that cdcfmt writes.

In addition to its files such a folder has ``_cdcfmt/`` with ``staged/``, the files that are being
written, and ``commits/``, one manifest per commit, which lists its files.  Old manifests are
merged: a file ``merged-…`` holds several of them unchanged, so merging has no visible effect.  A
file with cdcfmt's naming that no manifest lists is the rest of a failed commit.  Files with other
names are ignored.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from cdcfmt_core.errors import SourceError
from cdcfmt_core.texts import parse_json
from cdcfmt_toolkit.filesystem import FileSystem

MARKER: Final = "_cdcfmt/sink.json"
"""The file that marks a folder as having manifests, even before its first commit."""

STAGED: Final = "_cdcfmt/staged"
COMMITS: Final = "_cdcfmt/commits"
MERGED: Final = "merged-"

_OURS = re.compile(r"part-[0-9a-f]{32}-\d+-(?:\d+|driver)-[0-9a-f]+-\d+\.jsonl(?:\.\w+)?").fullmatch
_PATIENCE_SECONDS = 60.0


def is_ours(name: str) -> bool:
    """Whether a file of this name was written by cdcfmt."""
    return _OURS(name) is not None


@attrs.frozen
class Manifest:
    """One commit: the names of its files, and the commits that it replaces."""

    files: tuple[str, ...]
    replaces: tuple[str, ...] = ()

    def to_json(self, **more: Any) -> bytes:
        return json.dumps({"version": 1, **more, **attrs.asdict(self)}).encode()


def merged_to_json(manifests: Mapping[str, Manifest]) -> bytes:
    """The content of a file with several manifests by name."""
    commits = {name: attrs.asdict(manifest) for name, manifest in manifests.items()}
    return json.dumps({"version": 2, "commits": commits}).encode()


def read_manifest_file(filesystem: FileSystem, path: str) -> dict[str, Manifest]:
    """The manifests in one file, by name.

    :raises FileNotFoundError: if it does not exist, or no longer.
    :raises SourceError: if it is invalid, or of a later version.
    """
    with filesystem.open(path, "rb") as file:
        data = file.read()
    name = path.rpartition("/")[2]
    try:
        parsed = parse_json(data)
        if parsed["version"] not in (1, 2):
            raise SourceError(
                f"manifest {path} was written by a later version of cdcfmt; update cdcfmt"
            )
        commits = {name: parsed} if parsed["version"] == 1 else parsed["commits"]
        return {
            name: Manifest(tuple(commit["files"]), tuple(commit["replaces"]))
            for name, commit in commits.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(
            f"manifest {path} cannot be read ({error!r}); it lists the committed files of the "
            "folder: restore it"
        ) from error


def list_manifest_files(filesystem: FileSystem, folder: str) -> set[str]:
    """The names of a folder's manifest files."""
    filesystem.invalidate_cache()
    try:
        listed = filesystem.ls(f"{folder.rstrip('/')}/{COMMITS}", detail=False)
    except FileNotFoundError:
        return set()
    names = {str(path).rstrip("/").rpartition("/")[2] for path in listed}
    return {name for name in names if name.endswith(".json") and not name.startswith(".")}


def read_manifests(filesystem: FileSystem, folder: str) -> dict[str, Manifest]:
    """The valid manifests of a folder, by name.

    :raises SourceError: if one cannot be read.
    """
    folder = folder.rstrip("/")
    files: dict[str, dict[str, Manifest]] | None = None
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        # A listing may lack files that are created or removed during it: while manifests are
        # merged, it may have neither the old nor the new ones.  Two equal listings are complete.
        listed = list_manifest_files(filesystem, folder)
        if files is not None and listed == files.keys():
            break
        known, files = files or {}, {}
        for name in listed:
            try:
                found = known.get(name) or read_manifest_file(
                    filesystem, f"{folder}/{COMMITS}/{name}"
                )
            except FileNotFoundError:
                # It was merged after the listing.
                continue
            files[name] = found
        if time.monotonic() > deadline:
            raise SourceError(f"the manifests in {folder}/{COMMITS} keep changing; try again")
    return still_valid(join_manifests(files))


def join_manifests(files: Mapping[str, Mapping[str, Manifest]]) -> dict[str, Manifest]:
    """The manifests of several files.

    A merged one has precedence: a driver that was thought dead may write its manifest again.
    """
    return {
        commit: manifest
        for name in sorted(files, key=lambda name: name.startswith(MERGED))
        for commit, manifest in files[name].items()
    }


def still_valid(manifests: Mapping[str, Manifest]) -> dict[str, Manifest]:
    """The manifests that no other manifest replaces."""
    replaced = {name for manifest in manifests.values() for name in manifest.replaces}
    return {name: manifest for name, manifest in manifests.items() if name not in replaced}


def committed_files(manifests: Iterable[Manifest]) -> set[str]:
    """The names of all files that the manifests list."""
    return {name for manifest in manifests for name in manifest.files}


class Committed:
    """Lists folders, with either all files of a commit or none."""

    def __init__(self, filesystem: FileSystem) -> None:
        self._filesystem = filesystem
        self._folders: dict[str, set[str] | None] = {}

    def shows(self, path: str) -> bool:
        """Whether a file is committed, or was not written by cdcfmt."""
        folder, _, name = path.rpartition("/")
        if not is_ours(name):
            return True
        visible = self._committed_in(folder)
        return visible is None or name in visible

    def ls(self, folder: str) -> list[dict[str, Any]]:
        """The entries of a folder."""
        key = folder.rstrip("/")
        while True:
            # Read the manifests first: the files that they list then exist.
            self._committed_in(key)
            listed = self._filesystem.ls(folder, detail=True)
            if self._has_all(key, (str(info["name"]) for info in listed)):
                return listed

    def find(self, folder: str) -> dict[str, dict[str, Any]]:
        """All files below a folder, by path."""
        while True:
            found = self._filesystem.find(folder, detail=True)
            sinks = [path[: -len(MARKER) - 1] for path in found if path.endswith(f"/{MARKER}")]
            new = [sink for sink in sinks if sink not in self._folders]
            for sink in new:
                self._committed_in(sink)
            if not new and all(self._has_all(sink, found) for sink in sinks):
                return found
            self._filesystem.invalidate_cache()

    def _has_all(self, folder: str, paths: Iterable[str]) -> bool:
        """Whether all committed files are listed or permanently removed; False: list again."""
        visible = self._folders.get(folder)
        if not visible or visible <= {path.rpartition("/")[2] for path in paths}:
            return True
        # The files were overwritten, or removed by hand.
        del self._folders[folder]
        return self._committed_in(folder) == visible

    def _committed_in(self, folder: str) -> set[str] | None:
        if folder not in self._folders:
            visible = None
            # A folder without the marker is a copy of committed files.
            if self._filesystem.exists(f"{folder}/{MARKER}"):
                visible = committed_files(read_manifests(self._filesystem, folder).values())
            self._folders[folder] = visible
        return self._folders[folder]
