"""What decoding by columns needs from outside: the reference path, and formats with layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import attrs
import pyarrow as pa

from cdcfmt_core.events import Message, RowChange
from cdcfmt_core.sources import BadLine
from pyspark_cdcfmt.columnar.avro_look import LookByBeginning
from pyspark_cdcfmt.columnar.looks import EventsLook, Look
from pyspark_cdcfmt.columnar.plans import Plan
from pyspark_cdcfmt.columnar.scan_plans import ScanPlan

Row: TypeAlias = tuple[Any, ...]


@attrs.define
class Reference:
    """The reference path: ``rows`` of a message, which raises in FAILFAST mode.

    ``changes`` are the row changes in the message before, and None if it may have changed
    what other messages mean.
    """

    rows: Callable[[Message | BadLine], list[Row]]
    changes: Callable[[], list[RowChange] | None]
    found_nothing_wrong: Callable[[], bool]
    batch: Callable[[list[Row]], pa.RecordBatch]


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
