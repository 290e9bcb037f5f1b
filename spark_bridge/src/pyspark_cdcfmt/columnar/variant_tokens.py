"""Cells to the bytes that they have in variants (:mod:`pyspark_cdcfmt.variant`).

What has no short way is written cell by cell by the reference's own functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, TypeAlias

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark

from cdcfmt_core import types as logical
from cdcfmt_core.events import Image, TableSchema
from cdcfmt_core.mysql.text import parse_binary
from pyspark_cdcfmt.columnar.columns import WireColumn
from pyspark_cdcfmt.columnar.converters import ByCells, ColumnConverter
from pyspark_cdcfmt.columnar.json_kernels import scalar_kernel
from pyspark_cdcfmt.columnar.kernels import Kernel, text_kernel
from pyspark_cdcfmt.columnar.kinds import Kind, wire_type
from pyspark_cdcfmt.columnar.structs import Unlike
from pyspark_cdcfmt.events import image_values
from pyspark_cdcfmt.policy import ValuePolicy
from pyspark_cdcfmt.variant import VariantEncoder
from pyspark_cdcfmt.variant_scalars import (
    NULL,
    SCALARS,
    date_of_days,
    timestamp_of_micros,
    unscaled_decimal,
)

Token: TypeAlias = Callable[[Any], bytes]

_STRING, _BINARY = pa.string(), pa.binary()
_MAX_DIGITS = 38
_SIZE = 4
"""Bytes in which a document's token says how long the metadata before it is."""


@attrs.frozen
class VariantTokens:
    """A column's converter to the bytes of variants.

    ``with_metadata``: before each token stands the metadata of its row, after its size.
    """

    converter: ColumnConverter
    with_metadata: bool = False

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]:
        return self.converter.gather(cells)

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]:
        return gathered, []


def variant_converter(wire: WireColumn, table: TableSchema, policy: ValuePolicy) -> VariantTokens:
    """What makes the bytes of a column's cells; NULL stays NULL.

    :raises Unlike: where a row's metadata depends on several columns.
    """
    column = wire.column
    with_metadata = isinstance(column.type, logical.Json)
    if with_metadata and sum(isinstance(each.type, logical.Json) for each in table.columns) > 1:
        raise Unlike("several columns add to the metadata of a row")
    own = ValuePolicy(policy.invalid_values, policy.invalid_text, policy.time_zone, wire.noticed)
    values_of = image_values(attrs.evolve(table, columns=(column,)), own, as_json=False)
    encoder = _encoder_of(table)

    def token(value: Any) -> bytes:
        piece, metadata = encoder.encode(values_of(Image({column.name: value}))[column.name])
        if with_metadata:
            return len(metadata).to_bytes(_SIZE, "little") + metadata + piece
        if metadata is not encoder.metadata:
            raise ValueError("an object")
        return piece

    by_cells = ByCells(
        wire.parse,
        token,
        lambda tokens: pa.array(tokens, _BINARY),
        wire.noticed,
        remember=wire.kind in (Kind.TEXT, Kind.INTEGER),
    )
    return VariantTokens(_fast(wire, by_cells) or by_cells, with_metadata)


@lru_cache(maxsize=1)
def _encoder_of(table: TableSchema) -> VariantEncoder:
    """One for all columns of a table, which are planned one after the other."""
    return VariantEncoder(table.column_names)


def assembled(
    table: TableSchema, tokens: dict[str, tuple[VariantTokens, pa.Array]], type_: pa.DataType
) -> pa.StructArray:
    """Variants of whole images, from the tokens of their columns."""
    encoder = VariantEncoder(table.column_names)
    metadata: list[bytes] | None = None
    columns: list[list[bytes]] = []
    for name in encoder.ordered:
        converter, array = tokens[name]
        pieces = array.to_pylist()
        if converter.with_metadata:
            metadata = []
            for place, piece in enumerate(pieces):
                if piece is None:
                    metadata.append(encoder.metadata)
                else:
                    end = _SIZE + int.from_bytes(piece[:_SIZE], "little")
                    metadata.append(piece[_SIZE:end])
                    pieces[place] = piece[end:]
        if array.null_count:
            pieces = [NULL if piece is None else piece for piece in pieces]
        columns.append(pieces)
    values = list(map(encoder.object_of, zip(*columns, strict=True)))
    if metadata is None:
        shared = pa.repeat(pa.scalar(encoder.metadata, _BINARY), len(values))
    else:
        shared = pa.array(metadata, _BINARY)
    return pa.StructArray.from_arrays([pa.array(values, _BINARY), shared], fields=list(type_))


def _fast(wire: WireColumn, by_cells: ByCells) -> ColumnConverter | None:
    type_, parse, kind = wire.column.type, wire.parse, wire.kind
    if isinstance(type_, logical.Text):
        text = kind is Kind.TEXT and parse in (None, str)
        return Direct(by_cells, _strict_text) if text else None
    if isinstance(type_, logical.Binary) and kind is Kind.TEXT and parse is not None:
        return Direct(by_cells, _latin if parse is parse_binary else _bytes_by(parse))
    if isinstance(type_, logical.Float):
        if kind is Kind.TEXT:
            return _by_kernel(wire, by_cells, spark.DoubleType(), pa.float64())
        if kind is Kind.NUMBER and parse is not None and type(_of(parse, 1)) is float:
            return Direct(by_cells, lambda cell: _FLOAT(float(cell)))
        return None
    if isinstance(type_, logical.Decimal):
        if kind is Kind.TEXT:
            return _by_kernel(wire, by_cells, spark.StringType(), _STRING)
        same = kind is Kind.NUMBER and all(
            isinstance(value := _of(parse, each), Decimal) and str(value) == repr(each)
            for each in (1.5, 2, -0.25, 1234567.125)
        )
        whole = str(_of(parse, 2.0))
        known = same and whole in ("2", "2.0")
        return Direct(by_cells, _number_by(strip=whole == "2")) if known else None
    if isinstance(type_, logical.Int):
        if type_ == logical.Int(64, signed=False):
            return _by_kernel(wire, by_cells, spark.DecimalType(20, 0), _UNSIGNED)
        return _by_kernel(wire, by_cells, spark.LongType(), pa.int64())
    if isinstance(type_, logical.Date):
        return _by_kernel(wire, by_cells, spark.DateType(), pa.date32())
    if isinstance(type_, logical.DateTime):
        return _by_kernel(wire, by_cells, spark.TimestampNTZType(), _MICROS)
    if isinstance(type_, logical.Timestamp):
        return _by_kernel(wire, by_cells, spark.TimestampType(), _UTC)
    return None


_UNSIGNED = pa.decimal128(20, 0)
_MICROS, _UTC = pa.timestamp("us"), pa.timestamp("us", tz="UTC")
_FLOAT, _INT, _TEXT, _BYTES = (SCALARS[kind] for kind in (float, int, str, bytes))


def _by_kernel(
    wire: WireColumn,
    by_cells: ByCells,
    target: spark.DataType,
    arrow: pa.DataType,
) -> ColumnConverter | None:
    type_ = wire.column.type
    gathered = _STRING if wire.mysql_text else wire_type(wire.kind, type_)
    if gathered is None:
        return None
    if wire.mysql_text:
        kernel = text_kernel(type_, target, arrow, wire.parse, wire.time_zone)
    else:
        kernel = scalar_kernel(type_, target, arrow, wire.parse, gathered)
    return None if kernel is None else Checked(by_cells, kernel, gathered)


def _values(array: pa.Array) -> tuple[Token, Sequence[Any]]:
    """What a kernel made, as numbers, and what makes tokens of them."""
    type_ = array.type
    if pa.types.is_timestamp(type_):
        return timestamp_of_micros(aware=type_.tz is not None), pc.cast(array, _INT64).to_pylist()
    if pa.types.is_date(type_):
        return date_of_days, pc.cast(array, pa.int32()).to_pylist()
    if pa.types.is_string(type_):
        return _decimal_text, array.to_pylist()
    if pa.types.is_decimal(type_):
        return _decimal_text, pc.cast(array, _STRING).to_pylist()
    return (_FLOAT if pa.types.is_floating(type_) else _INT), array.to_pylist()


_INT64 = pa.int64()


def _strict_text(cell: str) -> bytes:
    cell.encode()  # lone surrogates are the reference's
    return _TEXT(cell)


def _latin(cell: str) -> bytes:
    return _BYTES(cell.encode("latin-1"))


def _bytes_by(parse: Callable[[Any], Any]) -> Token:
    def token(cell: Any) -> bytes:
        value = parse(cell)
        if type(value) is not bytes:
            raise ValueError("no bytes")
        return _BYTES(value)

    return token


_PLAIN_ZEROS: Final = 6


def _decimal_text(text: str) -> bytes:
    whole, _, fraction = text.partition(".")
    if len(text) > _MAX_DIGITS:
        raise ValueError("too many digits")
    number = int(whole + fraction)
    # The reference prints such a zero with an exponent, and then as 0.
    zero = not number and len(fraction) > _PLAIN_ZEROS
    return unscaled_decimal(number, 0 if zero else len(fraction))


def _number_by(*, strip: bool) -> Token:
    def token(cell: Any) -> bytes:
        text = repr(cell)
        if len(text) > 16 or "e" in text or "n" in text:
            raise ValueError("printed otherwise")
        return _decimal_text(text.removesuffix(".0") if strip else text)

    return token


def _of(parse: Callable[[Any], object] | None, value: Any) -> object:
    try:
        return None if parse is None else parse(value)
    except Exception:
        return None


class Direct:
    """Each cell by one function; where it fails, all through the reference's."""

    def __init__(self, by_cells: ByCells, token: Token) -> None:
        self._by_cells = by_cells
        self._token = token

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]:
        token = self._token
        try:
            tokens = [None if cell is None else token(cell) for cell in cells]
        except Exception:
            return self._by_cells.gather(cells)
        return pa.array(tokens, _BINARY), []

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]:
        return gathered, []


class Checked:
    """All cells by a kernel, whose values become tokens."""

    def __init__(self, by_cells: ByCells, kernel: Kernel, gathered: pa.DataType) -> None:
        self._by_cells = by_cells
        self._kernel = kernel
        self._gathered = gathered

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]:
        try:
            array = self._kernel(pa.array(cells, self._gathered))
            if array is None:
                return self._by_cells.gather(cells)
            token, values = _values(array)
            tokens = [None if value is None else token(value) for value in values]
        except (pa.ArrowException, OverflowError, ValueError):
            return self._by_cells.gather(cells)
        return pa.array(tokens, _BINARY), []

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]:
        return gathered, []
