"""Kafka Connect's schemas and values in Avro.

An Avro schema becomes the Connect schema that JsonConverter would write beside the same row, so
that types and columns are read in one way.  Values differ from JSON's only where JSON has no such
value: bytes are bytes, and NaN and infinities are floats.

Sources: Confluent's ``AvroData`` and Apicurio's, which is a copy (``connect.type``,
``connect.name``, ``connect.parameters``); Debezium's ``SchemaNameAdjuster`` for escaped names;
TiCDC's ``debezium-avro`` (``connect.field``, ``tidb_type``).
"""

from __future__ import annotations

import base64
import decimal
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from cdcfmt_debezium.connect import DECIMAL, KAFKA, PRECISION
from cdcfmt_debezium.message import FLATTENED_PREFIX, PAYLOAD_KNOWN
from cdcfmt_toolkit.avro_schemas import AvroField, AvroNode

_TYPES: Final = {
    "boolean": "boolean",
    "int": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "bytes": "bytes",
    "fixed": "bytes",
    "string": "string",
    "enum": "string",
    "record": "struct",
    "array": "array",
    "map": "map",
}
_SMALL: Final = ("int8", "int16")
_LOGICAL: Final = {
    ("bytes", "decimal"): KAFKA + "Decimal",
    ("fixed", "decimal"): KAFKA + "Decimal",
    ("int", "date"): KAFKA + "Date",
    ("int", "time-millis"): KAFKA + "Time",
    ("long", "time-micros"): "io.debezium.time.MicroTime",
    ("long", "timestamp-millis"): KAFKA + "Timestamp",
    ("long", "timestamp-micros"): "io.debezium.time.MicroTimestamp",
    ("long", "local-timestamp-millis"): KAFKA + "Timestamp",
    ("long", "local-timestamp-micros"): "io.debezium.time.MicroTimestamp",
    ("string", "uuid"): "io.debezium.data.Uuid",
}
"""Avro's logical types without ``connect.name``, as written by Flink."""

# --- Names ------------------------------------------------------------------------------

# 009 and a digit is a tab, rather than one of the control characters from U+0090 on.
_ESCAPE: Final = re.compile(r"_u(?:(009)(?=[0-9a-f])|([0-9a-f]{4})|(00[0-9a-f]))")
_UNDERSCORE: Final = "_u005f"
ESCAPED: Final[Mapping[str, bool | None]] = {
    "auto": None,
    "none": False,
    "avro": False,
    "avro_unicode": True,
}
"""``field.name.adjustment.mode`` → whether names have escapes; None: by their looks."""
_OF_TABLES: Final = (".Value", ".Key", ".Envelope")


@attrs.frozen
class Names:
    """The columns' own names: ``connect.field``, or the names that ``avro_unicode`` escaped.

    Its escapes are ``_u`` and four hexadecimal digits, but three for characters below U+0010, and
    each underscore is one.  ``avro`` replaces characters by underscores, which cannot be undone.
    """

    escaped: bool

    def __call__(self, record: AvroNode, field: AvroField) -> str:
        own = field.props.get("connect.field")
        if type(own) is str:
            return own
        return unescaped(field.name) if self.escaped else field.name


def unescaped(name: str) -> str:
    """A name without escapes; the same name if an underscore in it begins none."""
    if not _is_escaped(name):
        return name
    text = _ESCAPE.sub(lambda escape: chr(int("".join(filter(None, escape.groups())), 16)), name)
    # Two escapes are one character beyond U+FFFF.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _is_escaped(name: str) -> bool:
    return name.count("_") == len(_ESCAPE.findall(name))


def are_escaped(root: AvroNode) -> bool:
    """Whether the columns' names look as written with ``avro_unicode``.

    An escaped underscore shows it, or the topic in the records' names; otherwise, each escape must
    be of a character that is escaped.
    """
    records = [node for node in _records(root, set()) if node.name.endswith(_OF_TABLES)]
    names = [
        field.name
        for record in records
        for field in record.fields
        if "_" in field.name
        and field.name not in PAYLOAD_KNOWN
        and not field.name.startswith(FLATTENED_PREFIX)
    ]
    if not names or not all(map(_is_escaped, names)):
        return False
    if any(_UNDERSCORE in name for name in names):
        return True
    topics = [record.name for record in records if "_" in record.name]
    if topics:
        return all(map(_is_escaped, topics))
    return all(not _has_needless_escape(name) for name in names)


def _has_needless_escape(name: str) -> bool:
    for escape in _ESCAPE.finditer(name):
        character = unescaped(escape[0])
        # A digit is escaped at the start of a name.
        is_first_digit = not escape.start() and character.isdigit()
        if character.isascii() and character.isalnum() and not is_first_digit:
            return True
    return False


def _records(node: AvroNode, seen: set[str]) -> Iterator[AvroNode]:
    """The records of a schema, each once."""
    if node.kind == "record":
        if node.name in seen:
            return
        seen.add(node.name)
        yield node
    for inner in (*(field.type for field in node.fields), *node.branches, node.items):
        if inner is not None:
            yield from _records(inner, seen)


# --- Schemas ----------------------------------------------------------------------------


def connect_fields(record: AvroNode, names: Names) -> tuple[dict[str, Any], ...]:
    """The fields of a record as Kafka Connect's JSON describes them."""
    return tuple(_Fields(names).of(record))


class _Fields:
    """Describes fields; a record that occurs twice is described once, within itself not at all."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._records: dict[str, list[dict[str, Any]]] = {}

    def of(self, record: AvroNode) -> list[dict[str, Any]]:
        known = self._records.get(record.name)
        if known is not None:
            return known
        self._records[record.name] = []
        fields = [self._field(record, field) for field in record.fields]
        self._records[record.name] = fields
        return fields

    def _field(self, record: AvroNode, field: AvroField) -> dict[str, Any]:
        wire = self._type(field.type)
        wire |= {"field": self._names(record, field), "optional": field.type.nullable}
        default = field.props.get("default")
        if default is not None:
            wire["default"] = _default(field.type, default, self._names)
        tidb_type = field.props.get("tidb_type")
        if tidb_type is not None:
            wire["tidb_type"] = tidb_type
        return wire

    def _type(self, node: AvroNode) -> dict[str, Any]:
        node = node.without_null
        props = node.props
        wire: dict[str, Any] = {"type": _TYPES.get(node.kind, node.kind)}
        if node.kind == "int" and props.get("connect.type") in _SMALL:
            wire["type"] = props["connect.type"]
        name = props.get("connect.name")
        # The converters write 64 for a precision that they do not know.
        digits = {} if name is not None else props
        if name is None:
            name = _LOGICAL.get((node.kind, str(props.get("logicalType"))))
        if name is not None:
            wire["name"] = name
        parameters = props.get("connect.parameters")
        parameters = dict(parameters) if type(parameters) is dict else {}
        if name == DECIMAL:
            for own, of_connect in (("scale", "scale"), ("precision", PRECISION)):
                # TiCDC names the parameter as Avro does.
                known = parameters.get(own, digits.get(own))
                if known is not None:
                    parameters.setdefault(of_connect, str(known))
        if parameters:
            wire["parameters"] = parameters
        if node.kind == "record":
            wire["fields"] = self.of(node)
        elif node.items is not None:
            wire["items" if node.kind == "array" else "values"] = self._type(node.items)
        return wire


def _default(node: AvroNode, value: Any, names: Names) -> Any:
    """A default as values of this type are read; in schemas, bytes are Latin-1 text."""
    node = node.without_null
    if node.kind in ("bytes", "fixed") and type(value) is str:
        return value.encode("latin-1", "replace")
    if node.kind == "record" and type(value) is dict:
        return {
            names(node, field): _default(field.type, value[field.name], names)
            for field in node.fields
            if field.name in value
        }
    if node.kind == "array" and node.items is not None and type(value) is list:
        return [_default(node.items, each, names) for each in value]
    return value


# --- Values -----------------------------------------------------------------------------


def json_value(value: Any) -> Any:
    """A value of Avro as JsonConverter writes it, and as an exact parser reads that.

    Bytes are base64, and fractions decimals.
    """
    if type(value) is bytes:
        return base64.b64encode(value).decode()
    if type(value) is float:
        if math.isfinite(value):
            return decimal.Decimal(repr(value))
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if type(value) is dict:
        return {name: json_value(each) for name, each in value.items()}
    if type(value) is list:
        return [json_value(each) for each in value]
    return value
