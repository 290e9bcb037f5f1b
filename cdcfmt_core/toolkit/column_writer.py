"""The columns of a row, written as the parts of its message say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, tzinfo
from typing import Any, Final, TypeAlias

import attrs

from cdcfmt_core.encoder import EncoderContext
from cdcfmt_core.errors import EncodeError, UnsupportedEventError
from cdcfmt_core.mysql.text_output import BAD_VALUE, value_error
from cdcfmt_core.toolkit.avro_output import write_long
from cdcfmt_core.toolkit.avro_printers import avro_printer
from cdcfmt_core.toolkit.encodings import Encoding
from cdcfmt_core.toolkit.row_messages import Digits, Either, Member, Members, Which
from cdcfmt_core.toolkit.value_printers import PrinterTools, value_printer
from cdcfmt_core.toolkit.wire_text import Dumps, JsonNumber, WireText
from cdcfmt_core.types import InvalidValue, LogicalType

_OTHER: Final[Mapping[Which, Which]] = {"before": "after", "after": "before"}


@attrs.define
class Row:
    """An event that is written.

    - ``images``: the columns that are wanted of each
    - ``printed``: columns by image and name, which are printed alike wherever they stand
    """

    event: Any
    mark: bytes | None = None
    images: Mapping[str, Mapping[str, Any] | None] = attrs.field(factory=dict)
    printed: dict[tuple[str, str], bytes] = attrs.field(factory=dict)

    @property
    def extra(self) -> Mapping[str, Any]:
        return self.event.extra or {}

    def has_all(self, columns: Collection[str]) -> bool:
        return any(values and len(values) == len(columns) for values in self.images.values())

    def columns(self) -> set[str]:
        return {name for values in self.images.values() for name in values or ()}

    def is_fine(self, column: str) -> bool:
        """Whether a DATETIME of either image has more digits than milliseconds."""
        cells = (values.get(column) for values in self.images.values() if values)
        return any(isinstance(cell, datetime) and cell.microsecond % 1_000 for cell in cells)

    def digits(self, part: Digits) -> bytes:
        return (part.fine if self.is_fine(part.column) else part.coarse).encode()


Step: TypeAlias = Callable[[Row], bytes]
PrintColumn: TypeAlias = Callable[[Any, Row], bytes]


def to_bytes(text: str | bytes) -> bytes:
    """Text as UTF-8."""
    return text.encode() if isinstance(text, str) else text


class ColumnWriter:
    """Writes images and values of rows; ``types`` are those of the table's columns."""

    def __init__(
        self,
        wire: WireText,
        types: Mapping[str, LogicalType],
        context: EncoderContext,
        dumps: Dumps,
        time_zone: tzinfo | None,
    ) -> None:
        self._wire = wire
        self._types = types
        self._known: dict[int, tuple[Member, PrintColumn]] = {}
        self._tools = PrinterTools(
            time_zone or context.time_zone,
            lambda text: JsonNumber(text.encode()),
            dumps,
            context.counts,
        )

    def members(self, part: Members) -> Step:
        columns = [(name, self._column(name, member)) for name, member in part.columns.items()]
        other = _OTHER[part.image]
        head, tail, separator = map(to_bytes, (part.head, part.tail, part.separator))
        missing = None if part.missing is None else to_bytes(part.missing)

        def text_of(row: Row, image: Which, name: str, print_column: PrintColumn) -> bytes:
            text = row.printed.get((image, name))
            if text is None:
                text = print_column((row.images[image] or {})[name], row)
                row.printed[image, name] = text
            return text

        def texts(row: Row, values: Mapping[str, Any], others: Mapping[str, Any]) -> list[bytes]:
            """Those of ``values`` that differ from ``others``."""
            found = []
            for name, print_column in columns:
                if name not in values:
                    found += [] if part.absent is None else [part.absent]
                    continue
                is_equal = name in others and values[name] == others[name]
                if is_equal and isinstance(values[name], str):
                    continue
                text = text_of(row, part.image, name, print_column)
                may_be_alike = name in others and (is_equal or not part.by_value)
                if may_be_alike and text == text_of(row, other, name, print_column):
                    continue
                found.append(text)
            return found

        def step(row: Row) -> bytes:
            values = row.images[part.image]
            if values is None:
                if missing is None:
                    raise UnsupportedEventError("the row has no image")
                return missing
            found = texts(row, values, (part.changed and row.images[other]) or {})
            if part.by_value and not found:
                some = {name: values[name] for name in part.unchanged if name in values}
                found = texts(row, some or values, {})
            count = write_long(len(found)) if part.counted and found else b""
            return self._wire.escaped(head + count + separator.join(found) + tail)

        return step

    def _column(self, name: str, member: Member) -> PrintColumn:
        _, known = self._known.get(id(member), (None, None))
        if known is None:
            known = self._open_column(name, member)
            self._known[id(member)] = member, known
        return known

    def _open_column(self, name: str, member: Member) -> PrintColumn:
        label, tail = to_bytes(member.label), to_bytes(member.tail)
        null, head = label + to_bytes(member.null), label + to_bytes(member.head)
        print_value = self._printer(name, member)

        def print_column(value: Any, row: Row) -> bytes:
            if value is None:
                return null
            try:
                return head + print_value(value, row) + tail
            except (*BAD_VALUE, EncodeError) as error:
                raise value_error(name, value, error) from error

        return print_column

    def _printer(self, name: str, member: Member) -> PrintColumn:
        if member.encoding.name == "epoch-guessed":
            coarse, fine = (
                self._printer(name, attrs.evolve(member, encoding=Encoding(unit)))
                for unit in ("epoch-millis", "epoch-micros")
            )
            return lambda value, row: (fine if row.is_fine(name) else coarse)(value, row)
        open_printer = avro_printer if self._wire.is_avro else value_printer
        try:
            printer = member.printer or open_printer(
                member.encoding, self._types[name], self._tools
            )
        except EncodeError as error:
            raise error.at(column=name) from error
        print_invalid = member.invalid

        def print_any(value: Any) -> Any:
            if print_invalid is not None and type(value) is InvalidValue:
                return print_invalid(value.text)
            return printer(value)

        if self._wire.is_avro:
            return lambda value, row: print_any(value)
        return lambda value, row: self._wire.printed(print_any(value), name)

    def either(self, part: Either) -> Step:
        below, above = part.below.encode(), part.above.encode()

        def step(row: Row) -> bytes:
            values, others = row.images[part.image] or {}, row.images[_OTHER[part.image]] or {}
            value = values[part.column] if part.column in values else others.get(part.column)
            return above if type(value) is int and value >= part.limit else below

        return step
