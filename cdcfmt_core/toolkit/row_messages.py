"""How the rows of a table become messages, as data for the compiled kernel.

The encoder stays the truth: the kernel writes only rows on which nothing is unusual, with the
same bytes.  Everything else is the encoder's, so an encoder need not describe what is rare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Final, Literal, TypeAlias

import attrs

from cdcfmt_core.events import Op, TableSchema
from cdcfmt_core.toolkit.encodings import Encoding

Which: TypeAlias = Literal["before", "after"]

Wire: TypeAlias = Literal["json", "jsoniter", "orjson", "avro"]
"""How numbers and values stand in a message: JSON with what Go's ``encoding/json`` escapes, with
what ``jsoniter`` does, which leaves HTML's characters, or with what has to be escaped; or Avro's
binary form."""

MYSQL_TEXT: Final = Encoding("mysql-text")


@attrs.frozen
class Number:
    """An integer of the row.

    - ``commit_ts``
    - ``source_millis``: the milliseconds of the commit_ts, or else of the source time
    - ``executed_millis``: those of the source time, or else of the commit_ts
    - ``executed_seconds``: the same in seconds
    - ``emit_millis``: the milliseconds of the emit time, or else now
    """

    name: Literal[
        "commit_ts", "source_millis", "executed_millis", "executed_seconds", "emit_millis"
    ]


@attrs.frozen
class Member:
    """A column in an image.

    - ``label``: what stands before it
    - ``encoding``: how its values are printed
      (:func:`~cdcfmt_core.toolkit.value_printers.value_printer`)
    - ``head``, ``tail``: what stands around a value
    - ``null``: what stands in place of all that for NULL
    """

    label: str | bytes
    encoding: Encoding = MYSQL_TEXT
    head: str | bytes = ""
    tail: str | bytes = ""
    null: str | bytes = "null"


@attrs.frozen
class Members:
    """The columns of an image between ``head`` and ``tail``.

    - ``columns``: in this order, with ``separator`` between them
    - ``missing``: what stands there for a row without this image; None: that is the encoder's
    - ``changed``: only columns that differ from those of the other image as they are printed
    - ``by_value``: also those that are printed alike, but have other values (the two instants of an
      hour that comes twice); a row without any is the encoder's
    """

    image: Which
    columns: Mapping[str, Member]
    head: str | bytes = "{"
    tail: str | bytes = "}"
    missing: str | bytes | None = "null"
    separator: str = ","
    changed: bool = False
    by_value: bool = False


@attrs.frozen
class Either:
    """``above`` if the integer of a column is ``limit`` or more, else ``below``, as for NULL."""

    image: Which
    column: str
    limit: int
    below: str
    above: str


@attrs.frozen
class Digits:
    """``fine`` if a DATETIME of the row has more digits than milliseconds, else ``coarse``."""

    column: str
    coarse: str
    fine: str


@attrs.frozen
class OfExtra:
    """A value of the event's ``extra`` between ``head`` and ``tail``.

    - ``type``: ``integers`` is a list of them, as an array of Avro's
    - ``default``: what stands in place of all that where there is none of this type
    - ``zero``: what stands there for 0, if it is something else
    - ``column``: whose integer stands there where ``extra`` has none, with 64 bits and a sign
    """

    name: str
    type: Literal["text", "integer", "integers", "json"]
    default: str | bytes
    head: str = ""
    tail: str = ""
    zero: str | None = None
    column: tuple[Which, str] | None = None


@attrs.frozen
class Texts:
    """An object of the event's ``extra`` as a map of Avro's, with what of ``more`` it lacks.

    Values that are no text are empty.
    """

    name: str
    more: Mapping[str, str]


@attrs.frozen
class RowNumber:
    """An integer of the event's ``extra``, or else one more than the last row's.

    The encoder has :attr:`~cdcfmt_core.Encoder.row_numbers`.
    """

    name: str


@attrs.frozen
class Choice:
    """Parts by a text of the event's ``extra``; None: such a row is the encoder's.

    - ``among``: texts, and the parts of each of them
    - ``default``: for any other text, and for none
    """

    name: str
    among: tuple[tuple[tuple[str, ...], tuple[Part, ...] | None], ...]
    default: tuple[Part, ...] | None


@attrs.frozen
class Checksum:
    """TiDB's checksum of the row's columns: the event's ``extra.checksum``, or a computed one.

    - ``kinds``: what counts of the columns, in this order: 64 bits of an integer, a double (of a
      FLOAT its nearest), or text (with instants in UTC) or bytes behind how many there are
    """

    kinds: Mapping[str, Literal["number", "float", "double", "text"]]


ByExtra: TypeAlias = OfExtra | Texts | RowNumber | Choice
Part: TypeAlias = str | bytes | Number | Members | Either | Digits | ByExtra | Checksum
"""The next part of a message; text and bytes are written as they are."""


@attrs.frozen
class RowMessage:
    """The messages of one operation; ``compresses_key`` is for where values are compressed."""

    value: tuple[Part, ...]
    key: tuple[Part, ...] | None = None
    wire: Wire = "json"
    compresses_key: bool = False


class Slots:
    """Places for parts in the JSON that a library writes: marks that no JSON text has."""

    def __init__(self) -> None:
        self._parts: list[Part] = []

    def add(self, part: Part) -> bytes:
        """The mark of a place for this part."""
        self._parts.append(part)
        return b"\0%d\0" % (len(self._parts) - 1)

    def split(self, text: bytes) -> tuple[Part, ...]:
        """The text with parts in their places."""
        # Every other piece is the number of a part.
        pieces = enumerate(text.decode().split("\0"))
        return tuple(self._parts[int(s)] if n % 2 else s for n, s in pieces if s)


@attrs.frozen
class Version:
    """The integer of ``extra`` that names a row's table schema, or else ``default``."""

    name: str
    default: int


@attrs.frozen
class RowMessages:
    """How the rows of a table are written, if they have whole images.

    - ``by_op``: by operation, after rows were renamed to those that the encoder has
    - ``version``: of rows that :meth:`~cdcfmt_core.Encoder.allow_rows` has to allow
    """

    by_op: Mapping[Op, RowMessage]
    version: Version | None = None


@attrs.frozen
class Allowance:
    """The permission to write rows of a table without the encoder.

    - ``rows``: how many more
    - ``until``: when the last one may be written, in microseconds, exclusive
    - ``spend``: takes the number of rows that were written
    """

    rows: int
    until: int
    spend: Callable[[int], None]


@attrs.frozen
class RowBatches:
    """How events of rows are put together in messages: each behind its length in eight bytes.

    - ``max_rows``, ``max_bytes``: of a message, key and value together
    - ``head``: what a key begins with
    - ``framing``: bytes that a message of one event has beside the event's key and value
    """

    max_rows: int
    max_bytes: int
    head: bytes
    framing: int


@attrs.frozen
class Held:
    """The message that an encoder has begun: how many events, and their frames."""

    rows: int
    key: bytes
    value: bytes


@attrs.define
class RowNumbers:
    """The number of the last row, or its commit_ts, which encoder and kernel keep together."""

    last: int = 0


@attrs.frozen
class RowRules:
    """The settings of one writer, and how the messages of each table are made.

    - ``ops``: the operation that a row is written as, and under what that is counted, if it is
    - ``needs_commit_ts``: a row without one is the encoder's
    - ``commit_ts``: the largest so far, where rows without one get one from their source time
    - ``splits``: an update of the key is the encoder's, which makes two rows of it
    - ``compress``: of values, if they are compressed
    - ``max_bytes``: of key and value together; what has more is the encoder's
    - ``time_zone``: of TIMESTAMP texts
    - ``now``: the time in microseconds, for rows without an emit time
    - ``partitions``: of the topic, if there is one
    - ``partitioner``: what the partition of a row depends on, and its columns
    - ``batches``: how messages of several rows are made; None: each row is one
    - ``take_held``, ``hold``: begun messages by partition, the encoder's between the kernel's runs
    - ``allow``: of a table, a partition and a version, if the next row may be the kernel's
    - ``numbers``: those of rows, where the format has them
    """

    ops: Mapping[Op, tuple[Op, str | None]]
    needs_commit_ts: bool
    commit_ts: RowNumbers | None
    splits: bool
    compress: Callable[[bytes], bytes] | None
    max_bytes: int
    time_zone: tzinfo
    now: Callable[[], int]
    partitions: int | None
    partitioner: tuple[str, tuple[str, ...]]
    messages: Callable[[TableSchema], RowMessages | None]
    allow: Callable[[TableSchema, int, int], Allowance | None]
    batches: RowBatches | None
    take_held: Callable[[], dict[int, Held]]
    hold: Callable[[Mapping[int, Held]], None]
    numbers: RowNumbers | None
