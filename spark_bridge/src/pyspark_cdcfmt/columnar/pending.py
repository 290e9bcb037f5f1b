"""Messages on their way to a batch."""

from __future__ import annotations

from itertools import chain
from typing import Any

import attrs

from cdcfmt_core.events import Message
from cdcfmt_core.sources import BadLine
from pyspark_cdcfmt.columnar.event_rows import GatheredEvents
from pyspark_cdcfmt.columnar.plans import Plan
from pyspark_cdcfmt.columnar.rows import Gathered


@attrs.define
class Pending:
    """Messages that are no batch yet: ``gathered`` by plans, or ``left`` to the reference.

    ``read`` are those of the present chunk that a plan has decoded, with their numbers.
    ``skipped`` counts those that nobody wants.
    """

    messages: list[Message | BadLine] = attrs.field(factory=list)
    read: dict[Plan, tuple[list[Any], list[int]]] = attrs.field(factory=dict)
    gathered: dict[Plan, Gathered | GatheredEvents] = attrs.field(factory=dict)
    left: list[int] = attrs.field(factory=list)
    skipped: int = 0
    size: int = 0

    def add(self, message: Message, size: int, plan: Plan | None, decoded: Any) -> None:
        """A message, decoded by a plan or left to the reference."""
        here = len(self.messages)
        if plan is None or decoded is None:
            self.left.append(here)
        else:
            bucket = self.read.setdefault(plan, ([], []))
            bucket[0].append(decoded)
            bucket[1].append(here)
        self.messages.append(message)
        self.size += size

    def skip(self, message: Message) -> None:
        """A message that has no rows."""
        self.messages.append(message)
        self.skipped += 1

    def gather(self) -> None:
        """What was decoded becomes cells."""
        for plan, (decoded, owners) in self.read.items():
            if plan not in self.gathered:
                self.gathered[plan] = GatheredEvents(plan) if plan.event else Gathered(plan)
            gathered = self.gathered[plan]
            if isinstance(gathered, Gathered) and plan.layout.split is not None:
                index = [place for events in decoded for place in range(len(events))]
                owners = [
                    owner for owner, events in zip(owners, decoded, strict=True) for _ in events
                ]
                decoded = list(chain.from_iterable(decoded))
                raw = [self.messages[owner] for owner in owners]
                gathered.add(decoded, owners, raw, index if any(index) else None)
                continue
            gathered.add(decoded, owners, [self.messages[owner] for owner in owners])
        self.read.clear()

    def give_up(self) -> None:
        """All of it is left to the reference."""
        self.read.clear()
        self.gathered.clear()
        self.left = list(range(len(self.messages)))
