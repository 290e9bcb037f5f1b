"""Chunks of messages, scanned by all plans that scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from cdcfmt_core.events import Message
from cdcfmt_core.sources import BadLine
from cdcfmt_core.texts import open_logger
from pyspark_cdcfmt.columnar.avro_look import LookByBeginning
from pyspark_cdcfmt.columnar.avro_scan import MAX_BYTES
from pyspark_cdcfmt.columnar.avro_windows import Places, Windows
from pyspark_cdcfmt.columnar.looks import Kind
from pyspark_cdcfmt.columnar.scan_plans import ScanPlan
from pyspark_cdcfmt.columnar.scanned import Scanned

logger = open_logger("pyspark_cdcfmt")

SCANNED_MESSAGES: Final = 2048
SCANNED_BYTES: Final = 4 << 20
"""As much is scanned at a time: each step costs the same for few messages as for many."""


@attrs.frozen(eq=False)
class Scan:
    """What a plan has read of a chunk."""

    plan: ScanPlan
    scanned: Scanned


@attrs.frozen
class Found:
    """A message that was read: its number among the scan's documents."""

    scan: Scan
    document: int


class ScannedChunk:
    """What ``plans`` have read of a chunk's messages from ``start`` on, and what the others are.

    Messages of more than ``limit`` bytes are not read.
    """

    def __init__(
        self,
        plans: Sequence[ScanPlan],
        look: LookByBeginning,
        chunk: Sequence[Message | BadLine],
        start: int,
        limit: int,
    ) -> None:
        self.plans = plans
        self.look = look
        self._scans: list[tuple[Scan, Places]] = []
        self._kinds: dict[int, Kind | None] | None = None
        self._found: dict[int, Found] | None = None
        self._places = [
            place
            for place, message in enumerate(chunk[start:], start)
            if type(message) is Message
            and message.value is not None
            and len(message.value) <= limit
            and message.value.startswith(look.begins)
        ]
        self._windows = Windows([chunk[place].value or b"" for place in self._places])
        self._left = self._windows.all
        self._reads_all = False
        if self._windows.limit > MAX_BYTES:
            return
        for plan in plans:
            if not self._left.size:
                break
            try:
                scan = Scan(plan, plan.scan.scan(self._windows, self._left))
            except Exception as error:
                # As of all of this path: the reference reads them.
                logger.warning("cdc: not scanned: %s: %s", type(error).__name__, error)
                continue
            self._scans.append((scan, self._left))
            self._left = self._left[scan.scanned.left]
        self._reads_all = not self._left.size and len(self._places) == len(chunk)

    @property
    def whole(self) -> Scan | None:
        """What has read all of the chunk."""
        return self._scans[0][0] if self._reads_all and len(self._scans) == 1 else None

    def found(self, place: int) -> Found | None:
        """Where a message of the chunk was read."""
        if self._found is None:
            self._found = {}
            for scan, documents in self._scans:
                read = np.delete(np.arange(len(documents)), scan.scanned.left)
                for at, document in zip(read.tolist(), documents[read].tolist(), strict=True):
                    self._found[self._places[document]] = Found(scan, at)
        return self._found.get(place)

    def kind(self, place: int) -> Kind | None:
        """What a message is that was not read; None where it takes a look at it alone."""
        if self._kinds is None:
            places = [self._places[document] for document in self._left.tolist()]
            kinds = self.look.at_all(self._windows, self._left)
            self._kinds = dict(zip(places, kinds, strict=True))
        return self._kinds.get(place)
