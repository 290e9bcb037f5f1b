"""Where a format's messages hold the parts of a row, as data for the compiled kernel.

The decoder is the reference: the kernel gets a table's schema from a message that the decoder
decoded, and reads only messages with that schema.  The decoder handles all other messages, so a
layout need not cover rare cases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, Union, get_args

import attrs

from cdcfmt_core.codec import CodecSpec
from cdcfmt_core.errors import BrokenPluginError, join_names, show
from cdcfmt_core.events import Message, Op, TableSchema
from cdcfmt_core.schema_registry import WriterSchema
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.texts import did_you_mean
from cdcfmt_core.types import MAX_TIMESTAMP
from cdcfmt_toolkit.encodings import Encodings

Role: TypeAlias = Literal[
    "database",
    "schema",
    "table",
    "object_name",
    "same",
    "must_be_false",
    "row",
    "op",
    "is_deleted",
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
"""The role of an envelope member.

- ``database``, ``schema``, ``table``: names, equal to those in the decoder's table schemas; rows of
  unwanted tables are skipped by them.  ``object_name``: database, optional schema and table,
  joined by dots.  ``same``: anything else that determines a table's schema.  Two messages
  share a schema only if all of these are equal (objects in any order).
- ``must_be_false``: true if the message is not a row message, else false or null.
- ``row``: one of the layout's ``row_words`` if it is a row message; None in ``row_words`` means
  null or a missing member.
- ``op``: the word for the operation.
- ``is_deleted``: true, or the text ``true``, of a deleted row, whatever the word for the operation,
  which no other row may have.  Only with a writer schema.
- ``commit_ts``: a TSO, from 0 to 2^63-1.
- ``source_time``, ``other_time`` (the emit time): integers in the layout's unit, within its
  range, or texts if ``iso_times``; the decoder reads messages with any other form of time.  A row
  needs a ``commit_ts`` or a ``source_time``; if no member has the role ``commit_ts``, any time; if
  the layout has no times, none.
- ``position``: an integer that orders the schemas of a stream; otherwise like ``extra``.
- ``before``, ``after``: images, objects of column → value.  ``deleted``: the image of a deleted
  row, if it has its own member.
- ``row_id``: an integer; if it is missing, see ``nulls_may_mean_unknown``.
- ``integer``: an integer or null; otherwise like ``extra``.
- ``extra``: a value that is used only in an event's ``extra``.
- ``object``, ``passed``: an object or null, and any value; both are skipped.
"""

Members: TypeAlias = Mapping[str, Union[Role, "Members"]]

Path: TypeAlias = tuple[str, ...]
"""The names that lead to a member."""

LogPaths: TypeAlias = tuple[Path | None, Path | None, Path | None, Path | None]
"""The members of a position in the source's log: server, file, offset, change."""

_OPS = tuple(op for op in get_args(Op) if op != "truncate")


@attrs.frozen
class Extra:
    """An envelope member that becomes a part of an event's ``extra``.

    - ``name``: the part's name in ``extra``.
    - ``without``: values for which the part is left out: scalars, an empty list or object.
    - ``default``: the value for a missing member; None: the part is left out.
    """

    name: str
    without: tuple[Any, ...] = (None,)
    default: Any = None


@attrs.frozen
class Zoned:
    """TIMESTAMP values that are objects with a zone name and a text.

    - ``zone``, ``text``: the names of these two members.
    - ``own``: names of the source's own zone, in lower case.
    """

    zone: str
    text: str
    own: frozenset[str]


@attrs.frozen
class Avro:
    """Messages that are Avro records with one writer ``schema``.

    The layout's members are the fields of the record or of a record in it; the images are the last
    fields, except ``optional`` ones, which a message may lack.  An image is a map from column name
    to a union of types, or a list of such values in the order of the table's columns; ``Encoding``
    names the branches.

    - ``values``: for records in images, the field with the value; other fields are skipped unless
      the encoding expects them.  A record without an entry is a list of its values.
    - ``null``: the enumeration symbol for NULL in images; other symbols mean missing values.
    - ``least``: for number fields, the smallest valid number other than 0.
    - ``key_names``: for maps, the names whose values are parts of the schema key.

    The logical type ``unsigned``: a long that holds the bits of an unsigned number.

    With a writer schema of a registry (``WriterLayouts``), images are records whose fields are the
    columns, and lie anywhere; values have the form that Kafka Connect's JSON has (bytes are
    base64), so that the same encodings read them.

    - ``has_columns``: fields without a role are columns of ``after``.
    - ``table``: database, schema (empty if there is none) and table, if messages do not name all of
      them; None: a field has it, which must not be null or empty, and a table no name with dots.
    """

    schema: Mapping[str, Any]
    has_columns: bool = False
    table: tuple[str | None, str | None, str | None] | None = None
    values: Mapping[str, str] = attrs.field(factory=dict)
    null: str | None = None
    optional: tuple[str, ...] = ()
    least: Mapping[str, int] = attrs.field(factory=dict)
    key_names: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)


@attrs.frozen
class Layout:
    """Where one producer dialect puts each field of a row message.

    A message with undeclared members does not match, and is left to the decoder.

    - ``ops``: the operations, by the words of ``op``; any other word is not a row.
    - ``row_words``: the valid values of the role ``row``.
    - ``repeats_database``: a ``schema`` equal to the database's name may mean no schema.
    - ``in_lists``: images are in lists, one for each row of the message.
    - ``deleted_row``: the image that holds the row of a delete.
    - ``completes_before``: a column that is missing from ``before`` did not change.
    - ``partial_before``: the ``before`` of an update may lack columns, whose values are unknown; it
      may have only the key.  The kernel reads such updates for ``images=after``.
    - ``times``: the smallest and the largest time, and the number of microseconds in a unit.
      ``iso_times``: times are texts such as ``2024-01-01T00:00:00.5Z`` or
      ``2024-01-01 08:00:00+08``, the bounds microseconds.
    - ``orders_by_source_time``: the source time is exactly ``commit_ts >> 18``, in milliseconds.
    - ``zoned``: how TIMESTAMP values are objects; None: they are not.
    - ``begins``: first bytes of such a message (JSON may have blanks between them);
      ``lacks``: bytes that it never contains.
    - ``connect``: messages may have Kafka Connect's wrapper of ``payload`` and ``schema``.
    - ``column_types``: the ``same`` member that must have every column's type, as text, so that
      the schema depends on nothing else.
    - ``keyed``: the schema depends on the columns of the message's key.
    - ``max_events``: messages are frames of at most this many events, as in the Open Protocol.
      ``members`` then describes the objects ``key`` and ``value``.  ``value`` holds the images, and
      the words of ``ops`` are the roles ``after``, ``before`` (optional) and ``deleted``.
      Callables receive an event's value and key as value and envelope.
    - ``cell``: columns are objects, such as ``{"type": "integer", "value": 1}``, and this member
      holds the value; the column's other members must be equal in all rows.
    - ``nulls_may_mean_unknown``: a NULL in an update's ``before`` may be an unknown value if the
      message has no ``row_id`` and no column is unchanged.
    - ``log``: the paths of the members with a position in the source's log: server, file, offset
      in the file, and change in the commit that is the file; a source may lack some.  As
      :func:`~cdcfmt_toolkit.row_changes.log_position` reads them from ``extra``.
    - ``avro``: messages are Avro records.  ``reads_before``: values in before images are validated
      even if no row shows them; ``reads_all``: values of all columns are.

    The kernel's bridge calls these once per table schema, with a message of that schema:

    - ``encodings(value, table)``: the value encodings of the columns; a value has no framing here.
    - ``extra(envelope)``: the parts of an event's ``extra``, by the paths of their members; it may
      depend on the ``same`` members.  None: the decoder makes the events.
    - ``limits(envelope, schemas)``, if schemas come from other messages: for some members, by path,
      the bounds between which their numbers share this schema; None if that is unknown.
      Such a member is a ``commit_ts``, a time, or a ``position``.
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
    partial_before: bool = False
    times: tuple[int, int, int] = (0, MAX_TIMESTAMP // 1000, 1000)
    iso_times: bool = False
    orders_by_source_time: bool = False
    begins: bytes = b""
    lacks: tuple[bytes, ...] = ()
    connect: bool = False
    column_types: str | None = None
    keyed: bool = False
    cell: str | None = None
    nulls_may_mean_unknown: bool = False
    max_events: int | None = None
    avro: Avro | None = None
    reads_before: bool = False
    reads_all: bool = False
    log: LogPaths | None = None
    extra: Callable[[Mapping[str, Any]], Mapping[tuple[str, ...], Extra]] | None = None
    limits: (
        Callable[[Mapping[str, Any], SchemaStore], Mapping[tuple[str, ...], tuple[int, int]] | None]
        | None
    ) = None

    def __attrs_post_init__(self) -> None:
        """:raises ValueError: for a role, an operation or a member that does not exist."""
        _check_roles(self.members)
        for word, op in self.ops.items():
            if op not in _OPS:
                raise ValueError(f"layout: ops has {op!r} for {word!r}, not {', '.join(_OPS)}")
        if self.deleted_row not in ("before", "after"):
            raise ValueError(f"layout: deleted_row is {self.deleted_row!r}, not before or after")
        if len(self.times) != 3 or not all(type(number) is int for number in self.times):
            raise ValueError(f"layout: times is {self.times!r}, not three integers")
        if not all(type(text) is bytes for text in (self.begins, *self.lacks)):
            raise ValueError("layout: begins is bytes, and lacks a tuple of bytes")
        if self.column_types is not None and self.members.get(self.column_types) != "same":
            raise ValueError(f"layout: column_types is {self.column_types!r}, no `same` member")
        if "is_deleted" in self.members.values() and self.avro is None:
            raise ValueError("layout: the role is_deleted is for messages with a writer schema")
        for path in filter(None, self.log or ()):
            self.role_of(path)
        for name in ("encodings", "extra", "limits"):
            given = getattr(self, name)
            if not (callable(given) or (given is None and name != "encodings")):
                raise ValueError(f"layout: {name} is {given!r}, not a function")

    def role_of(self, path: tuple[str, ...]) -> Role:
        """The role of a member, such as ``("metadata", "timestamp")``.

        :raises ValueError: if the layout has no such member.
        """
        if not isinstance(path, tuple):
            raise ValueError(f"{path!r} is not the path of a member: write a tuple, ({path!r},)")
        found: Role | Members | None = self.members
        for name in path:
            found = None if isinstance(found, str | None) else found.get(name)
        if not isinstance(found, str):
            raise ValueError(f"the layout has no member {'.'.join(path)}")
        return found


@attrs.frozen
class WriterLayouts:
    """The layouts of messages that name their writer schema, in the list of ``open_layouts``.

    - ``layout_of(schema, message)``: the layout of messages whose value has this schema, called
      once per schema; None: the decoder reads them.  The schema of ``Layout.avro`` is the same one
      without references (:func:`~cdcfmt_toolkit.avro_schemas.plain_schema`).  An empty word in
      ``ops`` is the operation of messages without a field for it.
    - ``headers``: how names of headers begin on which layouts depend, too, beside the topic:
      ``layout_of`` is called for each combination.  None: layouts depend on neither.
    """

    layout_of: Callable[[WriterSchema, Message], Layout | None]
    headers: tuple[str, ...] | None = None


def _check_roles(members: Members, path: str = "") -> None:
    roles = get_args(Role)
    for name, role in members.items():
        if isinstance(role, Mapping):
            _check_roles(role, f"{path}{name}.")
        elif role not in roles:
            near = did_you_mean(str(role), roles)
            raise ValueError(
                f"layout: member {path}{name} has the unknown role {role!r}{near}; "
                f"roles: {join_names(roles)}"
            )


def layouts_of(codec: CodecSpec, options: Mapping[str, Any]) -> Sequence[Layout]:
    """The layouts of a format under its options; empty if it declares none.

    :raises BrokenPluginError: if ``open_layouts`` fails, or returns anything else.
    """
    return [each for each in _opened(codec, options) if isinstance(each, Layout)]


def writer_layouts_of(codec: CodecSpec, options: Mapping[str, Any]) -> WriterLayouts | None:
    """The layouts by writer schema, if the format declares them.

    :raises BrokenPluginError: as :func:`layouts_of`.
    """
    found = [each for each in _opened(codec, options) if isinstance(each, WriterLayouts)]
    return found[0] if found else None


def _opened(codec: CodecSpec, options: Mapping[str, Any]) -> Sequence[Layout | WriterLayouts]:
    if codec.open_layouts is None:
        return ()
    layouts = codec.open_layouts(options)
    for each in layouts:
        if not isinstance(each, Layout | WriterLayouts):
            raise BrokenPluginError(
                f"open_layouts of format {codec.name!r} ({codec.package}) returned a list with "
                f"{show(each)}: return a list of Layout",
                f"update or uninstall {codec.package.partition(' ')[0]}",
            )
    return layouts
