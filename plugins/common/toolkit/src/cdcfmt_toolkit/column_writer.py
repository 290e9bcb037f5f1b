"""Write the columns of a row, as the parts of its message describe."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, tzinfo
from typing import Any, Final, TypeAlias

import attrs

from cdcfmt_core.encoder import EncoderContext
from cdcfmt_core.errors import EncodeError, UnsupportedEventError
from cdcfmt_core.events import Column
from cdcfmt_core.types import InvalidValue
from cdcfmt_mysql.text_output import BAD_VALUE, limit_check, value_error
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.json_output import JsonNumber, WireText
from cdcfmt_toolkit.row_messages import (
    ByLimit,
    ByPrecision,
    ColumnTemplate,
    ImageSide,
    ImageTemplate,
)
from cdcfmt_toolkit.value_printers import Print, PrinterTools, avro_printer, value_printer
from cdcfmt_toolkit.wire_avro import write_long

_OTHER: Final[Mapping[ImageSide, ImageSide]] = {"before": "after", "after": "before"}
_NO_NULL: Final = (
    "it is NULL, which readers reject in a column that is NOT NULL or of the key: replace it (zero "
    "dates: read with invalidValues=text), or set keyColumns without the column"
)


@attrs.define
class Row:
    """A row change that is being written.

    - ``images``: the wanted columns of each image, by image
    - ``printed``: printed columns by image and printer, for reuse
    """

    event: Any
    mark: bytes | None = None
    images: Mapping[str, Mapping[str, Any] | None] = attrs.field(factory=dict)
    printed: dict[str, dict[PrintColumn, bytes]] = attrs.field(
        factory=lambda: {"before": {}, "after": {}}, init=False
    )

    @property
    def extra(self) -> Mapping[str, Any]:
        return self.event.extra or {}

    def has_all(self, columns: Collection[str]) -> bool:
        return any(values and len(values) == len(columns) for values in self.images.values())

    def columns(self) -> set[str]:
        return {name for values in self.images.values() for name in values or ()}

    def is_fine(self, column: str) -> bool:
        """Whether the column has digits beyond milliseconds in either image."""
        cells = (values.get(column) for values in self.images.values() if values)
        return any(isinstance(cell, datetime) and cell.microsecond % 1_000 for cell in cells)

    def by_precision(self, part: ByPrecision) -> bytes:
        return (part.fine if self.is_fine(part.column) else part.coarse).encode()


Step: TypeAlias = Callable[[Row], bytes]
PrintColumn: TypeAlias = Callable[[Any, Row], bytes]


def to_bytes(text: str | bytes) -> bytes:
    """Text as UTF-8; bytes unchanged."""
    return text.encode() if isinstance(text, str) else text


class ColumnWriter:
    """Writes images and values of rows; ``table``: the table's columns by name."""

    def __init__(
        self,
        wire: WireText,
        table: Mapping[str, Column],
        context: EncoderContext,
        time_zone: tzinfo | None,
    ) -> None:
        self._wire = wire
        self._table = table
        self._known: dict[tuple[str, int], tuple[ColumnTemplate, PrintColumn]] = {}
        self._tools = PrinterTools(
            time_zone or context.time_zone,
            lambda text: JsonNumber(text.encode()),
            context.counts,
        )

    def image(self, part: ImageTemplate) -> Step:
        columns = {name: self._column(name, template) for name, template in part.columns.items()}
        other = _OTHER[part.image]
        head, tail, separator = map(to_bytes, (part.head, part.tail, part.separator))
        missing = None if part.missing is None else to_bytes(part.missing)
        unknown = {
            name: template.unknown
            for name, template in part.columns.items()
            if template.unknown is not None
        }

        def is_alike(row: Row, name: str, text: bytes) -> bool:
            """Whether a column is the same in the other image."""
            values, others = row.images[part.image], row.images[other]
            if values is None or others is None or name not in others:
                return False
            if part.by_value and values[name] != others[name]:
                return False
            print_column, known = columns[name], row.printed[other]
            if print_column not in known:
                known[print_column] = print_column(others[name], row)
            return known[print_column] == text

        def texts(row: Row, values: Mapping[str, Any], *, changed: bool) -> list[bytes]:
            """The printed columns; ``changed``: only those that differ in the other image."""
            known, found = row.printed[part.image], []
            others = (row.images[other] if changed else None) or {}
            for name, print_column in columns.items():
                if name in values:
                    # Equal texts are printed equally, so they need not be printed.
                    if isinstance(values[name], str) and values[name] == others.get(name):
                        continue
                    text = known.get(print_column)
                    if text is None:
                        text = known[print_column] = print_column(values[name], row)
                    if not (changed and is_alike(row, name, text)):
                        found.append(text)
                elif name in unknown:
                    found.append(print_column(unknown[name], row))
                elif part.absent is not None:
                    found.append(part.absent)
            return found

        def step(row: Row) -> bytes:
            values = row.images[part.image]
            if values is None:
                if missing is None:
                    raise UnsupportedEventError("the row has no image")
                return missing
            found = texts(row, values, changed=part.changed)
            if part.by_value and not found:
                some = {name: values[name] for name in part.unchanged if name in values}
                found = texts(row, some or values, changed=False)
            count = write_long(len(found)) if part.counted and found else b""
            return self._wire.escaped(head + count + separator.join(found) + tail)

        return step

    def _column(self, name: str, template: ColumnTemplate) -> PrintColumn:
        _, known = self._known.get((name, id(template)), (None, None))
        if known is None:
            known = self._open_column(name, template)
            self._known[name, id(template)] = template, known
        return known

    def _open_column(self, name: str, template: ColumnTemplate) -> PrintColumn:
        if template.encoding.name == "epoch-guessed":
            coarse, fine = (
                self._open_column(name, attrs.evolve(template, encoding=Encoding(unit)))
                for unit in ("epoch-millis", "epoch-micros")
            )
            return lambda value, row: (fine if row.is_fine(name) else coarse)(value, row)
        label, tail = to_bytes(template.label), to_bytes(template.tail)
        null = None if template.null is None else label + to_bytes(template.null)
        head = label + to_bytes(template.head)
        printer = self._printer(name, template)
        check = limit_check(self._table[name])
        write = None if self._wire.is_avro else self._wire.printed

        def print_column(value: Any, row: Row) -> bytes:
            if value is None:
                if null is None:
                    raise EncodeError(_NO_NULL, column=name)
                return null
            try:
                if check is not None:
                    check(value)
                printed = printer(value)
                if printed is None and null is not None:
                    return null
                return head + (printed if write is None else write(printed, name)) + tail
            except (*BAD_VALUE, EncodeError) as error:
                raise value_error(name, value, error) from error

        return print_column

    def _printer(self, name: str, template: ColumnTemplate) -> Print:
        if name not in self._table:
            raise EncodeError("the table's schema has no such column", column=name)
        open_printer = avro_printer if self._wire.is_avro else value_printer
        try:
            printer = template.printer or open_printer(
                template.encoding, self._table[name].type, self._tools
            )
        except EncodeError as error:
            raise error.at(column=name) from error
        print_invalid = template.invalid
        if print_invalid is None:
            return printer

        def print_any(value: Any) -> Any:
            is_invalid = type(value) is InvalidValue
            return print_invalid(value.text) if is_invalid else printer(value)

        return print_any

    def by_limit(self, part: ByLimit) -> Step:
        below, above = part.below.encode(), part.above.encode()

        def step(row: Row) -> bytes:
            values, others = row.images[part.image] or {}, row.images[_OTHER[part.image]] or {}
            value = values[part.column] if part.column in values else others.get(part.column)
            return above if type(value) is int and value >= part.limit else below

        return step
