"""Chunks of messages, scanned by all plans that scan."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from cdcfmt_core.events import Message
from cdcfmt_core.sources import BadLine
from pyspark_cdcfmt.columnar.avro_scan import MAX_BYTES
from pyspark_cdcfmt.columnar.scan_plans import ScanPlan
from pyspark_cdcfmt.columnar.scanned import Scanned

logger = logging.getLogger("pyspark_cdcfmt")

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
    """What ``plans`` have read of a chunk's messages from ``start`` on.

    Messages of more than ``limit`` bytes are not read.
    """

    def __init__(
        self,
        plans: Sequence[ScanPlan],
        chunk: Sequence[Message | BadLine],
        start: int,
        limit: int,
    ) -> None:
        self.plans = plans
        self._scans: list[tuple[Scan, list[int]]] = []
        self._found: dict[int, Found] | None = None
        places: list[int] = []
        if plans:
            places = [
                place
                for place, message in enumerate(chunk[start:], start)
                if type(message) is Message
                and message.value is not None
                and len(message.value) <= limit
            ]
        self._is_whole = not start and len(places) == len(chunk)
        for plan in plans:
            documents = [chunk[place].value or b"" for place in places]
            if not documents or sum(map(len, documents)) > MAX_BYTES:
                break
            try:
                scan = Scan(plan, plan.scan.scan(documents))
            except Exception as error:
                # As of all of this path: the reference reads them.
                logger.warning("cdc: not scanned: %s: %s", type(error).__name__, error)
                continue
            self._scans.append((scan, places))
            places = [places[document] for document in scan.scanned.left]
        self._is_whole = self._is_whole and not places and len(self._scans) == 1

    @property
    def whole(self) -> Scan | None:
        """What has read all of the chunk."""
        return self._scans[0][0] if self._is_whole else None

    @property
    def found(self) -> Mapping[int, Found]:
        """What was read, by the messages' numbers in the chunk."""
        if self._found is None:
            self._found = {}
            for scan, places in self._scans:
                left = set(scan.scanned.left)
                self._found.update(
                    (place, Found(scan, document))
                    for document, place in enumerate(places)
                    if document not in left
                )
        return self._found
