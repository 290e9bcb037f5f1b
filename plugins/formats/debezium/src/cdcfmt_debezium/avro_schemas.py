"""Avro schemas of rows and their keys, in the form of TiCDC's ``debezium-avro``.

Connect's names, versions and parameters stand in ``connect.name`` and so on, as in the connectors'
Avro, and the columns' own names in ``connect.field``.  Members are in alphabetical order.

Source: TiCDC's ``codec/debezium``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.types import Binary, Decimal
from cdcfmt_debezium.connect import DECIMAL, KAFKA, PRECISION
from cdcfmt_debezium.connect_output import field_of, type_schema
from cdcfmt_debezium.connect_types import VARIABLE_DECIMAL
from cdcfmt_mysql.type_output import column_type
from cdcfmt_toolkit.avro_output import BIGINTS, DECIMALS, avro_name, is_text
from cdcfmt_toolkit.json_output import escape_for_go, valid_name

Wire = dict[str, Any]

_TYPES: Final = {"int32": "int", "int64": "long", "struct": "record"}
_SMALL: Final = ("int8", "int16")
_LOGICAL_TYPES: Final[dict[Any, str]] = {
    KAFKA + "Date": "date",
    KAFKA + "Time": "time-millis",
    KAFKA + "Timestamp": "timestamp-millis",
}
_MOST_DIGITS: Final = 64
"""What the converters write for a precision that they do not know."""


class AvroSchemas:
    """The schemas of one table: ``names`` are its columns' names in Avro.

    ``like_connector``: ``Key``, ``Value`` and ``Envelope`` in the namespace of the table.
    """

    def __init__(
        self, cluster: str, table: TableSchema, names: Mapping[str, str], *, like_connector: bool
    ) -> None:
        parts = cluster, valid_name(table.database), table.schema
        self._space = ".".join(avro_name(part) for part in parts if part)
        self._table = avro_name(valid_name(table.table))
        self._row = self._table
        if like_connector:
            self._space, self._table, self._row = f"{self._space}.{self._row}", "", "Value"
        self._has_schema = table.schema is not None
        self._names = names
        self._seen: set[str] = set()

    def key(self, fields: Iterable[Wire]) -> tuple[str, str]:
        """The full name and the text of a key's schema."""
        return self._schema(self._table + "Key", fields)

    def value(self, fields: Iterable[Wire]) -> tuple[str, str]:
        """The full name and the text of an envelope's schema."""
        row = f"{self._space}.{self._row}"
        images = (
            {"type": "struct", "optional": True, "name": row, "field": "before", "fields": fields},
            # Defined above.
            {"type": "struct", "optional": True, "name": row, "field": "after"},
        )
        source = {
            "type": "struct",
            "name": f"{self._space}.Source",
            "field": "source",
            "fields": source_fields(has_schema=self._has_schema),
        }
        rest = _field("string", "op"), _field("int64", "ts_ms")
        return self._schema(self._table + "Envelope", (*images, source, *rest), version=1)

    def _schema(self, name: str, fields: Iterable[Wire], **more: Any) -> tuple[str, str]:
        self._seen.clear()
        full = f"{self._space}.{name}"
        wire = self._type({"type": "struct", "name": full, "fields": fields, **more}, "")
        text = json.dumps(wire, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return full, escape_for_go(text.encode()).decode()

    def _type(self, connect: Wire, path: str) -> Any:
        """The Avro type of a Connect schema; ``optional`` is the field's.

        ``path``: the name of the field, for a struct without name.
        """
        kind, name = connect["type"], connect.get("name", "")
        if kind == "struct" and name in self._seen:
            return name
        wire: Wire = {"type": _TYPES.get(kind, kind)}
        if kind in _SMALL:
            wire = {"type": "int", "connect.type": kind}
        for member in ("name", "version", "parameters"):
            if member in connect:
                wire[f"connect.{member}"] = connect[member]
        wire |= _logical_type(connect)
        if kind == "array":
            wire["items"] = self._item(connect["items"], path)
        elif kind == "map":
            wire["values"] = self._item(connect["values"], path)
        elif kind == "struct":
            name = name or f"{self._space}.{self._table}.{path}"
            self._seen.add(name)
            space, _, wire["name"] = name.rpartition(".")
            wire["namespace"] = space
            wire["fields"] = self._fields(connect["fields"], path)
        return wire["type"] if len(wire) == 1 else wire

    def _item(self, connect: Wire, path: str) -> Any:
        wire = self._type(connect, path)
        return ["null", wire] if connect.get("optional") else wire

    def _fields(self, fields: Iterable[Wire], path: str) -> list[Wire]:
        known: dict[str, Wire] = {}
        for field in fields:
            own = field["field"]
            name = avro_name(own) if path else self._names.get(own, own)
            if name in known:
                raise EncodeError(
                    f"the fields {own} and {known[name]['connect.field']} of a struct have one "
                    f"name in Avro, {name}: rename one",
                    column=path.partition(".")[0],
                )
            known[name] = self._field(field, name, f"{path}.{name}" if path else name)
        return list(known.values())

    def _field(self, connect: Wire, name: str, path: str) -> Wire:
        wire: Wire = {"connect.field": connect["field"], "name": name}
        wire["type"] = self._type(connect, path)
        if "tidb_type" in connect:
            wire["tidb_type"] = connect["tidb_type"]
        if connect.get("optional"):
            wire |= {"type": ["null", wire["type"]], "default": None}
        return wire


def _logical_type(connect: Wire) -> Wire:
    """Avro's own name of a type, for readers that know no names of Connect."""
    name = connect.get("name")
    if name != DECIMAL:
        found = _LOGICAL_TYPES.get(name)
        return {} if found is None else {"logicalType": found}
    parameters = connect["parameters"]
    precision = parameters.get("precision", parameters.get(PRECISION, _MOST_DIGITS))
    numbers = {"precision": int(precision), "scale": int(parameters["scale"])}
    return {"logicalType": "decimal", **numbers}


def _field(kind: str, name: str, *, optional: bool = False) -> Wire:
    return {"type": kind, "field": name, "optional": optional}


def source_fields(*, has_schema: bool) -> list[Wire]:
    """The fields of ``source``; TiCDC's tables have no schema."""
    return [
        _field("string", "version"),
        _field("string", "connector"),
        _field("string", "name"),
        _field("int64", "ts_ms"),
        _field("string", "snapshot", optional=True),
        _field("string", "db"),
        *([_field("string", "schema", optional=True)] if has_schema else ()),
        _field("string", "table"),
        _field("int64", "server_id"),
        _field("string", "gtid", optional=True),
        _field("string", "file"),
        _field("int64", "pos"),
        _field("int32", "row"),
        _field("int64", "thread", optional=True),
        _field("string", "query", optional=True),
        _field("int64", "commit_ts"),
        _field("string", "cluster_id"),
    ]


def avro_field(
    column: Column,
    schema: Wire | None,
    options: Mapping[str, Any],
    *,
    nullable: bool,
    milliseconds: bool,
) -> Wire:
    """The Connect schema of a column in Avro; ``schema``: its own, if it has one.

    A DECIMAL of unknown scale is written as the connectors do: each value with its own.
    """
    if is_text(column.type, decimals=options[DECIMALS], bigints=options[BIGINTS]):
        schema = {"type": "string"}
    elif schema is None or (
        # Readers take the digits from Avro's members; TiCDC has other parameters.
        schema.get("name") == DECIMAL and PRECISION in schema["parameters"]
    ):
        schema = _of_ticdc(column, milliseconds=milliseconds)
    return field_of(column, schema, nullable=nullable, tidb_type=options["enableTidbExtension"])


def _of_ticdc(column: Column, *, milliseconds: bool) -> Wire:
    if isinstance(column.type, Binary):
        return {"type": "bytes"}
    if not isinstance(column.type, Decimal):
        return type_schema(column.type, column_type(column), milliseconds=milliseconds)
    precision, scale = column.type.precision, column.type.scale
    if precision is None or scale is None:
        return VARIABLE_DECIMAL
    return {
        "type": "bytes",
        "name": DECIMAL,
        "parameters": {"precision": str(precision), "scale": str(scale)},
    }
