"""Printers of value encodings for Avro: the bytes of a value, without the number of its branch.

The compiled kernel's printers are in ``spark_bridge/kernel/src/write/binary.rs``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from cdcfmt_core.toolkit.avro_output import signed, write_bytes, write_long, write_text
from cdcfmt_core.toolkit.encodings import Encoding
from cdcfmt_core.toolkit.value_printers import Print, PrinterTools, value_printer
from cdcfmt_core.types import Binary, Float, LogicalType

_pack_float = struct.Struct("<f").pack
_pack_double = struct.Struct("<d").pack


def avro_printer(encoding: Encoding, logical: LogicalType, tools: PrinterTools) -> Print:
    """The printer of a column's values other than NULL.

    :raises EncodeError: for a column of unknown type.
    """
    if encoding.name == "json-number":
        if isinstance(logical, Float):
            is_single = logical.bits == 32
            pack = _pack_float if is_single and not encoding.doubles else _pack_double
            return _float_printer(pack, is_single=is_single)
        number = value_printer(encoding, logical, tools)
        return lambda value: write_long(signed(number(value)))
    if isinstance(logical, Binary):
        return write_bytes
    text = value_printer(encoding, logical, tools)
    return lambda value: write_text(text(value))


def _float_printer(pack: Callable[[float], bytes], *, is_single: bool) -> Print:
    def print_float(value: Any) -> bytes:
        if type(value) is not float or not math.isfinite(value):
            raise ValueError("not a finite number")
        if is_single:
            # It raises for a number that only a double holds.
            _pack_float(value)
        return pack(value)

    return print_float
