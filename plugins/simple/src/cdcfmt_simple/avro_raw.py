"""The values of an Avro row as the wire has them, whatever their columns are."""

from __future__ import annotations

import struct
from typing import Any, Final

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.toolkit.wire_avro import read_block, read_bytes, read_choice, read_long
from cdcfmt_simple.avro import Layout, read_boolean, read_string
from cdcfmt_simple.avro_values import Reader

_LONGEST_NAME: Final = 64
"""Of columns, in characters."""


def read_raw_map(layout: Layout, data: bytes, at: int, field: str) -> tuple[dict[str, Any], int]:
    """An image; TIMESTAMP as in JSON, an object of location and value.

    :raises IndexError: if the message ends in it.
    """
    readers = [RAW_READERS[branch] for branch in layout.branches]
    values: dict[str, Any] = {}
    name = ""
    try:
        count, at = read_block(data, at)
        while count:
            for _ in range(count):
                name, at = read_string(data, at)
                branch, at = read_choice(data, at, len(readers), "branch")
                values[name], at = readers[branch](data, at)
            name = ""
            count, at = read_block(data, at, len(values))
    except DecodeError as error:
        path = f"{field}.{name[:_LONGEST_NAME]}" if name else field
        raise error.at(field=path) from error
    return values, at


def _fixed(format_: str) -> Reader:
    packed = struct.Struct(format_)

    def read(data: bytes, at: int) -> tuple[float, int]:
        if at + packed.size > len(data):
            raise IndexError
        (value,) = packed.unpack_from(data, at)
        return value, at + packed.size

    return read


def _read_timestamp(data: bytes, at: int) -> tuple[dict[str, str], int]:
    location, at = read_string(data, at)
    value, at = read_string(data, at)
    return {"location": location, "value": value}, at


RAW_READERS: Final[dict[str, Reader]] = {
    "null": lambda data, at: (None, at),
    "int": read_long,
    "long": read_long,
    "float": _fixed("<f"),
    "double": _fixed("<d"),
    "string": read_string,
    "boolean": read_boolean,
    "bytes": read_bytes,
    "Timestamp": _read_timestamp,
    "UnsignedBigint": read_long,
}
"""By the names of the branches."""
