"""What decoding by columns needs from outside: the reference path, and formats with layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeAlias

import attrs
import pyarrow as pa

from cdcfmt_core.events import Message, RowChange
from cdcfmt_core.sources import BadLine
from pyspark_cdcfmt.columnar.avro_look import LookByBeginning
from pyspark_cdcfmt.columnar.looks import EventsLook, Look
from pyspark_cdcfmt.columnar.plans import Plan
from pyspark_cdcfmt.columnar.scan_plans import ScanPlan

Row: TypeAlias = tuple[Any, ...]


class Rows(Protocol):
    """What makes the rows of a message: one by one, or as a list that must not be split."""

    def rows(self, message: Message | BadLine) -> Iterator[Row]: ...

    def listed(self, message: Message | BadLine, weigh: Callable[[Row], int]) -> Iterable[Row]: ...


@attrs.define
class Reference:
    """The reference path: ``make`` raises in FAILFAST mode; ``weigh`` gives about the bytes of a
    row in a batch.

    ``changes`` are the row changes in the message before, and None if it may have changed
    what other messages mean.
    """

    make: Rows
    weigh: Callable[[Row], int]
    changes: Callable[[], list[RowChange] | None]
    found_nothing_wrong: Callable[[], bool]
    batch: Callable[[list[Row]], pa.RecordBatch]

    def rows(self, message: Message | BadLine, *, in_list: bool) -> Iterable[Row]:
        """The rows of a message; ``in_list`` if they stay together."""
        return self.make.listed(message, self.weigh) if in_list else self.make.rows(message)


@attrs.frozen
class Format:
    """A format that has layouts.

    ``recognises`` tells messages that the decoder would take for it, if the last one was;
    None where nothing else can come.  ``by_schemas``: what rows mean depends on other messages
    only as far as the store of schemas is told of something new.
    """

    look: Look | EventsLook | LookByBeginning
    learn: Callable[[Message, list[RowChange]], Plan | ScanPlan]
    by_schemas: bool
    recognises: Callable[[Message], bool] | None = None
