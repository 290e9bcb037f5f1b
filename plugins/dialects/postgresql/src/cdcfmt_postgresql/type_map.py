"""PostgreSQL's type texts, as ``format_type`` and tools print them, and their logical types.

Source: PostgreSQL's manual, "Data Types".  A type whose values no logical type has (``inet``,
``tsvector``, ``box``) is text.  Other names are of domains and enums, which :func:`domain_map`
adds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Final

import attrs

from cdcfmt_core import types
from cdcfmt_core.types import LogicalType, TypeMap
from cdcfmt_postgresql import composite_text, text
from cdcfmt_postgresql.text import Read

_MAX_DIMENSIONS = 6
"""The limit of the server."""
_LONGEST = 2_000
"""Characters of a type text; a longer one is unknown."""
_MAX_BITS = 64


@attrs.frozen
class PostgresType:
    """A logical type, the reader of its text, and the character between items of an array."""

    logical: LogicalType
    read: Read
    delimiter: str = ","


_NAMES: Final[Mapping[str, str]] = {
    "int2": "smallint",
    "smallserial": "smallint",
    "serial2": "smallint",
    "int": "integer",
    "int4": "integer",
    "serial": "integer",
    "serial4": "integer",
    "int8": "bigint",
    "bigserial": "bigint",
    "serial8": "bigint",
    "float4": "real",
    "float8": "double precision",
    "decimal": "numeric",
    "dec": "numeric",
    "bool": "boolean",
    "varbit": "bit varying",
    "timetz": "time with time zone",
    "timestamptz": "timestamp with time zone",
    "time without time zone": "time",
    "timestamp without time zone": "timestamp",
}
"""Synonyms."""

_TEXTS: Final = frozenset(
    {
        *("text", "citext", "name", "xml", "ltree", "lquery", "ltxtquery", '"char"', "refcursor"),
        *("char", "character", "bpchar", "varchar", "character varying", "nchar"),
        *("inet", "cidr", "macaddr", "macaddr8", "tsvector", "tsquery", "pg_lsn", "pg_snapshot"),
        *("point", "line", "lseg", "box", "path", "polygon", "circle", "jsonpath", "txid_snapshot"),
        *("regclass", "regproc", "regprocedure", "regtype", "regrole", "regnamespace", "tid"),
        # The number of digits is part of a value.
        *("bit varying", '"bit"'),
    }
)
_INTEGERS: Final = {"smallint": 16, "integer": 32, "bigint": 64}
_UNSIGNED: Final = {"oid": 32, "xid": 32, "cid": 32, "xid8": 64}
_RANGES: Final = {
    "int4range": "integer",
    "int8range": "bigint",
    "numrange": "numeric",
    "daterange": "date",
    "tsrange": "timestamp",
    "tstzrange": "timestamp with time zone",
}
_PLAIN: Final[Mapping[str, tuple[LogicalType, Read]]] = {
    "boolean": (types.Bool(), text.read_bool),
    "bytea": (types.Binary(), text.read_bytea),
    "date": (types.Date(), text.read_date),
    "double precision": (types.Float(64), text.read_float),
    "json": (types.Json(), text.read_text),
    "jsonb": (types.Json(), text.read_text),
    "money": (types.Decimal(19, 2), text.read_money),
    "real": (types.Float(32), text.read_real),
    "uuid": (types.Uuid(), text.read_uuid),
    "hstore": (types.Map(types.Text(), types.Text()), composite_text.read_hstore),
}
_TIMES: Final[Mapping[str, tuple[Callable[[int], LogicalType], Read]]] = {
    "time": (types.Time, text.read_time),
    "time with time zone": (types.TimeTz, text.read_time_tz),
    "timestamp": (types.DateTime, text.read_timestamp),
    "timestamp with time zone": (types.Timestamp, text.read_timestamp_tz),
}

_PARAMETERS = re.compile(r"([^(]*)\(([^()]*)\)(.*)", re.DOTALL)
_INTERVAL = re.compile(r"interval(?: (?:year|month|day|hour|minute|second)(?: to [a-z]+)?)?")
_LABEL = re.compile(r"\s*'((?:[^']|'')*)'\s*(,|$)")


def resolve_type(source_type: str) -> LogicalType | None:
    """The logical type of a type text; None for domains, enums and other unknown names."""
    found = find_type(source_type)
    return None if found is None else found.logical


def open_reader(source_type: str) -> Read | None:
    """The reader of the server's text of a type; None for an unknown type."""
    found = find_type(source_type)
    return None if found is None else found.read


def find_type(source_type: str) -> PostgresType | None:
    return _find(source_type.strip()) if len(source_type) <= _LONGEST else None


def domain_map(name: str, domains: Mapping[str, str]) -> TypeMap:
    """A type map that knows domains and enums, too, also as items of arrays.

    :param domains: their names, as messages have them, with their base types: ``email``:
        ``character varying(80)``, ``mood``: ``enum('sad', 'ok')``.
    :raises ValueError: for a base type that is unknown.
    """
    bases = {domain.strip().lower(): base for domain, base in domains.items()}

    def find(source_type: str) -> PostgresType | None:
        item, _, dimensions = source_type.strip().partition("[")
        base = bases.get(item.strip().lower())
        return None if base is None else find_type(f"{base}[{dimensions}" if dimensions else base)

    for domain in bases:
        if find(domain) is None:
            raise ValueError(f"{domain}: the base type {bases[domain]!r} is unknown")

    def resolve(source_type: str) -> LogicalType | None:
        return None if (found := find(source_type)) is None else found.logical

    def open_domain_reader(source_type: str) -> Read | None:
        return None if (found := find(source_type)) is None else found.read

    return TypeMap(
        name,
        resolve,
        "domains and enums of a database",
        overrides=POSTGRESQL.name,
        open_reader=open_domain_reader,
    )


@lru_cache(maxsize=1_024)
def _find(source_type: str) -> PostgresType | None:
    item, dimensions = _item_of(source_type)
    if dimensions:
        return _array(_item(item), dimensions)
    return _item(item) or (_array(_item(item[1:]), 1) if item[:1] == "_" else None)


def _item_of(source_type: str) -> tuple[str, int]:
    """The type of an array's items, and the number of dimensions; 0 for no array."""
    dimensions = 0
    while source_type.endswith("]"):
        source_type, _, size = source_type[:-1].rpartition("[")
        if size.strip(" 0123456789"):
            return "", 0
        source_type = source_type.rstrip()
        dimensions += 1
    if source_type[-6:].lower() == " array":
        return source_type[:-6], max(1, dimensions)
    return source_type, dimensions


def _array(item: PostgresType | None, dimensions: int) -> PostgresType | None:
    if item is None or dimensions > _MAX_DIMENSIONS:
        return None
    logical = item.logical
    for _ in range(dimensions):
        logical = types.Array(logical)
    read = composite_text.array_reader(item.read, dimensions, item.delimiter)
    return PostgresType(logical, read)


def _item(source_type: str) -> PostgresType | None:
    """A type that is no array."""
    if labels := _enum_labels(source_type):
        return PostgresType(types.Enum(labels), text.read_text)
    return _scalar(" ".join(source_type.lower().split()))


def _scalar(name: str) -> PostgresType | None:
    parameters: list[int] = []
    if (found := _PARAMETERS.fullmatch(name)) is not None:
        # timestamp(3) with time zone
        name = " ".join((found[1] + found[3]).split())
        if name in ("geometry", "geography"):
            return PostgresType(types.Geometry(), text.read_geometry)
        texts = found[2].split(",")
        if not all(re.fullmatch(r" *-?[0-9]{1,9} *", each) for each in texts):
            return None
        parameters = [int(each) for each in texts]
    name = _NAMES.get(name, name)
    if name in _INTEGERS:
        integer = types.Int(_INTEGERS[name])
        return PostgresType(integer, partial(text.read_int, integer.bounds))
    if name in _UNSIGNED:
        integer = types.Int(_UNSIGNED[name], signed=False)
        return PostgresType(integer, partial(text.read_int, integer.bounds))
    if name == "float":
        single = bool(parameters) and parameters[0] <= 24
        name = "real" if single else "double precision"
    if name in _PLAIN:
        return PostgresType(*_PLAIN[name])
    if name == "numeric":
        return PostgresType(_numeric(parameters), text.read_numeric)
    if name == "bit":
        bits = parameters[0] if parameters else 1
        if 1 <= bits <= _MAX_BITS:
            return PostgresType(types.Bit(bits), partial(text.read_bits, bits))
        return PostgresType(types.Text(), text.read_text)
    if name in _TEXTS:
        return PostgresType(types.Text(), text.read_text, ";" if name == "box" else ",")
    if name in _TIMES:
        logical, read = _TIMES[name]
        return PostgresType(logical(parameters[0] if parameters else 6), read)
    if _INTERVAL.fullmatch(name) is not None:
        return PostgresType(types.Interval(), text.read_interval)
    if name in ("geometry", "geography"):
        return PostgresType(types.Geometry(), text.read_geometry)
    return _range(name)


def _numeric(parameters: list[int]) -> types.Decimal:
    if not parameters:
        return types.Decimal()
    precision, scale = parameters[0], parameters[1] if len(parameters) > 1 else 0
    # numeric(5,-2) has 7 digits before the point, numeric(3,5) has 5 after it.
    return types.Decimal(max(precision - min(scale, 0), scale), max(scale, 0))


def _range(name: str) -> PostgresType | None:
    several = name.replace("multirange", "range")
    if several not in _RANGES:
        return None
    item = _scalar(_RANGES[several])
    assert item is not None
    flags = ("lower_inclusive", "upper_inclusive", "is_empty")
    fields = ("lower", item.logical), ("upper", item.logical)
    logical = types.Struct((*fields, *((flag, types.Bool()) for flag in flags)))
    if name == several:
        return PostgresType(logical, partial(composite_text.read_range, item.read))
    read = partial(composite_text.read_multirange, item.read)
    return PostgresType(types.Array(logical), read)


def _enum_labels(source_type: str) -> tuple[str, ...] | None:
    """The labels of ``enum('a', 'b')``."""
    if not (source_type[:5].lower() == "enum(" and source_type.endswith(")")):
        return None
    inner, at = source_type[5:-1], 0
    labels: list[str] = []
    while (found := _LABEL.match(inner, at)) is not None:
        labels.append(found[1].replace("''", "'"))
        at = found.end()
        if not found[2]:
            return tuple(labels)
    return None


POSTGRESQL: Final = TypeMap(
    "postgresql",
    resolve_type,
    "PostgreSQL's types, and its text of their values",
    open_reader=open_reader,
)
