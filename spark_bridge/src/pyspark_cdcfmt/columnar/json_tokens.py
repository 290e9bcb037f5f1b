"""Cells to the texts that they have in JSON images (:mod:`pyspark_cdcfmt.image_json`).

What has no kernel is written cell by cell by the reference's own function.
"""

from __future__ import annotations

import decimal
from binascii import b2a_base64
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark

from cdcfmt_core import types as logical
from cdcfmt_core.events import Image, TableSchema
from cdcfmt_core.mysql.text import parse_binary
from pyspark_cdcfmt.columnar.columns import WireColumn
from pyspark_cdcfmt.columnar.converters import ByCells, ByKernel, ColumnConverter
from pyspark_cdcfmt.columnar.json_kernels import gives, scalar_kernel
from pyspark_cdcfmt.columnar.kernels import Kernel, text_kernel, within
from pyspark_cdcfmt.columnar.kinds import Kind, wire_type
from pyspark_cdcfmt.events import image_writer
from pyspark_cdcfmt.policy import ValuePolicy

_STRING, _BINARY = pa.string(), pa.binary()
_MICROS = pa.timestamp("us")
_UTC = pa.timestamp("us", tz="UTC")
_MAX_DIGITS = 38
_EXACT_DIGITS = 16


@attrs.frozen
class Tokens:
    """A column's converter to JSON texts.

    ``quoted``: all are JSON strings, and their quotes are still to be put around them.
    """

    converter: ColumnConverter
    quoted: bool

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]:
        return self.converter.gather(cells)

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]:
        return self.converter.finish(gathered)


def token_converter(wire: WireColumn, table: TableSchema, policy: ValuePolicy) -> Tokens:
    """What makes the JSON texts of a column's cells; NULL stays NULL."""
    column = wire.column
    own = ValuePolicy(policy.invalid_values, policy.invalid_text, policy.time_zone, wire.noticed)
    write = image_writer(attrs.evolve(table, columns=(column,)), own, as_json=True)
    start = len(orjson.dumps({column.name: 0})) - len(b"0}")
    quoted = isinstance(
        column.type,
        logical.Text | logical.Binary | logical.Date | logical.DateTime | logical.Timestamp,
    )

    def token(value: Any) -> str:
        text: str = write(Image({column.name: value}))[start:-1].decode()
        if not quoted:
            return text
        if not text.startswith('"'):
            raise ValueError("no text")
        return text[1:-1]

    by_cells = ByCells(
        wire.parse,
        token,
        lambda tokens: pa.array(tokens, _STRING),
        wire.noticed,
        remember=wire.kind in (Kind.TEXT, Kind.INTEGER),
    )
    return Tokens(_fast(wire, by_cells) or by_cells, quoted)


def joined(columns: Sequence[tuple[str, pa.Array, bool]], count: int) -> pa.Array:
    """JSON objects of columns in order: their names, texts and whether these are to be quoted."""
    if not columns:
        return pa.array(["{}"] * count, _STRING)
    parts: list[Any] = []
    lead = "{"
    for name, array, quoted in columns:
        lead += f"{orjson.dumps(name).decode()}:"
        if quoted and array.null_count:
            array, quoted = pc.binary_join_element_wise('"', array, '"', ""), False
        quote = '"' if quoted else ""
        parts += [lead + quote, array]
        lead = quote + ","
    return pc.binary_join_element_wise(
        *parts, lead[:-1] + "}", "", null_handling="replace", null_replacement="null"
    )


def _fast(wire: WireColumn, by_cells: ByCells) -> ColumnConverter | None:
    type_, parse = wire.column.type, wire.parse
    if isinstance(type_, logical.Text):
        return Texts(by_cells) if wire.kind is Kind.TEXT and parse in (None, str) else None
    if isinstance(type_, logical.Binary) and wire.kind is Kind.TEXT and parse is not None:
        return Base64(by_cells, None if parse is parse_binary else parse)
    if isinstance(type_, logical.Float):
        if wire.kind is Kind.TEXT:
            kernel = _text_kernel(wire, spark.DoubleType(), pa.float64())
            return None if kernel is None else ByKernel(_then(kernel, _doubles), _STRING, by_cells)
        if wire.kind is Kind.NUMBER and parse is not None and type(_of_one(parse)) is float:
            return Floats(by_cells)
        return None
    if isinstance(type_, logical.Decimal) and wire.kind is Kind.NUMBER:
        same = gives(parse, 1.5, decimal.Decimal("1.5")) and gives(parse, 1, decimal.Decimal(1))
        return Decimals(by_cells) if same else None
    target = _target(type_)
    if target is None:
        return None
    spark_type, arrow, to_text = target
    kernel = _text_kernel(wire, spark_type, arrow)
    gathered = _STRING if wire.mysql_text else wire_type(wire.kind, type_)
    if kernel is None or gathered is None:
        return None
    return ByKernel(_then(kernel, to_text), gathered, by_cells)


def _text_kernel(wire: WireColumn, target: spark.DataType, arrow: pa.DataType) -> Kernel | None:
    type_ = wire.column.type
    if wire.mysql_text:
        return text_kernel(type_, target, arrow, wire.parse, wire.time_zone)
    gathered = wire_type(wire.kind, type_)
    if gathered is None:
        return None
    return scalar_kernel(type_, target, arrow, wire.parse, gathered)


def _target(
    type_: logical.LogicalType,
) -> tuple[spark.DataType, pa.DataType, Callable[[pa.Array], pa.Array | None]] | None:
    """The Spark type by whose kernel the text is found, and the way from there."""
    if isinstance(type_, logical.Int):
        if type_ == logical.Int(64, signed=False):
            return spark.DecimalType(20, 0), pa.decimal128(20, 0), _plain
        return spark.LongType(), pa.int64(), _plain
    if isinstance(type_, logical.Decimal):
        return spark.StringType(), _STRING, _decimals
    if isinstance(type_, logical.Date):
        return spark.DateType(), pa.date32(), _plain
    if isinstance(type_, logical.DateTime):
        return spark.TimestampNTZType(), _MICROS, _wall_clocks
    if isinstance(type_, logical.Timestamp):
        return spark.TimestampType(), _UTC, _instants
    return None


def _then(kernel: Kernel, to_text: Callable[[pa.Array], pa.Array | None]) -> Kernel:
    def both(cells: pa.Array) -> pa.Array | None:
        values = kernel(cells)
        return None if values is None else to_text(values)

    return both


def _of_one(parse: Callable[[Any], object]) -> object:
    try:
        return parse(1)
    except Exception:
        return None


def _plain(values: pa.Array) -> pa.Array:
    return pc.cast(values, _STRING)


def _wall_clocks(times: pa.Array) -> pa.Array:
    # Arrow prints six digits of every fraction.
    return pc.ascii_rtrim(pc.ascii_rtrim(pc.cast(times, _STRING), "0"), ".")


def _instants(times: pa.Array) -> pa.Array:
    texts = _wall_clocks(pc.cast(pc.cast(times, pa.int64()), _MICROS))
    return pc.binary_join_element_wise(texts, "+00:00", "")


def _decimals(texts: pa.Array) -> pa.Array | None:
    """Of digits as MySQL prints them: without the zeros behind the point."""
    if not within(pc.binary_length(texts), 1, _MAX_DIGITS):
        return None
    short = pc.ascii_rtrim(pc.ascii_rtrim(texts, "0"), ".")
    texts = pc.if_else(pc.match_substring(texts, "."), short, texts)
    return None if pc.any(pc.equal(texts, "-0")).as_py() else texts


def _doubles(numbers: pa.Array) -> pa.Array:
    return _dumped(numbers.to_pylist())


def _dumped(cells: Sequence[Any]) -> pa.Array:
    """What orjson writes of each, ``null`` too.

    :raises TypeError: for what it does not write.
    """
    if not cells:
        return pa.array([], _STRING)
    # No text has a line break in it, as JSON escapes those.
    text = orjson.dumps(cells, option=orjson.OPT_INDENT_2)[4:-2]
    return pc.split_pattern(pa.array([text], _STRING), ",\n  ").flatten()


class Texts:
    """Text columns, which seldom hold what JSON escapes."""

    def __init__(self, by_cells: ByCells) -> None:
        self._by_cells = by_cells

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]:
        try:
            dumped = len(orjson.dumps(cells))
            texts = pa.array(cells, _STRING)
        except (TypeError, UnicodeEncodeError):  # lone surrogates
            return self._by_cells.gather(cells)
        bare = pc.sum(pc.binary_length(texts)).as_py() or 0
        nulls = texts.null_count
        if dumped == 1 + bare + 3 * (len(cells) - nulls) + 5 * nulls + (not cells):
            return texts, []
        tokens = [None if cell is None else orjson.dumps(cell)[1:-1] for cell in cells]
        return pa.array(tokens, _BINARY).cast(_STRING), []

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]:
        return gathered, []


class Floats:
    """Numbers that are doubles, whether or not they have a fraction."""

    def __init__(self, by_cells: ByCells) -> None:
        self._by_cells = by_cells

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]:
        try:
            tokens = _dumped([None if cell is None else float(cell) for cell in cells])
        except OverflowError:
            return self._by_cells.gather(cells)
        # It writes what is no number as null.
        if (pc.sum(pc.equal(tokens, "null")).as_py() or 0) != cells.count(None):
            return self._by_cells.gather(cells)
        return tokens, []

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]:
        return gathered, []


class Base64:
    """Binary columns; ``parse`` None is Latin-1."""

    def __init__(self, by_cells: ByCells, parse: Callable[[Any], Any] | None) -> None:
        self._by_cells = by_cells
        self._parse = parse

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]:
        parse = self._parse
        try:
            data = [
                None
                if cell is None
                else b2a_base64(
                    cell.encode("latin-1") if parse is None else parse(cell), newline=False
                )
                for cell in cells
            ]
        except Exception:
            return self._by_cells.gather(cells)
        return pa.array(data, _BINARY).cast(_STRING), []

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]:
        return gathered, []


class Decimals:
    """Decimals that are JSON numbers, by their shortest digits."""

    def __init__(self, by_cells: ByCells) -> None:
        self._by_cells = by_cells

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]:
        texts = _dumped(cells)
        valid = pc.not_equal(texts, "null")
        texts = pc.if_else(valid, texts, pa.scalar(None, _STRING))
        # What is no number, an exponent, or one that is printed otherwise.
        if (
            texts.null_count == cells.count(None)
            and not pc.any(pc.match_substring(texts, "e")).as_py()
            and within(pc.binary_length(texts), 1, _EXACT_DIGITS)
        ):
            tokens = _decimals(texts)
            if tokens is not None:
                return tokens, []
        return self._by_cells.gather(cells)

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]:
        return gathered, []
