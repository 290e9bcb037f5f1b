from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

import attrs
import pytest

from cdcfmt_core.events import Message
from cdcfmt_files.sources import wrap_line
from cdcfmt_testing.transports import Harness, Login, TransportTests

SEGMENT = 3
"""Maximum number of messages per segment."""


@attrs.frozen
class SpoolHarness(Harness):
    """Topics in a folder, written by hand."""

    root: Path

    def create_topic(self, partitions: int) -> str:
        name = f"topic-{uuid.uuid4()}"
        self._make(name, partitions)
        return name

    def _make(self, topic: str, partitions: int) -> None:
        for partition in range(partitions):
            (self.root / topic / str(partition)).mkdir(parents=True)
        (self.root / topic / "lock").write_text(str(uuid.uuid4()))

    def append(self, topic: str, messages: Sequence[Message]) -> None:
        now = time.time_ns() // 1_000_000
        for partition, mine in groupby(messages, key=lambda message: message.partition or 0):
            lines = [wrap_line(attrs.evolve(message, timestamp=now)) + b"\n" for message in mine]
            for at in range(0, len(lines), SEGMENT):
                some = lines[at : at + SEGMENT]
                self._segment(topic, partition, len(some)).write_bytes(b"".join(some))

    def _segment(self, topic: str, partition: int, size: int) -> Path:
        """The file of the next segment, with ``size`` offsets."""
        folder = self.root / topic / str(partition)
        last = max((path.stem for path in folder.glob("*.jsonl")), default="0-0")
        start = int(last.split("-")[1])
        return folder / f"{start:020}-{start + size:020}.jsonl"

    def reading(self, topic: str) -> Mapping[str, str]:
        return {
            "spool.path": str(self.root),
            "subscribe": topic,
            "startingOffsets": "earliest",
        }

    def writing(self, topic: str) -> Mapping[str, str]:
        return {"spool.path": str(self.root), "topic": topic}

    def leave_gap(self, topic: str, partition: int) -> None:
        self._segment(topic, partition, 3).touch()

    def delete_head(self, topic: str, partition: int) -> None:
        for path in sorted((self.root / topic / str(partition)).glob("*.jsonl"))[:4]:
            path.unlink()

    def add_partition(self, topic: str) -> None:
        count = sum(path.is_dir() for path in (self.root / topic).iterdir())
        (self.root / topic / str(count)).mkdir()

    def delete_topic(self, topic: str) -> None:
        shutil.rmtree(self.root / topic)

    def recreate_topic(self, topic: str) -> None:
        self.delete_topic(topic)
        self._make(topic, 1)

    def unreachable(self) -> Mapping[str, str]:
        return {"spool.path": str(self.root / "nowhere")}

    def login(self) -> Login:
        (self.root / "token").write_text("s3cr3t-word")
        return Login({"spool.token": "s3cr3t-word"}, "s3cr3t-word")

    def wrong_login(self) -> Login:
        self.login()
        return Login({"spool.token": "wr0ng-word"}, "wr0ng-word")

    def addresses(self) -> tuple[str, str]:
        return str(self.root), str(self.root / "nowhere")


class TestSpool(TransportTests):
    transport = "spool"

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Harness:
        return SpoolHarness(tmp_path)
