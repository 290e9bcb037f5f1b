"""Chunks of messages, scanned by all plans that scan."""

from __future__ import annotations

import logging
from collections.abc import Sequence
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
    """What was read of a chunk's messages from ``start`` on, by the numbers they have there.

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
        self.found: dict[int, Found] = {}
        values = [
            message.value if isinstance(message, Message) else None for message in chunk[start:]
        ]
        places = [
            place
            for place, value in enumerate(values, start)
            if value is not None and len(value) <= limit
        ]
        for plan in plans:
            documents = [values[place - start] or b"" for place in places]
            if not documents or sum(map(len, documents)) > MAX_BYTES:
                break
            try:
                scan = Scan(plan, plan.scan.scan(documents))
            except Exception as error:
                # As of all of this path: the reference reads them.
                logger.warning("cdc: not scanned: %s: %s", type(error).__name__, error)
                continue
            left = set(scan.scanned.left)
            for document, place in enumerate(places):
                if document not in left:
                    self.found[place] = Found(scan, document)
            places = [places[document] for document in scan.scanned.left]
