"""Topics in a folder: their ids, partitions and segments."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from pathlib import Path

import attrs

from cdcfmt_core.errors import CdcfmtError, OptionError, SourceError
from cdcfmt_core.transport import Check


@attrs.frozen
class Segment:
    """A file with the messages of ``start`` <= offset < ``end``."""

    start: int
    end: int
    path: Path


@attrs.frozen
class Folder:
    """The folder of all topics; its token is never shown."""

    path: Path
    token: str = attrs.field(default="", repr=False)

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Folder:
        """:raises OptionError: for unknown settings, and without a path."""
        if other := settings.keys() - {"path", "token"}:
            raise OptionError(f"option spool.{min(other)}: use spool.path and spool.token")
        if not settings.get("path"):
            raise OptionError("option spool.path is missing: the folder of the topics")
        return cls(Path(settings["path"]), settings.get("token", ""))

    def topic(self, name: str, error: type[CdcfmtError] = SourceError) -> Path | None:
        """The folder of a topic; None if the topic does not exist.

        :raises CdcfmtError: ``error``, if the folder is missing, or needs another token.
        """
        if not self.path.is_dir():
            raise error(f"there is no folder {self.path}; check spool.path")
        token = self.path / "token"
        if token.exists() and not hmac.compare_digest(token.read_bytes(), self.token.encode()):
            raise error(f"{self.path} cannot be used with this spool.token; check it")
        found = self.path / name
        return found if (found / "lock").exists() else None

    def partitions(self, topic: Path) -> list[int]:
        """The partitions of a topic, in order."""
        return sorted(int(path.name) for path in topic.iterdir() if path.is_dir())

    def segments(self, topic: str, partition: int) -> list[Segment]:
        """The segments of a partition, in order; none if the topic was deleted."""
        folder = self.topic(topic)
        if folder is None:
            return []
        names = (path.stem.split("-") for path in (folder / str(partition)).glob("*.jsonl"))
        spans = sorted((int(start), int(end)) for start, end in names)
        return [Segment(*span, segment_path(folder, partition, *span)) for span in spans]


def segment_path(topic: Path, partition: int, start: int, end: int) -> Path:
    """The file of the segment with these offsets."""
    return topic / str(partition) / f"{start:020}-{end:020}.jsonl"


def diagnose(address: str) -> Iterable[Check]:
    """The checks of ``cdcfmt doctor --spool FOLDER``."""
    path = Path(address)
    if not path.is_dir():
        return [Check(f"Spool {path}", "bad", "there is no such folder", "is it mounted here?")]
    count = sum(1 for _ in path.glob("*/lock"))
    return [Check(f"Spool {path}", "ok", f"{count} topics")]
