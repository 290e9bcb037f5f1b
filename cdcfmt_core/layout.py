"""How a JSON protocol's rows lie in its messages, declared for readers that go by columns.

The decoder stays the truth: a reader learns a table's schema from a message that the decoder
decoded, and reads by columns only messages that are like that one.  Everything else goes to
the decoder, so a layout need not cover what is rare.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Literal, TypeAlias, Union

import attrs

from cdcfmt_core.encodings import Encodings
from cdcfmt_core.events import Op, TableSchema
from cdcfmt_core.schema_store import SchemaStore
from cdcfmt_core.wire_json import MAX_TIME

Role: TypeAlias = Literal[
    "database",
    "schema",
    "table",
    "object_name",
    "same",
    "never",
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

- ``database``, ``schema``, ``table``: names; ``object_name``: database, perhaps schema, and table,
  with dots between them (of Avro).  ``same``: anything else that a table's schema is made
  of.  A message is like another one only where these are equal (objects in any order).
- ``never``: true where it is no message of rows, false or null where it is.
- ``row``: one of the layout's ``row_words``, where it is a message of rows; None among these
  stands for null and for no such member.
- ``op``: the word of the operation.
- ``commit_ts``: a TSO, from 0 to 2^63-1.
- ``source_time``, ``other_time``: times in the layout's unit, within its range.
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
class Parser:
    """What makes a column's value of its JSON value; ``parse`` None: that is the value.

    ``text`` does the same for text alone, which is MySQL's own where ``mysql_text``.
    ``plain`` is for texts that become bytes: a regular expression, in RE2's syntax, and what
    does the same for texts that match it, in less time.
    ``signless``: ``extra`` may say of an integer below zero that its sign is not known.
    A JSON value equal to ``noted`` is counted under the text of ``note``, if there is one.
    """

    parse: Callable[[Any], object] | None
    noted: Any = None
    note: str | None = None
    signless: bool = False
    text: Callable[[Any], object] | None = None
    mysql_text: bool = False
    plain: tuple[str, Callable[[str], bytes]] | None = None


Parsers: TypeAlias = Mapping[str, Parser]
"""By columns."""


@attrs.frozen
class Extra:
    """A part of an event's ``extra`` that is a member of the envelope: by which name.

    It is left out where it equals one of ``without``: scalars, an empty list or object.
    ``default`` stands for a missing member; without one that leaves the part out.
    """

    name: str
    without: tuple[Any, ...] = (None,)
    default: Any = None


Split: TypeAlias = Callable[
    [Sequence[bytes | None], Sequence[bytes]],
    tuple[Iterable[bytes], Iterable[bytes], list[int] | None],
]


@attrs.frozen
class Zoned:
    """TIMESTAMP values that are objects of a time zone's name and of text: by which members.

    ``find(name, own)`` gives the zone of a name, which may be the source's own; ValueError if
    there is none.
    """

    zone: str
    text: str
    find: Callable[[str, tzinfo], tzinfo]


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
    - ``key_names``: of maps, the names whose values are parts of the schema key.

    The logical type ``unsigned``: a long has the bits of a number without sign.
    """

    schema: Mapping[str, Any]
    values: Mapping[str, str] = attrs.field(factory=dict)
    null: str | None = None
    optional: tuple[str, ...] = ()
    key_names: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)


@attrs.frozen
class Layout:
    """The messages of rows of one dialect; one that has other members is none of them.

    ``ops`` are the words of ``op``; any other word is no row, and one of ``quiet`` is that of
    messages that change nothing about what others mean.  ``repeats_database``: a ``schema`` that
    is the database's name is none.  ``parsers(value, table, time_zone, counts)`` are those of a
    message's columns, without which only the compiled kernel reads by columns; ``texts`` tells
    that all values are text, but for those that are ``zoned``.  ``in_lists``: images lie in lists,
    one for each row of the message.  ``lacks_images``: an image that an operation has not is
    missing or null.  ``deleted_row`` is where the row of a delete lies.  ``completes_before``: a
    column that ``before`` lacks did not change.  ``times`` are the smallest and the largest time
    and the microseconds in one; ``orders_by_source_time``: it is exactly ``commit_ts >> 18``, in
    milliseconds.

    ``tells_extra``: an event's ``extra`` is made of the members ``extra`` alone (and of
    integers that are ``signless``).

    ``begins`` are the bytes that such a message begins with, and ``lacks`` are bytes that it
    does not hold.  ``frame(value)`` tells where in the value the envelope begins and ends;
    what is around it must be the same; ``connect`` says that this is Kafka Connect's wrapper of
    ``payload`` and ``schema``, if there is one.  ``column_types`` names the member of ``same`` that
    must tell the type of every column, as text, for the schema to depend on nothing else.
    ``keyed``: the schema depends on the columns of the message's key.

    ``split(keys, values)`` is for messages of many events, each a key and a value: it gives the
    keys and the values of all events, as many of both, and how many events each message has,
    or None for one each; it raises where a message is another one or broken.  ``members`` are
    then those of objects ``key`` and ``value``.  The latter holds images, and the roles
    ``after``, ``before`` (if there) and ``deleted`` are the words of ``ops``.
    ``tables(key, value)`` are the databases, tables and commit_ts of a message's events, all
    read as the decoder reads them, or None if one is no row; it raises as ``split``.
    ``cell`` is the member of a column that has its value; a column's other members must be the
    same in all rows.  ``doubts_nulls``: NULLs in ``before`` may be something else where there is no
    ``row_id`` and nothing that did not change.
    ``max_events`` is for the compiled kernel, which splits messages itself: they are frames of
    events, as the Open Protocol has them, and at most so many.  The value and the envelope that a
    callable is given are then an event's value and key.

    ``encodings(value, table)`` are those of a table's columns, for the compiled kernel, which asks
    once a schema, with a message that has it.

    ``extra(envelope)`` are the parts of an event's ``extra`` by the paths of their members, for the
    compiled kernel, which asks once a schema: it may depend on the members ``same``.  There are
    no others.

    ``avro`` is for messages that are no JSON documents; only the compiled kernel reads these by
    columns.  ``reads_before``: values before updates have to be good ones, also where no row has
    them; ``reads_all``: values of all columns have to be.

    ``limits(envelope, schemas)`` is for schemas that come from other messages: between which
    numbers some members, by their paths, must lie for the schema to be the same; None where
    that cannot be told.
    """

    members: Members
    ops: Mapping[str, Op]
    parsers: Callable[[bytes, TableSchema, tzinfo, Counter[str]], Parsers] | None = None
    row_words: tuple[str | int | None, ...] = ()
    repeats_database: bool = False
    quiet: tuple[str, ...] = ()
    texts: bool = False
    zoned: Zoned | None = None
    in_lists: bool = False
    lacks_images: bool = False
    deleted_row: Literal["before", "after"] = "before"
    completes_before: bool = False
    times: tuple[int, int, int] = (0, MAX_TIME // 1000, 1000)
    orders_by_source_time: bool = False
    tells_extra: bool = False
    begins: bytes = b""
    lacks: tuple[bytes, ...] = ()
    frame: Callable[[bytes], tuple[int, int]] | None = None
    connect: bool = False
    column_types: str | None = None
    keyed: bool = False
    split: Split | None = None
    tables: Callable[[bytes, bytes], Sequence[tuple[str, str, int]] | None] | None = None
    cell: str | None = None
    doubts_nulls: bool = False
    max_events: int | None = None
    avro: Avro | None = None
    reads_before: bool = False
    reads_all: bool = False
    encodings: Callable[[bytes, TableSchema], Encodings] | None = None
    extra: Callable[[Mapping[str, Any]], Mapping[tuple[str, ...], Extra]] | None = None
    limits: (
        Callable[[Mapping[str, Any], SchemaStore], Mapping[tuple[str, ...], tuple[int, int]] | None]
        | None
    ) = None
