"""Readers of arrays, maps, structs and geometries, whose parts have readers of their own.

The readers get values of JSON or Avro, and raise ValueError for bad ones; NULL never reaches the
reader of a part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdcfmt_core.errors import show
from cdcfmt_core.types import GeometryValue
from cdcfmt_toolkit.images import ReadValue
from cdcfmt_toolkit.scalar_readers import bytes_of


def list_reader(read_item: ReadValue, *, has_nulls: bool = True) -> ReadValue:
    """The reader of a list; ``has_nulls``: whether items may be null."""

    def read(value: Any) -> object:
        if type(value) is not list:
            raise ValueError("not an array")
        if not has_nulls and None in value:
            raise ValueError("an array with null")
        return [None if item is None else read_item(item) for item in value]

    return read


def map_reader(read_value: ReadValue) -> ReadValue:
    """The reader of an object of any names."""

    def read(value: Any) -> object:
        if type(value) is not dict:
            raise ValueError("not a map")
        return {key: None if item is None else read_value(item) for key, item in value.items()}

    return read


def struct_reader(readers: Mapping[str, ReadValue]) -> ReadValue:
    """The reader of an object of these fields; one that it lacks is NULL."""

    def read(value: Any) -> object:
        if type(value) is not dict:
            raise ValueError("not a struct")
        if unknown := value.keys() - readers.keys():
            raise ValueError(f"a struct with an unknown field {show(min(unknown))}")
        return {
            name: None if value.get(name) is None else read_field(value[name])
            for name, read_field in readers.items()
        }

    return read


def read_geometry(value: Any) -> GeometryValue:
    """The geometry of an object of ``wkb`` and ``srid``, which is null for 0."""
    if type(value) is not dict:
        raise ValueError("not a geometry")
    srid = value.get("srid")
    if srid is not None and (type(srid) is not int or srid < 0):
        raise ValueError("a geometry whose SRID is not a number")
    return GeometryValue(srid or 0, bytes_of(value.get("wkb")))
