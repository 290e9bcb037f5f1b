"""How the rows of a table become messages, as data for the compiled kernel.

The encoder stays the truth: the kernel writes only rows on which nothing is unusual, with the
same bytes.  Everything else is the encoder's, so an encoder need not describe what is rare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Literal, TypeAlias

import attrs

from cdcfmt_core.events import Op, TableSchema

Which: TypeAlias = Literal["before", "after"]


@attrs.frozen
class Number:
    """An integer of the row.

    - ``commit_ts``
    - ``source_millis``: the milliseconds of the commit_ts, or else of the source time
    - ``emit_millis``: the milliseconds of the emit time, or else now
    """

    name: Literal["commit_ts", "source_millis", "emit_millis"]


@attrs.frozen
class Members:
    """The columns of an image, separated by commas, between ``head`` and ``tail``.

    - ``labels``: what stands before the value of each of these columns, in this order.  The values
      are JSON strings of MySQL's text, with what Go escapes, or null.
    - ``missing``: what stands there for a row without this image
    - ``changed``: only columns whose text differs from that of the other image
    """

    image: Which
    labels: Mapping[str, str]
    head: str = "{"
    tail: str = "}"
    missing: str = "null"
    changed: bool = False


@attrs.frozen
class Either:
    """``above`` if the integer of a column is ``limit`` or more, else ``below``, as for NULL."""

    image: Which
    column: str
    limit: int
    below: str
    above: str


@attrs.frozen
class OfExtra:
    """A text or an integer of the event's ``extra``, or else ``default``, which is JSON."""

    name: str
    type: Literal["text", "integer"]
    default: str


Part: TypeAlias = str | Number | Members | Either | OfExtra
"""What stands next in a message; a ``str`` stands there as it is."""


@attrs.frozen
class RowMessage:
    """The messages of one operation: a value, and a key where the format has one."""

    value: tuple[Part, ...]
    key: tuple[Part, ...] | None = None


RowMessages: TypeAlias = Mapping[Op, RowMessage]
"""By operation, after rows were renamed to those that the encoder has.

Only rows with whole images are written by them.
"""


@attrs.frozen
class RowRules:
    """What becomes of the rows of one writer, and how the messages of each table are made.

    - ``ops``: the operation that a row is written as, and under what that is counted, if it is
    - ``needs_commit_ts``: a row without one is the encoder's
    - ``splits``: an update of the key is the encoder's, which makes two rows of it
    - ``max_bytes``: of key and value together; what has more is the encoder's
    - ``time_zone``: of TIMESTAMP texts
    - ``now``: the time in microseconds, for rows without an emit time
    - ``partitions``: of the topic, if there is one
    - ``partitioner``: what the partition of a row depends on, and its columns
    """

    ops: Mapping[Op, tuple[Op, str | None]]
    needs_commit_ts: bool
    splits: bool
    max_bytes: int
    time_zone: tzinfo
    now: Callable[[], int]
    partitions: int | None
    partitioner: tuple[str, tuple[str, ...]]
    messages: Callable[[TableSchema], RowMessages | None]
