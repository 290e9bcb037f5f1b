"""How a JSON protocol's rows lie in its messages, declared for readers that go by columns.

The decoder stays the truth: a reader learns a table's schema from a message that the decoder
decoded, and reads by columns only messages that are like that one.  Everything else goes to
the decoder, so a layout need not cover what is rare.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any, Literal, TypeAlias, Union

import attrs

from cdcfmt_core.events import Column, Op
from cdcfmt_core.wire_json import MAX_TIME

Role: TypeAlias = Literal[
    "database",
    "table",
    "same",
    "never",
    "op",
    "commit_ts",
    "source_time",
    "other_time",
    "before",
    "after",
    "passed",
]
"""What a member of the envelope is.

- ``database``, ``table``: their names; ``same``: anything else that a table's schema is made
  of.  A message is like another one only where these are equal (objects in any order).
- ``never``: true where it is no message of rows, false or null where it is.
- ``op``: the word of the operation.
- ``commit_ts``: a TSO, from 0 to 2^63-1.
- ``source_time``, ``other_time``: times in the layout's unit, within its range.
- ``before``, ``after``: images, objects of column → value.
- ``passed``: whatever only other readers look at.
"""

Members: TypeAlias = Mapping[str, Union[Role, "Members"]]


@attrs.frozen
class Layout:
    """The messages of rows of one dialect; one that has other members is none of them.

    ``ops`` are the words of ``op``; any other word is no row.  ``begins`` are the bytes that
    such a message begins with.  ``in_lists``: images lie in lists, one for each row of the
    message.  ``deleted_row`` is where the row of a delete lies.  ``completes_before``: a
    column that ``before`` lacks did not change.  ``times`` are the smallest and the largest
    time and the microseconds in one; ``orders_by_source_time``: it is exactly
    ``commit_ts >> 18``, in milliseconds.  ``column_types`` names the member of ``same`` that
    must tell the type of every column, as text, for the schema to depend on nothing else.

    ``parser(column, time_zone, counts)`` makes the parser of a column whose values are text:
    :func:`cdcfmt_core.mysql.text_parser`, or one that differs from it for binary columns.
    """

    members: Members
    ops: Mapping[str, Op]
    parser: Callable[[Column, tzinfo, Counter[str]], Callable[[Any], object]]
    begins: bytes = b"{"
    in_lists: bool = False
    deleted_row: Literal["before", "after"] = "before"
    completes_before: bool = False
    times: tuple[int, int, int] = (0, MAX_TIME // 1000, 1000)
    orders_by_source_time: bool = False
    column_types: str | None = None
