"""Where messages come from: one by one, or as lines of a file in one piece."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa

from cdcfmt_core.events import Message
from cdcfmt_core.sources import BadLine
from pyspark_cdcfmt.batches import to_array
from pyspark_cdcfmt.events import microseconds

Origins: TypeAlias = Sequence[Message | BadLine]

Origin: TypeAlias = Literal["topic", "partition", "offset", "timestamp", "path"]
ORIGINS: Final[tuple[Origin, ...]] = ("topic", "partition", "offset", "timestamp", "path")


class Sources:
    """The origins of messages or rows; without ``protocol`` only their offsets."""

    def __init__(self, protocol: str | None) -> None:
        self._protocol = protocol
        names: tuple[Origin, ...] = ("offset",) if protocol is None else ORIGINS
        self._values: dict[Origin, list[Any]] = {name: [] for name in names}

    def add(self, origins: Origins, places: Sequence[int] | None = None) -> None:
        """Some more of them: all, or those at some places."""
        for name, values in self._values.items():
            some = list(map(attrgetter(name), origins))
            values += some if places is None else [some[place] for place in places]

    def add_lines(self, path: str, count: int) -> None:
        """Some lines of a file; their offsets come from elsewhere."""
        for name, values in self._values.items():
            values += [path if name == "path" else None] * count

    def column_of(
        self, type_: pa.DataType, index: pa.Array, places: pa.Array, offsets: pa.Array
    ) -> pa.Array:
        """``_source`` of rows with these places in their messages, at these offsets."""
        column = self.column(type_, index, places)
        arrays = [
            offsets if field.name == "offset" else column.field(field.name) for field in type_
        ]
        return pa.StructArray.from_arrays(arrays, fields=list(type_))

    @property
    def offsets(self) -> pa.Array:
        """All offsets."""
        return pa.array(self._values["offset"], pa.int64())

    def column(
        self, type_: pa.DataType, index: pa.Array, places: pa.Array | None = None
    ) -> pa.Array:
        """``_source`` of rows with these places in their messages.

        ``places`` are those of their messages among all, if these are not the rows themselves.
        """
        arrays = []
        for field in type_:
            if field.name == "index":
                array = index
            elif field.name == "protocol":
                array = pa.repeat(pa.scalar(self._protocol, field.type), len(index))
            else:
                array = _mostly_alike(self._values[field.name], field.type)
                array = array if places is None else array.take(places)
            arrays.append(array)
        return pa.StructArray.from_arrays(arrays, fields=list(type_))


def _mostly_alike(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Values, or milliseconds; of one file or topic they are the same."""
    convert = microseconds if pa.types.is_timestamp(type_) else None
    if values and values.count(values[0]) == len(values):
        one = values[0] if convert is None else convert(values[0])
        return to_array([one], type_).take(pa.repeat(pa.scalar(0, pa.int32()), len(values)))
    return to_array(values if convert is None else list(map(convert, values)), type_)
