"""Messages on their way to a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import attrs

from cdcfmt_core.events import Message
from cdcfmt_core.sources import BadLine, Lines
from pyspark_cdcfmt.columnar.event_rows import GatheredEvents
from pyspark_cdcfmt.columnar.plans import Plan
from pyspark_cdcfmt.columnar.rows import Gathered
from pyspark_cdcfmt.columnar.scan_chunks import Found, Scan
from pyspark_cdcfmt.columnar.scan_events import GatheredScanEvents
from pyspark_cdcfmt.columnar.scan_plans import ScanPlan
from pyspark_cdcfmt.columnar.scan_rows import GatheredScans

AnyGathered: TypeAlias = Gathered | GatheredEvents | GatheredScans | GatheredScanEvents


@attrs.define
class Pending:
    """Messages that are no batch yet: ``gathered`` by plans, or ``left`` to the reference.

    ``read`` is what plans have decoded of the present chunk: structs of messages, or of their
    events, with the numbers of the messages and the places in them; ``scanned`` are the messages
    that were scanned, by their numbers among the scan's documents.
    ``skipped`` counts those that nobody wants.  Of ``lines`` that a plan read in one piece
    there are no ``messages``, but None for each; they are kept with the number of their first.
    """

    messages: list[Message | BadLine | None] = attrs.field(factory=list)
    lines: dict[int, Lines] = attrs.field(factory=dict)
    read: dict[Plan, tuple[list[Any], list[int], list[int]]] = attrs.field(factory=dict)
    scanned: dict[Scan, tuple[list[int], list[int]]] = attrs.field(factory=dict)
    gathered: dict[Plan | ScanPlan, AnyGathered] = attrs.field(factory=dict)
    left: list[int] = attrs.field(factory=list)
    skipped: int = 0
    size: int = 0

    def add(
        self, message: Message | BadLine, size: int, plan: Plan | None, decoded: list[Any]
    ) -> None:
        """A message, decoded by a plan or left to the reference."""
        here = len(self.messages)
        if plan is None:
            self.left.append(here)
        else:
            bucket = self.read.setdefault(plan, ([], [], []))
            bucket[0].extend(decoded)
            bucket[1].extend([here] * len(decoded))
            bucket[2].extend(range(len(decoded)))
        self.messages.append(message)
        self.size += size

    def add_lines(self, lines: Lines, plan: Plan, decoded: list[Any]) -> None:
        """Lines that a plan has decoded; they become cells at once."""
        here = len(self.messages)
        self.lines[here] = lines
        self.messages += [None] * len(decoded)
        self.size += len(lines.data)
        self._gathered(plan).add(decoded, range(here, len(self.messages)), lines)

    def message(self, place: int) -> Message | BadLine:
        """One of the messages."""
        message = self.messages[place]
        if message is not None:
            return message
        here = max(start for start in self.lines if start <= place)
        return self.lines[here].message(place - here)

    def add_found(self, message: Message, size: int, found: Found) -> None:
        """A message that was scanned."""
        documents, owners = self.scanned.setdefault(found.scan, ([], []))
        documents.append(found.document)
        owners.append(len(self.messages))
        self.messages.append(message)
        self.size += size

    def add_whole(self, chunk: Sequence[Message | BadLine], scan: Scan) -> None:
        """A chunk all of which was scanned."""
        here = len(self.messages)
        self.messages += chunk
        self.scanned[scan] = (list(range(len(chunk))), list(range(here, len(self.messages))))
        self.size += sum(len(message.value or b"") for message in chunk)

    def add_all(
        self,
        messages: Sequence[Message | BadLine],
        size: int,
        plan: Plan,
        decoded: list[Any],
        counts: Sequence[int] | None,
    ) -> None:
        """A whole chunk, decoded by one plan; ``counts`` are of its messages' events."""
        here = len(self.messages)
        owners = list(range(here, here + len(messages)))
        index = [0] * len(messages)
        if counts is not None:
            owners = [
                owner for owner, count in zip(owners, counts, strict=True) for _ in range(count)
            ]
            index = [place for count in counts for place in range(count)]
        self.read[plan] = (decoded, owners, index)
        self.messages += messages
        self.size += size

    def skip(self, message: Message) -> None:
        """A message that has no rows."""
        self.messages.append(message)
        self.skipped += 1

    def gather(self) -> None:
        """What was decoded becomes cells."""
        for plan, (decoded, owners, index) in self.read.items():
            origins = [self.message(owner) for owner in owners]
            gathered = self._gathered(plan)
            if isinstance(gathered, Gathered) and any(index):
                gathered.add(decoded, owners, origins, index)
            else:
                gathered.add(decoded, owners, origins)
        self.read.clear()
        for scan, (documents, owners) in self.scanned.items():
            scans = self.gathered.get(scan.plan)
            if not isinstance(scans, GatheredScans | GatheredScanEvents):
                scans = (
                    GatheredScanEvents(scan.plan) if scan.plan.event else GatheredScans(scan.plan)
                )
                self.gathered[scan.plan] = scans
            origins = [self.message(owner) for owner in owners]
            scans.add(scan.scanned, documents, owners, origins)
        self.scanned.clear()

    def _gathered(self, plan: Plan) -> Gathered | GatheredEvents:
        gathered = self.gathered.get(plan)
        if gathered is None or isinstance(gathered, GatheredScans | GatheredScanEvents):
            gathered = GatheredEvents(plan) if plan.event else Gathered(plan)
            self.gathered[plan] = gathered
        return gathered

    @property
    def row_bytes(self) -> int:
        """The bytes of the gathered rows besides their values."""
        return sum(
            len(gathered.owners) * (plan.repeats + plan.row_bytes)
            for plan, gathered in self.gathered.items()
        )

    def give_up(self) -> None:
        """All of it is left to the reference."""
        self.read.clear()
        self.scanned.clear()
        self.gathered.clear()
        self.left = list(range(len(self.messages)))
