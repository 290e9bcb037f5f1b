"""How rows become messages, as data.

:class:`~cdcfmt_core.toolkit.message_writer.MessageWriter` writes events by it, and so does the
compiled kernel, with the same bytes: rows with whole images on which nothing is unusual.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Op, RowChange
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
    - ``printer``: prints what the kernel refuses, too, in place of ``encoding``
    - ``invalid``: prints the text of a value that the type cannot hold (``InvalidValue``)
    """

    label: str | bytes
    encoding: Encoding = MYSQL_TEXT
    head: str | bytes = ""
    tail: str | bytes = ""
    null: str | bytes = "null"
    printer: Callable[[Any], Any] | None = None
    invalid: Callable[[str], Any] | None = None


@attrs.frozen
class Members:
    """The columns of an image between ``head`` and ``tail``.

    - ``columns``: in this order, with ``separator`` between them
    - ``counted``: behind ``head`` stands how many they are, as in an array of Avro's
    - ``missing``: what stands there for a row without this image; None: that is an error
    - ``absent``: what stands for a column that the image lacks; None: it is left out
    - ``changed``: only columns that differ from those of the other image as they are printed
    - ``by_value``: also those that are printed alike, but have other values (the two instants of an
      hour that comes twice)
    - ``unchanged``: with ``by_value`` the columns that a row has in which nothing changed, all if
      it has none of them
    """

    image: Which
    columns: Mapping[str, Member]
    head: str | bytes = "{"
    tail: str | bytes = "}"
    missing: str | bytes | None = "null"
    separator: str = ","
    changed: bool = False
    by_value: bool = False
    counted: bool = False
    absent: bytes | None = None
    unchanged: tuple[str, ...] = ()


@attrs.frozen
class Columns:
    """Parts for each column that a row has in one of its images, with commas between them.

    - ``empty``: what stands there for a row without columns
    """

    parts: Mapping[str, tuple[Part, ...]]
    head: str = "{"
    tail: str = "}"
    empty: str = "{}"

    def of(self, columns: Container[str]) -> tuple[Part, ...]:
        """The parts of a row with these columns."""
        parts: list[Part] = []
        for name, some in self.parts.items():
            if name in columns:
                parts += (",", *some) if parts else some
        return (self.head, *parts, self.tail)


@attrs.frozen
class Either:
    """``above`` if the integer of a column is ``limit`` or more, else ``below``, as for NULL.

    - ``image``: the one that counts, where the column is in both
    """

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
    """Parts by a text of the event's ``extra``; an error is raised for such a row.

    - ``among``: texts, and the parts of each of them
    - ``default``: for any other text, and for none
    """

    name: str
    among: tuple[tuple[tuple[str, ...], tuple[Part, ...] | EncodeError], ...]
    default: tuple[Part, ...] | EncodeError


@attrs.frozen
class Checksum:
    """TiDB's checksum of the row's columns: the event's ``extra.checksum``, or a computed one.

    - ``kinds``: what counts of the columns, in this order: 64 bits of an integer, a double (of a
      FLOAT its nearest), or text (with instants in UTC) or bytes behind how many there are
      None: the kernel does not write such a table
    - ``write``: the same of an event
    """

    kinds: Mapping[str, Literal["number", "float", "double", "text"]] | None
    write: Callable[[RowChange], bytes]


@attrs.frozen
class Mark:
    """The place for what an encoder says of an unusual row, such as a claim check.

    - ``default``: what stands there for any other row
    """

    default: bytes = b""


ByExtra: TypeAlias = OfExtra | Texts | RowNumber | Choice
Part: TypeAlias = (
    str | bytes | Number | Members | Columns | Either | Digits | ByExtra | Checksum | Mark
)
"""The next part of a message; text and bytes are written as they are."""


@attrs.frozen
class RowMessage:
    """The messages of one operation.

    - ``only``: the columns that are written of a row with a whole image; None: all
    - ``compresses_key``: where values are compressed, keys are, too
    """

    value: tuple[Part, ...]
    key: tuple[Part, ...] | None = None
    wire: Wire = "json"
    only: tuple[str, ...] | None = None
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
    """How the rows of a table are written.

    - ``by_op``: by operation, after rows were renamed to those that the encoder has
    - ``version``: of rows that :meth:`~cdcfmt_core.Encoder.allow_rows` has to allow
    """

    by_op: Mapping[Op, RowMessage]
    version: Version | None = None
