"""Row messages as JSON for the compiled kernel.

The kernel's counterpart is ``spark_bridge/kernel/src/write/plan.rs``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator
from typing import Any, Final

import attrs

from cdcfmt_core import types as logical
from cdcfmt_core.encoding import MessageEncoder
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.types import LogicalType
from cdcfmt_mysql.column_type import binary_lengths
from cdcfmt_mysql.members import MAX_ENUM, MAX_SET, enum_index
from cdcfmt_toolkit.column_writer import to_bytes
from cdcfmt_toolkit.encodings import EncodedPart, Encoding, described_parts, parts_of
from cdcfmt_toolkit.json_output import escape_for_go
from cdcfmt_toolkit.row_messages import (
    ByLimit,
    ByPrecision,
    Checksum,
    Choice,
    Columns,
    ColumnTemplate,
    ExtraValue,
    ImageTemplate,
    Number,
    Part,
    Placeholder,
    RowMessage,
    RowMessages,
    RowNumber,
    Texts,
    Wire,
)
from cdcfmt_toolkit.row_rules import RowBatches
from cdcfmt_toolkit.wire_avro import write_long


def describe_table(
    table: TableSchema,
    messages: RowMessages,
    line_of: Callable[[RowMessage], str | None],
    json_texts: Container[str] = (),
) -> dict[str, Any]:
    """A table's columns and messages, as JSON.

    - ``line_of``: returns the part of a message written as a line, ``value`` or ``message``;
      None: the reference writes these rows
    - ``json_texts``: JSON columns whose values are texts
    """
    places = {name: place for place, name in enumerate(table.column_names)}
    version = messages.version

    types = {column.name: column.type for column in table.columns}
    shared = _Shared()

    def describe(message: RowMessage, some: Iterable[Part]) -> list[int]:
        only = places if message.only is None else message.only
        return _Describing(places, types, only, message.wire, shared).numbers(some)

    described = {
        "name": [table.database, table.schema or "", table.table],
        "columns": [
            {
                "name": column.name,
                "printer": _JSON_TEXT if column.name in json_texts else _printer(column),
            }
            for column in table.columns
        ],
        "keys": [places[name] for name in table.key_columns if name in places],
        "messages": {
            op: {
                "key": None if message.key is None else describe(message, message.key),
                "value": describe(message, message.value),
                "wire": message.wire,
                "compresses_key": message.compresses_key,
                "line": line,
            }
            for op, message in messages.by_op.items()
            if (line := line_of(message)) and not _is_unknown_to_kernel(message)
        },
        "version": None if version is None else attrs.asdict(version),
    }
    return {**described, "parts": shared.parts, "members": shared.members}


def describe_batches(batches: RowBatches) -> dict[str, Any]:
    """How rows are batched into messages, as JSON."""
    return {**attrs.asdict(batches), "head": _bytes(batches.head)}


def describe_partitions(encoder: MessageEncoder) -> dict[str, Any] | None:
    """How a row's partition is chosen, as JSON; None without a topic."""
    if encoder.partitions is None:
        return None
    name, columns = encoder.partitioner
    by: Any = {"index-value": "key", "table": "table", "ts": "commit_ts"}
    return {"count": encoder.partitions, "by": by.get(name, {"columns": columns})}


def _bytes(text: str | bytes) -> str:
    """Bytes as characters, as JSON has no bytes."""
    return to_bytes(text).decode("latin-1")


def _is_unknown_to_kernel(message: RowMessage) -> bool:
    """Whether images depend on which columns a row leaves out."""
    parts = *message.value, *(message.key or ())
    return any(
        (part.absent is not None and message.only is not None) or (part.counted and part.changed)
        for part in parts
        if type(part) is ImageTemplate
    )


@attrs.frozen
class _Shared:
    """The distinct parts of all messages, and the distinct columns of all images (``members``)."""

    parts: list[Any] = attrs.field(factory=list)
    members: list[Any] = attrs.field(factory=list)
    known: dict[tuple[str, int, Wire], int] = attrs.field(factory=dict)
    """Indexes of ``members`` by column, id and wire."""


@attrs.frozen
class _Describing:
    """Describes parts of rows with complete images; only the columns ``only`` are written."""

    places: dict[str, int]
    types: dict[str, LogicalType]
    only: Collection[str]
    wire: Wire
    shared: _Shared

    def numbers(self, some: Iterable[Part]) -> list[int]:
        """Indexes of the shared parts."""
        return [self._number(self._part(part)) for part in self._flat(some)]

    def _number(self, part: dict[str, Any]) -> int:
        parts = self.shared.parts
        for number, known in enumerate(parts):
            if known == part:
                return number
        parts.append(part)
        return len(parts) - 1

    def _flat(self, parts: Iterable[Part]) -> Iterator[Part]:
        for part in parts:
            if isinstance(part, Columns):
                yield from self._flat(part.of(self.only))
            else:
                yield part.default if isinstance(part, Placeholder) else part

    def _part(self, part: Part) -> dict[str, Any]:
        if isinstance(part, str | bytes):
            return {"text": _bytes(part)}
        if isinstance(part, Number):
            return {"number": part.name}
        if isinstance(part, Checksum):
            kinds = (part.kinds or {}).items()
            columns = [{"place": self.places[name], "kind": kind} for name, kind in kinds]
            return {"checksum": {"columns": columns}}
        if isinstance(part, Texts):
            return {"texts": {"name": part.name, "more": list(part.more.items())}}
        if isinstance(part, RowNumber):
            return {"row_number": part.name}
        if isinstance(part, Choice):
            among = [(texts, self._chosen(some)) for texts, some in part.among]
            default = self._chosen(part.default)
            return {"choice": {"name": part.name, "among": among, "default": default}}
        if isinstance(part, ImageTemplate):
            return {"members": self._image(part)}
        if isinstance(part, ByLimit | ByPrecision) and part.column not in self.only:
            return {"text": _bytes(part.below if isinstance(part, ByLimit) else part.coarse)}
        described: dict[str, Any] = {
            name: _bytes(value) if name in _TEXTS and value is not None else value
            for name, value in attrs.asdict(part, recurse=False).items()
        }
        if isinstance(part, ExtraValue):
            image, name = part.column or ("after", "")
            has_column = part.column is not None and name in self.only
            place = {"image": image, "place": self.places[name]} if has_column else None
            return {"extra": {**described, "column": place}}
        kind = "by_limit" if isinstance(part, ByLimit) else "by_precision"
        return {kind: {**described, "place": self.places[described.pop("column")]}}

    def _chosen(self, some: tuple[Part, ...] | EncodeError) -> list[int] | None:
        return None if isinstance(some, EncodeError) else self.numbers(some)

    def _image(self, part: ImageTemplate) -> dict[str, Any]:
        columns = {name: each for name, each in part.columns.items() if name in self.only}
        head = to_bytes(part.head) + (write_long(len(columns)) if part.counted else b"")
        return {
            "image": part.image,
            "members": [self._column(name, template) for name, template in columns.items()],
            "head": self._escaped(head),
            "tail": self._escaped(part.tail),
            "missing": None if part.missing is None else _bytes(part.missing),
            "separator": self._escaped(part.separator),
            "changed": part.changed,
            "by_value": part.by_value,
        }

    def _column(self, name: str, template: ColumnTemplate) -> int:
        members, key = self.shared.members, (name, id(template), self.wire)
        if key not in self.shared.known:
            self.shared.known[key] = len(members)
            described = {
                "place": self.places[name],
                "encoding": _encoding(template.encoding, self.types[name]),
                "label": self._escaped(template.label),
                "head": self._escaped(template.head),
                "tail": self._escaped(template.tail),
                "null": None if template.null is None else self._escaped(template.null),
            }
            members.append(described)
        return self.shared.known[key]

    def _escaped(self, text: str | bytes) -> str:
        """Text of an image with the escapes of its wire."""
        if self.wire in ("json", "jsoniter"):
            text = escape_for_go(to_bytes(text), html=self.wire == "json")
        return _bytes(text)


_TEXTS: Final = frozenset({"head", "tail", "below", "above", "coarse", "fine", "default", "zero"})


def _encoding(encoding: Encoding, type_: LogicalType) -> dict[str, Any]:
    described: dict[str, Any] = {"encoding": encoding.name}
    if encoding.name == "json-number":
        described |= {
            "wraps": encoding.wraps,
            "doubles": encoding.doubles,
            "exponent_digits": encoding.exponent_digits,
        }
    elif encoding.name == "little-endian-bits":
        described["bits"] = getattr(type_, "bits", None) or 64
    elif encoding.name == "connect-decimal":
        described["scale"] = encoding.scale or getattr(type_, "scale", None) or 0
    elif parts := [_part(each) for each in parts_of(encoding, type_)]:
        described |= described_parts(encoding, parts)
    return described


def _part(part: EncodedPart) -> dict[str, Any]:
    return {
        "name": part.name,
        "encoding": _encoding(part.encoding, part.type),
        "printer": _printer(Column("", "", part.type)),
        "has_nulls": part.has_nulls,
    }


_NAMES: dict[type, str] = {
    logical.Bool: "bool",
    logical.Text: "text",
    logical.Date: "date",
    logical.Year: "year",
    logical.Json: "json",
    logical.DateTime: "date_time",
    logical.Timestamp: "timestamp",
    logical.Time: "time",
    logical.Uuid: "uuid",
    logical.TimeTz: "time_tz",
}
_JSON_TEXT: Final = {"logical": "json_text"}


def _printer(column: Column) -> dict[str, Any]:
    type_ = column.type
    if isinstance(type_, logical.Decimal):
        has_digits = type_.precision is not None and type_.scale is not None
        digits = (type_.precision, type_.scale) if has_digits else None
        return {"logical": "decimal", "digits": digits}
    if isinstance(type_, logical.Binary):
        return {"logical": "binary", "longest": binary_lengths(column.source_type)[1]}
    if isinstance(type_, logical.Int):
        low, high = type_.bounds
        return {"logical": "int", "low": low, "high": high}
    if isinstance(type_, logical.Bit):
        return {"logical": "int", "low": 0, "high": (1 << (type_.bits or 64)) - 1}
    if isinstance(type_, logical.Float):
        return {"logical": "float", "bits": type_.bits}
    if isinstance(type_, logical.DateTime | logical.Timestamp | logical.Time):
        return {"logical": _NAMES[type(type_)], "fsp": type_.fsp}
    if isinstance(type_, logical.Interval):
        return {"logical": "interval", "days": type_.days}
    if isinstance(type_, logical.Enum):
        names, index = type_.names or (), enum_index(type_.names)
        members = {name: index(name) for name in ("", *names)}
        most = MAX_ENUM if type_.names is None else len(names)
        is_named = type_.names is not None
        return {"logical": "enum", "members": members, "most": most, "is_named": is_named}
    if isinstance(type_, logical.Set):
        names = type_.names or ()
        members = {name: 1 << bit for bit, name in enumerate(names)}
        most = MAX_SET if type_.names is None else (1 << len(names)) - 1
        is_named = type_.names is not None
        return {"logical": "set", "members": members, "most": most, "is_named": is_named}
    return {"logical": _NAMES.get(type(type_), "other")}
