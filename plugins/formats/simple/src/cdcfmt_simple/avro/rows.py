"""Decoder of ``data`` and ``old`` of Avro messages: maps from column names to union values.

Values are first parsed without types: the columns of a row determine its table schema, which
determines the types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from cdcfmt_core.errors import DecodeError
from cdcfmt_simple.avro.message import AvroMessage, SchemaEdition, check_end, read_string
from cdcfmt_simple.avro.values import BRANCH_READERS, Convert, open_converters
from cdcfmt_simple.rows import WireImage, WireRows
from cdcfmt_toolkit.images import read_value
from cdcfmt_toolkit.wire_avro import read_block, read_choice

Cells: TypeAlias = dict[str, tuple[str, Any]]
"""An undecoded image: branch and value of each column."""

_LONGEST_NAME = 64
"""Maximum length of column names in errors, in characters."""


def read_cells(message: AvroMessage) -> tuple[Cells | None, Cells | None]:
    """Parse ``data`` and ``old``, the last fields of a message.

    :raises IndexError: if the message is truncated.
    """
    edition, data, at = message.edition, message.data, message.at
    images: list[Cells | None] = []
    for field in ("data", "old"):
        image = None
        branch, at = read_choice(data, at, 2, "branch")
        if branch:
            image, at = _read_map(edition, data, at, field)
        images.append(image)
    check_end(data, at)
    return images[0], images[1]


def _read_map(edition: SchemaEdition, data: bytes, at: int, field: str) -> tuple[Cells, int]:
    cells: Cells = {}
    name = ""
    try:
        count, at = read_block(data, at)
        while count:
            for _ in range(count):
                name, at = read_string(data, at)
                number, at = read_choice(data, at, len(edition.branches), "branch")
                branch = edition.branches[number]
                value, at = BRANCH_READERS[branch](data, at)
                cells[name] = branch, value
            name = ""
            count, at = read_block(data, at, len(cells))
    except DecodeError as error:
        path = f"{field}.{name[:_LONGEST_NAME]}" if name else field
        raise error.at(field=path) from error
    return cells, at


def _convert(
    cells: Mapping[str, Any], columns: Mapping[str, Mapping[str, Convert]], field: str
) -> dict[str, Any]:
    return {
        name: read_value(columns[name][branch], value, f"{field}.{name}")
        for name, (branch, value) in cells.items()
    }


def _values(cells: WireImage) -> WireImage:
    return None if cells is None else {name: value for name, (_, value) in cells.items()}


AVRO_ROWS: Final = WireRows(open_converters, _convert, _values, column_bytes=2_500)
