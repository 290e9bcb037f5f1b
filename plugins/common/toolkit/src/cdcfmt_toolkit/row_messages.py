"""How to write rows as messages, as data.

:class:`~cdcfmt_toolkit.message_writer.MessageWriter` writes events by this data; the compiled
kernel writes ordinary rows with complete images by it, to the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Op, RowChange
from cdcfmt_toolkit.encodings import Encoding, one_of

ImageSide: TypeAlias = Literal["before", "after"]

Wire: TypeAlias = Literal["json", "jsoniter", "orjson", "avro"]
"""How values are written in a message: JSON with the escapes of Go's ``encoding/json``, of
``jsoniter`` (no escaped HTML characters) or of ``orjson`` (only what must be escaped); or Avro's
binary form."""

NumberName: TypeAlias = Literal[
    "commit_ts", "source_millis", "executed_millis", "executed_seconds", "emit_millis"
]
ExtraType: TypeAlias = Literal["text", "integer", "integers", "json"]

MYSQL_TEXT: Final = Encoding("mysql-text")
_DEFAULT: Final = Encoding("mysql-text")
"""Stands for no given encoding; the kernel does not write such a column if it has a printer."""


@attrs.frozen
class Number:
    """An integer of the row.

    - ``commit_ts``
    - ``source_millis``: milliseconds from the commit_ts, else from the source time
    - ``executed_millis``: milliseconds from the source time, else from the commit_ts
    - ``executed_seconds``: the same in seconds
    - ``emit_millis``: milliseconds of the emit time, else the current time
    """

    name: NumberName = attrs.field(validator=one_of(NumberName))


@attrs.frozen
class ColumnTemplate:
    """A column in an image.

    - ``label``: the text before the column
    - ``encoding``: how its values are printed
      (:func:`~cdcfmt_toolkit.value_printers.value_printer`); ``mysql-text`` by default, with a
      printer ``other``, so that the kernel leaves the column to the printer
    - ``head``, ``tail``: the text before and after a value
    - ``null``: replaces head, value and tail for NULL; None: NULL is an error
    - ``printer``: prints values instead of the encoding's printer.  With an ``encoding``, the
      kernel prints ordinary values by that: both must give the same text
    - ``invalid``: prints the text of a value that the type cannot hold (``InvalidValue``)
    - ``unknown``: the value to write where an image lacks the column; None: as the image says
    """

    label: str | bytes
    encoding: Encoding = _DEFAULT
    head: str | bytes = ""
    tail: str | bytes = ""
    null: str | bytes | None = "null"
    printer: Callable[[Any], Any] | None = None
    invalid: Callable[[str], Any] | None = None
    unknown: Any = None

    def __attrs_post_init__(self) -> None:
        if self.encoding is _DEFAULT and self.printer is not None:
            object.__setattr__(self, "encoding", Encoding("other"))


@attrs.frozen
class ImageTemplate:
    """The columns of an image between ``head`` and ``tail``.

    - ``columns``: the columns in this order, with ``separator`` between them
    - ``counted``: the number of columns follows ``head``, as in an Avro array
    - ``missing``: the text for a row without this image; None: an error
    - ``absent``: the text for a column missing from the image; None: the column is left out
    - ``changed``: write only columns whose printed value differs from the other image
    - ``by_value``: also those that are printed equally but have different values (the same wall
      clock at the end of daylight saving time)
    - ``unchanged``: with ``by_value``, the columns to write if nothing changed; all columns if the
      row has none of them
    """

    image: ImageSide = attrs.field(validator=one_of(ImageSide))
    columns: Mapping[str, ColumnTemplate]
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
    """Parts for each column in one of a row's images, separated by commas.

    - ``empty``: the text for a row without columns
    """

    parts: Mapping[str, tuple[Part, ...]]
    head: str = "{"
    tail: str = "}"
    empty: str = "{}"

    def of(self, columns: Container[str]) -> tuple[Part, ...]:
        """The parts for a row with these columns."""
        parts: list[Part] = []
        for name, some in self.parts.items():
            if name in columns:
                parts += (",", *some) if parts else some
        return (self.head, *parts, self.tail)


@attrs.frozen
class ByLimit:
    """``above`` if a column's integer is ``limit`` or more, else (also for NULL) ``below``.

    - ``image``: the image to use if both have the column
    """

    image: ImageSide = attrs.field(validator=one_of(ImageSide))
    column: str
    limit: int
    below: str
    above: str


@attrs.frozen
class ByPrecision:
    """``fine`` if the row's DATETIME has digits beyond milliseconds, else ``coarse``."""

    column: str
    coarse: str
    fine: str


@attrs.frozen
class ExtraValue:
    """A value of the event's ``extra`` between ``head`` and ``tail``.

    - ``type``: the value's type; ``integers``: a list of integers, as an Avro array
    - ``default``: replaces head, value and tail if there is no value of this type
    - ``zero``: replaces them for 0, if set
    - ``column``: image and column whose integer, as signed 64 bits, replaces a missing value
    """

    name: str
    type: ExtraType = attrs.field(validator=one_of(ExtraType))
    default: str | bytes
    head: str = ""
    tail: str = ""
    zero: str | None = None
    column: tuple[ImageSide, str] | None = None


@attrs.frozen
class Texts:
    """An object of the event's ``extra`` as an Avro map, plus missing members from ``more``.

    Values other than text are written as empty text.
    """

    name: str
    more: Mapping[str, str]


@attrs.frozen
class RowNumber:
    """An integer of the event's ``extra``, else one more than the last row's.

    The encoder must have :attr:`~cdcfmt_core.Encoder.row_numbers`.
    """

    name: str


@attrs.frozen
class Choice:
    """Parts chosen by a text of the event's ``extra``; an EncodeError is raised instead of written.

    - ``among``: texts, and the parts for these
    - ``default``: the parts for any other or no text
    """

    name: str
    among: tuple[tuple[tuple[str, ...], tuple[Part, ...] | EncodeError], ...]
    default: tuple[Part, ...] | EncodeError


@attrs.frozen
class Checksum:
    """TiDB's checksum of the row's columns: the event's ``extra.checksum``, or a computed one.

    - ``kinds``: how each column enters the checksum, in this order: 64 bits of an integer, a double
      (for a FLOAT the nearest one), or text (instants in UTC) or bytes after their length.
      None: the kernel does not write such a table.
    - ``write``: the checksum of an event
    """

    kinds: Mapping[str, Literal["number", "float", "double", "text"]] | None
    write: Callable[[RowChange], bytes]


@attrs.frozen
class Placeholder:
    """A placeholder for the encoder's data about an unusual row, such as a claim check.

    - ``default``: the bytes for any other row
    """

    default: bytes = b""


ByExtra: TypeAlias = ExtraValue | Texts | RowNumber | Choice
Part: TypeAlias = (
    str
    | bytes
    | Number
    | ImageTemplate
    | Columns
    | ByLimit
    | ByPrecision
    | ByExtra
    | Checksum
    | Placeholder
)
"""A part of a message; text and bytes are written unchanged."""


@attrs.frozen
class RowMessage:
    """How to write the rows of one operation.

    - ``only``: the columns to write of a row with a complete image; None: all
    - ``compresses_key``: keys are compressed if values are
    """

    value: tuple[Part, ...]
    key: tuple[Part, ...] | None = None
    wire: Wire = attrs.field(default="json", validator=one_of(Wire))
    only: tuple[str, ...] | None = None
    compresses_key: bool = False


class PartPlaceholders:
    """Placeholders for parts in a library's JSON output: marks that never occur in JSON."""

    def __init__(self) -> None:
        self._parts: list[Part] = []

    def add(self, part: Part) -> bytes:
        """A new mark for this part."""
        self._parts.append(part)
        return b"\0%d\0" % (len(self._parts) - 1)

    def split(self, text: bytes) -> tuple[Part, ...]:
        """The text, with marks replaced by their parts."""
        # Every second piece is the number of a part.
        pieces = enumerate(text.decode().split("\0"))
        return tuple(self._parts[int(s)] if n % 2 else s for n, s in pieces if s)


@attrs.frozen
class Version:
    """The integer of ``extra`` that names a row's table schema, else ``default``."""

    name: str
    default: int


@attrs.frozen
class RowMessages:
    """How to write the rows of a table.

    - ``by_op``: by operation, as renamed to one that the encoder supports
    - ``version``: the schema version for which :meth:`~cdcfmt_core.Encoder.allow_rows` is asked
    """

    by_op: Mapping[Op, RowMessage]
    version: Version | None = None
