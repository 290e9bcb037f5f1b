"""Where messages come from, as columns of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, TypeAlias

import attrs
import pyarrow as pa

from cdcfmt_core.events import Message
from cdcfmt_core.sources import BadLine, Lines
from pyspark_cdcfmt.rows.event_rows import microseconds
from pyspark_cdcfmt.rows.record_batches import to_array

Origins: TypeAlias = Sequence[Message | BadLine] | Lines


@attrs.frozen
class Span:
    """Messages one by one, or so many lines of a file in one piece."""

    origins: Origins
    count: int

    def values_of(self, name: str) -> list[Any]:
        """An attribute of each message; of lines the path alone is known."""
        if isinstance(self.origins, Lines):
            return [self.origins.path if name == "path" else None] * self.count
        if set(map(type, self.origins)) == {Message}:
            return list(map(attrgetter(name), self.origins))
        return [getattr(each, name, None) for each in self.origins]

    def headers(self) -> list[list[dict[str, Any]]]:
        """The headers of each message; lines have none."""
        if isinstance(self.origins, Lines):
            return [[]] * self.count
        return [
            [{"key": name, "value": value} for name, value in getattr(each, "headers", ())]
            for each in self.origins
        ]


def source_of_rows(
    spans: Sequence[Span], rows: pa.RecordBatch, protocol: str, type_: pa.DataType
) -> pa.Array:
    """``_source`` of rows that have ``message``, ``index`` and ``offset``."""
    arrays = []
    for field in type_:
        if field.name in ("index", "offset"):
            array = rows.column(field.name)
        elif field.name == "protocol":
            array = _repeated(protocol, rows.num_rows, field.type)
        else:
            values = [value for span in spans for value in span.values_of(field.name)]
            if pa.types.is_timestamp(field.type):
                values = list(map(microseconds, values)) if any(values) else [None] * len(values)
            if values and values.count(values[0]) == len(values):
                # Most messages are of one file or topic.
                array = _repeated(values[0], rows.num_rows, field.type)
            else:
                array = to_array(values, field.type).take(rows.column("message"))
        arrays.append(array)
    return pa.StructArray.from_arrays(arrays, fields=list(type_))


def headers_of_rows(spans: Sequence[Span], rows: pa.RecordBatch, type_: pa.DataType) -> pa.Array:
    """The headers of the messages of rows."""
    headers = [each for span in spans for each in span.headers()]
    return to_array(headers, type_).take(rows.column("message"))


def _repeated(value: Any, count: int, type_: pa.DataType) -> pa.Array:
    return to_array([value], type_).take(pa.repeat(pa.scalar(0, pa.int32()), count))
