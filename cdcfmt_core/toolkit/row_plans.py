"""Row messages and time zones as the compiled kernel takes them: JSON.

Its half is ``spark_bridge/kernel/src/write/plan.rs``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

import attrs

from cdcfmt_core import types as logical
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import TableSchema
from cdcfmt_core.mysql.members import MAX_ENUM, MAX_SET, enum_index
from cdcfmt_core.toolkit.avro_output import write_long
from cdcfmt_core.toolkit.column_writer import to_bytes
from cdcfmt_core.toolkit.encodings import Encoding
from cdcfmt_core.toolkit.row_messages import (
    Checksum,
    Choice,
    Columns,
    Either,
    Mark,
    Member,
    Members,
    Number,
    OfExtra,
    Part,
    RowMessage,
    RowMessages,
    RowNumber,
    Texts,
)
from cdcfmt_core.toolkit.row_rules import RowBatches, RowRules
from cdcfmt_core.types import LogicalType


def describe_table(
    table: TableSchema,
    messages: RowMessages,
    line_of: Callable[[RowMessage], str],
    json_texts: Container[str] = (),
) -> dict[str, Any]:
    """A table's columns and messages.

    - ``line_of``: says what of a message is a line: ``value`` or ``message``
    - ``json_texts``: JSON columns whose values are texts
    """
    places = {name: place for place, name in enumerate(table.column_names)}
    version = messages.version

    types = {column.name: column.type for column in table.columns}

    def parts(message: RowMessage, some: Iterable[Part]) -> list[Any]:
        only = places if message.only is None else message.only
        return [_part(part, places, types) for part in _of_whole_rows(some, only)]

    return {
        "name": [table.database, table.schema or "", table.table],
        "columns": [
            {
                "name": column.name,
                "printer": _JSON_TEXT if column.name in json_texts else _printer(column.type),
            }
            for column in table.columns
        ],
        "keys": [places[name] for name in table.key_columns if name in places],
        "messages": {
            op: {
                "key": None if message.key is None else parts(message, message.key),
                "value": parts(message, message.value),
                "wire": message.wire,
                "compresses_key": message.compresses_key,
                "line": line_of(message),
            }
            for op, message in messages.by_op.items()
        },
        "version": None if version is None else attrs.asdict(version),
    }


def describe_batches(batches: RowBatches) -> dict[str, Any]:
    """How messages of several rows are made."""
    return {**attrs.asdict(batches), "head": _bytes(batches.head)}


def describe_partitions(rules: RowRules) -> dict[str, Any] | None:
    """How the partition of a row is found, where there is a topic."""
    if rules.partitions is None:
        return None
    name, columns = rules.partitioner
    by: Any = {"index-value": "key", "table": "table", "ts": "commit_ts"}
    return {"count": rules.partitions, "by": by.get(name, {"columns": columns})}


def _bytes(text: str | bytes) -> str:
    """Bytes as characters, as JSON has none."""
    return to_bytes(text).decode("latin-1")


def _of_whole_rows(parts: Iterable[Part], only: Collection[str]) -> Iterator[Part]:
    """The parts of rows with whole images, of which these columns are written."""
    for part in parts:
        if isinstance(part, Columns):
            yield from part.of(only)
        elif isinstance(part, Mark):
            yield part.default
        elif isinstance(part, Members):
            columns = {name: each for name, each in part.columns.items() if name in only}
            count = write_long(len(columns)) if part.counted else b""
            head = to_bytes(part.head) + count
            yield attrs.evolve(part, columns=columns, head=head)
        else:
            yield part


def _part(part: Part, places: dict[str, int], types: dict[str, LogicalType]) -> dict[str, Any]:
    if isinstance(part, str | bytes):
        return {"text": _bytes(part)}
    if isinstance(part, Number):
        return {"number": part.name}
    if isinstance(part, Checksum):
        kinds = (part.kinds or {}).items()
        columns = [{"place": places[name], "kind": kind} for name, kind in kinds]
        return {"checksum": {"columns": columns}}
    if isinstance(part, Texts):
        return {"texts": {"name": part.name, "more": list(part.more.items())}}
    if isinstance(part, RowNumber):
        return {"row_number": part.name}
    if isinstance(part, Choice):
        return {"choice": _choice(part, places, types)}
    described: dict[str, Any] = {
        name: _bytes(value) if name in _TEXTS and value is not None else value
        for name, value in attrs.asdict(part, recurse=False).items()
    }
    if isinstance(part, OfExtra):
        if part.column is not None:
            image, name = part.column
            described["column"] = {"image": image, "place": places[name]}
        return {"extra": described}
    if isinstance(part, Members):
        for name in ("columns", "counted", "absent", "unchanged"):
            del described[name]
        members = [
            _member(member, places[name], types[name]) for name, member in part.columns.items()
        ]
        return {"members": {**described, "members": members}}
    kind = "either" if isinstance(part, Either) else "digits"
    return {kind: {**described, "place": places[described.pop("column")]}}


def _choice(
    choice: Choice, places: dict[str, int], types: dict[str, LogicalType]
) -> dict[str, Any]:
    def parts(some: tuple[Part, ...] | EncodeError) -> list[Any] | None:
        if isinstance(some, EncodeError):
            return None
        return [_part(part, places, types) for part in _of_whole_rows(some, places)]

    among = [(texts, parts(some)) for texts, some in choice.among]
    return {"name": choice.name, "among": among, "default": parts(choice.default)}


_TEXTS: Final = frozenset(
    {"head", "tail", "missing", "separator", "below", "above", "coarse", "fine"}
    | {"default", "zero"}
)


def _member(member: Member, place: int, type_: LogicalType) -> dict[str, Any]:
    return {
        "place": place,
        "encoding": _encoding(member.encoding, type_),
        "label": _bytes(member.label),
        "head": _bytes(member.head),
        "tail": _bytes(member.tail),
        "null": _bytes(member.null),
    }


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
    return described


_NAMES: dict[type, str] = {
    logical.Bool: "bool",
    logical.Decimal: "decimal",
    logical.Text: "text",
    logical.Binary: "binary",
    logical.Date: "date",
    logical.Year: "year",
    logical.Json: "json",
    logical.DateTime: "date_time",
    logical.Timestamp: "timestamp",
    logical.Time: "time",
}
_JSON_TEXT: Final = {"logical": "json_text"}


def _printer(type_: LogicalType) -> dict[str, Any]:
    if isinstance(type_, logical.Int):
        low, high = type_.bounds
        return {"logical": "int", "low": low, "high": high}
    if isinstance(type_, logical.Bit):
        return {"logical": "int", "low": 0, "high": (1 << (type_.bits or 64)) - 1}
    if isinstance(type_, logical.Float):
        return {"logical": "float", "bits": type_.bits}
    if isinstance(type_, logical.DateTime | logical.Timestamp | logical.Time):
        return {"logical": _NAMES[type(type_)], "fsp": type_.fsp}
    if isinstance(type_, logical.Enum):
        names, index = type_.names or (), enum_index(type_.names)
        members = {name: index(name) for name in ("", *names)}
        most = MAX_ENUM if type_.names is None else len(names)
        return {"logical": "enum", "members": members, "most": most}
    if isinstance(type_, logical.Set):
        names = type_.names or ()
        members = {name: 1 << bit for bit, name in enumerate(names)}
        most = MAX_SET if type_.names is None else (1 << len(names)) - 1
        return {"logical": "set", "members": members, "most": most}
    return {"logical": _NAMES.get(type(type_), "other")}


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_DAY = datetime(2040, 1, 1, tzinfo=UTC)
"""MySQL's TIMESTAMP ends in January 2038."""
_DAY, _STEP, _MICRO = timedelta(days=1), timedelta(minutes=15), timedelta(microseconds=1)


@functools.cache
def describe_offsets(zone: tzinfo) -> dict[str, Any]:
    """The offsets of a zone by spans of instants, in microseconds.

    None where it changes, and in hours that come again, which the reference counts.
    """
    starts: list[int] = []
    offsets: list[int | None] = []

    def add(start: datetime, end: datetime) -> bool:
        first, last = (at.astimezone(zone) for at in (start, end - _MICRO))
        is_plain = first.utcoffset() == last.utcoffset() and not (first.fold or last.fold)
        offset = first.utcoffset() if is_plain else None
        if offset is None and end - start > _STEP:
            return False
        micros = None if offset is None else offset // _MICRO
        if not offsets or offsets[-1] != micros:
            starts.append((start - _EPOCH) // _MICRO)
            offsets.append(micros)
        return True

    day = _EPOCH
    while day < _LAST_DAY:
        if not add(day, day + _DAY):
            for number in range(_DAY // _STEP):
                add(day + _STEP * number, day + _STEP * (number + 1))
        day += _DAY
    return {"starts": [*starts, (day - _EPOCH) // _MICRO], "offsets": offsets}
