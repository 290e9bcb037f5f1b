"""Which files of a folder that cdcfmt writes are committed.

Beside its files such a folder has ``_cdcfmt/``: ``staged/`` with files that are being
written, and ``commits/`` with one manifest for each commit, which lists its files.  A
file of ours that no manifest lists is left over from a commit that failed.  Files of
other names are none of our business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from cdcfmt_core.errors import SourceError
from cdcfmt_core.sources.filesystem import FileSystem

MARKER: Final = "_cdcfmt/sink.json"
"""Says that a folder has manifests, also before its first commit."""

STAGED: Final = "_cdcfmt/staged"
COMMITS: Final = "_cdcfmt/commits"

_OURS = re.compile(r"part-[0-9a-f]{32}-\d+-(?:\d+|driver)-[0-9a-f]+-\d+\.jsonl(?:\.\w+)?").fullmatch


def is_ours(name: str) -> bool:
    """Whether a file of this name was written by cdcfmt."""
    return _OURS(name) is not None


@attrs.frozen
class Manifest:
    """One commit: its files by name, and the commits that it took the place of."""

    files: tuple[str, ...]
    replaces: tuple[str, ...] = ()

    def to_json(self, **more: Any) -> bytes:
        return json.dumps({"version": 1, **more, **attrs.asdict(self)}).encode()

    @classmethod
    def from_json(cls, data: bytes, path: str) -> Manifest:
        """:raises SourceError: if it is none, or of a later version."""
        try:
            parsed = json.loads(data)
            if parsed["version"] == 1:
                return cls(tuple(parsed["files"]), tuple(parsed["replaces"]))
        except (ValueError, KeyError, TypeError) as error:
            raise SourceError(
                f"manifest {path} cannot be read ({error!r}); it says which files beside it are "
                "committed: restore it"
            ) from error
        raise SourceError(f"manifest {path} was written by a later version of cdcfmt; update it")


def read_manifests(filesystem: FileSystem, folder: str) -> dict[str, Manifest]:
    """The manifests of a folder that count, by name."""
    commits = f"{folder.rstrip('/')}/{COMMITS}"
    try:
        listed = filesystem.ls(commits, detail=True)
    except FileNotFoundError:
        return {}
    found = {}
    for info in listed:
        path = str(info["name"])
        name = path.rpartition("/")[2]
        if name.endswith(".json") and not name.startswith("."):
            try:
                with filesystem.open(path, "rb") as file:
                    found[name] = Manifest.from_json(file.read(), path)
            except FileNotFoundError:
                # Replaced since it was listed.
                continue
    return still_valid(found)


def still_valid(manifests: Mapping[str, Manifest]) -> dict[str, Manifest]:
    """Without those that others took the place of."""
    replaced = {name for manifest in manifests.values() for name in manifest.replaces}
    return {name: manifest for name, manifest in manifests.items() if name not in replaced}


def committed_files(manifests: Iterable[Manifest]) -> set[str]:
    """The names of the files that they list."""
    return {name for manifest in manifests for name in manifest.files}


class Committed:
    """Tells of paths whether a reader shall see them; looks into each folder once."""

    def __init__(self, filesystem: FileSystem) -> None:
        self._filesystem = filesystem
        self._folders: dict[str, set[str] | None] = {}

    def shows(self, path: str) -> bool:
        """Whether a file is committed, or not ours."""
        folder, _, name = path.rpartition("/")
        if not is_ours(name):
            return True
        if folder not in self._folders:
            self._folders[folder] = self._visible(folder)
        visible = self._folders[folder]
        return visible is None or name in visible

    def _visible(self, folder: str) -> set[str] | None:
        if not self._filesystem.exists(f"{folder}/{MARKER}"):
            # Somebody copied the files elsewhere.
            return None
        return committed_files(read_manifests(self._filesystem, folder).values())
