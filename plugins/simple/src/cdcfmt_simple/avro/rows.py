"""Decoder of ``data`` and ``old`` of Avro messages: maps from column names to union values.

Values are first parsed without types: the columns of a row determine its table schema, which
determines the types.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from cdcfmt_core import DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Image, Op, TableSchema
from cdcfmt_core.toolkit.images import read_value
from cdcfmt_core.toolkit.wire_avro import read_block, read_choice
from cdcfmt_simple.avro.message import AvroMessage, Layout, check_end, read_string
from cdcfmt_simple.avro.values import BRANCH_READERS, Convert, open_converters
from cdcfmt_simple.checksum import Verifier
from cdcfmt_simple.images import Row, WireImage, wanted_old
from cdcfmt_simple.instants import Zones
from cdcfmt_simple.plans import TablePlans

Cells: TypeAlias = dict[str, tuple[str, Any]]
"""An undecoded image: branch and value of each column."""

_LONGEST_NAME = 64
"""Maximum length of column names in errors, in characters."""


class AvroPlan:
    """Converters for rows with these columns; values are in the table's order."""

    def __init__(self, schema: TableSchema, context: DecoderContext, zones: Zones) -> None:
        self.schema = schema
        self.key_columns, wanted = context.projection.of(schema)
        self._converters: dict[str, dict[str, Convert]] = {
            column.name: open_converters(column.type, schema, context, zones)
            for column in schema.columns
            if column.name in wanted
        }

    def read(self, cells: Cells | None, field: str, *, complete: bool) -> Image | None:
        """An image, which may lack columns.

        :raises DecodeError: for an invalid value; ``field`` is the path of the image.
        """
        if cells is None:
            return None
        values: dict[str, Any] = {}
        for name, converters in self._converters.items():
            if name in cells:
                branch, value = cells[name]
                values[name] = read_value(converters[branch], value, f"{field}.{name}")
        return Image(values, complete and len(cells) == len(self.schema.columns))


class AvroRows:
    """Decodes the rows of Avro messages."""

    def __init__(self, context: DecoderContext, zones: Zones, verifier: Verifier | None) -> None:
        self._before_updates = context.projection.before_updates
        self._verifier = verifier
        self._plans = TablePlans(context, lambda schema: AvroPlan(schema, context, zones), 2_500)

    def read(
        self,
        message: AvroMessage,
        op: Op,
        database: str,
        table: str,
        version: int,
        *,
        complete: bool,
    ) -> Row:
        """The images of a row.

        :raises MissingSchemaError: if its table's schema is not known.
        """
        new, old = read_cells(message)
        plan = self._plans.find(database, table, version, frozenset((new or {}) | (old or {})))
        raw_new, raw_old = _values(new), _values(old)
        if op == "insert":
            old = None
        elif op == "delete":
            new = None
        if (old if op == "delete" else new) is None:
            raise DecodeError(
                f"a required field of a row event is missing ({message.wire['type']})",
                field="old" if op == "delete" else "data",
            )
        if wanted_old(new, old, plan.key_columns, before_updates=self._before_updates) is None:
            old = None
        after = plan.read(new, "data", complete=complete)
        before = plan.read(old, "old", complete=complete)
        mismatch = None
        if self._verifier is not None and complete and message.wire.get("checksum") is not None:
            mismatch = self._verifier.verify(message.wire, plan.schema, raw_new, raw_old)
        return plan.schema, before, after, mismatch


def read_cells(message: AvroMessage) -> tuple[Cells | None, Cells | None]:
    """Parse ``data`` and ``old``, the last fields of a message.

    :raises IndexError: if the message is truncated.
    """
    layout, data, at = message.layout, message.data, message.at
    images: list[Cells | None] = []
    for field in ("data", "old"):
        image = None
        branch, at = read_choice(data, at, 2, "branch")
        if branch:
            image, at = _read_map(layout, data, at, field)
        images.append(image)
    check_end(data, at)
    return images[0], images[1]


def _read_map(layout: Layout, data: bytes, at: int, field: str) -> tuple[Cells, int]:
    cells: Cells = {}
    name = ""
    try:
        count, at = read_block(data, at)
        while count:
            for _ in range(count):
                name, at = read_string(data, at)
                number, at = read_choice(data, at, len(layout.branches), "branch")
                branch = layout.branches[number]
                value, at = BRANCH_READERS[branch](data, at)
                cells[name] = branch, value
            name = ""
            count, at = read_block(data, at, len(cells))
    except DecodeError as error:
        path = f"{field}.{name[:_LONGEST_NAME]}" if name else field
        raise error.at(field=path) from error
    return cells, at


def _values(cells: Cells | None) -> WireImage:
    return None if cells is None else {name: value for name, (_, value) in cells.items()}
