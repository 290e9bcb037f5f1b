"""How a format's rows lie in its messages, as data for the compiled kernel.

The decoder stays the truth: the kernel gets a table's schema from a message that the decoder
decoded, and reads only messages that have it.  Everything else is the decoder's, so a layout
need not cover what is rare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union

import attrs

from cdcfmt_core.events import Op, TableSchema
from cdcfmt_core.types import MAX_TIMESTAMP

if TYPE_CHECKING:
    from cdcfmt_core.schemas.store import SchemaStore
    from cdcfmt_core.toolkit.encodings import Encodings

Role: TypeAlias = Literal[
    "database",
    "schema",
    "table",
    "object_name",
    "same",
    "must_be_false",
    "row",
    "op",
    "commit_ts",
    "source_time",
    "other_time",
    "before",
    "after",
    "position",
    "deleted",
    "row_id",
    "integer",
    "extra",
    "object",
    "passed",
]
"""What a member of the envelope is.

- ``database``, ``schema``, ``table``: names, as the decoder's table schemas have them: rows of
  unwanted tables are skipped by these; ``object_name``: database, perhaps schema, and table, with
  dots between them (of Avro).  ``same``: anything else that a table's schema is made
  of.  A message is like another one only where these are equal (objects in any order).
- ``must_be_false``: true where it is no message of rows, false or null where it is.
- ``row``: one of the layout's ``row_words``, where it is a message of rows; None among these
  stands for null and for no such member.
- ``op``: the word of the operation.
- ``commit_ts``: a TSO, from 0 to 2^63-1.
- ``source_time``, ``other_time``: times in the layout's unit, within its range.  A row needs a
  ``commit_ts`` or a ``source_time``; where no member is a ``commit_ts``, any time.
- ``position``: an integer by which schemas of a stream are ordered; else as ``extra``.
- ``before``, ``after``: images, objects of column → value.  ``deleted``: the image of a deleted
  row, where it has a member of its own.
- ``row_id``: an integer; where it is missing, NULLs in ``before`` may be something else.
- ``integer``: an integer or null, else as ``extra``.
- ``extra``: what only an event's ``extra`` shows.
- ``object``, ``passed``: an object or null, any value, neither of them read.
"""

Members: TypeAlias = Mapping[str, Union[Role, "Members"]]


@attrs.frozen
class Extra:
    """A part of an event's ``extra`` that is a member of the envelope: by which name.

    It is left out where it equals one of ``without``: scalars, an empty list or object.
    ``default`` stands for a missing member; without one that leaves the part out.
    """

    name: str
    without: tuple[Any, ...] = (None,)
    default: Any = None


@attrs.frozen
class Zoned:
    """TIMESTAMP values that are objects of a time zone's name and of text: by which members.

    ``own`` are names of the source's own zone, in small letters.
    """

    zone: str
    text: str
    own: frozenset[str]


@attrs.frozen
class Avro:
    """Messages that are Avro records of one writer's ``schema``.

    The layout's members are the record's fields, or those of a record in it; images are the last
    fields, but for ``optional`` ones, which a message may lack.  Images are maps from column names
    to a union of types, or lists of such values in the order of the table's columns; ``Encoding``
    has the branches.

    - ``values``: the field that is the value, of records in images; what is beside it is passed,
      unless the encoding expects something there.  Without one a record is a list of its values.
    - ``null``: the symbol of an enumeration in images that is NULL; others are missing values.
    - ``least``: of numbers, the smallest one besides 0.
    - ``key_names``: of maps, the names whose values are parts of the schema key.

    The logical type ``unsigned``: a long has the bits of a number without sign.
    """

    schema: Mapping[str, Any]
    values: Mapping[str, str] = attrs.field(factory=dict)
    null: str | None = None
    optional: tuple[str, ...] = ()
    least: Mapping[str, int] = attrs.field(factory=dict)
    key_names: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)


@attrs.frozen
class Layout:
    """Where one producer dialect puts each field of a row message.

    A message with undeclared members does not match, and is the decoder's.

    - ``ops``: operations by the words of ``op``; another word is no row.
    - ``row_words``: what the role ``row`` must be.
    - ``repeats_database``: a ``schema`` that is the database's name may be none.
    - ``in_lists``: images lie in lists, one for each row of the message.
    - ``deleted_row``: where the row of a delete lies.
    - ``completes_before``: a column that ``before`` lacks did not change.
    - ``times``: the smallest and the largest time, and the microseconds in one.  ``iso_times``:
      they are texts as ``2024-01-01T00:00:00.5Z``, and these numbers are microseconds.
    - ``orders_by_source_time``: the source time is exactly ``commit_ts >> 18``, in milliseconds.
    - ``zoned``: what TIMESTAMP values are objects of, if they are.
    - ``begins``: bytes that such a message begins with, in JSON perhaps with blanks between them;
      ``lacks``: bytes that none holds.
    - ``connect``: messages may be Kafka Connect's wrapper of ``payload`` and ``schema``.
    - ``column_types``: the member of ``same`` that must have the type of every column, as text, for
      the schema to depend on nothing else.
    - ``keyed``: the schema depends on the columns of the message's key.
    - ``max_events``: messages are frames of events, as the Open Protocol has them, at most so many.
      ``members`` are then those of objects ``key`` and ``value``.  The latter holds images, and the
      roles ``after``, ``before`` (if there) and ``deleted`` are the words of ``ops``.  The value
      and the envelope that a callable is given are an event's value and key.
    - ``cell``: the member of a column that has its value; a column's other members must be the same
      in all rows.
    - ``doubts_nulls``: NULLs in ``before`` may be something else where there is no ``row_id`` and
      nothing that did not change.
    - ``avro``: messages are Avro records.  ``reads_before``: values before updates have to be good
      ones, also where no row has them; ``reads_all``: values of all columns have to be.

    The kernel's bridge calls these once a table schema, with a message that has it:

    - ``encodings(value, table)``: the value encodings of the columns.
    - ``extra(envelope)``: the parts of an event's ``extra`` by the paths of their members; it may
      depend on the members ``same``.  Without it events are the decoder's.
    - ``limits(envelope, schemas)``, for schemas that come from other messages: the numbers between
      which some members, by their paths, must lie for the schema to be the same; None where that
      cannot be known.  Such members are a ``commit_ts``, a time, or a ``position``.
    """

    members: Members
    ops: Mapping[str, Op]
    encodings: Callable[[bytes, TableSchema], Encodings]
    row_words: tuple[str | int | None, ...] = ()
    repeats_database: bool = False
    zoned: Zoned | None = None
    in_lists: bool = False
    deleted_row: Literal["before", "after"] = "before"
    completes_before: bool = False
    times: tuple[int, int, int] = (0, MAX_TIMESTAMP // 1000, 1000)
    iso_times: bool = False
    orders_by_source_time: bool = False
    begins: bytes = b""
    lacks: tuple[bytes, ...] = ()
    connect: bool = False
    column_types: str | None = None
    keyed: bool = False
    cell: str | None = None
    doubts_nulls: bool = False
    max_events: int | None = None
    avro: Avro | None = None
    reads_before: bool = False
    reads_all: bool = False
    extra: Callable[[Mapping[str, Any]], Mapping[tuple[str, ...], Extra]] | None = None
    limits: (
        Callable[[Mapping[str, Any], SchemaStore], Mapping[tuple[str, ...], tuple[int, int]] | None]
        | None
    ) = None
