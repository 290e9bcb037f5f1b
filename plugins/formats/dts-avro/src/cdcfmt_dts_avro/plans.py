"""Decode plans of tables, created once per list of fields and cached.

Every record has the list of fields.  The list is self-delimiting, so a record with the same
bytes there has the same list, which is not parsed again.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from cdcfmt_core.caches import text_size
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Column, Image, TableSchema
from cdcfmt_core.types import LogicalType, Text
from cdcfmt_dts_avro.message import EMPTY_OBJECT, NULL
from cdcfmt_dts_avro.record import Envelope
from cdcfmt_dts_avro.types import family_of, overruled_number, source_type_of, type_of_nulls
from cdcfmt_dts_avro.values import ABSENT, OtherType, Reader, open_reader, read_empty, read_null
from cdcfmt_toolkit.plans import Variants
from cdcfmt_toolkit.wire_avro import read_block, read_choice, read_long, read_text

PK_TAG = "pk_uk_info"
_MAX_SCHEMAS_OF_A_TABLE = 4
_COLUMN_BYTES = 1_250
"""Memory of a column in a plan, in addition to its schemas."""
_MAX_FIELDS = 20_000
"""More than any database allows; a longer list of short names could fill the memory."""

_Field: TypeAlias = tuple[str, int]


class TablePlan:
    """Fields, the types of their values so far, and a reader per column and branch."""

    def __init__(self, envelope: Envelope, fields: list[_Field], encoded: bytes) -> None:
        self.encoded = encoded
        self._family = family_of(envelope.source_type)
        self._database, self._schema_name, self._table = envelope.names
        self._keys = _primary_key(envelope.wire["tags"].get(PK_TAG))
        self._fields = fields
        self._types = [type_of_nulls(self._family, number) for _, number in fields]
        self._seen = [False] * len(fields)
        self._readers: list[dict[int, Reader]] = [_readers() for _ in fields]
        self._columns = [
            (index, name, readers)
            for index, ((name, _), readers) in enumerate(zip(fields, self._readers, strict=True))
        ]
        self._schemas: dict[tuple[LogicalType, ...], TableSchema] = {}
        self._schema: TableSchema | None = None
        self._changed: list[int] = []

    @property
    def table_schema(self) -> TableSchema:
        """The schema with the types of the values so far."""
        if self._schema is None:
            types = tuple(self._types)
            if types not in self._schemas:
                if len(self._schemas) >= _MAX_SCHEMAS_OF_A_TABLE:
                    self._schemas.clear()
                self._schemas[types] = self._make_schema(types)
            self._schema = self._schemas[types]
        return self._schema

    def _make_schema(self, types: tuple[LogicalType, ...]) -> TableSchema:
        keys = frozenset(self._keys)
        columns = tuple(
            Column(
                name,
                source_type_of(self._family, number, logical),
                logical,
                key=name in keys,
                flags=overruled_number(self._family, number, logical),
            )
            for (name, number), logical in zip(self._fields, types, strict=True)
        )
        return TableSchema(self._database, self._table, columns, self._keys, self._schema_name)

    def read_images(self, data: bytes, at: int) -> tuple[Image | None, Image | None, int]:
        """The before and after image; a text instead of an image is ignored."""
        before, at = self._read_image(data, at, "beforeImages")
        self._changed.clear()
        after, at = self._read_image(data, at, "afterImages")
        for index in self._changed:
            name = self._fields[index][0]
            if before is not None and before.values.get(name) is not None:
                raise DecodeError("has values of two types in one row", field=name)
        return before, after, at

    def _read_image(self, data: bytes, at: int, field: str) -> tuple[Image | None, int]:
        branch, at = read_choice(data, at, 3, "branch")
        if branch == 0:
            return None, at
        if branch == 1:
            _, at = read_text(data, at)
            return None, at
        values: dict[str, Any] = {}
        done = 0
        columns = self._columns
        name = ""
        complete = True
        count, at = read_block(data, at)
        try:
            while count:
                if done + count > len(columns):
                    raise DecodeError(f"has {done + count} values and fields {len(columns)}")
                # Usually one block with all columns.
                block = columns if count == len(columns) else columns[done : done + count]
                for index, name, readers in block:
                    try:
                        value, at = readers[data[at]](data, at + 1)
                    except (KeyError, OtherType):
                        value, at = self._learn(index, data, at)
                    if value is ABSENT:
                        complete = False
                    else:
                        values[name] = value
                done += count
                name = ""
                count, at = read_block(data, at)
        except ValueError as error:
            raise _named(error, f"{field}.{name}" if name else field) from error
        if done == 0:
            # Like the official reader: an empty array is not an image.
            return None, at
        if done != len(columns):
            raise DecodeError(f"has {done} values and fields {len(columns)}", field=field)
        return Image(values, complete), at

    def _learn(self, index: int, data: bytes, at: int) -> tuple[Any, int]:
        """Read a value whose branch or type is new for its column."""
        branch, at = read_choice(data, at, EMPTY_OBJECT + 1, "branch")
        readers = self._readers[index]
        if branch in (NULL, EMPTY_OBJECT):
            # A branch number encoded with more bytes than necessary.
            return readers[branch << 1](data, at)
        number = self._fields[index][1]
        logical, reader = open_reader(self._family, number, branch, data, at)
        known = self._types[index]
        if logical != known:
            # A change of the charset does not change the type.
            if self._seen[index] and not (isinstance(logical, Text) and isinstance(known, Text)):
                self._changed.append(index)
            readers.clear()
            readers.update(_readers())
            self._types[index] = logical
            self._schema = None
        self._seen[index] = True
        readers[branch << 1] = reader
        return reader(data, at)


class TablePlans:
    """Plans by table and fields; rows with the same fields share one schema object."""

    def __init__(self) -> None:
        self._plans: Variants[tuple[str, str | None, str | None], TablePlan] = Variants()

    def read(self, envelope: Envelope, data: bytes) -> tuple[TablePlan | None, int]:
        """The plan for a record's fields (None without fields), and the end of the fields."""
        at = envelope.end
        branch = data[at]
        if branch == 0:
            return None, at + 1
        key = (envelope.source_type, envelope.wire["objectName"], envelope.wire["tags"].get(PK_TAG))
        for plan in self._plans.of(key):
            if data.startswith(plan.encoded, at):
                return plan, at + len(plan.encoded)
        fields, end = _read_fields(data, at)
        if fields is None:
            return None, end
        plan = TablePlan(envelope, fields, data[at:end])
        size = text_size(*key, plan.encoded) + _COLUMN_BYTES * len(fields)
        return self._plans.add(key, plan, size), end


def _readers() -> dict[int, Reader]:
    return {NULL << 1: read_null, EMPTY_OBJECT << 1: read_empty}


def _read_fields(data: bytes, at: int) -> tuple[list[_Field] | None, int]:
    branch, at = read_choice(data, at, 3, "branch")
    if branch == 0:
        return None, at
    if branch == 1:
        text, at = read_text(data, at)
        if text:
            raise DecodeError("is text, not a list", field="fields", sample=text)
        return None, at
    fields: list[_Field] = []
    count, at = read_block(data, at)
    while count:
        if len(fields) + count > _MAX_FIELDS:
            raise DecodeError(f"has more than {_MAX_FIELDS} fields", field="fields")
        for _ in range(count):
            name, at = read_text(data, at)
            number, at = read_long(data, at)
            fields.append((name, number))
        count, at = read_block(data, at)
    if len({name for name, _ in fields}) < len(fields):
        raise DecodeError("has a name twice", field="fields")
    if at > len(data):
        raise IndexError
    return fields, at


def _primary_key(text: str | None) -> tuple[str, ...]:
    """``{"PRIMARY": ["id"], "uk_name": [...]}``: the columns of PRIMARY."""
    if not text:
        return ()
    try:
        keys = json.loads(text)
    except (ValueError, RecursionError):
        keys = None
    names = keys.get("PRIMARY", []) if isinstance(keys, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DecodeError(
            "is not an object of lists of names", field="tags.pk_uk_info", sample=text
        )
    return tuple(names)


def _named(error: ValueError, field: str) -> DecodeError:
    if isinstance(error, DecodeError):
        return error if error.field else error.at(field=field)
    return DecodeError(str(error), field=field)
