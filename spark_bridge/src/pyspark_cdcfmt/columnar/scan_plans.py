"""What is learned from one Avro message: how its like are read and become columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Final

import attrs
import pyarrow as pa

from cdcfmt_core.avro_layout import AvroLayout, Cell, Form, ImageField, Wire
from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.wire_avro import read_bytes
from pyspark_cdcfmt.columnar.avro_example import Example, Skipped, Stands, take_apart
from pyspark_cdcfmt.columnar.avro_maps import CellForm, MapCell, MapWalk
from pyspark_cdcfmt.columnar.avro_scan import AvroScan
from pyspark_cdcfmt.columnar.avro_windows import Windows
from pyspark_cdcfmt.columnar.converters import ColumnConverter
from pyspark_cdcfmt.columnar.structs import Unlike
from pyspark_cdcfmt.columnar.wanted import Shape, Told
from pyspark_cdcfmt.columnar.wire_columns import (
    WireConverter,
    WireValues,
    token_of,
    wire_check,
    wire_converter,
)

_NULL: Final = 0
_LAST_COMMIT_TS: Final = (1 << 63) - 1
_WIRE_TYPES: Final[Mapping[Wire, pa.DataType]] = {
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
}
_CELL_FORMS: Final[Mapping[Form, CellForm]] = {
    "long": "long",
    "float": "float",
    "double": "double",
    "bytes": "bytes",
    "named": "bytes",
}


@attrs.frozen(eq=False)
class ScanPlan:
    """Reads the messages that are like the one it was learned from.

    ``columns`` are the converters of the schema's columns; ``checked`` those of keys that are
    no columns; ``absent`` are the columns that the wire does not send; ``surplus`` those that
    no field takes and that must be NULL; ``keys`` those of the key, where a change of it
    matters; ``keyed`` says that the table has a key.  Without ``before_updates`` images before
    updates are only checked.  What is read is ``recognised`` thereby.

    ``event``: for the events shape; ``tokens`` then make what images are put together from, and
    there are no ``columns``.  ``source`` is the protocol, where ``_source`` is wanted.
    ``unit`` are the microseconds in a time.  ``repeats`` are the bytes that every row repeats,
    ``row_bytes`` those of a row of NULLs.
    """

    scan: AvroScan
    columns: Mapping[str, WireConverter]
    checked: Mapping[str, WireConverter]
    absent: tuple[str, ...]
    surplus: tuple[str, ...]
    keys: tuple[str, ...]
    keyed: bool
    before_updates: bool
    recognised: bool
    tokens: Mapping[str, ColumnConverter]
    unit: int
    event: Told | None = None
    source: str | None = None
    repeats: int = 0
    row_bytes: int = 0


class ScanLearner:
    """Makes plans; where values stood is remembered from plan to plan, as they may be NULL."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._seen: Cache[tuple[AvroLayout, TableSchema], dict[str, Stands]] = Cache(16 << 20)

    def learn(self, layout: AvroLayout, value: bytes, table: TableSchema) -> ScanPlan:
        """The plan of a message of this layout, whose row has this schema.

        :raises Unlike: if such messages are for the reference path.
        """
        shape = self._shape
        example = take_apart(layout, value)
        if shape.events and any(
            isinstance(step, Skipped) and step.role == "extra" for step in example.steps
        ):
            raise Unlike("its extra is another one in every message")
        seen = self._look(layout, table, example)
        noticed: Counter[str] = Counter()
        walked: list[MapCell] = []
        values: dict[str, WireValues] = {}
        for column in table.columns:
            known = layout.cells(column, table, shape.policy.time_zone, noticed)
            cell, found, named = _cell(column, known, seen.get(column.name), _branches(layout))
            walked.append(cell)
            values[column.name] = _values(column, found, named, shape.policy.time_zone, noticed)
        wanted = shape.wanted_of(table)
        low = shape.event_filter.starting_commit_ts or 0
        high = shape.event_filter.ending_commit_ts
        scan = AvroScan(
            layout,
            example.steps,
            MapWalk(walked),
            {name: values[name].type for name in wanted},
            (max(low, 0), _LAST_COMMIT_TS if high is None else high),
        )
        windows = Windows([value])
        if scan.scan(windows, windows.all).left:
            raise Unlike("it is unusual itself")
        own = shape.own_of(table)
        if any(name != field.name for name, field in own.items()):
            raise Unlike("a column's name differs in case")
        return ScanPlan(
            scan=scan,
            columns={
                name: wire_converter(values[name], field, shape.arrow[name], shape.policy)
                for name, field in own.items()
                if name in values
            },
            checked={
                name: wire_check(values[name])
                for name in wanted
                if name not in own and not shape.events
            },
            absent=tuple(field.name for field in shape.fields if field.name not in own),
            surplus=tuple(name for name in wanted if shape.inferred and name not in own),
            keys=shape.keys_of(table) if shape.split else (),
            keyed=shape.is_keyed(table),
            before_updates=shape.projection.before_updates,
            recognised=layout.recognised,
            tokens={
                name: token_of(values[name], table, shape.policy, shape.events)
                for name in wanted
                if shape.events
            },
            unit=layout.times[2],
        )

    def _look(
        self, layout: AvroLayout, table: TableSchema, example: Example
    ) -> Mapping[str, Stands]:
        names = set(table.column_names)
        if any(cells.keys() != names for cells in example.cells):
            raise Unlike("its rows have other columns than its schema")
        seen = self._seen.get((layout, table))
        if seen is None:
            seen = self._seen.add((layout, table), {}, table_size(table))
        for cells in example.cells:
            seen.update({name: stands for name, stands in cells.items() if stands is not None})
        return seen


def _values(
    column: Column, cell: Cell, named: str, time_zone: tzinfo, noticed: Counter[str]
) -> WireValues:
    try:
        parse = cell.open_parse(named)
        zone = time_zone if cell.zone_of is None else cell.zone_of(named)
    except ValueError as error:
        raise Unlike(str(error)) from error
    return WireValues(column, _WIRE_TYPES[cell.wire], parse, cell.mysql_text, zone, noticed)


def _branches(layout: AvroLayout) -> Sequence[Form]:
    return next(field.branches for field in layout.fields if isinstance(field, ImageField))


def _cell(
    column: Column, known: Sequence[Cell], stands: Stands | None, branches: Sequence[Form]
) -> tuple[MapCell, Cell, str]:
    """How a column's values are found and read, and the text before them.

    Only NULL is found where nobody knows how others stand there.
    """
    by_branch = {cell.branch: cell for cell in known}
    if not known:
        raise Unlike(f"no value of {column.name} can be read")
    if stands is None:
        usual = known[0]
        if branches[usual.branch] == "named":
            return MapCell(column.name, _NULL, "bytes"), usual, ""
        stands = usual.branch, b""
    branch, head = stands
    if branch not in by_branch:
        raise Unlike(f"a value of {column.name} is none of its type")
    named = read_bytes(head, 0)[0].decode("utf-8", "surrogateescape") if head else ""
    cell = MapCell(column.name, branch, _CELL_FORMS[branches[branch]], head)
    return cell, by_branch[branch], named
