"""Messages on their way to a batch."""

from __future__ import annotations

from collections.abc import Sequence
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

    ``read`` is what plans have decoded of the present chunk: structs of messages, or of their
    events, with the numbers of the messages and the places in them.
    ``skipped`` counts those that nobody wants.
    """

    messages: list[Message | BadLine] = attrs.field(factory=list)
    read: dict[Plan, tuple[list[Any], list[int], list[int]]] = attrs.field(factory=dict)
    gathered: dict[Plan, Gathered | GatheredEvents] = attrs.field(factory=dict)
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
            if plan not in self.gathered:
                self.gathered[plan] = GatheredEvents(plan) if plan.event else Gathered(plan)
            gathered = self.gathered[plan]
            raw = [self.messages[owner] for owner in owners]
            if isinstance(gathered, Gathered) and any(index):
                gathered.add(decoded, owners, raw, index)
            else:
                gathered.add(decoded, owners, raw)
        self.read.clear()

    def give_up(self) -> None:
        """All of it is left to the reference."""
        self.read.clear()
        self.gathered.clear()
        self.left = list(range(len(self.messages)))
