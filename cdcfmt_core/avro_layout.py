"""How an Avro protocol's rows lie in its messages, declared for readers that go by columns.

As for JSON (:mod:`cdcfmt_core.layout`) the decoder stays the truth: a reader learns a table's
schema from a message that the decoder decoded, and reads by columns only messages that are
like that one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import tzinfo
from typing import Any, Literal, TypeAlias

import attrs

from cdcfmt_core.events import Column, Op, TableSchema

AvroRole: TypeAlias = Literal[
    "database", "table", "same", "never", "op", "commit_ts", "other_time", "extra", "passed"
]
"""What a field is, in the words of :data:`cdcfmt_core.layout.Role`.

``never``: null or false where it is a message of rows.  ``op``: an enumeration.
"""

Form: TypeAlias = Literal["null", "boolean", "long", "float", "double", "bytes", "named"]
"""How a value stands there: ``long`` are ints, too, ``bytes`` strings; ``named`` is a record of
a string that says what the second one means, such as a zone."""

Wire: TypeAlias = Literal["int64", "uint64", "float64", "string", "binary"]


@attrs.frozen
class Field:
    """A field that is no image; ``null``: a union of null and it, in this order.

    ``form`` may be a record, of fields.
    """

    role: AvroRole
    form: Form | tuple[Field, ...] = "long"
    null: bool = False


@attrs.frozen
class ImageField:
    """A union of null and a map from column names to a union of these."""

    role: Literal["before", "after"]
    branches: tuple[Form, ...]


@attrs.frozen
class Cell:
    """How a column's values may stand on the wire, and what they mean there.

    ``branch`` is the number in the union.  ``wire`` is the type that a value has: as a signed
    or unsigned number, a double, text or bytes.  ``open_parse`` makes the function from such
    a value to the column's, or None where it is that; its argument is the text before values
    that are ``named``, "" for others.  ``mysql_text``: it is MySQL's text, with instants in the
    zone that ``zone_of`` finds for that text.

    A ``float`` is the double of the fewest digits that give the float.
    """

    branch: int
    wire: Wire
    open_parse: Callable[[str], Callable[[Any], object] | None]
    mysql_text: bool = False
    zone_of: Callable[[str], tzinfo] | None = None


@attrs.frozen
class AvroLayout:
    """The messages of rows of one schema; a message that goes on behind the fields is none.

    ``begins`` are the bytes that such a message begins with, and ``fields`` what comes behind
    them.  What begins with one of ``quiet`` changes nothing about what others mean.  ``ops`` are
    the meanings of the symbols of ``op``.  ``times`` are the smallest and the largest
    ``other_time`` and the microseconds in one.  ``recognised``: ``sniff`` is sure of what is
    like a message that it is sure of.

    ``cells(column, table, time_zone, counts)`` are the ways in which a column's values may
    stand there, the usual one first.
    """

    begins: bytes
    fields: tuple[Field | ImageField, ...]
    ops: tuple[Op, ...]
    cells: Callable[[Column, TableSchema, tzinfo, Counter[str]], tuple[Cell, ...]]
    times: tuple[int, int, int]
    quiet: tuple[bytes, ...] = ()
    recognised: bool = False
