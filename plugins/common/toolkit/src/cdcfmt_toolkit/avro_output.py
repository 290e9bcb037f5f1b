"""Write Avro with a schema registry: names, schemas that are registered once, framed messages.

Sources: Apache Avro 1.12 specification, "Names"; TiCDC's ``codec/avro`` and ``codec/debezium``, for
the names that it adjusts and its options.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import attrs

from cdcfmt_core import Option
from cdcfmt_core.caches import Cache, text_size
from cdcfmt_core.encoder import EncoderContext
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column, Message
from cdcfmt_core.schema_registry import Part, SchemaId, SchemaRegistry, WriterSchema
from cdcfmt_core.types import Bit, Decimal, Int, LogicalType
from cdcfmt_mysql.numbers import check_int
from cdcfmt_toolkit.row_messages import ColumnTemplate, ImageSide, ImageTemplate
from cdcfmt_toolkit.wire_avro import NULL, SOME, write_bytes, write_long

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]")
_LARGEST: Final = (1 << 63) - 1
_UNSIGNED: Final = Int(64, signed=False)

DECIMALS: Final = "avroDecimalHandlingMode"
BIGINTS: Final = "avroBigintUnsignedHandlingMode"
AVRO_OPTIONS: Final = (
    Option(
        name=DECIMALS,
        type="choice",
        choices=("precise", "string"),
        default="precise",
        help="Avro: DECIMAL as Avro's own decimal, or as text, as TiCDC's "
        "`avro-decimal-handling-mode`.",
    ),
    Option(
        name=BIGINTS,
        type="choice",
        choices=("long", "string"),
        default="long",
        help="Avro: BIGINT UNSIGNED as a long or as text, as TiCDC's "
        "`avro-bigint-unsigned-handling-mode`.",
    ),
)


def avro_name(name: str) -> str:
    """A name with the characters that Avro allows, adjusted as in TiCDC."""
    clean = _NOT_IN_NAMES.sub("_", name)
    return "_" + clean if clean[:1].isdigit() else clean


def avro_names(columns: Iterable[Column], reserved: Iterable[str] = ()) -> dict[str, str]:
    """The field names of columns.

    :raises EncodeError: if two columns, or a column and a reserved name, have the same.
    """
    names: dict[str, str] = {}
    owners = {name: f"the field {name}" for name in reserved}
    for column in columns:
        name = names[column.name] = avro_name(column.name)
        if name in owners:
            raise EncodeError(
                f"in Avro its name is {name}, which {owners[name]} has, too: rename it",
                column=column.name,
            )
        owners[name] = f"column {column.name}"
    return names


def scale_of(column: Column) -> tuple[int, int]:
    """Precision and scale of a DECIMAL.

    :raises EncodeError: if they are unknown.
    """
    assert isinstance(column.type, Decimal)
    precision, scale = column.type.precision, column.type.scale
    if precision is None or scale is None:
        raise EncodeError(
            "Avro's decimal needs the column's precision and scale, which are unknown: set "
            f"{DECIMALS}=string, or declare the type",
            column=column.name,
        )
    return precision, scale


def is_text(logical: LogicalType, *, decimals: str, bigints: str) -> bool:
    """Whether numbers of this type are text, by :data:`AVRO_OPTIONS`."""
    if isinstance(logical, Decimal):
        return decimals == "string"
    return logical == _UNSIGNED and bigints == "string"


Print: TypeAlias = Callable[[Any], bytes]


def bits_printer(logical: Bit) -> Print:
    """The printer of BIT as bytes, highest first."""
    bits = logical.bits or 64
    check = check_int(0, (1 << bits) - 1)
    return lambda value: write_bytes(check(value).to_bytes((bits + 7) // 8, "big"))


def print_unsigned(value: Any) -> bytes:
    """Print a BIGINT UNSIGNED as a long that every reader reads as the same number."""
    if type(value) is int and value > _LARGEST:
        raise ValueError(f"beyond a long of Avro; set {BIGINTS}=string")
    return write_long(check_int(0, _LARGEST)(value))


def avro_image(
    image: ImageSide, columns: Mapping[str, ColumnTemplate], *, nullable: bool
) -> ImageTemplate:
    """An image as a record; ``nullable``: in a union with null, for an event without it."""
    head, missing = (SOME, NULL) if nullable else (b"", None)
    return ImageTemplate(image, columns, head, b"", missing, separator="")


SchemaKey: TypeAlias = tuple[SchemaRegistry, Part, str, str]
"""A registry, and the part, record and text of a schema."""

_ids: Cache[SchemaKey, SchemaId] = Cache(16 << 20)
"""The ids of registered schemas, of this process."""


def registered_ids(registry: SchemaRegistry | None) -> dict[SchemaKey, SchemaId]:
    """The ids of the schemas that this process has registered, for :func:`add_ids` in others."""
    return {key: found for key in _ids if key[0] == registry and (found := _ids.get(key))}


def add_ids(ids: Mapping[SchemaKey, SchemaId]) -> None:
    """Add ids of schemas that another process has registered, which are not registered again."""
    for key, schema_id in ids.items():
        _ids.add(key, schema_id, text_size(*key[2:]))


def forget() -> None:
    """Forget which schemas are registered; each is registered again with its next message."""
    _ids.clear()


@attrs.frozen
class Registered:
    """A schema of keys or values, registered with its first message.

    - ``record``: the full name of its record.
    """

    context: EncoderContext
    part: Part
    record: str
    text: str = attrs.field(repr=False)

    def frame(self, payload: bytes) -> tuple[bytes, tuple[tuple[str, bytes | None], ...]]:
        """The framed payload, and headers.

        :raises SinkError, OptionError: as :meth:`register`.
        """
        registry = self.context.schema_registry
        assert registry is not None
        return registry.frame(self.register(), payload, self.part)

    def register(self) -> SchemaId:
        """The id of the schema, which is registered once per process.

        :raises SinkError, OptionError: as :meth:`SchemaRegistry.register`.
        """
        registry = self.context.schema_registry
        assert registry is not None
        key = registry, self.part, self.record, self.text
        known = _ids.get(key)
        if known is None:
            schema = WriterSchema(0, "avro", self.text)
            known = registry.register(self.part, self.record, schema)
            _ids.add(key, known, text_size(self.record, self.text))
        return known


@attrs.frozen
class RegisteredPair:
    """The schemas of a table's keys and values; ``key``: None if its messages have no key."""

    key: Registered | None
    value: Registered

    def register(self) -> None:
        """Register both; raises as :meth:`Registered.register`."""
        for each in (self.key, self.value):
            if each is not None:
                each.register()

    def message(self, context: EncoderContext, key: bytes | None, value: bytes | None) -> Message:
        """The framed message.

        :raises EncodeError: if it is too large.
        :raises SinkError, OptionError: as :meth:`Registered.frame`.
        """
        headers: tuple[tuple[str, bytes | None], ...] = ()
        if key is not None:
            assert self.key is not None
            key, headers = self.key.frame(key)
        if value is not None:
            value, more = self.value.frame(value)
            headers += more
        context.large_messages.check(key, value or b"")
        return Message(key, value, headers)
