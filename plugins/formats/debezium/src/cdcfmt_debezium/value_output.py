"""Printers of values, as Kafka Connect's schemas describe them: in JSON and in Avro.

The inverse of :mod:`cdcfmt_debezium.values`.  A printer raises ``ValueError``, ``TypeError`` or
``AttributeError`` for a value that is not of its type; NULL never reaches it.
"""

from __future__ import annotations

import decimal
import math
import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Any, ClassVar, Final, TypeAlias

import attrs
import orjson

from cdcfmt_core import types
from cdcfmt_core.errors import show
from cdcfmt_core.events import Column
from cdcfmt_core.types import GeometryValue, IntervalValue, InvalidValue, LogicalType
from cdcfmt_debezium.connect import DECIMAL, field_type
from cdcfmt_debezium.connect_types import VARIABLE_DECIMAL, Schema
from cdcfmt_debezium.message import DEFAULT_PLACEHOLDER
from cdcfmt_debezium.profile import ProducerProfile
from cdcfmt_debezium.value_encodings import encoding_of_field
from cdcfmt_mysql import format_time
from cdcfmt_mysql.members import enum_name, set_names
from cdcfmt_mysql.numbers import check_int, print_decimal, print_vector
from cdcfmt_mysql.text_output import limit_check, print_text
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.intervals import interval_text, time_tz_text
from cdcfmt_toolkit.row_messages import MYSQL_TEXT
from cdcfmt_toolkit.value_printers import (
    PrinterTools,
    avro_printer,
    micros_of,
    print_base64,
    unscaled_bytes,
    value_printer,
)
from cdcfmt_toolkit.wire_avro import NULL, SOME, write_array, write_bytes, write_long, write_text

Print: TypeAlias = Callable[[Any], Any]

_INTEGERS: Final = {"int32": 31, "int64": 63}
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}").fullmatch


def _json_float(value: float) -> float | str:
    """A double, or Java's text of one that JSON lacks."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


class Form(ABC):
    """How the parts of a value stand on a wire.

    ``has_schema``: without schema, decimals are text, as base64 could be of any type.
    """

    has_schema = True

    text: Print
    integer: Print
    data: Print
    floats: ClassVar[Mapping[str, Print]]

    @abstractmethod
    def scalar(self, encoding: Encoding, logical: LogicalType) -> Print:
        """The printer of a value encoding."""

    @abstractmethod
    def optional(self, print_value: Print) -> Print:
        """A printer that also prints None."""

    @abstractmethod
    def items(self, print_item: Print) -> Print:
        """The printer of a list."""

    @abstractmethod
    def members(self, print_value: Print) -> Print:
        """The printer of a dictionary with texts as keys."""

    @abstractmethod
    def record(self, printers: Mapping[str, Print]) -> Print:
        """The printer of a dictionary with these keys."""


class JsonForm(Form):
    """As JSON; the printers return values for orjson."""

    text = staticmethod(print_text)
    integer = staticmethod(int)
    data = staticmethod(print_base64)
    floats: ClassVar = dict.fromkeys(("float", "double"), _json_float)

    def __init__(self, tools: PrinterTools, *, has_schema: bool = True) -> None:
        self.has_schema = has_schema
        self._tools = attrs.evolve(tools, number=lambda text: orjson.Fragment(text.encode()))

    def scalar(self, encoding: Encoding, logical: LogicalType) -> Print:
        return value_printer(encoding, logical, self._tools)

    def optional(self, print_value: Print) -> Print:
        return lambda value: None if value is None else print_value(value)

    def items(self, print_item: Print) -> Print:
        return lambda value: [print_item(item) for item in value]

    def members(self, print_value: Print) -> Print:
        return lambda value: {print_text(key): print_value(each) for key, each in value.items()}

    def record(self, printers: Mapping[str, Print]) -> Print:
        return lambda value: {name: write(value.get(name)) for name, write in printers.items()}


class AvroForm(Form):
    """As bytes of Avro."""

    text = staticmethod(write_text)
    integer = staticmethod(write_long)
    data = staticmethod(write_bytes)
    floats: ClassVar = {"float": struct.Struct("<f").pack, "double": struct.Struct("<d").pack}

    def __init__(self, tools: PrinterTools) -> None:
        self._tools = tools

    def scalar(self, encoding: Encoding, logical: LogicalType) -> Print:
        return avro_printer(encoding, logical, self._tools)

    def optional(self, print_value: Print) -> Print:
        return lambda value: NULL if value is None else SOME + print_value(value)

    def items(self, print_item: Print) -> Print:
        return lambda value: write_array(value, print_item)

    def members(self, print_value: Print) -> Print:
        def write(item: tuple[str, Any]) -> bytes:
            return write_text(item[0]) + print_value(item[1])  # type: ignore[no-any-return]

        return lambda value: write_array([*value.items()], write)

    def record(self, printers: Mapping[str, Print]) -> Print:
        return lambda value: b"".join([write(value.get(name)) for name, write in printers.items()])


def open_printer(schema: Schema, logical: LogicalType, form: Form) -> Print | None:
    """The printer of a column's values; None if they have no other than their value encoding's.

    :raises EncodeError: for a type that cannot be written.
    """
    if isinstance(logical, types.Array):
        return _lists(form.items(form.optional(_part(schema["items"], logical.element, form))))
    if isinstance(logical, types.Map):
        return _dicts(form.members(form.optional(_part(schema["values"], logical.value, form))))
    if isinstance(logical, types.Struct):
        return _struct(schema, logical, form)
    make = _SPECIAL.get(type(logical))
    return None if make is None else make(schema, logical, form)


def invalid_printer(
    schema: Schema, logical: LogicalType, form: Form
) -> Callable[[str], Any] | None:
    """The printer of values that Python's types lack: the connector's number or text again."""
    kind = schema["type"]
    if isinstance(logical, types.Date | types.DateTime) and kind in _INTEGERS:
        return lambda text: form.integer(_checked_number(text, _INTEGERS[kind]))
    if kind == "string" and isinstance(
        logical, types.Date | types.DateTime | types.Timestamp | types.TimeTz
    ):
        return form.text
    return None


def encoding_of(schema: Schema, logical: LogicalType, form: Form) -> Encoding:
    """The value encoding of a column with this schema.

    The kernel writes ordinary values by it, also of types with a printer of their own.
    """
    if isinstance(logical, types.Decimal) and not form.has_schema:
        return MYSQL_TEXT
    if isinstance(logical, types.Geometry) and _is_point(schema):
        return Encoding("other")
    read = field_type(schema, ProducerProfile())
    profile = attrs.evolve(read.profile, unsigned=False)

    def of_part(logical: LogicalType, part: Schema) -> Encoding:
        return encoding_of(part, logical, form)

    return encoding_of_field(Column("", read.source_type, logical), schema, profile, of_part)


def placeholder_of(logical: LogicalType) -> Any:
    """The connector's value for one that it does not know; None if the type has none."""
    text = DEFAULT_PLACEHOLDER
    if isinstance(logical, types.Text | types.Json):
        return text
    if isinstance(logical, types.Binary):
        return text.encode()
    if isinstance(logical, types.Array):
        if isinstance(logical.element, types.Int) and logical.element.bits > 8:
            return [*text.encode()]
        item = placeholder_of(logical.element)
        return [item] if isinstance(item, str) else None
    if isinstance(logical, types.Map) and isinstance(logical.value, types.Text):
        return {text: text}
    return None


def _part(schema: Schema, logical: LogicalType, form: Form) -> Print:
    """The printer of an item, a map's value or a struct's field."""
    write = open_printer(schema, logical, form)
    if write is None:
        write = form.scalar(encoding_of(schema, logical, form), logical)
    check = limit_check(Column("", "", logical))
    print_invalid = invalid_printer(schema, logical, form)

    def print_part(value: Any) -> Any:
        if type(value) is InvalidValue and print_invalid is not None:
            return print_invalid(value.text)
        if check is not None:
            check(value)
        if value == 0 and type(value) is float:
            # -0.0; TiCDC's -0, which a column has, is an integer for parsers of JSON.
            return form.floats[schema["type"]](value)
        return write(value)

    return print_part


def _lists(write: Print) -> Print:
    def print_list(value: Any) -> Any:
        if type(value) is not list:
            raise TypeError("not a list")
        return write(value)

    return print_list


def _dicts(write: Print) -> Print:
    def print_dict(value: Any) -> Any:
        if type(value) is not dict:
            raise TypeError("not a dict")
        return write(value)

    return print_dict


def _struct(schema: Schema, logical: types.Struct, form: Form) -> Print:
    own = dict(logical.fields)
    write = form.record(
        {
            field["field"]: form.optional(_part(field, own[field["field"]], form))
            for field in schema["fields"]
        }
    )

    def print_struct(value: Any) -> Any:
        if unknown := value.keys() - own.keys():
            raise ValueError(f"a struct with an unknown field {show(min(unknown))}")
        return write(value)

    return _dicts(print_struct)


# --- Scalars without a value encoding ---------------------------------------------------


def _decimal(schema: Schema, logical: Any, form: Form) -> Print | None:
    name = schema.get("name")
    if not form.has_schema:
        return print_decimal
    if name == DECIMAL:
        unscaled = unscaled_bytes(int(schema["parameters"]["scale"]))
        return lambda value: form.data(unscaled(value))
    if name != VARIABLE_DECIMAL["name"]:
        return None
    write = form.record({"scale": form.integer, "value": form.data})

    def print_variable(value: Any) -> Any:
        if type(value) is not decimal.Decimal or not value.is_finite():
            raise TypeError("not a finite decimal")
        scale = max(-int(value.as_tuple().exponent), 0)
        return write({"scale": scale, "value": unscaled_bytes(scale)(value)})

    return print_variable


def _integer(schema: Schema, logical: Any, form: Form) -> Print | None:
    # An unsigned one in an array, a map or a struct.
    if schema.get("name") != DECIMAL or not form.has_schema:
        return None
    unscaled = unscaled_bytes(0)
    return lambda value: form.data(unscaled(decimal.Decimal(value)))


def _bits(schema: Schema, logical: Any, form: Form) -> Print | None:
    if schema["type"] == "boolean":
        return None
    bits = logical.bits or 64
    check = check_int(0, (1 << bits) - 1)
    return lambda value: form.data(check(value).to_bytes((bits + 7) // 8, "little"))


def _float(schema: Schema, logical: Any, form: Form) -> Print:
    print_finite = form.scalar(encoding_of(schema, logical, form), logical)
    print_special = form.floats[schema["type"]]

    def print_float(value: Any) -> Any:
        if type(value) is float and not math.isfinite(value):
            return print_special(value)
        return print_finite(value)

    return print_float


def _label(schema: Schema, logical: Any, form: Form) -> Print:
    """The names in a schema may be those before an ALTER TYPE: any is written."""
    of_number = (enum_name if isinstance(logical, types.Enum) else set_names)(logical.names)
    return lambda value: form.text(value if type(value) is str else of_number(value))


def _interval(schema: Schema, logical: Any, form: Form) -> Print:
    if schema["type"] == "string":
        return lambda value: form.text(interval_text(_interval_of(value)))
    factor = 1_000 if schema["name"].endswith("NanoDuration") else 1

    def print_micros(value: Any) -> Any:
        months, days, micros = _interval_of(value)
        if months or days:
            raise ValueError("an interval with months or days, which its column's numbers lack")
        return form.integer(_checked(micros * factor, 63))

    return print_micros


def _interval_of(value: Any) -> IntervalValue:
    if type(value) is not IntervalValue:
        raise TypeError("not an interval")
    return value


def _time_tz(schema: Schema, logical: Any, form: Form) -> Print:
    return lambda value: form.text(time_tz_text(value))


def _clock(schema: Schema, logical: Any, form: Form) -> Print | None:
    """Texts of ``time.precision.mode=isostring``, and nanoseconds."""
    if schema["type"] == "string":
        return lambda value: form.text(_iso_text(value))
    if not str(schema.get("name")).endswith(("NanoTimestamp", "NanoTime")):
        return None
    micros = micros_of(logical)
    return lambda value: form.integer(_checked(micros(value) * 1_000, 63))


def _iso_text(value: Any) -> str:
    if isinstance(value, timedelta):
        return format_time(value, 6 if value.microseconds else 0) + "Z"
    if isinstance(value, date):
        return value.isoformat() + "Z"
    raise TypeError("neither a date nor a time")


def _vector(schema: Schema, logical: Any, form: Form) -> Print:
    if schema["type"] == "string":
        return lambda value: form.text(print_vector(value))
    return _lists(form.items(_part(schema["items"], types.Float(logical.bits), form)))


def _geometry(schema: Schema, logical: Any, form: Form) -> Print:
    is_point = _is_point(schema)
    coordinates = dict.fromkeys("xy", form.floats["double"]) if is_point else {}
    write = form.record(coordinates | {"wkb": form.data, "srid": form.optional(form.integer)})

    def print_geometry(value: Any) -> Any:
        if type(value) is not GeometryValue or value.wkb is None:
            raise ValueError("a geometry without WKB")
        # Debezium writes SRID 0 as null.
        printed = {"wkb": value.wkb, "srid": value.srid or None}
        return write(printed | _coordinates(value.wkb) if is_point else printed)

    return print_geometry


def _is_point(schema: Schema) -> bool:
    """Whether it has coordinates, too."""
    return len(schema["fields"]) > 2


def _coordinates(wkb: bytes) -> dict[str, float]:
    order = "<" if wkb[:1] == b"\1" else ">"
    try:
        kind, x, y = struct.unpack(order + "xIdd", wkb)
    except struct.error:
        kind = 0
    if kind != 1:
        raise ValueError("its WKB is not of a point")
    return {"x": x, "y": y}


_SPECIAL: Final[Mapping[type, Callable[[Schema, Any, Form], Print | None]]] = {
    types.Int: _integer,
    types.Decimal: _decimal,
    types.Bit: _bits,
    types.Float: _float,
    types.Enum: _label,
    types.Set: _label,
    types.Interval: _interval,
    types.TimeTz: _time_tz,
    types.Date: _clock,
    types.DateTime: _clock,
    types.Time: _clock,
    types.Vector: _vector,
    types.Geometry: _geometry,
}


def _checked_number(text: str, bits: int) -> int:
    if not _NUMBER(text):
        raise ValueError("not a number of its column")
    return _checked(int(text), bits)


def _checked(number: int, bits: int) -> int:
    if number.bit_length() > bits:
        raise ValueError(f"a number of more than {bits + 1} bits")
    return number
